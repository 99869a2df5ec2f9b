// A service as people write it: Express with sessions in a cookie, a token in JSON, and npm's `ws` behind both. First line: the port.
// `/seen` tells how many users had which token, and what was refused.
'use strict';
const http = require('http');
const express = require('express');
const session = require('express-session');
const { WebSocketServer } = require('ws');

const seen = { logins: 0, tokens: new Set(), refused: 0, binary: 0, texts: 0 };
const app = express();
// Sessions of one process, without the warning that they are.
const store = new session.MemoryStore();
const sessions = session({ secret: 'of this test', resave: false, saveUninitialized: false, store });
app.use(express.json());
app.use(sessions);

const refuse = (response) => { seen.refused += 1; response.status(401).json({ error: 'log in first' }); };
const isHis = (request) => request.session.user && request.headers.authorization === `Bearer ${request.session.token}`;

app.post('/login', (request, response) => {
  if (request.body.password !== 'secret of the test') return refuse(response);
  seen.logins += 1;
  request.session.user = request.body.user;
  request.session.token = `t-${request.body.user}`;
  response.json({ user: { id: request.body.user }, access_token: request.session.token });
});
app.get('/old', (_, response) => response.redirect('/me'));
app.get('/me', (request, response) => {
  if (!isHis(request)) return refuse(response);
  seen.tokens.add(request.session.token);
  return response.json({ ok: true, user: request.session.user });
});
app.get('/seen', (_, response) => response.json({ ...seen, tokens: seen.tokens.size }));

const server = http.createServer(app);
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, head) => {
  // Who is refused may reset the connection.
  socket.on('error', () => {});
  // express-session reads the cookie; it writes nothing here.
  sessions(request, { writeHead() {}, end() {}, setHeader() {}, getHeader() {} }, () => {
    if (!request.session.user || !request.url.endsWith(`?t=${request.session.token}`)) {
      seen.refused += 1;
      return socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    }
    seen.tokens.add(request.session.token);
    return sockets.handleUpgrade(request, socket, head, (ws) => ws.on('message', (data, binary) => {
      seen[binary ? 'binary' : 'texts'] += 1;
      ws.send(data, { binary });
    }));
  });
});
server.listen(0, '127.0.0.1', 4096, () => console.log(`listening on ${server.address().port}`));
