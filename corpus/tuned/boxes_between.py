"""Boxes between the load and the server: firewalls that reset one end or both, tables that fill or make room, protection against floods, balancers
that move flows, ways of which one is worse, tunnels that pause, proxies that are reloaded, and this machine's own rules."""

import json
import re
import time

from recording import healthy, limited, scenario, unknowable
from tuned.middleboxes import has, inside, one_by_one, packets, site, visits
from tuned.paths import SYN, acted, forwards, own
from tuned.sides_of_the_path import chats, did, here, kernel, load, nft_later, ways

OF_SOURCES = "set of {\n type ipv4_addr\n flags dynamic\n size 999\n }"


def between(rig, *options):
    """A host two links away, and servers/box_between.py on the way instead of the router's kernel; what it did is `boxed`."""
    router, far = rig.behind_router()
    one_by_one(rig, far)
    here(rig, "ip", "link", "set", "dev", "near0", "gso_max_segs", "1")
    inside(rig, router, "sysctl", "-qw", "net.ipv4.ip_forward=0")
    rig.start("python3", rig.server("box_between.py"), "near1", "next0", "10.77.1.1", "10.77.2.2", *options, netns=router, wait=False, log="box.log")
    has(rig, "ready", "box.log")
    return router, far


def boxed(rig):
    time.sleep(0.4)
    counts = json.loads(rig.output("box.json"))
    rig.check(counts["late_ones"] < 9, f"it kept up: {counts}")
    return counts


def lines(rig, netns):
    rig.needs("ruby")
    return rig.start("ruby", rig.server("t4_lines.rb"), rig.port, netns=netns)


def proxied(rig, text):
    """HAProxy on the router, in front of port 9001 of the server's host, is what the load dials. Returns the command that starts it."""
    rig.needs("haproxy")
    router, far = rig.behind_router()
    inside(rig, router, "sysctl", "-qw", "net.ipv4.ip_forward=0")
    rig.host = "10.77.1.2"
    file = rig.write("proxy.cfg", f"""global
 maxconn 900
 pidfile {rig.folder}/proxy.pid
{text.replace("FRONT", f"{rig.host}:{rig.port}").replace("BACK", "10.77.2.2:9001")}
""")
    return router, far, ("haproxy", "-D", "-f", file)


def reloaded_later(rig, router, after_s, command):
    """As a service manager does: the new process tells the old one to finish."""
    words = " ".join(map(str, command))
    rig.later(after_s, "ip", "netns", "exec", router, "sh", "-c", f"exec {words} -sf $(cat {rig.folder}/proxy.pid)")


# --- firewalls that end what is idle, old or large ---


@scenario(limited("path", "idle-cut", "closed"))
def a_firewall_resets_both_ends_of_idle_sockets(rig):
    """A firewall ends what was idle for 1.9 s with a reset to either end. Chats send each 500 ms, and stay; watchers send each 2.9 s. The server, in
    Node, ends none."""
    _, far = between(rig, "--idle", 1.9, "--by", "both")
    chats(rig, far)
    rig.throng("run", load(rig, f"""target = "ws://{rig.host}:{rig.port}/chat"
timeout = "2300ms"
ramp = "55/s"
duration = "5500ms"
[[population]]
name = "chats"
connections = 31
ping = "500ms"
[[population]]
name = "watchers"
connections = 19
ping = "2900ms"
"""))
    rig.check(14 <= boxed(rig)["ended"] <= 19 and boxed(rig)["to_client"] == boxed(rig)["to_server"], f"it ended them: {boxed(rig)}")


@scenario(limited("path", "unacknowledged", "idle-cut"))
def a_firewall_tells_only_the_server_of_its_timeout(rig):
    """A firewall ends what was idle for 2.3 s, sends a reset to the server only, and drops what we send later. Raw TLS, a heartbeat each 3.1 s."""
    _, far = between(rig, "--idle", 2.3, "--by", "server")
    ways(rig, "tls", far, certificate=True)
    rig.throng("run", f"tls://{rig.host}:{rig.port}", "-k", "-c", "27", "--ramp", "35/s", "-d", "6500ms", "--message", "beat",
               "--ping", "3100ms", "--timeout", "1800ms")
    rig.check(boxed(rig)["to_server"] >= 20 and boxed(rig)["to_client"] == 0 and boxed(rig)["dropped"] > 20, f"it ended them: {boxed(rig)}")


