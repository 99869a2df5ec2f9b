// bench/handshakes: a request on a new connection, again and again.
import http from 'k6/http';

export const options = { noConnectionReuse: true, insecureSkipTLSVerify: true, discardResponseBodies: true };

export default function () {
  http.get(__ENV.URL);
}
