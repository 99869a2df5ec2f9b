"""Routers, firewalls and links between the load and the server."""

import re

from recording import healthy, limited, scenario, unknowable

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
IDLE = ("--think", "1m", "--timeout", "3s")
SYN = "tcp flags & (syn | ack) == syn"


def forwards(rules, sets=""):
    return f"table ip path {{\n {sets}\n chain forward {{\n type filter hook forward priority 0\n {rules}\n }}\n}}\n"


def own(hook, rules):
    return f"table ip own {{\n chain {hook} {{\n type filter hook {hook} priority 0\n {rules}\n }}\n}}\n"


def routed(rig, rules="", sets="", *options):
    """The server two links away, and what the router does to packets."""
    router, far = rig.behind_router()
    if rules:
        rig.nft(forwards(rules, sets), router)
    server = rig.odd(*options, netns=far)
    return router, far, server


def rules_later(rig, router, after_s, rules):
    file = rig.write("later.nft", forwards(rules))
    rig.later(after_s, "ip", "netns", "exec", router, "nft", "-f", file)


def acted(rig, router):
    """The counters of the router's rules say that they applied."""
    rules = rig.netns_output(router, "nft", "list", "ruleset")
    rig.check(re.search(r"counter packets [1-9]", rules), f"the router acted: {rules}")


@scenario(healthy())
def through_a_router(rig):
    """A router that forwards, and nothing else."""
    routed(rig)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)


@scenario(healthy())
def a_host_one_link_away(rig):
    """A server on a host of its own."""
    far = rig.far()
    rig.odd(netns=far)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)


@scenario(limited("path", "syn-loss"))
def router_limits_syns_by_rate(rig):
    """The router drops SYNs beyond 40 a second, whatever the number of connections."""
    router, far, _ = routed(rig, f"{SYN} limit rate over 40/second burst 5 packets counter drop")
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["accepted"] < 300, "SYNs were dropped")


@scenario(healthy())
def router_limits_syns_above_our_rate(rig):
    """The router drops SYNs beyond 200 a second; 50 a second are dialled."""
    routed(rig, f"{SYN} limit rate over 200/second burst 50 packets drop")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "50/s", "-d", "2s", *PACED)


