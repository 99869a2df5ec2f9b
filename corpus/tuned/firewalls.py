"""Firewalls and routers that reject, drop or forget, on the way and on this machine, over IPv4 and IPv6."""

from recording import limited, scenario, unknowable
from tuned.paths import acted, own, rules_later

SYN = "tcp flags & (syn | ack) == syn"
FULL = ("-c", "1200", "-d", "1s", "--think", "1m", "--timeout", "3s")
FEW = ("-c", "20", "-d", "500ms", "--timeout", "2500ms")
HELD = ("-c", "50", "-d", "5s", "--ramp", "100/s", "--think", "200ms..400ms", "--timeout", "2500ms")
CUT = {"certainty": "inferred", "at": (50, 50), "detail": "was never acknowledged", "fix": "routers and firewalls", "never": "open files"}


def forwards(rules, family="inet"):
    return f"table {family} path {{\n chain forward {{\n type filter hook forward priority 0\n {rules}\n }}\n}}\n"


def beyond_1000(rig, how, rate=1_000):
    """The router rejects SYNs beyond 1,000 connections; `rate`: its limit on ICMP messages, ms between two to one host (0: none)."""
    router, far = rig.behind_router()
    for name in ("net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"):
        rig.netns_output(router, "sysctl", "-qw", f"{name}={rate}")
    rig.nft(forwards(f"{SYN} ct state new ct count over 1000 counter {how}"), router)
    address = "::" if "icmpv6" in how else "0.0.0.0"
    rig.odd("--address", address, netns=far, files=4_096)
    host = "[fd77:2::2]" if "icmpv6" in how else rig.host
    rig.throng("run", f"http://{host}:{rig.port}/", *FULL)
    acted(rig, router)
    rig.check(rig.counted()["most_open"] == 1_000, "1,000 connections")


def rejected(address, message, more=""):
    detail = f"{address} rejects with ICMP {message}: the 1,001st{more}"
    return limited("path", "unreachable", certainty="seen", at=(1_000, 1_000), held=(1_000, 1_000), detail=detail, never="open files")


@scenario(limited("path", "unreachable", certainty="seen", at=(1_000, 1_000), held=(1_000, 1_000), fix="limit on connections .ct count, connlimit.",
                  detail="10.77.1.2 rejects with ICMP administratively prohibited: the 1,001st and all after it"))
def router_prohibits_beyond_1000(rig):
    """Beyond 1,000 connections each SYN gets an ICMP message: administratively prohibited."""
    beyond_1000(rig, "reject with icmp type admin-prohibited", rate=0)


@scenario(rejected("10.77.1.2", "administratively prohibited", " and all after it"))
def router_prohibits_and_says_so_once_a_second(rig):
    """The same; the router sends one message a second."""
    beyond_1000(rig, "reject with icmp type admin-prohibited")


@scenario(rejected("10.77.1.2", "port unreachable", " and all after it"))
def router_rejects_as_firewalls_do_by_default(rig):
    """ICMP port unreachable beyond 1,000 connections: errno is `connection refused`, as if the target had done it."""
    beyond_1000(rig, "reject with icmp type port-unreachable", rate=0)


@scenario(rejected("10.77.1.2", "host unreachable"))
def router_reports_no_route_beyond_1000(rig):
    """ICMP host unreachable beyond 1,000 connections."""
    beyond_1000(rig, "reject with icmp type host-unreachable", rate=0)


@scenario(rejected("fd77:1::2", "administratively prohibited", " and all after it"))
def router_of_ipv6_prohibits_beyond_1000(rig):
    """ICMPv6: errno is `permission denied`, as if this machine had done it."""
    beyond_1000(rig, "reject with icmpv6 type admin-prohibited", rate=0)


@scenario(rejected("fd77:1::2", "port unreachable", " and all after it"))
def router_of_ipv6_rejects_by_default(rig):
    """ICMPv6 port unreachable beyond 1,000 connections."""
    beyond_1000(rig, "reject with icmpv6 type port-unreachable", rate=0)


@scenario(unknowable(may=("refused",), held=(1_000, 1_000), detail="200 dials were refused after 1,000 had been accepted: the 1,001st and all after it",
                     fix="a firewall that sends resets looks the same"))
def router_sends_resets_beyond_1000(rig):
    """A reset to each SYN beyond 1,000 connections, as the target's host could send."""
    beyond_1000(rig, "reject with tcp reset")


@scenario(limited("path", "no-syn-ack", certainty="inferred", at=(1_000, 1_000), held=(1_000, 1_000), fix="ct count", never="open files",
                  detail="200 dials got no SYN-ACK, no reset and no ICMP: the 1,001st and all after it"))
