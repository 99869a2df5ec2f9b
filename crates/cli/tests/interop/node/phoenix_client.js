// npm's client of Phoenix channels against the port that is given: joins, sends, gets the reply and ticks, and stays for several
// heartbeats. Prints `done` and what it received.
'use strict';
const { WebSocket } = require('ws');
const { Socket } = require('phoenix');

const socket = new Socket(`ws://127.0.0.1:${process.argv[2]}/socket`, { transport: WebSocket, heartbeatIntervalMs: 200 });
socket.onError((error) => { console.error(error.message); process.exit(1); });
socket.connect();
const channel = socket.channel('room:lobby', {});
let ticks = 0;
channel.on('tick', ({ seq, ts }) => { if (seq > 0 && ts > 0) ticks += 1; });
channel.join().receive('ok', () => {
  channel.push('say', { body: 'hello' }).receive('ok', ({ body }) => {
    setTimeout(() => { console.log(`done ${body} ${ticks >= 10}`); process.exit(0); }, 1500);
  });
});