@scenario(limited("path", "closed", "refused"))
def router_resets_all_in_the_middle(rig):
    """From second 4 on the router resets each connection, and each new one. Its resets have passed no router."""
    router, _, _ = routed(rig)
    rules_later(rig, router, 4, "meta l4proto tcp counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    acted(rig, router)


@scenario(limited("path", "no-syn-ack", at=(990, 1_005)))
def router_has_room_for_1000(rig):
    """The router drops SYNs beyond 1,000 connections, which are idle; the server has 4,096 files."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} ct state new ct count over 1000 drop"), router)
    rig.odd(netns=far, files=4_096)
    rig.throng("run", rig.url, "-c", "1300", "--ramp", "500/s", "-d", "3s", *IDLE)
    rig.check(990 <= rig.counted()["most_open"] <= 1_005, "1,000 connections")


@scenario(limited("path", "no-syn-ack", at=(195, 205)))
def router_has_room_for_200_of_an_address(rig):
    """The router drops SYNs of an address with 200 connections."""
    routed(rig, f"tcp dport 8080 ct state new add @of {{ ip saddr ct count over 200 }} drop", "set of {\n type ipv4_addr\n flags dynamic\n size 999\n }")
    rig.throng("run", rig.url, "-c", "300", "--ramp", "200/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["most_open"] <= 205, "200 connections")


@scenario(limited("path", "refused", "connection-limit", at=(145, 155)))
def router_refuses_beyond_150_of_an_address(rig):
    """The router replies with a reset to SYNs of an address with 150 connections. Its resets have passed no router."""
    routed(rig, f"tcp dport 8080 ct state new add @of {{ ip saddr ct count over 150 }} reject with tcp reset",
           "set of {\n type ipv4_addr\n flags dynamic\n size 999\n }")
    rig.throng("run", rig.url, "-c", "250", "--ramp", "200/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["most_open"] <= 155, "150 connections")


@scenario(limited("path", "unreachable", at=(95, 105)))
def router_rejects_beyond_100(rig):
    """The router replies with ICMP, administratively prohibited, beyond 100 connections."""
    routed(rig, "tcp dport 8080 ct state new ct count over 100 reject with icmp type admin-prohibited")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["most_open"] <= 105, "100 connections")


@scenario(limited("path", "unreachable"))
def no_host_at_the_address(rig):
    """The network is there, and no host has the address."""
    routed(rig)
    rig.throng("run", "http://10.77.2.99:8080/", "-c", "30", "--ramp", "30/s", "-d", "2s", "--timeout", "5s")


@scenario(limited("path", "no-syn-ack"))
def router_drops_all(rig):
    """The router drops each SYN."""
    routed(rig, "tcp dport 8080 drop")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "50/s", "-d", "2s", "--timeout", "3s")
    rig.check(rig.counted()["accepted"] == 0, "none arrived")


@scenario(limited("path", "unacknowledged"))
def router_drops_all_in_the_middle(rig):
    """From second 3 on the router drops all packets."""
    router, _, _ = routed(rig)
    rules_later(rig, router, 3, "meta l4proto tcp counter drop")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    acted(rig, router)


@scenario(limited("path", "unacknowledged"))
def router_forgets_idle_connections(rig):
    """The router forgets a connection that was idle for 2 s, and drops what it does not know."""
    router, far, _ = routed(rig, "ct state new tcp flags & (syn | ack) != syn counter drop\n ct state invalid counter drop")
    for name, value in (("established", 2), ("loose", 0)):
        path = f"net.netfilter.nf_conntrack_tcp_{'timeout_established' if name == 'established' else name}={value}"
        made = rig.start("ip", "netns", "exec", router, "sysctl", "-qw", path, wait=False)
        rig.check(made.wait(5) == 0, path)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "9s", "--think", "3500ms..4s", "--timeout", "3s")
    acted(rig, router)


@scenario(limited("path", "unacknowledged"))
def large_packets_are_dropped(rig):
    """The router drops packets over 1,000 bytes without a message: requests with 3,000 bytes of content do not arrive."""
    router, _, _ = routed(rig, "ip length > 1000 counter drop")
    rig.throng("run", rig.url, "-c", "40", "--ramp", "40/s", "-d", "4s", "--timeout", "3s", "--body", "x" * 3_000)
    acted(rig, router)


@scenario(healthy())
def large_packets_are_dropped_and_none_is_sent(rig):
    """The same router, and small requests."""
    routed(rig, "ip length > 1000 drop")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("host", "denied"))
def our_own_firewall_rejects(rig):
    """This machine's own firewall rejects its SYNs."""
    rig.odd()
    rig.nft(own("output", f"tcp dport {rig.port} reject with icmp type admin-prohibited"))
    rig.throng("run", rig.url, "-c", "40", "--ramp", "40/s", "-d", "2s", "--timeout", "3s")
    rig.check(rig.counted()["accepted"] == 0, "none arrived")


@scenario(limited("host", "denied"))
def our_own_firewall_drops(rig):
    """This machine's own firewall drops its SYNs on their way out."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("output", f"tcp dport {rig.port} drop"))
    rig.throng("run", rig.url, "-c", "40", "--ramp", "40/s", "-d", "2s", "--timeout", "3s")
    rig.check(rig.counted()["accepted"] == 0, "none arrived")


@scenario(unknowable(may=("no-syn-ack", "syn-loss")))
def the_targets_firewall_drops_at_its_host(rig):
    """The firewall of the server's host drops SYNs beyond 100 connections, as one on the path could."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("input", f"tcp dport {rig.port} ct state new ct count over 100 drop"), far)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "100/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["most_open"] <= 105, "100 connections")


@scenario(healthy())
def a_link_that_loses_one_in_a_hundred(rig):
    """1 % of the packets are lost; the timeout is 10 s, and there is no threshold."""
    router, _, _ = routed(rig, "meta l4proto tcp numgen random mod 100 < 1 counter drop")
    rig.throng("run", rig.url, "-c", "80", "--ramp", "40/s", "-d", "3s", "--think", "300ms..700ms", "--timeout", "10s")
    acted(rig, router)


@scenario(limited("target", "accept-queue", "slow-accept"))
def somaxconn_cuts_the_backlog(rig):
    """The server asks for a backlog of 4,096, net.core.somaxconn is 16, and it accepts 20 a second."""
    rig.sysctl("net.core.somaxconn", 16)
    rig.odd("--accept-rate", 20)
    rig.throng("run", rig.url, "-c", "150", "--ramp", "1k/s", "-d", "2s", *IDLE)
    rig.check(rig.counted()["accepted"] < 150, "it did not accept all")


@scenario(healthy())
def somaxconn_of_128_suffices(rig):
    """net.core.somaxconn is 128, and it accepts as they come."""
    rig.sysctl("net.core.somaxconn", 128)
    rig.odd()
    rig.throng("run", rig.url, "-c", "300", "--ramp", "150/s", "-d", "2s", *PACED)


@scenario(limited("path", "syn-loss", "no-syn-ack"))
def syns_are_dropped_for_two_seconds(rig):
    """In seconds 1 to 3 the router drops SYNs; others pass. The threshold on connecting fails."""
    router, _, _ = routed(rig)
    rules_later(rig, router, 1, f"{SYN} drop")
    rig.later(3, "ip", "netns", "exec", router, "nft", "flush", "ruleset")
    rig.throng("run", rig.url, "--arrive", "50/s", "-d", "5s", "--timeout", "8s", "--threshold", "connect.p95 < 300ms")


@scenario(unknowable(may=("no-syn-ack", "syn-loss")))
def some_source_ports_are_dropped(rig):
    """The router drops an eighth of the connections for good, by their source ports."""
    router, _, _ = routed(rig, f"{SYN} tcp sport & 7 == 3 counter drop")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "3s", *PACED)
    acted(rig, router)