@scenario(unknowable(may=("closed", "reset-after")))
def only_the_servers_end_is_reset_by_age(rig):
    """A box resets the server's end of what is 2.4 s old, and lets the rest pass: what comes to us is a true reset of the server's own kernel,
    to the next message. Raw TCP in Ruby."""
    _, far = between(rig, "--age", 2.4, "--by", "server", "--after", "forward")
    lines(rig, far)
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "39", "--ramp", "19/s", "-d", "3500ms", "--message", "tick", "--ping", "300ms", "--timeout", "2s")
    rig.check(boxed(rig)["to_server"] >= 35 and boxed(rig)["to_client"] == 0, f"it reset that end: {boxed(rig)}")
    rig.check(did(rig, "lines")["lost"] >= 35, f"which the server saw: {did(rig, 'lines')}")


@scenario(limited("path", "requests-per-connection", "closed"))
def a_flood_guard_resets_after_23_requests(rig):
    """Protection against floods lets 23 requests of a connection pass, and replies with a reset to the next one, which the server never gets."""
    _, far = between(rig, "--requests", 23, "--by", "client")
    ways(rig, "http", far)
    rig.throng("run", rig.url, "-c", "34", "--ramp", "50/s", "-d", "4500ms", "--think", "60ms..140ms", "--timeout", "2s")
    rig.check(boxed(rig)["to_client"] >= 30, f"it reset them: {boxed(rig)}")
    rig.check(23 * 34 <= did(rig)["requests"] <= 23 * 34 + 9, f"23 of each, and a few of users after the load: {did(rig)}")


@scenario(limited("path", "closed"))
def a_guard_ends_flows_of_210_kilobytes(rig):
    """A guard against leaks of data ends a connection at both ends once 210 kB have passed: in the middle of a page. Pages of 3 to 29 kB, so that the
    number of pages and the age differ."""
    _, far = between(rig, "--octets", 210_000, "--by", "both")
    site(rig, netns=far)
    rig.throng("run", f"{rig.url}page?length={{rand 3000 29000}}", "-c", "26", "--ramp", "40/s", "-d", "5s", "--think", "100ms..280ms", "--timeout", "2500ms")
    rig.check(boxed(rig)["ended"] >= 20 and boxed(rig)["to_client"] >= 20, f"it ended them: {boxed(rig)}")
    rig.check(visits(rig)["page"] > 200, f"pages before: {visits(rig)}")


# --- tables that fill ---


@scenario(limited("path", "connection-limit", "closed", "refused", at=(60, 64)))
def a_syn_proxy_allows_31_of_a_source(rig):
    """Protection against floods completes the handshakes of a source with 31 connections or more by itself, and resets them then; the server, of
    HTTPS, never sees these. Two sources."""
    _, far = between(rig, "--of-a-source", 31, "--beyond", "meet")
    for last in (21, 22):
        here(rig, "ip", "addr", "add", f"10.77.1.{last}/24", "dev", "near0")
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "--sources", "10.77.1.21,10.77.1.22", "-c", "95", "--ramp", "60/s", "-d", "3s",
               "--think", "250ms..550ms", "--timeout", "2500ms")
    rig.check(did(rig)["most"] == 62 and did(rig)["accepted"] < 80, f"31 of each: {did(rig)}")
    rig.check(boxed(rig)["to_client"] >= 33, f"it reset the others: {boxed(rig)}")


