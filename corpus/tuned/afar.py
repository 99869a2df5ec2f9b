"""Servers on a host of their own, whose processes, queues and counters the load does not see."""

from recording import healthy, limited, scenario, unknowable

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
QUICK = ("--think", "100ms..300ms", "--timeout", "3s")


@scenario(unknowable(may=("unacknowledged", "no-syn-ack", "timeout")))
def its_host_goes_away(rig):
    """The link of the server's host goes down in second 3: a path or a host, which cannot be distinguished."""
    _, far = rig.behind_router()
    rig.odd(netns=far)
    rig.later(3, "ip", "-n", far, "link", "set", "next1", "down")
    rig.throng("run", rig.url, "-c", "80", "--ramp", "100/s", "-d", "6s", *QUICK)
    rig.check("state DOWN" in rig.netns_output(far, "ip", "link", "show", "next1"), "the link is down")


@scenario(unknowable(may=("cpu", "saturated", "timeout")))
def short_of_cpu_afar(rig):
    """20 ms of CPU for each request in one thread; 100/s are due, and time out."""
    far = rig.far()
    rig.odd("--work", "0.02", netns=far)
    rig.throng("run", rig.url, "-c", "100", "--rate", "100/s", "-d", "6s", "--timeout", "2s")


@scenario(unknowable(may=("open-files", "timeout", "accept-queue", "connection-limit")))
def out_of_files_afar(rig):
    """100 open files: its kernel completes the other connections, and no response comes on them."""
    far = rig.far()
    rig.odd(netns=far, files=100)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "100/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["accept_errors"] > 0, "accept failed")


@scenario(limited("target", "ended", "refused"))
def killed_afar(rig):
    """The server is killed in second 2: connections are closed, and dials refused."""
    far = rig.far()
    server = rig.odd(netns=far)
    rig.later(2, "kill", "-KILL", server.pid)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "50/s", "-d", "2s", *PACED)
    rig.check(server.poll() == -9, "it was killed")


@scenario(limited("target", "timeout", "stall"))
def stopped_afar(rig):
    """SIGSTOP in second 2: its kernel acknowledges, and no response comes."""
    far = rig.far()
    server = rig.odd(netns=far)
    rig.later(2, "kill", "-STOP", server.pid)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")


@scenario(limited("target", "idle-cut"))
def idle_timeout_afar(rig):
    """Closes connections after 2 s without a request."""
    far = rig.far()
    rig.odd("--idle", 2, netns=far)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "40/s", "-d", "6s", "--think", "20s..30s", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "connection-limit", at=(145, 155)))
def closes_beyond_150_afar(rig):
    """Accepts and closes connections beyond 150."""
    far = rig.far()
    rig.odd("--most", 150, netns=far)
    rig.throng("run", rig.url, "-c", "250", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["turned_away"] > 0, "turned away")


@scenario(healthy())
def announced_closes_afar(rig):
    """`Connection: close` in each third response."""
    far = rig.far()
    rig.odd("--responses", 3, "--announce", 1, netns=far)
    rig.throng("run", rig.url, "-c", "80", "--ramp", "80/s", "-d", "3s", *QUICK)


@scenario(healthy())
def idle_afar(rig):
    """500 idle connections over raw TCP."""
    far = rig.far()
    rig.odd(netns=far)
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "500", "--ramp", "250/s", "-d", "3s", "--timeout", "3s")


@scenario(unknowable(may=("closed", "wrong-answer")))
def faults_of_three_kinds(rig):
    """One request in 20 gets a close, half a response or 503, at random."""
    rig.odd("--then", "mixed", "--share", "0.05")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "4s", *QUICK)
    rig.check(rig.counted()["odd"] > 0, "the odd requests took place")
