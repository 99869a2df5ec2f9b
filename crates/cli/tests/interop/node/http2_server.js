// HTTP/2: each path shows a case. Arguments: certificate and key, for TLS; --idle=MS: closes connections on which nothing comes for that
// time. What it has counted is to be had over HTTP/1.1 on a port of its own.
const fs = require("fs");
const http = require("http");
const http2 = require("http2");

const counts = { sessions: 0, streams: 0, bytes: 0, resets: 0, pings: 0 };

const [options, files] = [true, false].map((is) => process.argv.slice(2).filter((arg) => arg.startsWith("--") === is));
const idle = Number(options.map((option) => option.replace("--idle=", "")).at(0) ?? 0);
const [cert, key] = files.map((file) => fs.readFileSync(file));
const server = cert ? http2.createSecureServer({ cert, key }) : http2.createServer();
server.on("session", (session) => {
  counts.sessions += 1;
  session.on("error", () => {});
  session.on("ping", () => (counts.pings += 1));
  if (idle) session.setTimeout(idle, () => session.close());
});
let nth = 0;
server.on("stream", (stream, headers) => {
  counts.streams += 1;
  stream.on("error", () => {});
  stream.on("data", (data) => (counts.bytes += data.length));
  stream.on("aborted", () => (counts.resets += 1));
  const respond = (text) => {
    if (stream.destroyed) return;
    stream.respond({ ":status": 200, "content-type": "text/plain" });
    stream.end(text);
  };
  const path = headers[":path"];
  if (path === "/refused") return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
  // Of ten, one gets no response: it is reset, or never answered.
  if (path === "/some-reset" && nth++ % 10 === 9) return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  if (path === "/some-silent" && nth++ % 10 === 9) return;
  if (path === "/trailers") {
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    return stream.end("Hello World!");
  }
  if (path === "/interim") stream.additionalHeaders({ ":status": 103 });
  if (path === "/large") return respond("x".repeat(300_000));
  if (headers[":method"] === "POST") return stream.on("end", () => respond("Hello World!"));
  respond("Hello World!");
});

server.listen(0, "127.0.0.1", () => {
  const about = http.createServer((request, response) => response.end(JSON.stringify(counts)));
  about.listen(0, "127.0.0.1", () => {
    console.log(`counts on ${about.address().port}`);
    console.log(`listening on ${server.address().port}`);
  });
});
