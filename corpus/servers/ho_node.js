// ho_node.js PORT MODE [N]: node's own HTTP server. MODE: plain; max (server.maxConnections = N, above it node closes); idle (keep-alive
// timeout of N ms); block (the event loop computes N ms each second); freeze (it sleeps N ms each second, without CPU); heap (keeps N KiB
// of objects for each connection); spin (N ms of CPU a request); leak (N KiB a request).
'use strict'
const http = require('http')
const [port, mode, n] = [Number(process.argv[2]), process.argv[3] || 'plain', Number(process.argv[4] || 0)]
const kept = []
const rubbish = () => Array.from({ length: n * 16 }, (_, i) => ({ i, s: 'v' + i }))
const spin = ms => { const end = Date.now() + ms; while (Date.now() < end); }
const server = http.createServer((request, response) => {
  if (mode === 'spin') spin(n)
  if (mode === 'leak') kept.push(rubbish())
  request.resume()
  request.on('end', () => response.end('ok'))
})
server.keepAliveTimeout = mode === 'idle' ? n : 60000
server.on('connection', () => { if (mode === 'heap') kept.push(rubbish()) })
server.on('drop', () => console.error('dropped'))
if (mode === 'max') server.maxConnections = n
if (mode === 'block') setInterval(() => spin(n), 1000)
if (mode === 'freeze') setInterval(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, n), 1000)
server.listen({ port, host: '0.0.0.0', backlog: 4096 })
