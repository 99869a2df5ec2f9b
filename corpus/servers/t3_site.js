// node t3_site.js PORT [--option value]...: a site over HTTP/1.1 whose pages differ. /list: 900 bytes; /page?length=N: N bytes; POST /order:
// 201; POST /login with {"user": N}: a token; /home: 200 with the token, 401 without. Times in ms. What it did is in site.json.
//   --first MS      the first request of each connection takes so much longer
//   --pause MS --each MS  the whole process sleeps for so long (without CPU) each so often
//   --locked N      of N users one is locked: 403 at its login
'use strict'
const fs = require('fs')
const http = require('http')
const port = +process.argv[2]
const options = { first: 0, pause: 0, each: 0, locked: 0 }
for (let at = 3; at < process.argv.length; at += 2) options[process.argv[at].slice(2)] = +process.argv[at + 1]
const counts = { connections: 0, list: 0, page: 0, order: 0, login: 0, home: 0, first: 0, pauses: 0, locked: 0, other: 0 }
const later = ms => new Promise(done => setTimeout(done, ms))

function reply(response, status, content, type = 'text/plain') {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(content) })
  response.end(content)
}

async function route(request, response, content) {
  const url = new URL(request.url, 'http://site')
  if (options.first && !request.socket.known) {
    request.socket.known = true
    counts.first++
    await later(options.first)
  }
  await later(4)
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /list':
      counts.list++
      return reply(response, 200, 'l'.repeat(900))
    case 'GET /page':
      counts.page++
      return reply(response, 200, 'p'.repeat(+url.searchParams.get('length') || 1))
    case 'POST /order':
      counts.order++
      return reply(response, 201, 'ordered')
    case 'POST /login': {
      counts.login++
      const user = +JSON.parse(content).user
      if (options.locked && user % options.locked === 4) {
        counts.locked++
        return reply(response, 403, '{"error": "account locked"}', 'application/json')
      }
      return reply(response, 200, JSON.stringify({ token: `t${user}` }), 'application/json')
    }
    case 'GET /home':
      counts.home++
      return request.headers.authorization ? reply(response, 200, 'home') : reply(response, 401, 'who?')
  }
  counts.other++
  reply(response, 404, 'nothing here')
}

const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => route(request, response, Buffer.concat(parts).toString()))
})
server.keepAliveTimeout = 60_000
server.on('connection', () => {
  if (!counts.connections++ && options.pause) {
    setInterval(() => {
      counts.pauses++
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, options.pause)
    }, options.each)
  }
})
setInterval(() => fs.writeFileSync('site.json', JSON.stringify(counts)), 200)
server.listen({ port, host: '0.0.0.0', backlog: 2048 })
