"""Faults whose cause cannot be known from here: the server is a host of its own, or a middlebox hides it."""

from held_out.starting import loop, middle
from recording import healthy, scenario, unknowable

HOLD = ("--think", "400ms", "--timeout", "3s")


@scenario(unknowable())
def a_share_is_slow(rig):
    """A far server delays five of a hundred responses by 1.5 s, asleep."""
    loop(rig, "--delay", 1.5, "--share", 0.05, netns=rig.far())
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD, "--threshold", "latency.p99 < 500ms")


@scenario(unknowable(may=("closed", "reset-after")))
def one_in_a_hundred_is_reset(rig):
    """A far server resets one of a hundred connections instead of a response."""
    loop(rig, "--drop", "rst", "--share", 0.01, netns=rig.far())
    rig.throng("run", rig.url, "-c", 200, "-d", "4s", *HOLD, "--threshold", "faults == 0")
    rig.check("reset" in rig.output(), "it reset some")


@scenario(unknowable(may=("closed", "reset-after")))
def middlebox_resets_some(rig):
    """A middlebox resets one of fifty connections instead of a response."""
    middle(rig, "--reset", "--share", 0.02)
    rig.throng("run", rig.url, "-c", 150, "-d", "4s", *HOLD, "--threshold", "faults == 0")
    rig.check("reset" in rig.output(), "it reset some")


@scenario(unknowable())
def middlebox_delays_all(rig):
    """A middlebox delays each response by 300 ms; 200 ms are allowed."""
    middle(rig, "--delay", 0.3)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p95 < 200ms")
    rig.check("delayed" in rig.output(), "it delayed them")


@scenario(unknowable(may=("timeout",)))
def middlebox_swallows_some(rig):
    """A middlebox swallows one response of fifty and acknowledges it to the server."""
    middle(rig, "--swallow", "--share", 0.02)
    rig.throng("run", rig.url, "-c", 100, "-d", "6s", *HOLD, "--threshold", "faults == 0")
    rig.check("swallowed" in rig.output(), "it swallowed some")


@scenario(unknowable(may=("saturated",)))
def narrow_pipe(rig):
    """A middlebox passes 400 kB/s of responses of 20 kB each: 20 a second."""
    middle(rig, "--rate", 400_000, server=("loop", "--body", 20_000))
    rig.throng("run", rig.url, "-c", 60, "-d", "4s", "--think", "400ms", "--timeout", "9s", "--threshold", "latency.p95 < 500ms")


@scenario(unknowable(may=("closed",)))
def websockets_end_by_chance(rig):
    """A middlebox resets one of thirty WebSockets at a message."""
    middle(rig, "--reset", "--share", 0.03, server=("echo", "ws"))
    rig.throng("run", f"ws://{rig.host}:{rig.port}/", "-c", 100, "-d", "4s", "--ping", "500ms", "--timeout", "3s", "--threshold", "faults == 0")
    rig.check("reset" in rig.output(), "it reset some")


@scenario(unknowable(may=("saturated",)))
def slower_by_and_by(rig):
    """A far server where each request holds a lock for 15 ms, asleep: 66 a second, and 100 are due."""
    loop(rig, "--lock", 0.015, netns=rig.far())
    rig.throng("run", rig.url, "-c", 100, "--rate", "100/s", "-d", "4s", "--timeout", "4s", "--threshold", "latency.p95 < 200ms")


@scenario(healthy())
def slow_middlebox_in_time(rig):
    """The same middlebox with 300 ms, and 1 s is allowed."""
    middle(rig, "--delay", 0.3)
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p95 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def some_slow_ones_in_time(rig):
    """A far server delays five of a hundred responses by 1 s, and the median may take 300 ms."""
    loop(rig, "--delay", 1, "--share", 0.05, netns=rig.far())
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD, "--threshold", "latency.p50 < 300ms", "--threshold", "faults == 0")
