// A stand-in for Phoenix channels, which no registry at hand has: serializer 2.0.0, `phx_join`, `heartbeat`, pushes and replies. A socket
// without a heartbeat for two seconds is closed (Phoenix: 60 s). npm's own client of Phoenix is tested against it. First line: the port.
'use strict';
const http = require('http');
const { WebSocketServer } = require('ws');

const counts = { connections: 0, joins: 0, heartbeats: 0, messages: 0, timeouts: 0 };
const server = http.createServer((_, response) => response.end(JSON.stringify(counts)));
new WebSocketServer({ server, path: '/socket/websocket' }).on('connection', (socket) => {
  counts.connections += 1;
  const joined = new Map();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => { counts.timeouts += 1; socket.close(1002, 'no heartbeat'); }, 2000);
  };
  alive();
  const reply = (join, ref, topic, status, response) =>
    socket.send(JSON.stringify([join, ref, topic, 'phx_reply', { status, response }]));
  let seq = 0;
  const ticks = setInterval(() => {
    seq += 1;
    joined.forEach((join, topic) => socket.send(JSON.stringify([join, null, topic, 'tick', { seq, ts: Date.now() }])));
  }, 100);
  socket.on('message', (data) => {
    const [join, ref, topic, event, payload] = JSON.parse(data);
    if (topic === 'phoenix' && event === 'heartbeat') {
      counts.heartbeats += 1;
      alive();
      return reply(null, ref, topic, 'ok', {});
    }
    if (event === 'phx_join') {
      counts.joins += 1;
      joined.set(topic, join);
      return reply(join, ref, topic, 'ok', {});
    }
    if (joined.get(topic) !== join) return reply(join, ref, topic, 'error', { reason: 'unmatched topic' });
    counts.messages += 1;
    return reply(join, ref, topic, 'ok', payload);
  });
  socket.on('close', () => { clearTimeout(timer); clearInterval(ticks); });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
