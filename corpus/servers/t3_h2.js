// node t3_h2.js PORT MODE: HTTP/2 with prior knowledge. What it did is in h2.json.
//   upload   reads the content of a POST and replies with its length; of one in three it reads nothing, and so never opens the window again
//   warming  gRPC: UNAVAILABLE for 1.9 s from the first call on, OK afterwards
//   feed     gRPC, server streaming: a message each 170 ms; one stream in six says nothing any more after 2.1 s, and stays open
'use strict'
const fs = require('fs')
const http2 = require('http2')
const [port, mode] = [+process.argv[2], process.argv[3]]
const counts = { connections: 0, requests: 0, unread: 0, unavailable: 0, ok: 0, messages: 0, quiet: 0 }
const GRPC = { ':status': 200, 'content-type': 'application/grpc' }
let began = 0

function ok(stream) {
  stream.respond(GRPC, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  return stream
}

const modes = {
  upload(stream, nth) {
    if (nth % 3 === 2) {
      counts.unread++
      return
    }
    let length = 0
    stream.on('data', part => (length += part.length))
    stream.on('end', () => {
      counts.ok++
      stream.respond({ ':status': 200 })
      stream.end(`${length}`)
    })
  },
  warming(stream) {
    stream.resume()
    if (Date.now() - began < 1_900) {
      counts.unavailable++
      stream.respond({ ...GRPC, 'grpc-status': '14', 'grpc-message': 'cache is being filled' }, { endStream: true })
      return
    }
    counts.ok++
    ok(stream).end(Buffer.alloc(5))
  },
  feed(stream, nth) {
    stream.resume()
    ok(stream)
    const timer = setInterval(() => {
      if (stream.destroyed) return clearInterval(timer)
      counts.messages++
      stream.write(Buffer.alloc(5))
    }, 170)
    if (nth % 6 === 3) {
      setTimeout(() => {
        counts.quiet++
        clearInterval(timer)
      }, 2_100)
    }
    stream.on('close', () => clearInterval(timer))
  },
}

const server = http2.createServer({ settings: { maxConcurrentStreams: 100 } })
server.on('session', session => {
  counts.connections++
  session.on('error', () => {})
})
server.on('stream', stream => {
  began = began || Date.now()
  stream.on('error', () => {})
  modes[mode](stream, counts.requests++)
})
setInterval(() => fs.writeFileSync('h2.json', JSON.stringify(counts)), 200)
server.listen({ port, host: '0.0.0.0', backlog: 2048 })
