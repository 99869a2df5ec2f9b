"""Loads that ask for what this machine, or the plan itself, does not have; and servers that start late or change in the middle."""

from recording import healthy, limited, scenario

PACED = ("--think", "300ms..700ms", "--timeout", "3s")


@scenario(healthy())
def more_arrivals_than_the_range_has_ports(rig):
    """The range of local ports has 200 of them, 300 connections are open at once: throng takes ports beyond the range."""
    rig.sysctl("net.ipv4.ip_local_port_range", "50000 50199")
    rig.sysctl("net.ipv4.tcp_tw_reuse", 0)
    rig.odd("--delay", 6)
    rig.throng("run", rig.url, "--arrive", "60/s", "-d", "5s", "--timeout", "9s", "--sources", "127.0.0.1")


@scenario(healthy())
def ports_that_suffice(rig):
    """400 local ports for 200 connections."""
    rig.sysctl("net.ipv4.ip_local_port_range", "50000 50399")
    rig.odd()
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(limited("target", "refused", verdicts=("fail", "pass"), never="firewall"))
def listens_a_fifth_of_a_second_late(rig):
    """The server listens 0.2 s after the first dials: these are refused, and no firewall takes part."""
    rig.odd("--listen-after", "0.35", wait=False)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(limited("target", "refused", verdicts=("pass",)))
def listens_late_and_the_load_tries_again(rig):
    """The server listens 0.5 s late; the load dials again with a back-off, and its threshold is on what is held."""
    rig.odd("--listen-after", "0.5", wait=False)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "4s", "--reconnect", "100ms..500ms", "--threshold", "held >= 99%", *PACED)


@scenario(limited("target", "connection-limit"))
def a_limit_reached_in_the_last_second_of_the_ramp(rig):
    """380 connections at most, for a slow ramp to 400: nearly all of the run is in order."""
    rig.odd("--most", 380)
    rig.throng("run", rig.url, "-c", "400", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["turned_away"] > 0, "turned away")


@scenario(limited("target", "wrong-answer", says="503"))
def errors_for_one_second_only(rig):
    """In second 3, and only then, each response is 503."""
    rig.odd("--then", "error", "--at", 3, "--for", 1)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    rig.check(rig.counted()["odd"] > 0, "errors")


@scenario(limited("target", "timeout"))
def hangs_for_half_a_second_of_requests(rig):
    """Requests of seconds 2 to 2.5 never get a response; all others do, at once."""
    rig.odd("--then", "hang", "--at", 2, "--for", "0.5")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "300/s", "-d", "5s", "--think", "600ms..1s", "--timeout", "2s")
    rig.check(rig.counted()["odd"] > 0, "requests without a response")


@scenario(healthy())
def a_slow_start(rig):
    """In the first second each response takes 0.5 s, as with cold caches; there is no threshold."""
    rig.odd("--then", "delay", "--at", 0, "--for", 1, "--amount", "0.5")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", *PACED)


@scenario(healthy())
def one_slow_request_of_thousands(rig):
    """One request in 300 takes 2 s; the threshold is on the median."""
    rig.odd("--then", "delay", "--every", 300, "--amount", 2)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", *PACED, "--threshold", "latency.p50 < 300ms")
