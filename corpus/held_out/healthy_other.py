"""WebSocket, TCP, proxies, servers of several processes: odd and well, and one with errors that are tolerated."""

import sys

from held_out.starting import c, echo, go, haproxy, java, loop, nginx, node
from recording import healthy, limited, scenario

PACED = ("-d", "3s", "--timeout", "4s")


@scenario(healthy())
def websocket_echo(rig):
    """A message each 500 ms, and its echo."""
    echo(rig, "ws")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 100, "--ping", "500ms", *PACED)


@scenario(healthy())
def websocket_control_pings(rig):
    """Control pings instead of messages."""
    echo(rig, "ws")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 100, "--ping", "700ms", "--message", "", *PACED)


@scenario(healthy())
def websockets_that_idle(rig):
    """WebSockets without a message in the whole run."""
    echo(rig, "ws")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 300, *PACED)


@scenario(healthy())
def websocket_through_nginx(rig):
    """A WebSocket through nginx, with messages more often than its time limit of 2 s."""
    echo(rig, "ws")
    upgrade = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_read_timeout 2s;"
    nginx(rig, f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; {upgrade} }} }}", port=8_090)
    rig.throng("run", "ws://127.0.0.1:8090/", "-c", 80, "--ping", "1s", "-d", "4s", "--timeout", "4s")


@scenario(healthy())
def tcp_echo(rig):
    """TCP, a message each 400 ms, and its echo."""
    echo(rig, "tcp")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", 150, "--ping", "400ms", "--message", "hello", *PACED)


@scenario(healthy())
def tcp_held(rig):
    """TCP connections that are only held."""
    echo(rig, "tcp")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", 500, *PACED)


@scenario(healthy())
def tcp_held_and_greeted(rig):
    """TCP connections that are only held, to a server that speaks first."""
    echo(rig, "tcp-greet")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", 100, *PACED)


@scenario(healthy())
def through_socat(rig):
    """socat starts a process for each connection and passes bytes on."""
    rig.needs("socat")
    go(rig, "plain")
    rig.start("socat", "TCP-LISTEN:8090,fork,reuseaddr,backlog=128", f"TCP:127.0.0.1:{rig.port}", port=8_090)
    rig.throng("run", "http://127.0.0.1:8090/", "-c", 40, "--ramp", "20/s", "--think", "500ms", *PACED)


@scenario(healthy())
def through_haproxy_with_a_short_queue(rig):
    """haproxy passes on five requests at once; the others wait some milliseconds."""
    go(rig, "plain")
    haproxy(rig, f"global\nDEFAULTS\nfrontend f\n bind :8090\n default_backend b\nbackend b\n server s 127.0.0.1:{rig.port} maxconn 5\n", port=8_090)
    rig.throng("run", "http://127.0.0.1:8090/", "-c", 150, "--think", "400ms", *PACED)


@scenario(healthy())
def haproxy_exactly_enough(rig):
    """haproxy with maxconn 200 for 200 connections."""
    go(rig, "plain")
    haproxy(rig, f"global\n maxconn 200\nDEFAULTS\nfrontend f\n bind :8090\n default_backend b\nbackend b\n server s 127.0.0.1:{rig.port}\n", port=8_090)
    rig.throng("run", "http://127.0.0.1:8090/", "-c", 200, "--think", "800ms", *PACED)


@scenario(healthy())
def haproxy_closes_each(rig):
    """haproxy with `option httpclose`: each response announces the close."""
    go(rig, "plain")
    haproxy(rig, f"global\nDEFAULTS\n option httpclose\nfrontend f\n bind :8090\n default_backend b\nbackend b\n server s 127.0.0.1:{rig.port}\n", port=8_090)
    rig.throng("run", "http://127.0.0.1:8090/", "-c", 60, "--think", "500ms", *PACED)