def router_drops_in_silence_beyond_1000(rig):
    """SYNs beyond 1,000 connections are dropped."""
    beyond_1000(rig, "drop")


def of_this_machine(rig, rule):
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("output", f"{SYN} {rule}"))
    rig.throng("run", rig.url, *FEW)
    rig.check(rig.counted()["accepted"] == 0, "none arrived")


def denied(certainty, detail):
    return limited("host", "denied", certainty=certainty, at=(0, 0), detail=detail, fix="nft list ruleset", verdicts=("fail", "invalid"))


@scenario(denied("seen", "this machine rejects them itself"))
def our_own_firewall_prohibits(rig):
    """This machine's firewall: ICMP administratively prohibited to its own SYNs."""
    of_this_machine(rig, "reject with icmp type admin-prohibited")


@scenario(denied("seen", "this machine rejects them itself with ICMP port unreachable"))
def our_own_firewall_rejects_by_default(rig):
    """This machine's firewall: `reject`, which is ICMP port unreachable."""
    of_this_machine(rig, "reject")


@scenario(denied("inferred", "this machine blocked"))
def our_own_firewall_drops_what_leaves(rig):
    """This machine's firewall drops its own SYNs."""
    of_this_machine(rig, "drop")


@scenario(limited("path", "syn-loss", certainty="inferred", fix="limit on the rate of new connections", sentence="a full queue of the target"))
def router_limits_syns_below_the_arrivals(rig):
    """SYNs beyond 100 a second are dropped; 150 arrive, and a second SYN comes through. From here a full queue of the target looks the same."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"{SYN} limit rate over 100/second burst 5 packets counter drop"), router)
    rig.odd(netns=far)
    rig.throng("run", rig.url, "--arrive", "150/s", "--total", "600", "--threshold", "connect.p99 < 500ms")
    acted(rig, router)


@scenario(limited("path", "unacknowledged", **CUT))
def router_drops_established_ones_in_the_middle(rig):
    """From second 3 on the router drops all packets but SYNs."""
    router, far = rig.behind_router()
    rig.odd(netns=far)
    rules_later(rig, router, 3, "tcp flags & syn == 0 counter drop")
    rig.throng("run", rig.url, *HELD)
    acted(rig, router)


@scenario(limited("path", "unacknowledged", **CUT))
def router_restarts_and_forgets(rig):
    """In second 3 the router's table of connections is emptied, and what it does not know is dropped."""
    rig.needs("conntrack")
    router, far = rig.behind_router()
    rig.nft(forwards("ct state invalid counter drop\n tcp flags & (syn|ack) != syn ct state new counter drop"), router)
    rig.odd(netns=far)
    rig.later(3, "ip", "netns", "exec", router, "conntrack", "-F")
    rig.throng("run", rig.url, *HELD)
    acted(rig, router)


def without_syn_ack(rig, flags):
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp flags & (syn | ack) == {flags} counter drop"), router)
    rig.odd(netns=far)
    rig.throng("run", rig.url, *FEW)
    acted(rig, router)


NO_SYN_ACK = limited("path", "no-syn-ack", certainty="inferred", at=(0, 0), detail="20 dials got no SYN-ACK, no reset and no ICMP", never="open files")


@scenario(NO_SYN_ACK)
def router_drops_each_syn(rig):
    """SYNs do not arrive."""
    without_syn_ack(rig, "syn")


@scenario(NO_SYN_ACK)
def router_drops_each_syn_ack(rig):
    """SYNs arrive, and the replies do not."""
    without_syn_ack(rig, "(syn | ack)")


@scenario(unknowable(verdicts=("pass",), reason="nothing received on any of them for 6 s"))
def idle_ones_on_a_dead_path(rig):
    """Idle connections over raw TCP, and from second 1 on the router drops all: nothing is sent, so nothing can be missed; silence is said."""
    router, far = rig.behind_router()
    rig.odd(netns=far)
    rules_later(rig, router, 1, "counter drop")
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "30", "-d", "6s")


def routed_to_nowhere(rig, kind, *options):
    """The router has no way to 10.90.0.0/16, and says so or not."""
    router, _ = rig.behind_router()
    rig.netns_output(router, "ip", "route", "add", kind, "10.90.0.0/16")
    run = ["ip", "route", "add", "10.90.0.0/16", "via", "10.77.1.2"]
    rig.check(rig.start(*run, wait=False).wait(5) == 0, "a route to the router")
    rig.throng("run", "http://10.90.1.1:80/", "-c", "5", "-d", "100ms", "--timeout", "2s", *options)
    rig.check(rig.summary["connections"]["opened"] == 0, "none is opened")


