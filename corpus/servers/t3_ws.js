// node t3_ws.js PORT [--option value]...: WebSockets that echo. Times in ms. What it did is in ws.json.
//   --most BYTES     a longer message is closed with 1009, as gateways do
//   --away MS        each one is closed with 1001 after so long, and up to half as long again
//   --pieces N       echoes come in N fragments, with a ping between two of them
//   --push MS --late MS --at MS  {"seq", "ts"} to all each so often; from --at on they wait so long in a queue before they are sent
'use strict'
const crypto = require('crypto')
const fs = require('fs')
const http = require('http')
const port = +process.argv[2]
const options = { most: 0, away: 0, pieces: 1, push: 0, late: 0, at: 0 }
for (let at = 3; at < process.argv.length; at += 2) options[process.argv[at].slice(2)] = +process.argv[at + 1]
const counts = { opened: 0, messages: 0, too_big: 0, away: 0, fragments: 0, pongs: 0, pushes: 0, late: 0 }
const sockets = new Set()
let began = 0

function frame(opcode, content, last = true) {
  const length = content.length
  const head = length < 126 ? Buffer.from([0, length]) : length < 65_536 ? Buffer.from([0, 126, length >> 8, length & 255]) : null
  head[0] = (last ? 0x80 : 0) | opcode
  return Buffer.concat([head, content])
}

function close(socket, code, reason) {
  if (socket.writableEnded) return
  socket.end(frame(8, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)])))
}

function echo(socket, content) {
  if (options.pieces === 1) return socket.write(frame(1, content))
  const part = Math.max(1, Math.ceil(content.length / options.pieces))
  for (let at = 0; at < content.length; at += part) {
    counts.fragments++
    socket.write(frame(at ? 0 : 1, content.subarray(at, at + part), at + part >= content.length))
    if (at + part < content.length) socket.write(frame(9, Buffer.from('still there?')))
  }
}

function parse(socket, bytes) {
  while (bytes.length >= 6) {
    let length = bytes[1] & 127
    let at = 2
    if (length === 126) {
      if (bytes.length < 8) break
      length = bytes.readUInt16BE(2)
      at = 4
    } else if (length === 127) {
      if (bytes.length < 14) break
      length = Number(bytes.readBigUInt64BE(2))
      at = 10
    }
    if (options.most && length > options.most) {
      counts.too_big++
      close(socket, 1009, 'message too big')
      return Buffer.alloc(0)
    }
    if (bytes.length < at + 4 + length) break
    const content = Buffer.from(bytes.subarray(at + 4, at + 4 + length))
    for (let nth = 0; nth < length; nth++) content[nth] ^= bytes[at + (nth & 3)]
    const opcode = bytes[0] & 15
    bytes = bytes.subarray(at + 4 + length)
    if (opcode === 8) {
      if (!socket.writableEnded) socket.end(frame(8, content.subarray(0, 2)))
      return Buffer.alloc(0)
    }
    if (opcode === 9) socket.write(frame(10, content))
    else if (opcode === 10) counts.pongs++
    else {
      counts.messages++
      echo(socket, content)
    }
  }
  return bytes
}

const server = http.createServer((_request, response) => response.writeHead(426, { 'content-length': 0 }).end())
server.on('upgrade', (request, socket) => {
  const accept = crypto.createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
  counts.opened++
  began = began || Date.now()
  sockets.add(socket)
  socket.setNoDelay(true)
  let rest = Buffer.alloc(0)
  socket.on('data', part => (rest = parse(socket, Buffer.concat([rest, part]))))
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  if (options.away) {
    setTimeout(() => {
      if (socket.destroyed) return
      counts.away++
      close(socket, 1001, 'going away')
    }, options.away * (1 + Math.random() / 2))
  }
})
if (options.push) {
  let seq = 0
  setInterval(() => {
    const text = frame(1, Buffer.from(JSON.stringify({ seq: seq++, ts: Date.now() })))
    const isLate = options.late && began && Date.now() - began >= options.at
    setTimeout(() => {
      for (const socket of sockets) {
        if (socket.writableEnded) continue
        counts.pushes++
        if (isLate) counts.late++
        socket.write(text)
      }
    }, isLate ? options.late : 0)
  }, options.push)
}
setInterval(() => fs.writeFileSync('ws.json', JSON.stringify(counts)), 200)
server.listen({ port, host: '0.0.0.0', backlog: 2048 })
