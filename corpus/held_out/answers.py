"""Servers whose answers are wrong, and answers of proxies whose server is missing."""

from held_out.starting import echo, go, haproxy, loop, nginx
from recording import limited, scenario

PACED = ("-c", 60, "--think", "400ms", "-d", "3s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer"))
def errors_from_some_on(rig):
    """After 200 requests each response is 500."""
    loop(rig, "--bad", "500 Internal Server Error", "--after", 200)
    rig.throng("run", rig.url, *PACED)
    rig.check("bad" in rig.output(), "500 was sent")


@scenario(limited("target", "wrong-answer"))
def one_in_ten_is_500(rig):
    """A tenth of the responses is 500."""
    loop(rig, "--bad", "500 Internal Server Error", "--share", 0.1)
    rig.throng("run", rig.url, *PACED)
    rig.check("bad" in rig.output(), "500 was sent")


@scenario(limited("target", "wrong-answer", says="404|not found|path"))
def not_found(rig):
    """404 to each request: the path is wrong."""
    loop(rig, "--status", "404 Not Found")
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "denied", "wrong-answer", says="401|log in|unauthori|credential"))
def unauthorized(rig):
    """401 to each request: no credentials were sent."""
    loop(rig, "--status", "401 Unauthorized", "--head", "WWW-Authenticate: Basic realm=x")
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "wrong-answer", says="502"))
def bad_gateway(rig):
    """nginx in front of a server that does not run: 502 to each request."""
    nginx(rig, f"server {{ listen {rig.port}; location / {{ proxy_pass http://127.0.0.1:9999; }} }}")
    rig.throng("run", rig.url, *PACED)
    rig.check("Connection refused" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", "saturated", says="504"))
def gateway_timeout(rig):
    """nginx waits one second for a server that takes five: 504."""
    loop(rig, "--delay", 5)
    nginx(rig, f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; proxy_read_timeout 1s; }} }}", port=8_090)
    rig.port = 8_090
    rig.throng("run", rig.url, *PACED)
    rig.check("upstream timed out" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", says="503"))
def no_server_available(rig):
    """haproxy whose only server is down: 503 to each request."""
    haproxy(rig, f"global\nDEFAULTS\nfrontend f\n bind :{rig.port}\n default_backend b\nbackend b\n server s 127.0.0.1:9999 disabled\n")
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "denied", "wrong-answer", says="429"))
def rate_limited(rig):
    """nginx allows 30 requests a second from one address and answers the others with 429."""
    limit = "limit_req_zone $binary_remote_addr zone=z:1m rate=30r/s; limit_req_status 429;"
    site = f"server {{ listen {rig.port}; location / {{ limit_req zone=z burst=20 nodelay; try_files /none @ok; }} location @ok {{ return 200 ok; }} }}"
    nginx(rig, f"{limit} {site}")
    rig.throng("run", rig.url, *PACED)
    rig.check("limiting requests" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer"))
def short_bodies(rig):
    """Ten bytes are expected, and two come."""
    loop(rig)
    rig.throng("run", rig.url, *PACED, "--expect", "status=200,length=10")


@scenario(limited("target", "closed", "wrong-answer"))
def truncated(rig):
    """Half of the announced body, and a close, from the 100th request on."""
    loop(rig, "--truncate", "--body", 4_000, "--after", 100)
    rig.throng("run", rig.url, *PACED)
    rig.check("cut" in rig.output(), "bodies were cut")


@scenario(limited("target", "wrong-answer", "closed"))
def another_protocol(rig):
    """The port belongs to a server that greets like SSH and does not answer."""
    echo(rig, "tcp-greet")
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "denied", "wrong-answer", says="403"))
def upgrade_refused(rig):
    """403 to each WebSocket upgrade."""
    echo(rig, "ws-refuse")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 50, "-d", "2s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", says="200"))
def no_websocket_here(rig):
    """A web server answers the upgrade with 200 and a page."""
    loop(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 50, "-d", "2s", "--timeout", "3s")


@scenario(limited("target", "closed", "denied", "requests-per-connection", says="1008|policy"))
def websocket_policy(rig):
    """Each WebSocket is closed with 1008, policy, after four messages."""
    echo(rig, "ws-close:4")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 50, "-d", "3s", "--ping", "400ms", "--timeout", "3s")
    rig.check("closed by policy" in rig.output(), "it closed them")


@scenario(limited("target", "wrong-answer"))
def echo_of_another_text(rig):
    """A WebSocket that replies with another text."""
    echo(rig, "ws-wrong")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 50, "-d", "3s", "--ping", "400ms", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", "saturated", says="RESOURCE_EXHAUSTED|exhausted"))
def grpc_exhausted(rig):
    """Each gRPC call ends with status 8."""
    go(rig, "grpc", 8)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/a.B/C", *PACED)


@scenario(limited("target", "wrong-answer", says="UNIMPLEMENTED|unimplemented|method"))
def grpc_unimplemented(rig):
    """Each gRPC call ends with status 12."""
    go(rig, "grpc", 12)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/a.B/C", *PACED)


@scenario(limited("target", "wrong-answer", "closed"))
def no_http_2_without_tls(rig):
    """HTTP/2 with prior knowledge to a server that has only HTTP/1.1."""
    loop(rig)
    rig.throng("run", rig.url, "--http2", *PACED)


@scenario(limited("target", "closed"))
def resets_instead_of_answers(rig):
    """A reset instead of each response, from the 150th request on."""
    loop(rig, "--drop", "rst", "--after", 150)
    rig.throng("run", rig.url, *PACED)
    rig.check("reset" in rig.output(), "it reset them")


@scenario(limited("target", "closed", "requests-per-connection"))
def closes_instead_of_answers(rig):
    """A close instead of half of the responses."""
    loop(rig, "--drop", "fin", "--share", 0.5)
    rig.throng("run", rig.url, *PACED)
    rig.check("cut" in rig.output(), "it closed them")
