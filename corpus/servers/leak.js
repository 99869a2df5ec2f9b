// leak.js PORT VALUES: HTTP/1.1; each request keeps an array of VALUES objects for good.
const kept = [];
const values = Number(process.argv[3]);
require("node:http").createServer((_request, response) => {
  if (values) kept.push(Array.from({ length: values }, (_, at) => ({ at })));
  response.end("ok");
}).listen(Number(process.argv[2]), "0.0.0.0", 4096);
