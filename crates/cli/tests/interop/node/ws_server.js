// npm's `ws` as a server; what it does depends on the path. First line: the port. Arguments: certificate and key, for wss. `/counts` tells what it has seen.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');
const { WebSocketServer } = require('ws');

const counts = { connections: 0, requests: 0, messages: 0, pings: 0, pongs: 0, goodbyes: 0 };

const paths = {
  '/echo': (socket) => socket.on('message', (data, binary) => socket.send(data, { binary })),
  // The same in two frames.
  '/fragments': (socket) => socket.on('message', (data, binary) => {
    socket.send(data.subarray(0, 1), { binary, fin: false });
    socket.send(data.subarray(1), { binary, fin: true });
  }),
  // The usual heartbeat: who has not answered the last ping when the next is due is cut off.
  '/heartbeat': (socket) => {
    let alive = true;
    socket.on('pong', () => { alive = true; });
    const timer = setInterval(() => {
      if (!alive) return socket.terminate();
      alive = false;
      socket.ping('beat');
    }, 150);
    socket.on('close', () => clearInterval(timer));
    paths['/echo'](socket);
  },
  '/bye': (socket) => { paths['/echo'](socket); setTimeout(() => socket.close(1001, 'going away'), 500); },
  '/cut': (socket) => { paths['/echo'](socket); setTimeout(() => socket.terminate(), 500); },
  '/wrong': (socket) => socket.on('message', () => socket.send('something else')),
  '/slow': (socket) => socket.on('message', (data, binary) => setTimeout(() => socket.send(data, { binary }), 300)),
  '/silent': () => {},
};
// Only for who has logged in, is of this origin, and speaks v2.chat.
paths['/members'] = (socket) => (socket.protocol === 'v2.chat' ? paths['/echo'](socket) : socket.close(1002));
// Chooses a sub-protocol that was not offered.
paths['/stubborn'] = paths['/echo'];

const isMember = ({ headers }) => headers.authorization === 'Bearer t0ken' && headers.cookie === 'session=7; a=b'
  && headers.origin === 'https://shop.example' && headers.host === 'shop.example';

const handle = (_, response) => {
  counts.requests += 1;
  response.end(JSON.stringify(counts));
};
const [cert, key] = process.argv.slice(2).map((file) => fs.readFileSync(file));
const server = cert ? https.createServer({ cert, key }, handle) : http.createServer(handle);
const sockets = new WebSocketServer({
  noServer: true,
  handleProtocols: (offered, request) => (request.url === '/stubborn' ? 'v9' : offered.has('v2.chat') && 'v2.chat'),
});
server.on('upgrade', (request, socket, head) => {
  // Who is refused may go with a reset.
  socket.on('error', () => {});
  if (request.url === '/members' && !isMember(request)) {
    return socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  }
  if (!paths[request.url]) {
    return socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  }
  sockets.handleUpgrade(request, socket, head, (open) => {
    counts.connections += 1;
    open.on('message', () => { counts.messages += 1; });
    open.on('ping', () => { counts.pings += 1; });
    open.on('pong', () => { counts.pongs += 1; });
    // 1006 is an end without a close frame.
    open.on('close', (code) => { counts.goodbyes += code !== 1006; });
    paths[request.url](open);
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
