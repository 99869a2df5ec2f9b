// work.js PORT MS: HTTP/1.1; each request takes this much CPU time in the event loop.
const ms = Number(process.argv[3]);
require("node:http").createServer((_request, response) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
  response.end("ok");
}).listen(Number(process.argv[2]), "0.0.0.0", 4096);
