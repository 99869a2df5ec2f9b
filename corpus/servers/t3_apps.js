// t3_apps.js PORT KIND [VALUE] [VALUE]: small services of Node. What they did is in the file counts-PORT.json, outside of their log.
"use strict";
const http = require("node:http");
const fs = require("node:fs");
const port = Number(process.argv[2]);
const [kind, first, second] = process.argv.slice(3);
const counts = { connections: 0, responses: 0, expired: 0, most_waiting: 0, failures: 0, fast_failures: 0 };
const file = fs.openSync(`counts-${port}.json`, "w+");
setInterval(() => fs.writeSync(file, JSON.stringify(counts).padEnd(400), 0), 150);

const spin = (ms) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

const say = (response, status, text) => {
  counts.responses++;
  response.writeHead(status, { "Content-Type": "text/plain", "Content-Length": text.length });
  response.end(text);
};

const kinds = {
  // 200 to all.
  plain: () => (_request, response) => say(response, 200, "ok"),

  // Closes connections that are idle for `first` ms; its loop is busy for `second` ms of each 300 ms, and timers come before requests then.
  disagrees: () => {
    const patience = Number(first);
    // After such work the loop comes to its timers first, and to requests that have come meanwhile only then.
    const block = () => setImmediate(() => {
      spin(Number(second));
      setTimeout(block, 300 - Number(second));
    });
    setTimeout(block, 300);
    server.on("timeout", (socket) => {
      counts.expired++;
      socket.destroy();
    });
    return (request, response) => {
      request.resume();
      response.on("finish", () => setImmediate(() => request.socket.setTimeout(patience)));
      say(response, 200, "ok");
    };
  },

  // A gateway: at most `first` requests at a time to the service at port 3001, by its agent.
  gateway: () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: Number(first) });
    return (_request, response) => {
      const onward = http.get({ port: 3001, host: "127.0.0.1", agent }, (answer) => {
        answer.resume();
        answer.on("end", () => say(response, answer.statusCode, "ok"));
      });
      onward.on("error", () => say(response, 502, "no answer"));
      counts.most_waiting = Math.max(counts.most_waiting, ...Object.values(agent.requests).map((list) => list.length), 0);
    };
  },

  // What it depends on fails from 1.8 s to 2.7 s after the first request; five failures open its circuit breaker for `first` ms.
  breaker: () => {
    let began = 0, failed = 0, closed = 0;
    return (_request, response) => {
      const now = performance.now();
      began ||= now;
      if (now < closed) {
        counts.fast_failures++;
        say(response, 503, "inventory is not available");
      } else if (now - began > 1800 && now - began < 2700) {
        counts.failures++;
        if (++failed === 5) {
          failed = 0;
          closed = now + Number(first);
          console.error("warn: circuit breaker `inventory`: CLOSED -> OPEN after 5 failures");
        }
        setTimeout(() => say(response, 502, "inventory: connection reset"), 40);
      } else {
        failed = 0;
        setTimeout(() => say(response, 200, "ok"), 40);
      }
    };
  },

  // Announces the end of each connection with its response `first`.
  sockets: () => {
    server.maxRequestsPerSocket = Number(first);
    return (_request, response) => say(response, 200, "ok");
  },

  // /health fails while the file `first` exists; all else is served all the time.
  health: () => (request, response) => {
    const is_ill = request.url === "/health" && fs.existsSync(first);
    counts.failures += is_ill;
    say(response, is_ill ? 503 : 200, is_ill ? "no primary" : "ok");
  },

  // Closes connections that are idle for `first` ms and does not announce it; its log is full of what a watcher of files says.
  noise: () => {
    server.on("timeout", (socket) => {
      counts.expired++;
      socket.destroy();
    });
    const complain = () => console.error("Error: EMFILE: too many open files, watch '/srv/app/views'\n    at FSWatcher.<computed>");
    complain();
    setInterval(complain, 600);
    return (request, response) => {
      response.setHeader("Connection", "keep-alive");
      response.on("finish", () => setImmediate(() => request.socket.setTimeout(Number(first))));
      say(response, 200, "ok");
    };
  },
};

const server = http.createServer();
server.keepAliveTimeout = 60_000;
if (kind === "noise" || kind === "disagrees") server.keepAliveTimeout = Number(first);
server.on("connection", () => counts.connections++);
server.on("request", kinds[kind]());
server.listen(port, "0.0.0.0", 4096);
