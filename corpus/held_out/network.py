"""Paths that lose, refuse or cut: the faults are rules of a router, and its counters prove them. The server is a host of its own."""

from held_out.starting import counted, loop
from recording import healthy, limited, run_quietly, scenario

HOLD = ("--think", "500ms", "--timeout", "3s")


def routed(rig, rules="", *options):
    """A server two links away, with these rules in the router between."""
    router, far = rig.behind_router()
    loop(rig, *options, netns=far)
    if rules:
        rig.nft(forward(rules), router)
    return router, far


def forward(rules):
    """A ruleset whose forward chain has these rules."""
    lines = "\n".join(f"  {rule.strip()}" for rule in rules.split(";"))
    return f"table inet corpus {{\n chain forward {{\n  type filter hook forward priority 0\n{lines}\n }}\n}}\n"


def later(rig, after_s, router, rules):
    """Loads the rules in the middle of the run."""
    file = rig.write("later.nft", forward(rules))
    rig.later(after_s, "ip", "netns", "exec", router, "nft", "-f", file)


@scenario(healthy())
def routed_well(rig):
    """A router that counts and forwards everything."""
    routed(rig, "tcp dport 8080 counter accept")
    rig.throng("run", rig.url, "-c", 200, "-d", "3s", *HOLD)


@scenario(healthy())
def firewall_limit_that_suffices(rig):
    """At most 250 connections of one address pass, and there are 200."""
    router, _ = routed(rig, "ct state new tcp dport 8080 ct count over 250 counter drop")
    rig.throng("run", rig.url, "-c", 200, "-d", "3s", *HOLD)
    rig.check(counted(rig, router) == 0, "nothing was dropped")


@scenario(healthy())
def syn_limit_that_suffices(rig):
    """100 new connections a second may pass, and 50 a second come."""
    routed(rig, "tcp flags syn / syn,ack limit rate over 100/second burst 100 packets counter drop")
    rig.throng("run", rig.url, "-c", 150, "--ramp", "50/s", "-d", "2s", *HOLD)


@scenario(limited("path", "no-syn-ack", "connection-limit", at=(198, 202)))
def firewall_drops_above(rig):
    """The router drops the SYN of each connection above 200."""
    router, _ = routed(rig, "ct state new tcp dport 8080 ct count over 200 counter drop")
    rig.throng("run", rig.url, "-c", 400, "--ramp", "150/s", "-d", "3s", *HOLD)
    rig.check(counted(rig, router) > 0, "SYNs were dropped")


@scenario(limited("path", "refused", "connection-limit", at=(148, 152)))
def firewall_resets_above(rig):
    """The router answers the SYN of each connection above 150 with a reset."""
    router, _ = routed(rig, "ct state new tcp dport 8080 ct count over 150 counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", 300, "--ramp", "100/s", "-d", "3s", *HOLD)
    rig.check(counted(rig, router) > 0, "SYNs were rejected")


@scenario(limited("path", "syn-loss", "no-syn-ack"))
def syn_rate(rig):
    """The router passes 40 SYNs a second, and 200 a second come."""
    router, _ = routed(rig, "tcp flags syn / syn,ack limit rate over 40/second burst 10 packets counter drop")
    rig.throng("run", rig.url, "-c", 400, "--ramp", "200/s", "-d", "3s", *HOLD)
    rig.check(counted(rig, router) > 50, "SYNs were dropped")


@scenario(limited("path", "syn-loss", "no-syn-ack"))
def half_of_the_syns(rig):
    """The router drops half of all SYNs by chance."""
    router, _ = routed(rig, "tcp flags syn / syn,ack numgen random mod 100 < 50 counter drop")
    rig.throng("run", rig.url, "-c", 200, "--ramp", "100/s", "-d", "3s", *HOLD, "--threshold", "connect.p95 < 500ms")
    rig.check(counted(rig, router) > 30, "SYNs were dropped")


