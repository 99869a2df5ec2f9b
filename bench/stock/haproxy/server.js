'use strict';
// One of the three servers behind HAProxy: Node's Hello World.

const http = require('node:http');
http.createServer((request, response) => response.end('Hello World!')).listen(Number(process.argv[2]), '127.0.0.1');
