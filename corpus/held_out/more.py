"""HTTP/2 without a library, and a few more servers of other makers."""

from held_out.starting import Cgroup, c, echo, go, loop, nginx
from recording import healthy, limited, scenario

PACED = ("-c", 60, "--think", "300ms..500ms", "-d", "3s", "--timeout", "3s")


def h2(rig, *words):
    """The server of HTTP/2 with this mode, and a paced load on it."""
    rig.start("python3", rig.server("ho_h2.py"), rig.port, *words)
    return rig.throng("run", rig.url, "--http2", *PACED)


@scenario(healthy())
def h2_by_hand(rig):
    """A server with the least of HTTP/2: no window updates, no table."""
    h2(rig, "ok")


@scenario(healthy())
def h2_leaves_after_responses(rig):
    """GOAWAY without an error after each fifth response; nothing is lost."""
    h2(rig, "leave", 5)


@scenario(limited("target", "wrong-answer", "denied", says="refused"))
def h2_refuses_streams(rig):
    """REFUSED_STREAM from the third request of each connection on."""
    h2(rig, "refuse", 3)
    rig.check("refuse" in rig.output(), "it refused some")


@scenario(limited("target", "wrong-answer", says="internal"))
def h2_internal_errors(rig):
    """INTERNAL_ERROR from the fourth request of each connection on."""
    h2(rig, "internal", 4)
    rig.check("internal" in rig.output(), "it failed some")


@scenario(limited("target", "closed", "denied", "requests-per-connection", says="calm"))
def h2_enhance_your_calm(rig):
    """GOAWAY with ENHANCE_YOUR_CALM at the fourth request of each connection, which has no response."""
    h2(rig, "calm", 4)
    rig.check("calm" in rig.output(), "it sent GOAWAY")


@scenario(limited("target", "closed", "requests-per-connection"))
def h2_cut(rig):
    """TCP ends at the fourth request of each connection, without GOAWAY."""
    h2(rig, "cut", 4)
    rig.check("cut" in rig.output(), "it cut some")


@scenario(limited("target", "timeout"))
def h2_mute(rig):
    """No response from the third request of each connection on, though the process runs and idles."""
    h2(rig, "mute", 3)
    rig.check("mute" in rig.output(), "it was mute")


@scenario(limited("target", "saturated", "thread", "threads"))
def jdk_server_with_one_thread(rig):
    """The JDK's HTTP server whose one dispatcher sleeps 20 ms for each request: 50 a second, and 100 are due."""
    rig.needs("java")
    rig.start("java", "-Xmx128m", rig.server("ho_Plain.java"), rig.port, 0, 20)
    rig.throng("run", rig.url, "-c", 100, "--rate", "100/s", "-d", "3s", "--timeout", "8s", "--threshold", "latency.p95 < 300ms")


@scenario(healthy())
def jdk_server_with_threads(rig):
    """The same with twenty threads."""
    rig.needs("java")
    rig.start("java", "-Xmx128m", rig.server("ho_Plain.java"), rig.port, 20, 20)
    rig.throng("run", rig.url, "-c", 100, "--rate", "100/s", "-d", "3s", "--timeout", "8s", "--threshold", "latency.p95 < 500ms", "--threshold", "faults == 0")


@scenario(healthy())
def php_own_server(rig):
    """PHP's own server: one process, and a close after each response, announced."""
    rig.needs("php")
    rig.write("index.php", "<?php echo 'ok';")
    rig.start("php", "-S", f"127.0.0.1:{rig.port}", "-t", rig.folder)
    rig.throng("run", rig.url, "-c", 30, "--ramp", "30/s", "--think", "800ms", "-d", "3s", "--timeout", "4s")