@scenario(limited("path", "unacknowledged", "conntrack", "connection-limit"))
def a_table_of_58_forgets_the_longest_idle(rig):
    """The firewall has room for 58 connections, and for each one beyond it forgets the one that was idle for longest, in silence: what comes on
    that one later is dropped. 83 come, and the server has all of them open."""
    _, far = between(rig, "--most", 58, "--beyond", "evict")
    ways(rig, "http", far)
    rig.throng("run", rig.url, "-c", "83", "--ramp", "40/s", "-d", "4s", "--think", "900ms..1700ms", "--timeout", "2200ms")
    rig.check(25 <= boxed(rig)["evicted"] < 40 and boxed(rig)["most"] == 58 and boxed(rig)["dropped"] > 25, f"it forgot some: {boxed(rig)}")
    rig.check(did(rig)["most"] >= 83, f"the server did not: {did(rig)}")


@scenario(limited("path", "no-syn-ack", "conntrack", "connection-limit"))
def a_table_that_keeps_closed_ones_fills_up(rig):
    """The firewall keeps closed connections in its table of 170 for half a minute: it is full after three seconds of visitors, and drops each SYN from
    then on. Members, who are open, go on."""
    _, far = between(rig, "--most", 170, "--lingers", 30)
    ways(rig, "http", far)
    rig.throng("run", load(rig, f"""target = "{rig.url}"
timeout = "1900ms"
duration = "5500ms"
[[population]]
name = "members"
connections = 26
think = "300ms..600ms"
[[population]]
name = "visitors"
arrive = "44/s"
calls = 2
"""))
    rig.check(boxed(rig)["most"] == 170 and boxed(rig)["beyond"] > 50, f"it was full: {boxed(rig)}")
    rig.check(did(rig)["most"] < 60, f"few were open at a time: {did(rig)}")


@scenario(limited("path", "unacknowledged", "timeout"))
def a_policer_of_packets_not_bytes(rig):
    """Protection of the router lets 270 packets a second of a source pass, and drops the rest; chats of a few bytes each 110 ms, from 52 people, are far
    more."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} add @of {{ ip saddr limit rate over 270/second burst 30 packets }} counter drop", OF_SOURCES), router)
    chats(rig, far)
    rig.throng("run", f"ws://{rig.host}:{rig.port}/chat", "-c", "52", "--ramp", "26/s", "-d", "5s", "--ping", "110ms", "--timeout", "1500ms")
    rig.check(packets(rig, router) > 150, "it dropped")
    rig.check(did(rig, "ws")["messages"] > 300, f"others came through: {did(rig, 'ws')}")


@scenario(limited("path", "unacknowledged", "no-syn-ack"))
def a_source_is_banned_for_its_syns(rig):
    """A router counts SYNs; beyond 19 a second, after a burst of 41, it bans the source for 9 s, and drops all of it. 33 visitors come each second; the desks,
    which are open, are banned with them, in second 4 or so."""
    router, far = rig.behind_router()
    banned = "set banned {\n type ipv4_addr\n flags dynamic,timeout\n timeout 9s\n size 999\n }"
    rig.nft(forwards(f"ip saddr @banned counter drop\n {SYN} limit rate over 19/second burst 41 packets add @banned {{ ip saddr }} drop", banned), router)
    ways(rig, "http", far)
    rig.throng("run", load(rig, f"""target = "{rig.url}"
