"""Connections that end, with a ramp of seconds and pauses of random length, so that age, requests and the clock differ."""

from held_out.starting import counted, echo, go, loop, middle
from recording import healthy, limited, scenario, unknowable

SPREAD = ("-c", 120, "--ramp", "40/s", "--think", "150ms..700ms", "-d", "4s", "--timeout", "3s")


def forward(rule):
    """A ruleset whose forward chain has one rule."""
    return f"table inet corpus {{\n chain forward {{\n  type filter hook forward priority 0\n  {rule}\n }}\n}}\n"


@scenario(limited("target", "closed", "reset-after"))
def closes_at_an_age(rig):
    """A close as soon as a connection is 2.5 s old, whatever it does."""
    loop(rig, "--age", 2.5)
    rig.throng("run", rig.url, *SPREAD)
    rig.check("cut" in rig.output(), "it closed them")


@scenario(limited("target", "closed", "reset-after"))
def resets_at_an_age(rig):
    """A reset as soon as a connection is 3 s old, whatever it does."""
    loop(rig, "--age", 3, "--cut", "rst")
    rig.throng("run", rig.url, *SPREAD)
    rig.check("cut" in rig.output(), "it reset them")


@scenario(limited("target", "requests-per-connection", says=r"\b6\b"))
def closes_after_six_requests(rig):
    """A close after the sixth response, without an announcement."""
    loop(rig, "--calls", 6)
    rig.throng("run", rig.url, *SPREAD)
    rig.check("cut" in rig.output(), "it closed them")


@scenario(healthy())
def announces_after_six_requests(rig):
    """The same with an announcement."""
    loop(rig, "--calls", 6, "--announce")
    rig.throng("run", rig.url, *SPREAD)


@scenario(limited("target", "idle-cut", says=r"\b1(\.\d)? s\b"))
def closes_idle_ones(rig):
    """A close after 1.2 s without a request; pauses last from 0.2 to 3 s."""
    loop(rig, "--idle", 1.2)
    rig.throng("run", rig.url, "-c", 120, "--ramp", "40/s", "--think", "200ms..3s", "-d", "5s", "--timeout", "3s")
    rig.check("cut" in rig.output(), "it closed some")


@scenario(limited("target", "idle-cut", "closed"))
def resets_idle_ones(rig):
    """A reset after 1.2 s without a request; pauses last from 0.2 to 3 s."""
    loop(rig, "--idle", 1.2, "--cut", "rst")
    rig.throng("run", rig.url, "-c", 120, "--ramp", "40/s", "--think", "200ms..3s", "-d", "5s", "--timeout", "3s")
    rig.check("cut" in rig.output(), "it reset some")


@scenario(unknowable(may=("reset-after", "closed")))
def middlebox_resets_at_an_age(rig):
    """A middlebox resets each connection that is 2 s old, on both sides; the server is well."""
    middle(rig, "--age", 2)
    rig.throng("run", rig.url, *SPREAD)
    rig.check("reset" in rig.output(), "it reset them")


@scenario(limited("path", "reset-after", "closed"))
def router_resets_at_one_moment(rig):
    """At one moment the router begins to answer each packet with a reset, however old a connection is."""
    router, far = rig.behind_router()
    loop(rig, netns=far)
    file = rig.write("later.nft", forward("tcp dport 8080 counter reject with tcp reset"))
    rig.later(4.5, "ip", "netns", "exec", router, "nft", "-f", file)
    rig.throng("run", rig.url, *SPREAD)
    rig.check(counted(rig, router) > 0, "packets were rejected")


@scenario(unknowable(may=("timeout", "idle-cut", "stall")))
def middlebox_forgets_idle_ones(rig):
    """A middlebox acknowledges and swallows all that comes after 1.5 s without a byte; pauses last from 0.2 to 3 s."""
    middle(rig, "--idle", 1.5)
    rig.throng("run", rig.url, "-c", 100, "--ramp", "50/s", "--think", "200ms..3s", "-d", "6s", "--timeout", "3s")
    rig.check("swallowed" in rig.output(), "it swallowed some")


@scenario(unknowable(may=("connection-limit", "closed")))
def middlebox_resets_above(rig):
    """A middlebox resets connections above 100, which the server never sees."""
    middle(rig, "--max", 100)
    rig.throng("run", rig.url, "-c", 200, *SPREAD[2:])
    rig.check("reset" in rig.output(), "it reset some")


@scenario(limited("target", "ended"))
def killed_during_the_ramp(rig):
    """SIGKILL while connections still come."""
    server = go(rig, "plain")
    rig.later(1.8, "kill", "-KILL", server.pid)
    rig.throng("run", rig.url, *SPREAD)
    rig.check(server.wait(timeout=5) == -9, "it was killed")


@scenario(limited("target", "ended"))
def websocket_server_killed(rig):
    """SIGKILL of a WebSocket server whose connections idle."""
    server = echo(rig, "ws")
    rig.later(2.5, "kill", "-KILL", server.pid)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 150, "-d", "4s", "--timeout", "3s")
    rig.check(server.wait(timeout=5) == -9, "it was killed")


@scenario(limited("target", "stall"))
def tcp_server_stopped(rig):
    """SIGSTOP of a TCP echo during the ramp, for good."""
    server = echo(rig, "tcp")
    rig.later(2, "kill", "-STOP", server.pid)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", 150, "--ramp", "40/s", "--ping", "400ms", "--message", "hello", "-d", "4s", "--timeout", "3s")


@scenario(limited("target", "ended"))
def arrivals_to_one_that_exits(rig):
    """Short connections to a server that ends itself as soon as 31 are open at once, which a delay of 300 ms brings about."""
    server = loop(rig, "--delay", 0.3, "--max", 30, "--over", "exit")
    rig.throng("run", rig.url, "--arrive", "120/s", "-d", "3s", "--timeout", "3s")
    rig.check(server.wait(timeout=5) == 3, "it ended itself")


@scenario(limited("target", "connection-limit", at=(28, 31)))
def arrivals_above_a_limit(rig):
    """Short connections to a server that resets those above 30 at once; 36 are open at once."""
    loop(rig, "--delay", 0.3, "--max", 30)
    rig.throng("run", rig.url, "--arrive", "120/s", "-d", "3s", "--timeout", "3s")
    rig.check("over" in rig.output(), "it reset some")


@scenario(limited("target", "saturated", "threads"))
def arrivals_faster_than_served(rig):
    """120 connections a second, and eight handlers at once with 200 ms each serve 40 a second; 300 ms are allowed."""
    go(rig, "pool", 8)
    rig.throng("run", rig.url, "--arrive", "120/s", "-d", "3s", "--timeout", "9s", "--threshold", "latency.p95 < 300ms")