@scenario(limited("target", "saturated", "thread", "threads", "accept-queue", "slow-accept"))
def php_sleeps(rig):
    """PHP's own server: one process, 100 ms of sleep a request, and 60 connections."""
    rig.needs("php")
    rig.write("index.php", "<?php usleep(100000); echo 'ok';")
    rig.start("php", "-S", f"127.0.0.1:{rig.port}", "-t", rig.folder)
    rig.throng("run", rig.url, "-c", 60, "--ramp", "60/s", "--think", "200ms", "-d", "4s", "--timeout", "9s", "--threshold", "latency.p95 < 500ms")


@scenario(healthy())
def gunicorn_renews_workers(rig):
    """Workers of gunicorn end after 40 requests and others take their place; each response announces a close."""
    rig.needs("gunicorn")
    rig.write("app.py", "def app(environ, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "3", "--max-requests", "40", "-b", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", 20, "--think", "500ms", "-d", "3s", "--timeout", "4s")


@scenario(limited("target", "wrong-answer", says="502"))
def caddy_without_its_server(rig):
    """caddy in front of a server that does not run: 502 to each request."""
    rig.needs("caddy")
    config = f"{{\n admin off\n}}\nhttp://:{rig.port} {{\n reverse_proxy 127.0.0.1:9999\n}}\n"
    rig.start("caddy", "run", "--config", rig.write("Caddyfile", config), "--adapter", "caddyfile", env={"HOME": str(rig.folder), "XDG_DATA_HOME": str(rig.folder)})
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "wrong-answer", says="502"))
def server_of_a_proxy_is_killed(rig):
    """The server that nginx passes requests to is killed in the middle; nginx goes on and answers 502."""
    server = go(rig, "plain")
    nginx(rig, f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; }} }}", port=8_090)
    rig.later(2, "kill", "-KILL", server.pid)
    rig.throng("run", "http://127.0.0.1:8090/", *PACED)
    rig.check("Connection refused" in rig.output(), "nginx says so")


@scenario(healthy())
def two_thousand(rig):
    """2,000 connections to Go, each with a request in two seconds."""
    go(rig, "plain")
    rig.throng("run", rig.url, "-c", 2_000, "--ramp", "1k/s", "--think", "2s..3s", "-d", "3s", "--timeout", "4s")


@scenario(limited("target", "memory", "ended"))
def go_out_of_memory(rig):
    """Go keeps 500 KiB a connection in a group of 80 MiB: the kernel kills it."""
    with Cgroup(rig, "memory", {"memory.limit_in_bytes": 80 << 20}) as group:
        server = go(rig, "keep", 500)
        group.take(server)
        rig.throng("run", rig.url, "-c", 300, "--ramp", "80/s", "--think", "500ms", "-d", "3s", "--timeout", "3s")
        rig.check(server.wait(timeout=5) == -9, "it was killed")


@scenario(limited("target", "cpu", "saturated", "stall"))
def frozen_group(rig):
    """The server's group of processes may use a hundredth of a processor."""
    with Cgroup(rig, "cpu", {"cpu.cfs_period_us": 200_000, "cpu.cfs_quota_us": 2_000}) as group:
        group.take(loop(rig))
        rig.throng("run", rig.url, "-c", 60, "--think", "200ms", "-d", "4s", "--timeout", "5s", "--threshold", "latency.p95 < 150ms")
        rig.check(int(group.read("cpu.stat").split()[3]) > 5, "it was throttled")


@scenario(limited("target", "open-files", "connection-limit", at=(80, 100)))
def websocket_out_of_files(rig):
    """A WebSocket server with 100 open files."""
    echo(rig, "ws", files=100)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 200, "--ramp", "80/s", "--ping", "1s", "-d", "3s", "--timeout", "3s")
    rig.check("Too many open files" in rig.output(), "accept failed")


@scenario(limited("target", "accept-queue", "slow-accept", "connection-limit"))
def full_queue_during_arrivals(rig):
    """Short connections, 100 a second, to a server that accepts 20 a second with a backlog of 8."""
    c(rig, 8, 20, 0)
    rig.throng("run", rig.url, "--arrive", "100/s", "-d", "3s", "--timeout", "3s")
