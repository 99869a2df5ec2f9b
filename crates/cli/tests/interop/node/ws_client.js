// npm's `ws` as a client of an echo server: `node ws_client.js URL CONNECTIONS`. Prints one line of JSON: what came
// back right, on all connections together, and the codes that they were closed with.
'use strict';
const WebSocket = require('ws');

const [url, connections] = [process.argv[2], Number(process.argv[3])];
const seen = { opened: 0, echoes: 0, pongs: 0, wrong: [], codes: {} };

// Lengths around each change of the header's form (RFC 6455 section 5.2), text of more than one byte a letter, and both
// kinds of message.
const messages = ['', 'a', 'Grüße, 世界 🌍', ...[125, 126, 127, 65535, 65536, 200000].map((n) => 'x'.repeat(n)),
  Buffer.from([]), Buffer.from([0, 255, 128]), Buffer.alloc(70000, 7)];

function exchange(socket, message) {
  return new Promise((resolve) => {
    const binary = Buffer.isBuffer(message);
    socket.once('message', (data, isBinary) => {
      const same = isBinary === binary && Buffer.compare(data, Buffer.from(message)) === 0;
      if (same) seen.echoes += 1;
      else seen.wrong.push(`${message.length} bytes came back as ${data.length}`);
      resolve();
    });
    if (message.length < 3) return socket.send(message, { binary });
    // In three frames, with a ping between them, as section 5.4 allows.
    socket.send(message.slice(0, 1), { binary, fin: false });
    socket.ping('between');
    socket.send(message.slice(1, 2), { binary, fin: false });
    socket.send(message.slice(2), { binary, fin: true });
  });
}

function run() {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: true });
    socket.on('error', reject);
    socket.on('pong', (data) => { if (['between', ''].includes(String(data))) seen.pongs += 1; });
    socket.on('close', (code) => { seen.codes[code] = (seen.codes[code] || 0) + 1; resolve(); });
    socket.on('open', async () => {
      seen.opened += 1;
      for (const message of messages) await exchange(socket, message);
      socket.ping();
      await new Promise((ponged) => socket.once('pong', ponged));
      socket.close(1000, 'done');
    });
  });
}

Promise.all(Array.from({ length: connections }, run)).then(
  () => console.log(JSON.stringify(seen)),
  (error) => { console.error(error); process.exit(1); },
);