@scenario(limited("path", "closed"))
def resets_a_few_at_random(rig):
    """The router resets one packet in 200, at random."""
    router, _, _ = routed(rig, "tcp dport 8080 numgen random mod 200 < 1 counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "3s")
    acted(rig, router)


@scenario(limited("target", "reset-after", "closed"))
def server_resets_by_age_two_links_away(rig):
    """The server resets connections 2.5 s after they were opened; its resets pass the router as all else."""
    routed(rig, "", "", "--age", 2.5, "--end-by", "reset")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "50/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "3s")


@scenario(limited("target", "refused", "ended"))
def server_stops_listening_two_links_away(rig):
    """The server closes its listener in second 2, and serves the connections that it has."""
    routed(rig, "", "", "--then", "unlisten", "--at", 2)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "50/s", "-d", "2s", *PACED)


@scenario(limited("path", "refused", "closed"))
def a_firewall_of_ipv6_refuses_beyond_100(rig):
    """The router replies with a reset to SYNs beyond 100 connections, over IPv6."""
    router, far = rig.behind_router()
    rules = f"tcp dport {rig.port} ct state new ct count over 100 counter reject with tcp reset"
    rig.nft(forwards(rules).replace("table ip path", "table ip6 path"), router)
    rig.odd("--address", "::", netns=far)
    rig.throng("run", f"http://[fd77:2::2]:{rig.port}/", "-c", "200", "--ramp", "100/s", "-d", "2s", *PACED)
    acted(rig, router)


@scenario(limited("path", "refused"))
def router_refuses_all(rig):
    """The router replies with a reset to each SYN; its resets have passed no router, and the target's echoes one."""
    router, _, _ = routed(rig, "tcp dport 8080 counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "2s", *PACED)
    acted(rig, router)


@scenario(limited("target", "refused", certainty="seen", never="firewall"))
def nothing_listens_two_links_away(rig):
    """The host is there, and no server."""
    rig.behind_router()
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "2s", *PACED)