timeout = "1700ms"
duration = "6s"
ramp = "30/s"
[[population]]
name = "desks"
connections = 22
think = "200ms..500ms"
[[population]]
name = "visitors"
arrive = "33/s"
"""))
    rig.check(packets(rig, router, "saddr @banned counter") > 60, "it was banned")
    rig.check(did(rig)["accepted"] > 45, f"before, all was well: {did(rig)}")


# --- units that change over, flows that are moved ---


@scenario(limited("path", "closed"))
def a_standby_unit_knows_no_sessions(rig):
    """In second 2.6 the second one of two firewalls takes over; it does not know the sessions, and replies with a reset to what comes on them; new
    ones pass, and the load dials again. Raw TLS."""
    rig.needs("conntrack")
    router, far = rig.behind_router()
    inside(rig, router, "sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_loose=0")
    rig.nft(forwards("ct state invalid counter reject with tcp reset\n ct state new tcp flags & (syn | ack) != syn counter reject with tcp reset"), router)
    ways(rig, "tls", far, certificate=True)
    rig.later(2.6, "ip", "netns", "exec", router, "conntrack", "-F")
    rig.throng("run", f"tls://{rig.host}:{rig.port}", "-k", "-c", "63", "--ramp", "60/s", "-d", "4s", "--message", "beat", "--ping", "400ms", "--timeout", "2s",
               "--reconnect", "200ms..1s")
    acted(rig, router)
    rig.check(did(rig)["accepted"] > 110, f"they came again: {did(rig)}")


@scenario(limited("path", "closed"))
def a_balancer_drains_every_third_flow(rig):
    """In second 2.7 a balancer of packets takes a backend out, and resets its flows, a third of all, at both ends; the others go on. HTTP/2."""
    _, far = between(rig, "--cull-at", 2.7, "--cull", 3, "--by", "both")
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--http2", "-c", "43", "--streams", "4", "--ramp", "60/s", "--rate", "130/s", "-d", "4s", "--timeout", "2s")
    rig.check(13 <= boxed(rig)["ended"] <= 16, f"a third: {boxed(rig)}")
    rig.check(did(rig)["http2"] > 350, f"others went on: {did(rig)}")


@scenario(unknowable(may=("unacknowledged", "timeout", "no-syn-ack", "stall")))
def what_comes_back_is_lost_for_two_seconds(rig):
    """From second 2.1 to 4.3 all that comes back is lost, as while routes of one direction converge: requests arrive, and are answered. The load dials
    again, and all is well at the end. From here a host that is paused as a whole looks the same."""
    router, far = rig.behind_router()
    ways(rig, "http", far)
    nft_later(rig, 2.1, forwards(f"tcp sport {rig.port} counter drop"), router)
    rig.later(4.3, "ip", "netns", "exec", router, "nft", "insert", "rule", "ip", "path", "forward", "accept")
    rig.throng("run", rig.url, "-c", "51", "--ramp", "70/s", "-d", "5s", "--think", "200ms..500ms", "--timeout", "1200ms", "--reconnect", "200ms..900ms")
    acted(rig, router)
    rig.check(did(rig)["accepted"] > 70, f"they came again: {did(rig)}")


# --- sizes, and one of several ways ---


@scenario(limited("path", "unacknowledged", "timeout"))
def the_tunnel_of_second_two_is_narrower(rig):
    """In second 2.2 the way to the server becomes a tunnel of 1,080 bytes, whose ICMP messages are filtered: requests arrive, and orders with 5 kB of
    content, one in eight, do not from then on. HTTPS."""
    router, far = rig.behind_router()
    here(rig, "ip", "link", "set", "dev", "near0", "gso_max_segs", "1")
    rig.nft("table ip mute {\n chain out {\n type filter hook output priority 0\n icmp type destination-unreachable counter drop\n }\n}\n", router)
    inside(rig, router, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
    ways(rig, "https", far, certificate=True)
    rig.later(2.2, "ip", "-n", router, "link", "set", "dev", "next0", "mtu", "1080")
    rig.throng("run", load(rig, f"""target = "https://{rig.host}:{rig.port}/"
insecure = true
timeout = "1800ms"
ramp = "60/s"
duration = "5s"
think = "120ms..320ms"
[[population]]
name = "shoppers"
connections = 46
[[population.step]]
name = "look"
weight = 7
request = "GET /look"
[[population.step]]
name = "order"
weight = 1
request = "POST /order"
body = "{'item=17&' * 560}"
"""))
    rig.check(packets(rig, router) > 30, "its messages were filtered")
    rig.check(did(rig)["octets"] > 20_000, f"orders arrived before: {did(rig)}")


@scenario(limited("path", "timeout", "unacknowledged"))
def one_of_four_ways_is_narrow(rig):
    """Of four equal ways back one, by a port of ours, loses packets over 1,240 bytes in silence: pages of 17 kB never come on a fourth of the connections,
    and lists do."""
    router, far = rig.behind_router()
    one_by_one(rig, far)
    rig.nft(forwards(f"tcp sport {rig.port} ip length > 1240 jhash tcp dport mod 4 seed 0x3d == 2 counter drop"), router)
    site(rig, netns=far)
    rig.throng("run", load(rig, f"""target = "{rig.url}"
