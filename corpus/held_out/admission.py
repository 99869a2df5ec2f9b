"""Servers that take no more than a certain number of connections."""

from held_out.starting import c, echo, go, haproxy, java, kernel, loop, nginx, node
from recording import healthy, limited, scenario

HOLD = ("-d", "3s", "--timeout", "3s")


def climb(rig, connections, ramp, *more):
    """Connections at a rate, each with a request now and then."""
    return rig.throng("run", rig.url, "-c", connections, "--ramp", ramp, "--think", "800ms", *HOLD, *more)


@scenario(limited("target", "connection-limit", at=(220, 260)))
def nginx_worker_connections(rig):
    """One worker with 256 places: it says `worker_connections are not enough` and closes."""
    nginx(rig, f"server {{ listen {rig.port}; return 200 ok; }}", events="worker_connections 256;")
    climb(rig, 600, "300/s")
    rig.check("worker_connections are not enough" in rig.output(), "its log says so")


@scenario(healthy())
def nginx_worker_connections_enough(rig):
    """The same with 1,024."""
    nginx(rig, f"server {{ listen {rig.port}; return 200 ok; }}", events="worker_connections 1024;")
    climb(rig, 600, "300/s")


@scenario(limited("target", "connection-limit", "accept-queue", "slow-accept", at=(195, 420)))
def haproxy_maxconn(rig):
    """haproxy with maxconn 200 accepts no more; the others wait in the kernel's queue without an answer."""
    go(rig, "plain")
    haproxy(rig, f"global\n maxconn 200\nDEFAULTS\nfrontend f\n bind :8090\n default_backend b\nbackend b\n server s 127.0.0.1:{rig.port}\n", port=8_090)
    rig.port = 8_090
    climb(rig, 400, "200/s")


@scenario(limited("target", "connection-limit", "saturated", "wrong-answer"))
def haproxy_server_queue(rig):
    """haproxy passes on ten requests at once and answers 503 after a second in its queue; each request takes a second."""
    loop(rig, "--delay", 1)
    haproxy(rig, f"global\nDEFAULTS\n timeout queue 1s\nfrontend f\n bind :8090\n default_backend b\nbackend b\n server s 127.0.0.1:{rig.port} maxconn 10\n", port=8_090)
    rig.port = 8_090
    climb(rig, 100, "100/s")


@scenario(limited("target", "connection-limit", "threads", "accept-queue", at=(48, 52), says=r"\b50\b|MaxRequestWorkers"))
def apache_workers(rig):
    """Prefork with 50 processes and kept connections: its log says `reached MaxRequestWorkers`; the others get no answer."""
    rig.needs("apache2")
    rig.folder.chmod(0o755)
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("mpm_prefork", "authz_core", "dir", "mime"))
    (rig.folder / "index.html").write_text("ok")
    rig.start("apache2", "-DFOREGROUND", "-f", rig.write("apache.conf", f"""{modules}
ServerName localhost
PidFile {rig.folder}/apache.pid
ErrorLog /dev/stderr
Listen 0.0.0.0:{rig.port}
User www-data
DocumentRoot {rig.folder}
TypesConfig /dev/null
StartServers 50
ServerLimit 50
MaxRequestWorkers 50
MaxSpareServers 50
KeepAliveTimeout 60
"""))
    climb(rig, 150, "50/s")
    rig.check("reached MaxRequestWorkers" in rig.output(), "its log says so")
    rig.check(kernel("ListenOverflows") == 0, "the accept queue was never full")


@scenario(limited("target", "connection-limit", at=(145, 151)))
def resets_above(rig):
    """A reset for each connection above 150."""
    loop(rig, "--max", 150)
    climb(rig, 300, "100/s")
    rig.check("over at 151" in rig.output(), "the 151st was reset")


@scenario(limited("target", "connection-limit", at=(245, 251)))
def closes_above(rig):
    """Above 250 connections each one is closed at once, without a reset."""
    loop(rig, "--max", 250, "--over", "fin")
    climb(rig, 500, "200/s")
    rig.check("over at 251" in rig.output(), "the 251st was closed")


@scenario(limited("target", "connection-limit", "wrong-answer", at=(195, 202)))
def unavailable_above(rig):
    """503 and a close for each connection above 200."""
    loop(rig, "--max", 200, "--over", "503")
    climb(rig, 400, "150/s")
    rig.check("over at 201" in rig.output(), "the 201st had 503")


@scenario(limited("target", "connection-limit", "denied", "wrong-answer", at=(95, 102)))
def too_many_per_address(rig):
    """429 and a close for each connection above 100 of one address."""
    loop(rig, "--per-ip", 100, "--over", "429")
    climb(rig, 200, "100/s")
    rig.check("over" in rig.output(), "some had 429")


