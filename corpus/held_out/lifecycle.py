"""Servers that end, stop, come late, or end connections."""

import sys

from held_out.starting import echo, go, loop, nginx, node
from recording import healthy, limited, scenario

HOLD = ("--think", "400ms", "--timeout", "3s")


@scenario(limited("target", "refused"))
def not_there(rig):
    """Nothing listens."""
    rig.throng("run", rig.url, "-c", 50, "-d", "2s", *HOLD)


@scenario(limited("target", "refused"))
def comes_late(rig):
    """The server listens from the third second of the run on."""
    go(rig, "late", 3_000, wait=False)
    rig.throng("run", rig.url, "-c", 100, "--ramp", "25/s", "-d", "3s", *HOLD)


@scenario(limited("target", "ended"))
def killed(rig):
    """SIGKILL two seconds into the run."""
    server = go(rig, "plain")
    rig.later(2, "kill", "-KILL", server.pid)
    rig.throng("run", rig.url, "-c", 200, "-d", "4s", *HOLD)
    rig.check(server.wait(timeout=5) == -9, "it was killed")


@scenario(limited("target", "ended"))
def exits_at_a_number(rig):
    """The process ends as soon as it has 181 connections."""
    server = loop(rig, "--max", 180, "--over", "exit")
    rig.throng("run", rig.url, "-c", 300, "--ramp", "100/s", "-d", "3s", *HOLD)
    rig.check(server.wait(timeout=5) == 3, "it ended itself")


@scenario(limited("target", "ended", "closed"))
def restarts_in_the_middle(rig):
    """SIGKILL after two seconds, and the same server again half a second later."""
    start = f"{sys.executable} {rig.server('ho_async.py')} {rig.port}"
    rig.start("sh", "-c", f"{start} & one=$!; sleep 2.5; kill -KILL $one; sleep 0.5; exec {start}")
    rig.throng("run", rig.url, "-c", 150, "-d", "5s", *HOLD, "--reconnect", "200ms..1s")


@scenario(limited("target", "ended", "closed"))
def shuts_down(rig):
    """Go ends gracefully after two seconds: it closes its listener and each connection that idles."""
    go(rig, "shutdown", 2_000)
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD)
    rig.check("shutting down" in rig.output(), "it shut down")


@scenario(limited("target", "stall", "timeout"))
def stopped(rig):
    """SIGSTOP two seconds into the run, for good."""
    server = node(rig, "plain")
    rig.later(2, "kill", "-STOP", server.pid)
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD)


@scenario(limited("target", "stall"))
def stopped_for_a_while(rig):
    """SIGSTOP in the second second and SIGCONT 1.5 s later; 500 ms are allowed."""
    server = node(rig, "plain")
    rig.later(2, "kill", "-STOP", server.pid)
    rig.later(3.5, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD, "--threshold", "latency.p95 < 500ms", "--threshold", "faults == 0")


@scenario(limited("target", "stall", "saturated"))
def sleeps_now_and_then(rig):
    """The loop sleeps 700 ms of each second, without CPU; 300 ms are allowed."""
    loop(rig, "--pause", 0.7, "--every", 0.3)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p95 < 300ms")


@scenario(limited("target", "cpu", "thread", "stall"))
def computes_now_and_then(rig):
    """node computes for 800 ms of each second; 300 ms are allowed."""
    node(rig, "block", 800)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p95 < 300ms")


@scenario(limited("target", "idle-cut", "closed", verdicts=("fail", "pass")))
def idle_cut(rig):
    """A close after 1 s without a request; requests are 2 s apart."""
    loop(rig, "--idle", 1)
    rig.throng("run", rig.url, "-c", 100, "--think", "2s", "-d", "5s", "--timeout", "3s")
    rig.check("cut" in rig.output(), "it closed some")


@scenario(limited("target", "idle-cut", "reset-after", "closed"))
def idle_reset(rig):
    """A reset after 1.2 s without a request; requests are 2.5 s apart."""
    loop(rig, "--idle", 1.2, "--cut", "rst")
    rig.throng("run", rig.url, "-c", 100, "--think", "2500ms", "-d", "6s", "--timeout", "3s")
    rig.check("cut" in rig.output(), "it reset some")


@scenario(limited("target", "idle-cut", "closed", verdicts=("fail", "pass")))
def nginx_idle(rig):
    """nginx with keepalive_timeout 1s, and requests 2.5 s apart."""
    nginx(rig, f"keepalive_timeout 1s; server {{ listen {rig.port}; return 200 ok; }}")
    rig.throng("run", rig.url, "-c", 80, "--think", "2500ms", "-d", "5s", "--timeout", "3s")


@scenario(limited("target", "idle-cut", "closed", verdicts=("fail", "pass")))
def websocket_idle(rig):
    """nginx in front of a WebSocket closes it after 1 s without a message (proxy_read_timeout); messages are 3 s apart."""
    echo(rig, "ws")
    upgrade = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_read_timeout 1s;"
    nginx(rig, f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; {upgrade} }} }}", port=8_090)
    rig.throng("run", "ws://127.0.0.1:8090/", "-c", 80, "--ping", "3s", "-d", "6s", "--timeout", "3s")
    rig.check("upstream timed out" in rig.output(), "its log says so")


@scenario(limited("target", "reset-after", "closed"))
def age_limit(rig):
    """A reset as soon as a connection is 2 s old, idle or not."""
    loop(rig, "--age", 2, "--cut", "rst")
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD)
    rig.check("cut" in rig.output(), "it reset them")


@scenario(limited("target", "closed", "reset-after"))
def age_limit_without_a_reset(rig):
    """A close as soon as a connection is 2.5 s old, idle or not."""
    loop(rig, "--age", 2.5)
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD)
    rig.check("cut" in rig.output(), "it closed them")


@scenario(limited("target", "requests-per-connection", "closed", verdicts=("fail", "pass")))
def five_requests_each(rig):
    """A close after each fifth response, without an announcement."""
    loop(rig, "--calls", 5)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD)
    rig.check("cut" in rig.output(), "it closed them")


@scenario(limited("target", "requests-per-connection", "closed"))
def one_request_each(rig):
    """A close after each response, without an announcement, in a closed loop that never dials again."""
    loop(rig, "--calls", 1)
    rig.throng("run", rig.url, "-c", 100, "-d", "3s", *HOLD, "--reconnect", "never")
    rig.check("cut" in rig.output(), "it closed them")


@scenario(healthy())
def idle_limit_above_the_pause(rig):
    """Idle connections are cut after 2 s, and requests are one second apart."""
    loop(rig, "--idle", 2)
    rig.throng("run", rig.url, "-c", 100, "--think", "1s", "-d", "4s", "--timeout", "3s")
    rig.check("cut" not in rig.output(), "none was cut")


@scenario(healthy())
def announced_in_hundreds(rig):
    """nginx with keepalive_requests 4, which announces each close."""
    nginx(rig, f"keepalive_requests 4; server {{ listen {rig.port}; return 200 ok; }}")
    rig.throng("run", rig.url, "-c", 150, "-d", "3s", *HOLD)


@scenario(healthy())
def stopped_shortly(rig):
    """SIGSTOP for 300 ms; a second is allowed."""
    server = node(rig, "plain")
    rig.later(2, "kill", "-STOP", server.pid)
    rig.later(2.3, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p99 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def log_reopened(rig):
    """nginx gets SIGUSR1 in the middle and opens its log again, which disturbs no connection."""
    server = nginx(rig, f"keepalive_requests 5; server {{ listen {rig.port}; return 200 ok; }}")
    rig.later(2, "kill", "-USR1", server.pid)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD)