timeout = "2100ms"
ramp = "50/s"
duration = "4500ms"
think = "150ms..350ms"
[[population]]
name = "readers"
connections = 54
[[population.step]]
name = "list"
weight = 3
request = "GET /list"
[[population.step]]
name = "page"
weight = 2
request = "GET /page?length=17000"
"""))
    acted(rig, router)
    rig.check(visits(rig)["page"] > 150, f"it sent pages: {visits(rig)}")


@scenario(limited("path"))
def one_of_three_ways_is_long(rig):
    """A third of the connections go by a way that takes 170 ms more in each direction, others by one that takes none. The threshold is 200 ms at p90; no
    cause of the list fits."""
    _, far = between(rig, "--ways", 3, "--slow", 0.17)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "-c", "57", "--ramp", "60/s", "-d", "4s", "--think", "150ms..350ms", "--timeout", "3s", "--threshold", "latency.p90 < 200ms")
    rig.check(boxed(rig)["slow_ones"] * 5 > boxed(rig)["carried"], f"some took it: {boxed(rig)}")


@scenario(limited("path", "no-syn-ack"))
def no_way_back_to_the_second_source(rig):
    """We send from two addresses, the second one of a net of its own to which the router has no route: its SYNs arrive, and the SYN-ACKs end at
    the router. Raw TCP in Ruby."""
    router, far = rig.behind_router()
    lines(rig, far)
    for netns in ("all", "default", "near1"):
        inside(rig, router, "sysctl", "-qw", f"net.ipv4.conf.{netns}.rp_filter=0")
    here(rig, "ip", "addr", "add", "10.78.3.9/32", "dev", "near0")
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "--sources", "10.77.1.1,10.78.3.9", "-c", "68", "--ramp", "55/s", "-d", "2500ms", "--message", "hi",
               "--ping", "450ms", "--timeout", "2s")
    counters = ("IpOutNoRoutes", "IcmpOutDestUnreachs", "IpExtInNoRoutes")
    rig.check(sum(kernel(rig, counter, router) for counter in counters) > 20, "it had no route")
    rig.check(30 <= did(rig, "lines")["accepted"] <= 38, f"half of them: {did(rig, 'lines')}")


# --- tunnels that pause, and what boxes do to bytes ---


@scenario(unknowable(may=("stall", "unacknowledged")))
def a_vpn_that_rekeys_for_too_long(rig):
    """A VPN makes new keys each 2.3 s, which takes it 0.8 s, and holds all packets until then; none is lost. HTTPS, 95 requests a second, and a threshold
    of 260 ms at p90. From here a machine that is paused as a whole, each 2.3 s, looks the same."""
    _, far = between(rig, "--hold-every", 2.3, "--hold-for", 0.8)
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "-c", "46", "--ramp", "60/s", "--rate", "95/s", "-d", "6s", "--timeout", "4s",
               "--threshold", "latency.p90 < 260ms")
    rig.check(boxed(rig)["held"] > 150, f"it held them: {boxed(rig)}")


@scenario(healthy())
def a_vpn_that_rekeys_quickly(rig):
    """The same for 0.12 s each 1.7 s; the threshold is 260 ms."""
    _, far = between(rig, "--hold-every", 1.7, "--hold-for", 0.12)
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "-c", "46", "--ramp", "60/s", "--rate", "95/s", "-d", "4s", "--timeout", "4s",
               "--threshold", "latency.p90 < 260ms")
    rig.check(boxed(rig)["held"] > 12, f"it held them: {boxed(rig)}")


@scenario(unknowable(may=("tls", "closed", "wrong-answer")))
def a_router_with_bad_memory_under_tls(rig):
    """A router flips a bit in one packet of 60 from the server, and makes its checksum anew: TLS finds it. The server's own host could have done it."""
    _, far = between(rig, "--damage", 60, "--mends", 1)
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "-c", "38", "--ramp", "50/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "2500ms")
    rig.check(boxed(rig)["damaged"] >= 8, f"it damaged some: {boxed(rig)}")
    rig.check(kernel(rig, "TcpInCsumErrors") == 0, "and checksums were right")


