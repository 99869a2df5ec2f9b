// Records requests as they arrive, whatever carries them: a line of JSON each, in the file of the first argument. Further arguments:
// certificate and key. Cleartext HTTP/1.1 and HTTP/2 have a port each, as Node's servers do not tell them apart; over TLS ALPN decides.
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const http2 = require("http2");

const [file, certFile, keyFile] = process.argv.slice(2);
const tls = { cert: fs.readFileSync(certFile), key: fs.readFileSync(keyFile), allowHTTP1: true };

function record(request, response) {
  const { method, url } = request;
  const hash = crypto.createHash("sha256");
  let length = 0;
  request.on("data", (data) => ((length += data.length), hash.update(data)));
  request.on("end", () => {
    const headers = { ...request.headers };
    const authority = headers[":authority"] ?? headers.host;
    // What belongs to a version of HTTP.
    for (const name of Object.keys(headers)) if (name.startsWith(":") || name === "host") delete headers[name];
    const fields = Object.entries(headers).sort();
    const body = { length, sha256: hash.digest("hex") };
    fs.appendFileSync(file, JSON.stringify({ method, url, hasAuthority: Boolean(authority), fields, body }) + "\n");
    if (url.startsWith("/from")) response.writeHead(307, { location: "/to" });
    response.end(method === "HEAD" ? undefined : "ok");
  });
}

const servers = [http.createServer(record), http2.createServer(record), http2.createSecureServer(tls, record)];
const listen = (server) => new Promise((listening) => server.listen(0, "127.0.0.1", listening));
Promise.all(servers.map(listen)).then(() => {
  const [http1, http2, secure] = servers.map((server) => server.address().port);
  console.log(`http2 on ${http2}\nsecure on ${secure}\nhttp1 on ${http1}\n`);
});
