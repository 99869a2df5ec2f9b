'use strict';
// Express's Hello World in a cluster: the first process forks, the workers answer. PORT, HOST, WORKERS from the environment; SOCKET: a path to listen at instead.

const cluster = require('node:cluster');
const os = require('node:os');

if (cluster.isPrimary) {
  const workers = Number(process.env.WORKERS) || os.availableParallelism();
  for (let n = 0; n < workers; n += 1) cluster.fork();
  // A cluster that has lost a worker is another cluster than the one that is measured.
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal ?? code}`);
    process.exit(1);
  });
} else {
  const app = require('express')();
  app.get('/', (request, response) => response.send('Hello World!'));
  const { SOCKET, PORT, HOST } = process.env;
  if (SOCKET) app.listen(SOCKET);
  else app.listen(Number(PORT) || 3000, HOST || '127.0.0.1');
}