@scenario(unknowable(may=("timeout",), never=r"its process d(id|oes) not respond"))
def a_firewall_strips_the_window_scale(rig):
    """An old firewall takes the window scale out of SYN-ACKs only, 11 ms away: we read the server's windows as 500 bytes, and uploads of 57 kB crawl. A server
    with a small buffer looks the same; no process had a whole request that it could respond to."""
    _, far = between(rig, "--unscale", 1, "--delay", 0.011)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--body", "u" * 57_000, "-c", "21", "--ramp", "30/s", "-d", "4s", "--think", "200ms..500ms", "--timeout", "1600ms")
    rig.check(boxed(rig)["unscaled"] >= 21, f"it did: {boxed(rig)}")
    rig.check(did(rig)["octets"] < 50_000 * did(rig)["accepted"], f"content did not arrive in full: {did(rig)}")


@scenario(healthy(), alone=True)
def uploads_over_22_ms(rig):
    """The same uploads and the same distance, and the window scale is left as it is."""
    _, far = between(rig, "--delay", 0.011)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--body", "u" * 57_000, "-c", "21", "--ramp", "30/s", "-d", "4s", "--think", "200ms..500ms", "--timeout", "1600ms")
    boxed(rig)
    rig.check(did(rig)["octets"] == 57_000 * did(rig)["requests"] and did(rig)["requests"] > 200, f"content arrived: {did(rig)}")


@scenario(healthy(), alone=True)
def uploads_over_130_ms(rig):
    """Uploads of 140 kB to a server 130 ms away, which take several round trips each."""
    _, far = between(rig, "--delay", 0.065)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--body-file", rig.write("upload", "u" * 140_000), "-X", "POST", "-c", "17", "--ramp", "30/s", "-d", "4s",
               "--think", "900ms..1500ms", "--timeout", "3s")
    boxed(rig)
    rig.check(did(rig)["octets"] == 140_000 * did(rig)["requests"] and did(rig)["requests"] > 30, f"content arrived: {did(rig)}")


@scenario(healthy())
def out_of_order_and_twice(rig):
    """One packet in nine comes 4 ms late, behind others, and one in sixteen twice; pages of 33 kB over TLS, in time."""
    _, far = between(rig, "--reorder", 0.11, "--twice", 0.06)
    rig.odd("--cert", rig.certificate(), "--length", 33_000, netns=far)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "-c", "32", "--ramp", "40/s", "-d", "4s", "--think", "300ms..600ms", "--timeout", "3s")
    rig.check(boxed(rig)["reordered"] > 300 and boxed(rig)["twice"] > 150, f"it did: {boxed(rig)}")
    rig.check(kernel(rig, "TcpExtTCPOFOQueue") > 50, "segments came out of order")


@scenario(healthy())
def by_satellite(rig):
    """A satellite: 0.24 s in each direction, so that a full handshake of TLS takes a second and a half; 17 arrive each second, with two requests each.
    The threshold is 700 ms."""
    _, far = between(rig, "--delay", 0.24)
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "--arrive", "17/s", "--calls", "2", "-d", "5s", "--timeout", "5s",
               "--threshold", "latency.p95 < 700ms")
    boxed(rig)
    rig.check(did(rig)["requests"] > 120, f"they were served: {did(rig)}")


@scenario(healthy())
def a_line_that_damages_one_in_40(rig):
    """A line flips a bit in one packet of 40 from the server; its checksum says so, and TCP sends it again. The timeout is 4 s."""
    _, far = between(rig, "--damage", 40)
    rig.odd("--length", 4_300, netns=far)
    rig.throng("run", rig.url, "-c", "36", "--ramp", "50/s", "-d", "4s", "--think", "150ms..350ms", "--timeout", "4s")
    rig.check(boxed(rig)["damaged"] > 20, f"it damaged some: {boxed(rig)}")
    rig.check(kernel(rig, "TcpInCsumErrors") > 20, "our kernel found them")