@scenario(limited("path", "no-syn-ack"))
def port_filtered(rig):
    """The router drops all that goes to the port."""
    routed(rig, "tcp dport 8080 counter drop")
    rig.throng("run", rig.url, "-c", 50, "-d", "3s", *HOLD)


@scenario(limited("path", "refused"))
def port_rejected_with_a_reset(rig):
    """The router resets all that goes to the port; the server is well."""
    routed(rig, "tcp dport 8080 counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", 50, "-d", "2s", *HOLD)


@scenario(limited("path", "unreachable", "denied"))
def prohibited(rig):
    """The router answers with ICMP `administratively prohibited`."""
    routed(rig, "tcp dport 8080 counter reject with icmpx type admin-prohibited")
    rig.throng("run", rig.url, "-c", 50, "-d", "2s", *HOLD)


@scenario(limited("path", "unreachable"))
def host_unreachable(rig):
    """The router answers with ICMP `host unreachable`."""
    routed(rig, "tcp dport 8080 counter reject with icmpx type host-unreachable")
    rig.throng("run", rig.url, "-c", 50, "-d", "2s", *HOLD)


@scenario(limited("path", "unreachable", "no-syn-ack"))
def no_such_host(rig):
    """An address of the far network that no host has: the router finds it not."""
    rig.behind_router()
    rig.throng("run", "http://10.77.2.99:8080/", "-c", 30, "-d", "4s", "--think", "500ms", "--timeout", "5s")


@scenario(limited("path", "unreachable", "no-syn-ack"))
def no_such_neighbour(rig):
    """An address of our own network that no host has."""
    rig.far()
    rig.throng("run", "http://10.77.0.99:8080/", "-c", 30, "-d", "4s", "--think", "500ms", "--timeout", "5s")


@scenario(limited("path", "no-syn-ack"))
def no_way_back(rig):
    """The far host has no route back: it gets our SYNs and its answers go nowhere."""
    _, far = routed(rig)
    run_quietly("ip", "-n", far, "route", "del", "default")
    rig.throng("run", rig.url, "-c", 50, "-d", "3s", *HOLD)


@scenario(limited("path", "no-syn-ack"))
def syn_acks_are_lost(rig):
    """The router drops each SYN-ACK: the far kernel answers in vain."""
    router, _ = routed(rig, "tcp sport 8080 tcp flags syn,ack / syn,ack counter drop")
    rig.throng("run", rig.url, "-c", 50, "-d", "3s", *HOLD)
    rig.check(counted(rig, router) > 0, "SYN-ACKs were dropped")


@scenario(limited("path", "reset-after", "closed"))
def router_resets_all(rig):
    """Two seconds into the run the router begins to answer each packet to the server with a reset."""
    router, _ = routed(rig)
    later(rig, 2.5, router, "tcp dport 8080 counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", 100, "-d", "4s", *HOLD)
    rig.check(counted(rig, router) > 0, "packets were rejected")


@scenario(limited("path", "unacknowledged"))
def blackhole_in_the_middle(rig):
    """From the third second on the router drops everything, in both directions."""
    router, _ = routed(rig)
    later(rig, 2.5, router, "counter drop")
    rig.throng("run", rig.url, "-c", 100, "-d", "6s", "--think", "500ms", "--timeout", "4s")
    rig.check(counted(rig, router) > 0, "packets were dropped")


@scenario(limited("path", "unacknowledged"))
def link_goes_down(rig):
    """The link to the far host goes down on its side in the third second."""
    router, far = routed(rig)
    rig.later(2.5, "ip", "-n", router, "link", "set", "next0", "down")
    rig.throng("run", rig.url, "-c", 100, "-d", "6s", "--think", "500ms", "--timeout", "4s")


@scenario(limited("path", "timeout", "unacknowledged"))
def answers_lost_in_the_middle(rig):
    """From the third second on the router drops what comes from the server, acknowledgements too."""
    router, _ = routed(rig)
    later(rig, 2.5, router, "tcp sport 8080 counter drop")
    rig.throng("run", rig.url, "-c", 100, "-d", "6s", "--think", "500ms", "--timeout", "4s")
    rig.check(counted(rig, router) > 0, "packets were dropped")


