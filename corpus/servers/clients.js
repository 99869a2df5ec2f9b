// node clients.js PORT KIND [VALUE...]: services that count their clients. What they did is in counts.json.
//   maximum N     server.maxConnections: those beyond are accepted and closed
//   devices N     WebSockets that echo, ?user=U: beyond N of a user the oldest one is closed with 4001
//   sessions N    HTTP/2 with prior knowledge: GOAWAY (NO_ERROR) to each connection beyond N
//   calls N       gRPC: GOAWAY (ENHANCE_YOUR_CALM, too_many_pings) after N PINGs without a call between them
//   narrows N     HTTP/2 with prior knowledge: N streams, one from 1.4 s after a connection was opened to 2.5 s
//   names         /hook looks up a name, /page reads a file
//   reports MS    /report takes so much CPU, other pages none
"use strict";
const crypto = require("crypto");
const dns = require("dns");
const fs = require("fs");
const http = require("http");
const http2 = require("http2");

const [port, kind, ...values] = process.argv.slice(2);
const most = Number(values[0]);
const counts = { opened: 0, open: 0, most_open: 0, odd: 0, responses: 0, pings: 0 };
setInterval(() => fs.writeFileSync("counts.json", JSON.stringify(counts)), 200).unref();

function entered() {
  counts.opened += 1;
  counts.open += 1;
  counts.most_open = Math.max(counts.most_open, counts.open);
}

function frame(opcode, content) {
  return Buffer.concat([Buffer.from([0x80 | opcode, content.length]), content]);
}

const users = new Map();
function upgraded(request, socket) {
  const key = crypto.createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  entered();
  const user = new URL(request.url, "http://one").searchParams.get("user");
  const devices = users.get(user) || [];
  users.set(user, devices);
  devices.push(socket);
  if (devices.length > most) {
    counts.odd += 1;
    devices.shift().end(frame(8, Buffer.concat([Buffer.from([4001 >> 8, 4001 & 255]), Buffer.from("signed in elsewhere")])));
  }
  socket.on("error", () => {});
  socket.on("close", () => {
    counts.open -= 1;
    users.set(user, users.get(user).filter((one) => one !== socket));
  });
  let bytes = Buffer.alloc(0);
  socket.on("data", (more) => {
    bytes = Buffer.concat([bytes, more]);
    while (bytes.length >= 6 && bytes.length >= 6 + (bytes[1] & 127)) {
      const length = bytes[1] & 127;
      const content = Buffer.from(bytes.subarray(6, 6 + length));
      for (let nth = 0; nth < length; nth++) content[nth] ^= bytes[2 + (nth & 3)];
      const opcode = bytes[0] & 15;
      bytes = bytes.subarray(6 + length);
      if (socket.writableEnded) continue;
      counts.responses += 1;
      if (opcode === 8) socket.end(frame(8, content));
      else socket.write(frame(opcode === 9 ? 10 : opcode, content));
    }
  });
}

let server;
if (kind === "sessions" || kind === "calls" || kind === "narrows") {
  server = http2.createServer({ settings: { maxConcurrentStreams: kind === "narrows" ? most : 100 } });
  server.on("session", (session) => {
    entered();
    let strikes = 0;
    session.on("error", () => {});
    session.on("close", () => (counts.open -= 1));
    if (kind === "sessions" && counts.open > most) {
      counts.odd += 1;
      session.goaway(http2.constants.NGHTTP2_NO_ERROR);
      session.close();
    }
    if (kind === "narrows") {
      for (const [after, streams] of [[1400, 1], [2500, most]]) {
        setTimeout(() => {
          counts.odd += 1;
          if (!session.destroyed) session.settings({ maxConcurrentStreams: streams });
        }, after);
      }
    }
    session.on("ping", () => {
      counts.pings += 1;
      strikes += 1;
      if (kind === "calls" && strikes === most + 1) {
        counts.odd += 1;
        session.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
        setTimeout(() => session.destroy(), 20);
      }
    });
    session.on("stream", () => (strikes = 0));
  });
  server.on("stream", (stream) => {
    counts.responses += 1;
    stream.on("error", () => {});
    stream.resume();
    if (kind !== "calls") {
      setTimeout(() => {
        if (stream.destroyed) return;
        stream.respond({ ":status": 200 });
        stream.end("ok");
      }, kind === "narrows" ? 9 : 0);
      return;
    }
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
  });
} else {
  server = http.createServer((request, response) => {
    counts.responses += 1;
    if (kind === "reports" && request.url === "/report") {
      counts.odd += 1;
      const until = process.cpuUsage().user + most * 1000;
      while (process.cpuUsage().user < until) crypto.createHash("md5").update("row").digest();
    }
    if (kind === "names" && request.url === "/hook") {
      dns.lookup("hooks.example.net", (error) => {
        counts.odd += 1;
        response.end(error ? "later" : "ok");
      });
    } else if (kind === "names") {
      fs.readFile("page.html", (error, text) => response.end(text));
    } else {
      response.end("ok");
    }
  });
  server.keepAliveTimeout = 60_000;
  if (kind === "devices") {
    server.on("upgrade", upgraded);
  } else {
    server.on("connection", (socket) => {
      entered();
      socket.on("close", () => (counts.open -= 1));
    });
  }
  if (kind === "maximum") {
    server.maxConnections = most;
    server.on("drop", () => (counts.odd += 1));
  }
}
server.listen({ port: Number(port), backlog: 700 });