@scenario(limited("path", "unreachable", at=(0, 0)))
def router_without_a_route(rig):
    """ICMP host unreachable to each SYN."""
    routed_to_nowhere(rig, "unreachable")


@scenario(limited("path", "unreachable", at=(0, 0)))
def router_with_a_prohibited_route(rig):
    """ICMP administratively prohibited to each SYN."""
    routed_to_nowhere(rig, "prohibit")


@scenario(limited("path", "no-syn-ack", at=(0, 0)))
def router_with_a_black_hole(rig):
    """No message, and no packet goes on."""
    routed_to_nowhere(rig, "blackhole")


@scenario(limited("path", "unreachable", at=(0, 0)))
def no_host_of_ipv6_at_the_address(rig):
    """The network is there, and no host of it has the address: neighbour discovery fails."""
    rig.behind_router()
    rig.throng("run", "http://[fd77:1::99]:80/", "-c", "5", "-d", "100ms", "--timeout", "8s")


@scenario(limited("path", "unreachable", held=(10, 10)))
def one_of_two_destinations_has_no_route(rig):
    """Two addresses of one name; to the second one the router has no route."""
    router, far = rig.behind_router()
    rig.netns_output(router, "ip", "route", "add", "unreachable", "10.90.0.0/16")
    rig.check(rig.start("ip", "route", "add", "10.90.0.0/16", "via", "10.77.1.2", wait=False).wait(5) == 0, "a route to the router")
    hosts = rig.write("hosts", f"{rig.host} farm\n10.90.0.1 farm\n")
    rig.check(rig.start("mount", "--bind", hosts, "/etc/hosts", wait=False).wait(5) == 0, "names of our own")
    rig.odd(netns=far)
    rig.throng("run", f"http://farm:{rig.port}/", "-c", "20", "-d", "300ms", "--think", "20ms")


@scenario(limited("target", "timeout", "stall", detail="acknowledged them", reason="not in this network namespace"))
def a_container_stops_and_its_proxy_runs(rig):
    """A published port: packets to it are translated to a container, and what listens at the port here never gets one. The container is stopped."""
    far = rig.far()
    container = rig.odd(netns=far)
    rig.nft("""table ip published {
 chain output { type nat hook output priority -100
 ip daddr 10.77.0.1 tcp dport 8080 dnat to 10.77.0.2:8080
 }
 chain postrouting { type nat hook postrouting priority 100
 }
}
""")
    rig.start(rig.binary, "serve", "--listen", f"0.0.0.0:{rig.port}", "--threads", 1)
    rig.later(2, "kill", "-STOP", container.pid)
    rig.throng("run", f"http://10.77.0.1:{rig.port}/", "-c", "30", "--ramp", "100/s", "-d", "5s", "--think", "50ms..100ms", "--timeout", "2500ms")
    rig.check(rig.counted()["accepted"] >= 30, "the container had them")
    rig.check(rig.summary["target_cost"] is None, "it is not seen from here")


def observed(rig, *server, **start):
    """A server on a host of its own, where `throng observe` reports."""
    far = rig.far()
    secret = rig.write("secret", "a-b-c\n")
    secret.chmod(0o600)
    rig.odd(*server, netns=far, **start)
    rig.start(rig.binary, "observe", "--listen", f"{rig.host}:9999", "--token-file", secret, netns=far, port=9_999, log="observer.log")
    rig.throng("run", rig.url, "-c", "600", "--ramp", "5k/s", "-d", "3s", "--think", "1m", "--timeout", "2s",
               "--observe", f"http://{rig.host}:9999", "--observe-token-file", secret)
    rig.check(rig.summary["observed"]["observer"]["failures"] == 0, "it reported each time")


@scenario(limited("target", "open-files", certainty="seen", detail="300 of 300 files open", fix="prlimit --pid "))
def out_of_files_afar_and_observed(rig):
    """300 open files on another host, where an observer runs."""
    observed(rig, files=300)
    rig.check(rig.counted()["accept_errors"] > 0, "accept failed")


@scenario(limited("target", "accept-queue", certainty="seen", detail="accept queue of 8 was full: it overflowed ", fix="somaxconn"))
def a_queue_of_eight_afar_and_observed(rig):
    """A backlog of 8 and 20 accepts a second on another host, where an observer runs."""
    observed(rig, "--backlog", 8, "--accept-rate", 20)
    rig.check(rig.counted()["accepted"] < 600, "it did not accept all")