@scenario(limited("path", "unacknowledged"))
def large_packets_vanish(rig):
    """The link after the router takes 1,000 bytes, and the router's ICMP about it is dropped: large requests do not arrive."""
    router, far = routed(rig)
    run_quietly("ip", "-n", router, "link", "set", "next0", "mtu", "1000")
    output = "table inet quiet {\n chain output {\n  type filter hook output priority 0\n  meta l4proto icmp counter drop\n }\n}\n"
    rig.nft(output, router)
    rig.throng("run", rig.url, "-c", 50, "-d", "4s", *HOLD, "--body", "y" * 6_000)
    rig.check(counted(rig, router) > 0, "ICMP was dropped")


@scenario(limited("path", "timeout", "unacknowledged"))
def large_answers_vanish(rig):
    """The link before the router takes 1,000 bytes and its ICMP is dropped: the server's large packets do not arrive here."""
    router, far = routed(rig, "", "--body", 20_000)
    run_quietly("ip", "-n", router, "link", "set", "near1", "mtu", "1000")
    output = "table inet quiet {\n chain output {\n  type filter hook output priority 0\n  meta l4proto icmp counter drop\n }\n}\n"
    rig.nft(output, router)
    rig.throng("run", rig.url, "-c", 50, "-d", "4s", *HOLD)
    rig.check(counted(rig, router) > 0, "ICMP was dropped")


@scenario(limited("path", "unacknowledged", "idle-cut"))
def router_forgets_idle_ones(rig):
    """The router forgets a connection after 2 s without a packet and drops what it does not know; requests are 4 s apart."""
    router, _ = routed(rig, "ct state established,new accept;ct state invalid counter drop;counter drop")
    for name, value in (("tcp_timeout_established", 2), ("tcp_loose", 0)):
        run_quietly("ip", "netns", "exec", router, "sysctl", "-qw", f"net.netfilter.nf_conntrack_{name}={value}")
    rig.throng("run", rig.url, "-c", 60, "-d", "8s", "--think", "4s", "--timeout", "3s")
    rig.check(counted(rig, router) > 0, "packets of forgotten connections were dropped")


@scenario(limited("path", "idle-cut", "reset-after"))
def router_resets_idle_ones(rig):
    """The router forgets a connection after 2 s without a packet and resets what it does not know; requests are 4 s apart."""
    router, _ = routed(rig, "ct state established,new accept;counter reject with tcp reset")
    for name, value in (("timeout_established", 2), ("loose", 0)):
        run_quietly("ip", "netns", "exec", router, "sysctl", "-qw", f"net.netfilter.nf_conntrack_tcp_{name}={value}")
    rig.throng("run", rig.url, "-c", 60, "-d", "7s", "--think", "4s", "--timeout", "3s")
    rig.check(counted(rig, router) > 0, "packets of forgotten connections were rejected")


@scenario(limited("path", "no-syn-ack"))
def filtered_from_some_second_on(rig):
    """In the second second of the ramp the router begins to drop SYNs; open connections go on."""
    router, _ = routed(rig)
    later(rig, 2, router, "tcp dport 8080 tcp flags syn / syn,ack counter drop")
    rig.throng("run", rig.url, "-c", 200, "--ramp", "50/s", "-d", "3s", *HOLD)
    rig.check(counted(rig, router) > 0, "SYNs were dropped")


@scenario(limited("path", "unacknowledged"))
def third_of_the_packets(rig):
    """The router drops a third of all packets of open connections by chance; 150 ms are allowed."""
    router, _ = routed(rig, "tcp flags syn accept;numgen random mod 100 < 33 counter drop")
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", *HOLD, "--threshold", "latency.p95 < 150ms")
    rig.check(counted(rig, router) > 50, "packets were dropped")
