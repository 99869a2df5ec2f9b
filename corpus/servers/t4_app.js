// t4_app.js PORT KIND [VALUE...]: HTTP/1.1 services. What they did is in counts.json.
//   regex EACH LENGTH    one request in EACH is checked with an expression that backtracks over LENGTH letters
//   evict MOST           beyond MOST connections one of them, drawn at random, is destroyed
//   soft MOST MILLIS     each response waits for MILLIS for each connection beyond MOST
//   pages PORT           /page asks a service at PORT; /about does not
//   drain                SIGTERM: announces closes, and ends when no connection is left
"use strict";
const fs = require("fs");
const http = require("http");

const [port, kind, ...values] = process.argv.slice(2);
const [first, second] = values.map(Number);
const counts = { requests: 0, slow: 0, slow_ms: 0, evicted: 0, most_open: 0, delayed: 0, drained: 0 };
setInterval(() => fs.writeFileSync("counts.json", JSON.stringify(counts)), 200).unref();
const open = new Set();
const agent = new http.Agent({ keepAlive: true, maxSockets: 400 });
let draining = false;

const server = http.createServer((request, response) => {
  counts.requests += 1;
  const reply = () => {
    if (draining) {
      counts.drained += 1;
      response.setHeader("Connection", "close");
    }
    response.end("ok");
  };
  if (kind === "regex" && counts.requests % first === 0) {
    const began = process.cpuUsage().user;
    /^(\w+\s?)*$/.test("a".repeat(second) + "!");
    counts.slow += 1;
    counts.slow_ms += (process.cpuUsage().user - began) / 1000;
    reply();
  } else if (kind === "soft" && open.size > first) {
    counts.delayed += 1;
    setTimeout(reply, (open.size - first) * second);
  } else if (kind === "pages" && request.url === "/page") {
    http.get({ port: first, agent }, (from) => from.resume().on("end", reply)).on("error", (error) => {
      console.log(`service: ${error.message}`);
      response.writeHead(502).end();
    });
  } else {
    reply();
  }
});
for (let nth = 0; kind === "regex" && nth < 4; nth++) {
  /^(\w+\s?)*$/.test("a".repeat(second) + "!");
}
server.keepAliveTimeout = 60_000;
server.on("connection", (socket) => {
  open.add(socket);
  counts.most_open = Math.max(counts.most_open, open.size);
  socket.on("close", () => open.delete(socket));
  socket.on("error", () => {});
  if (kind === "evict" && open.size > first) {
    const chosen = [...open][Math.floor(Math.random() * open.size)];
    open.delete(chosen);
    counts.evicted += 1;
    chosen.destroy();
  }
});
process.on("SIGTERM", () => {
  draining = true;
  console.log(`draining ${open.size}`);
  server.close(() => {
    console.log(`drained, ${counts.drained} announced`);
    process.exit(0);
  });
});
server.listen(Number(port), "0.0.0.0", 511);
