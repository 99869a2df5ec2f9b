// npm's `socket.io`, version 4, with a short interval of its pings: who does not answer one gets no other, and is
// disconnected after two seconds.
// First line: the port. `/counts` tells what it has seen.
'use strict';
const http = require('http');
const { Server } = require('socket.io');

const counts = { connections: 0, said: 0, disconnects: {} };
const server = http.createServer((request, response) => response.end(JSON.stringify(counts)));
const io = new Server(server, { pingInterval: 200, pingTimeout: 2000, perMessageDeflate: false });
io.on('connection', (socket) => {
  counts.connections += 1;
  socket.on('say', (text, acknowledge) => { counts.said += 1; acknowledge(text); });
  socket.on('disconnect', (why) => { counts.disconnects[why] = (counts.disconnects[why] || 0) + 1; });
});
let seq = 0;
setInterval(() => io.emit('tick', { seq: (seq += 1), ts: Date.now() }), 100);
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