@scenario(healthy())
def a_router_clamps_the_mss_to_216(rig):
    """A router sets the largest segment to 216 bytes in each SYN of either direction, as for a line of radio: pages of 19 kB come in a hundred pieces."""
    router, far = rig.behind_router()
    one_by_one(rig, far)
    rig.nft(forwards("tcp flags & syn == syn tcp option maxseg size set 216 counter"), router)
    site(rig, netns=far)
    rig.throng("run", f"{rig.url}page?length=19000", "-c", "37", "--ramp", "50/s", "-d", "3500ms", "--think", "200ms..500ms", "--timeout", "2s")
    acted(rig, router)
    rig.check(kernel(rig, "TcpInSegs") > 60 * visits(rig)["page"], "pieces were small")


# --- proxies in between ---


@scenario(limited("target", "closed", "ended"))
def a_tcp_proxy_is_reloaded_with_a_hard_stop(rig):
    """HAProxy (TCP) is what we dial. It is reloaded in second 2.1: the new process takes new connections, and the old one ends those that it has 0.9 s later
    (hard-stop-after). Raw TCP in Ruby behind it."""
    router, far, command = proxied(rig, """ hard-stop-after 900ms
defaults
 mode tcp
 timeout connect 2s
 timeout client 60s
 timeout server 60s
listen lines
 bind FRONT
 server one BACK""")
    rig.needs("ruby")
    rig.start("ruby", rig.server("t4_lines.rb"), 9_001, netns=far, port=9_001)
    rig.start(*command, netns=router, wait=False)
    rig.wait_for_listener(rig.port, router)
    reloaded_later(rig, router, 2.1, command)
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "47", "--ramp", "40/s", "-d", "4s", "--message", "tick", "--ping", "350ms", "--timeout", "2s",
               "--reconnect", "200ms..1s")
    rig.check(did(rig, "lines")["accepted"] > 80, f"they came again: {did(rig, 'lines')}")


@scenario(limited("target", "idle-cut"))
def a_tcp_proxy_ends_what_is_idle_for_1700_ms(rig):
    """HAProxy (TCP) is what we dial, with `timeout client 1700ms`; it ends connections that send less often. HTTPS in Go behind it, which has no timeout."""
    router, far, command = proxied(rig, """ log stdout format raw daemon
defaults
 mode tcp
 log global
 option tcplog
 timeout connect 2s
 timeout client 1700ms
 timeout server 1700ms
listen site
 bind FRONT
 server one BACK""")
    rig.start(rig.built("t4_ways.go"), "https", 9_001, rig.certificate(), netns=far, port=9_001)
    rig.start(*(word for word in command if word != "-D"), netns=router, wait=False, log="proxy.log")
    rig.wait_for_listener(rig.port, router)
    rig.throng("run", load(rig, f"""target = "https://{rig.host}:{rig.port}/"
insecure = true
timeout = "2s"
ramp = "60/s"
duration = "5s"
[[population]]
name = "desks"
connections = 34
think = "250ms..650ms"
[[population]]
name = "tablets"
connections = 18
think = "2200ms..3100ms"
"""))
    time.sleep(0.4)
    rig.check(15 <= rig.output("proxy.log").count(" cD ") <= 24, f"its own timeout ended those, and few others: {rig.output('proxy.log')[-500:]}")