@scenario(healthy())
def java_pool_exactly_enough(rig):
    """A pool of 80 threads, one a connection, for 80 connections."""
    java(rig, "pool", 80)
    rig.throng("run", rig.url, "-c", 80, "--think", "500ms", *PACED)


@scenario(healthy())
def go_gate_exactly_enough(rig):
    """A listener that accepts 150 connections at once, for 150."""
    go(rig, "gate", 150)
    rig.throng("run", rig.url, "-c", 150, "--think", "500ms", *PACED)


@scenario(healthy())
def reuseport(rig):
    """nginx with a listener of its own for its worker (reuseport)."""
    nginx(rig, f"server {{ listen {rig.port} reuseport; return 200 ok; }}")
    rig.throng("run", rig.url, "-c", 200, "--think", "400ms", *PACED)


@scenario(healthy())
def gunicorn_without_keep_alive(rig):
    """Four synchronous workers of gunicorn, which announce a close in each response; 5 ms of sleep a request."""
    rig.needs("gunicorn")
    rig.write("app.py", "import time\ndef app(environ, start):\n    time.sleep(0.005)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "4", "-b", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", 30, "--think", "700ms", *PACED)


@scenario(healthy())
def puma_with_short_requests(rig):
    """puma with 32 threads for 50 connections: 20 ms of sleep a request, 50 a second; a thread waits 200 ms more for the next one."""
    rig.needs("puma")
    rig.write("config.ru", "run ->(env) { sleep 0.02; [200, {'content-length' => '2'}, ['ok']] }\n")
    rig.start("puma", "-t", "32:32", "-b", f"tcp://127.0.0.1:{rig.port}", "config.ru")
    rig.throng("run", rig.url, "-c", 50, "--think", "1s", *PACED)


@scenario(healthy())
def python_http_server(rig):
    """Python's own http.server: HTTP/1.0, a thread for each request, a listing of files."""
    rig.start(sys.executable, "-m", "http.server", "--bind", "127.0.0.1", rig.port, env={"LANG": "C"})
    rig.throng("run", rig.url, "-c", 20, "--ramp", "10/s", "--think", "1s", *PACED)


@scenario(healthy())
def maintenance_expected(rig):
    """nginx answers 503 to each request, as the load expects of a page for maintenance."""
    nginx(rig, f"server {{ listen {rig.port}; return 503 later; }}")
    rig.throng("run", rig.url, "-c", 60, "--think", "400ms", "--expect", "status=503", *PACED)


@scenario(healthy())
def fewer_by_half_on_purpose(rig):
    """The load falls to half in its last stage."""
    node(rig, "plain")
    file = rig.write("load.toml", f"""target = "{rig.url}"
[[stage]]
ramp = "100/s"
for = "1s"
[[stage]]
to = "30%"
for = "1s"
[[population]]
name = "users"
connections = 150
think = "300ms..500ms"
""")
    rig.throng("run", file)


@scenario(healthy())
def hog_on_the_core_of_the_target(rig):
    """Go on one processor that a hog uses as well; half a core is enough, and 1 s is allowed."""
    go(rig, "spin", 1, cpus={1})
    rig.start("python3", "-c", "while True: pass", cpus={1}, wait=False)
    rig.throng("run", rig.url, "-c", 60, "--rate", "60/s", *PACED, "--threshold", "latency.p95 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def backlog_of_eight(rig):
    """A backlog of 8 on one thread that accepts at once."""
    c(rig, 8, 0, 0)
    rig.throng("run", rig.url, "-c", 300, "--ramp", "150/s", "--think", "800ms", *PACED)


@scenario(limited("target", "wrong-answer", verdicts=("pass",)))
def tolerated_errors(rig):
    """One response of a hundred is 500, and 5 % are tolerated."""
    loop(rig, "--bad", "500 Internal Server Error", "--share", 0.01)
    rig.throng("run", rig.url, "-c", 60, "--think", "300ms", *PACED, "--threshold", "errors < 5%")
