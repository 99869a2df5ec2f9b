// Node's own HTTP server with its own defaults. First line: the port. Arguments: certificate and key, for HTTPS. `/counts` tells what it has seen.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');

const counts = { connections: 0, requests: 0 };
const hello = (response) => response.end('Hello World!');

const routes = {
  '/': (_, response) => hello(response),
  '/counts': (_, response) => response.end(JSON.stringify(counts)),
  '/chunked': (_, response) => { response.write('Hello '); response.write('World!'); response.end(); },
  '/interim': (_, response) => {
    response.writeContinue();
    response.writeEarlyHints({ link: '</a.css>; rel=preload' });
    hello(response);
  },
  '/slow': (_, response) => {
    let left = 10;
    response.setHeader('Content-Length', 10 * left);
    const timer = setInterval(() => {
      response.write('x'.repeat(10));
      if (--left === 0) { clearInterval(timer); response.end(); }
    }, 150);
  },
  '/close': (_, response) => { response.setHeader('Connection', 'close'); hello(response); },
  '/error': (_, response) => { response.statusCode = 500; hello(response); },
  '/half': (request, response) => {
    response.setHeader('Content-Length', 100);
    response.write('Hello', () => request.socket.end());
  },
  '/reset': (request) => request.socket.resetAndDestroy(),
  '/never': () => {},
};

const handle = (request, response) => {
  counts.requests += 1;
  routes[request.url](request, response);
};
const [cert, key] = process.argv.slice(2).map((file) => fs.readFileSync(file));
const server = cert ? https.createServer({ cert, key }, handle) : http.createServer(handle);
server.on(cert ? 'secureConnection' : 'connection', () => { counts.connections += 1; });
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