@scenario(healthy())
def an_http_proxy_is_reloaded_politely(rig):
    """HAProxy (HTTP) is what we dial. It is reloaded in second 2.1, and the old process announces the end of each connection in its next response
    (idle-close-on-response)."""
    router, far, command = proxied(rig, """defaults
 mode http
 option idle-close-on-response
 timeout connect 2s
 timeout client 30s
 timeout server 30s
listen site
 bind FRONT
 server one BACK""")
    rig.start(rig.built("t4_ways.go"), "http", 9_001, netns=far, port=9_001)
    rig.start(*command, netns=router, wait=False)
    rig.wait_for_listener(rig.port, router)
    reloaded_later(rig, router, 2.1, command)
    (rig.folder / "first.pid").write_text(rig.output("proxy.pid"))
    rig.throng("run", rig.url, "-c", "44", "--ramp", "50/s", "-d", "4s", "--think", "200ms..500ms", "--timeout", "2s")
    rig.check(rig.output("proxy.pid") != rig.output("first.pid"), "it was reloaded")
    rig.check(did(rig)["requests"] > 300, f"they were served: {did(rig)}")


# --- names, and this machine ---


@scenario(healthy())
def a_resolver_that_takes_1600_ms(rig):
    """The name server of this machine takes 1.6 s for each question. The name is asked for before the load, which has nothing to do with it."""
    far = rig.far()
    rig.odd(netns=far)
    here(rig, "mount", "--bind", rig.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:4\n"), "/etc/resolv.conf")
    rig.start("python3", rig.server("resolver.py"), "shop.example", rig.host, 1.6, wait=False, log="resolver.log")
    has(rig, "ready", "resolver.log")
    rig.throng("run", f"http://shop.example:{rig.port}/", "--arrive", "42/s", "--calls", "2", "-d", "4s", "--timeout", "1200ms")
    rig.check("answered shop.example" in rig.output("resolver.log"), "it was asked")


@scenario(limited("host", "denied", "syn-loss", verdicts=("fail", "invalid")))
def our_own_rule_lets_17_a_second_out(rig):
    """A rule of this machine's output chain drops its SYNs beyond 17 a second; 39 are to arrive. The server would take all."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("output", f"{SYN} limit rate over 17/second burst 9 packets counter drop"))
    rig.throng("run", rig.url, "--arrive", "39/s", "--calls", "2", "-d", "5s", "--timeout", "1800ms")
    here(rig, "sh", "-c", f"nft list ruleset > {rig.folder}/own.log")
    rig.check(int(re.search(r"counter packets (\d+)", rig.output("own.log"))[1]) > 60, "it dropped")


@scenario(limited("host", "denied", "refused", "connection-limit", at=(65, 68), verdicts=("fail", "invalid")))
def our_own_table_refuses_beyond_66(rig):
    """This machine's own output chain replies with a reset to its SYNs beyond 66 connections; the server, in Node, would take all. WebSockets."""
    far = rig.far()
    chats(rig, far)
    rig.nft(own("output", f"tcp dport {rig.port} ct state new ct count over 66 counter reject with tcp reset"))
    rig.throng("run", f"ws://{rig.host}:{rig.port}/chat", "-c", "104", "--ramp", "50/s", "-d", "3s", "--ping", "450ms", "--timeout", "2s")
    here(rig, "sh", "-c", f"nft list ruleset > {rig.folder}/own.log")
    rig.check(int(re.search(r"counter packets (\d+)", rig.output("own.log"))[1]) > 20, "it refused")
    rig.check(65 <= did(rig, "ws")["opened"] <= 67, f"66 came: {did(rig, 'ws')}")


@scenario(limited("host", "timeout", "unacknowledged", "denied", "stall"))
def our_own_quota_is_used_up(rig):
    """A quota of this machine's input chain lets 1.7 MB in, and drops the rest: pages of 21 kB, 40 a second, which the server goes on to send."""
    far = rig.far()
    rig.odd("--length", 21_000, netns=far)
    rig.nft(own("input", f"tcp sport {rig.port} quota over 1700 kbytes counter drop"))
    rig.throng("run", rig.url, "-c", "33", "--ramp", "60/s", "--rate", "40/s", "-d", "5s", "--timeout", "1600ms")
    here(rig, "sh", "-c", f"nft list ruleset > {rig.folder}/own.log")
    rig.check(int(re.search(r"counter packets (\d+)", rig.output("own.log"))[1]) > 60, "it dropped")