@scenario(limited("target", "connection-limit", "timeout", at=(115, 122)))
def silent_above(rig):
    """Connections above 120 of one address are accepted and never answered."""
    loop(rig, "--per-ip", 120, "--over", "silent")
    climb(rig, 200, "100/s")
    rig.check("over" in rig.output(), "some had no answer")


@scenario(limited("target", "connection-limit", at=(145, 151)))
def node_max_connections(rig):
    """node with server.maxConnections 150, which closes those above."""
    node(rig, "max", 150)
    climb(rig, 300, "100/s")
    rig.check("dropped" in rig.output(), "node counts dropped connections")


@scenario(limited("target", "connection-limit", "accept-queue", "slow-accept", at=(98, 140)))
def go_gate(rig):
    """Go with a listener that accepts 100 connections at once: the others stay in the kernel's queue, which is long enough."""
    go(rig, "gate", 100)
    climb(rig, 200, "80/s")
    rig.check("gate is full" in rig.output(), "the gate was full")


@scenario(limited("target", "threads", "connection-limit", at=(38, 46)))
def java_pool(rig):
    """A fixed pool of 40 threads, one a connection; the others wait for a thread without an answer."""
    java(rig, "pool", 40)
    climb(rig, 120, "40/s")


@scenario(limited("target", "threads", "connection-limit", at=(58, 62)))
def java_pool_rejects(rig):
    """A pool of 60 threads, one a connection; the others are closed."""
    java(rig, "reject", 60)
    climb(rig, 150, "60/s")
    rig.check("all threads are busy" in rig.output(), "some were closed")


@scenario(limited("target", "accept-queue", "slow-accept"))
def slow_accept_small_backlog(rig):
    """Accepts ten connections a second with a backlog of 5: the kernel counts overflows."""
    c(rig, 5, 10, 0)
    rig.throng("run", rig.url, "-c", 150, "--ramp", "150/s", "--think", "500ms", *HOLD)
    rig.check(kernel("ListenOverflows") > 10, "the accept queue was full")


@scenario(limited("target", "slow-accept"))
def slow_accept_large_backlog(rig):
    """Accepts fifteen connections a second with a backlog of 4,096: all connect, and most wait longer than 3 s for an answer."""
    c(rig, 4_096, 15, 0)
    rig.throng("run", rig.url, "-c", 200, "--ramp", "200/s", "--think", "500ms", *HOLD)
    rig.check(kernel("ListenOverflows") == 0, "the accept queue was never full")


@scenario(limited("target", "connection-limit", "accept-queue", at=(298, 320)))
def accepts_no_more(rig):
    """Stops to accept after 300; the backlog of 10 is full soon after."""
    c(rig, 10, 0, 300)
    climb(rig, 500, "200/s")
    rig.check(kernel("ListenOverflows") > 10, "the accept queue was full")


@scenario(healthy())
def slow_accept_that_suffices(rig):
    """Accepts 120 connections a second, and 60 a second come."""
    c(rig, 64, 120, 0)
    climb(rig, 200, "60/s")


@scenario(limited("target", "refused", "connection-limit", at=(195, 202)))
def stops_to_listen(rig):
    """With the 200th connection the server closes its listener, and serves those it has."""
    loop(rig, "--max", 200, "--over", "unlisten")
    climb(rig, 400, "100/s")
    rig.check("no longer listens" in rig.output(), "it closed its listener")


@scenario(limited("target", "connection-limit", at=(76, 82), verdicts=("fail",)))
def tcp_resets_above(rig):
    """A TCP echo that resets connections above 80."""
    echo(rig, "tcp-max:80")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", 160, "--ramp", "80/s", "--ping", "700ms", "--message", "hello", *HOLD)
    rig.check("over" in rig.output(), "some were reset")


@scenario(limited("target", "timeout", at=(98, 103)))
def websocket_mute_above(rig):
    """WebSocket: no replies on any connection as long as more than 100 are open."""
    echo(rig, "ws-mute:100")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 200, "--ramp", "60/s", "--ping", "700ms", *HOLD)
    rig.check("mute" in rig.output(), "it was mute")


@scenario(limited("target", "connection-limit", at=(95, 101), verdicts=("pass",)))
def fewer_than_wanted_but_enough(rig):
    """Resets above 100; the threshold asks for a quarter of 200, so that the run passes."""
    loop(rig, "--max", 100)
    climb(rig, 200, "100/s", "--threshold", "held >= 25%")
    rig.check("over at 101" in rig.output(), "the 101st was reset")
