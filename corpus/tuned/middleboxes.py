"""Paths that are narrow, forgetful or half broken: NAT tables, routes that lose one of several flows, links with a buffer, small MTUs whose
messages are filtered, balancers with a bad backend, names with a bad address, and this machine's own firewall and link."""

import json
import re
import time

from recording import Failed, healthy, limited, scenario, unknowable
from tuned.paths import acted, forwards, own, routed, rules_later

QUICK = ("--think", "100ms..300ms", "--timeout", "2s")
PACED = ("--think", "300ms..700ms", "--timeout", "3s")


def has(rig, words, log, within_s=10):
    """Waits until a file of the scenario's folder has it."""
    for _ in range(within_s * 20):
        if words in rig.output(log):
            return
        time.sleep(0.05)
    raise Failed(f"{log} has no {words}")


def node(rig, name, port, *options, netns=None):
    """servers/odd.py in a folder of its own, for scenarios with several."""
    (rig.folder / name).mkdir()
    program = rig.start("sh", "-c", f'cd {rig.folder}/{name} && exec "$@"', "sh", "python3", rig.server("odd.py"), port, *options, netns=netns, wait=False)
    has(rig, "accepted", f"{name}/counts.json")
    time.sleep(0.2)
    return program


def counted(rig, name):
    return json.loads(rig.output(f"{name}/counts.json"))


def site(rig, *options, **start):
    rig.needs("node")
    return rig.start("node", rig.server("t3_site.js"), rig.port, *options, **start)


def visits(rig):
    return json.loads(rig.output("site.json") or "{}")


def named(rig, text):
    """Names of this scenario's own: the text of /etc/hosts."""
    rig.check(rig.start("mount", "--bind", rig.write("hosts", text), "/etc/hosts", wait=False).wait(5) == 0, "names of our own")


def inside(rig, netns, *words):
    return rig.netns_output(netns, *words)


def one_by_one(rig, far):
    """Packets leave the far host as they do from a network card, and not as segments that are still together."""
    rig.check(rig.start("ip", "-n", far, "link", "set", "dev", "next1", "gso_max_segs", "1", wait=False).wait(5) == 0, "segments")


def packets(rig, netns, of=""):
    """The counter of the first rule of a namespace that has one, or of the first with this text."""
    rules = inside(rig, netns, "nft", "list", "ruleset")
    found = [re.search(r"counter packets (\d+)", line) for line in rules.splitlines() if of in line and "counter" in line]
    rig.check(found and found[0], f"a counter of {of}: {rules}")
    return int(found[0][1])


# --- tables of connections ---


@scenario(limited("path", "no-syn-ack", "conntrack", at=(116, 119)))
def nat_with_118_ports(rig):
    """The router translates all to one address with 118 ports; those beyond find no port, and their SYNs are dropped."""
    router, _, _ = routed(rig)
    rig.nft('table ip nat {\n chain out {\n type nat hook postrouting priority 100\n oifname "next0" ip protocol tcp snat to 10.77.2.1:31000-31117\n }\n}\n', router)
    rig.throng("run", rig.url, "-c", "190", "--ramp", "90/s", "-d", "3s", *PACED)
    rig.check(110 <= rig.counted()["most_open"] <= 119, f"118 ports: {rig.counted()}")
    failed = re.findall(r"(?:insert_failed|drop)=(\d+)", inside(rig, router, "conntrack", "-S"))
    rig.check(sum(map(int, failed)) > 0, "the router's table refused some")


@scenario(limited("path", "closed", "idle-cut"))
def a_balancer_resets_what_it_has_forgotten(rig):
    """The router forgets a connection that was idle for 2 s, and replies with a reset to what comes on it later, as cloud balancers do. The
    desks send twice a second and stay; the tablets send each 3 s."""
    router, _, _ = routed(rig)
    inside(rig, router, "sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_timeout_established=2", "net.netfilter.nf_conntrack_tcp_loose=0")
    rig.nft(forwards("ct state invalid counter reject with tcp reset\n ct state new tcp flags & (syn | ack) != syn counter reject with tcp reset"), router)
    load = rig.write("load.toml", f"""target = "{rig.url}"
timeout = "3s"
ramp = "70/s"
duration = "6s"
[[population]]
name = "desks"
connections = 45
think = "300ms..600ms"
[[population]]
name = "tablets"
connections = 25
think = "2900ms..3600ms"
""")
    rig.throng("run", load)
    rules = inside(rig, router, "nft", "list", "ruleset")
    rig.check(sum(map(int, re.findall(r"counter packets (\d+)", rules))) >= 20, f"it reset: {rules}")
    rig.check(rig.counted()["closed"] == 0, "the server closed none")


@scenario(healthy())
def nat_whose_ports_are_used_again(rig):
    """The router has 118 ports for all, and 260 short connections come in 7 s: closed ones make room."""
    router, _, _ = routed(rig)
    rig.nft('table ip nat {\n chain out {\n type nat hook postrouting priority 100\n oifname "next0" ip protocol tcp snat to 10.77.2.1:31000-31117\n }\n}\n', router)
    inside(rig, router, "sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_timeout_time_wait=1", "net.netfilter.nf_conntrack_tcp_timeout_close=1")
    rig.throng("run", rig.url, "--arrive", "37/s", "--total", "260", "-d", "8s", "--timeout", "4s")
    rig.check(rig.counted()["accepted"] > 118, "more than it has ports")


# --- one of several ways ---


def third_of_flows(hook):
    return f"table ip path {{\n chain third {{\n type filter hook {hook} priority 0\n ip saddr 10.77.2.2 jhash tcp dport mod 3 seed 0x51 == 1 counter drop\n }}\n}}\n"


@scenario(limited("path", "unacknowledged"))
def one_of_three_equal_paths_dies(rig):
    """From second 2.7 on one of three equal paths loses what comes back from the server: a third of the connections, by their ports. The
    server reads their requests and responds."""
    router, _, _ = routed(rig)
    file = rig.write("later.nft", third_of_flows("forward"))
    rig.later(2.7, "ip", "netns", "exec", router, "nft", "-f", file)
    rig.throng("run", rig.url, "-c", "90", "--ramp", "90/s", "-d", "5s", *QUICK)
    acted(rig, router)
    rig.check(rig.counted()["accepted"] >= 90, "all had been open")


@scenario(unknowable(may=("unacknowledged", "timeout")))
def the_targets_host_loses_a_third_of_its_packets(rig):
    """The same in the output chain of the server's own host: from here it looks like one of three paths."""
    _, far, _ = routed(rig)
    file = rig.write("later.nft", third_of_flows("output"))
    rig.later(2.7, "ip", "netns", "exec", far, "nft", "-f", file)
    rig.throng("run", rig.url, "-c", "90", "--ramp", "90/s", "-d", "5s", *QUICK)
    acted(rig, far)


@scenario(limited("path", "no-syn-ack", says=r"10\.77\.2\.32"))
def a_name_with_one_silent_address(rig):
    """A name of three addresses; what is sent to the third one is dropped on the way, in silence."""
    router, far, _ = routed(rig, "ip daddr 10.77.2.32 counter drop")
    for last in (31, 32):
        rig.check(rig.start("ip", "-n", far, "addr", "add", f"10.77.2.{last}/24", "dev", "next1", wait=False).wait(5) == 0, "addresses")
    named(rig, "".join(f"10.77.2.{last} farm\n" for last in (2, 31, 32)))
    rig.throng("run", f"http://farm:{rig.port}/", "-c", "84", "--ramp", "60/s", "-d", "3s", *PACED)
    acted(rig, router)
    rig.check(50 <= rig.counted()["most_open"] <= 60, "two thirds of them")


@scenario(limited("target", "refused"))
def a_name_whose_ipv4_address_is_stale(rig):
    """A name of an IPv4 and an IPv6 address of one host; the server listens at the IPv6 one only, as after a change of its configuration, and the
    load goes to the other one, where nothing listens."""
    _, far = rig.behind_router()
    rig.odd("--address", "fd77:2::2", netns=far)
    named(rig, f"fd77:2::2 farm\n{rig.host} farm\n")
    rig.throng("run", f"http://farm:{rig.port}/", "--arrive", "34/s", "--calls", "2", "-d", "4s", "--timeout", "3s")
    resets = int(re.search(r"TcpOutRsts\s+(\d+)", inside(rig, far, "nstat", "-asz", "TcpOutRsts"))[1])
    rig.check(resets >= 100, f"its host refused: {resets} resets")


@scenario(healthy())
def a_name_whose_ipv6_address_is_not_served(rig):
    """A name of an IPv4 and an IPv6 address of one host; the server listens at the IPv4 one, to which the load goes."""
    _, far, _ = routed(rig)
    named(rig, f"fd77:2::2 farm\n{rig.host} farm\n")
    rig.throng("run", f"http://farm:{rig.port}/", "-c", "110", "--ramp", "110/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["accepted"] >= 110, "all came")


# --- balancers ---


def balanced(rig, backends):
    """The router sends connections to each of the backends in turn: ports 9001 and so on of the server's host."""
    router, far = rig.behind_router()
    ways = ", ".join(f"{nth} : 10.77.2.2 . {9_001 + nth}" for nth in range(backends))
    rig.nft(f"table ip balance {{\n chain in {{\n type nat hook prerouting priority -100\n tcp dport {rig.port} dnat ip to numgen inc mod {backends} map {{ {ways} }}\n }}\n}}\n", router)
    return router, far


@scenario(limited("target", "refused", "ended"))
def a_balancer_with_a_dead_backend(rig):
    """A balancer of packets sends each fifth connection to a backend that has ended: its host refuses them."""
    _, far = balanced(rig, 5)
    for nth in (0, 1, 2, 4):
        node(rig, f"node{nth}", 9_001 + nth, "--delay", "0.008", netns=far)
    rig.nft("table ip seen {\n chain in {\n type filter hook input priority 0\n tcp dport 9004 tcp flags & (syn | ack) == syn counter\n }\n}\n", far)
    rig.throng("run", rig.url, "--arrive", "37/s", "--calls", "3", "-d", "5s", "--timeout", "3s")
    rig.check(packets(rig, far) >= 25, "it was sent a fifth of them")


@scenario(limited("target"))
def a_balancer_with_a_slow_backend(rig):
    """One of five backends takes 0.9 s for each response, without CPU; the others 8 ms: all responses of each fifth connection are slow. The
    threshold is 400 ms. No cause of the list fits."""
    _, far = balanced(rig, 5)
    for nth in range(5):
        node(rig, f"node{nth}", 9_001 + nth, "--delay", 0.9 if nth == 2 else 0.008, netns=far)
    rig.throng("run", rig.url, "-c", "65", "--ramp", "65/s", "-d", "4s", *PACED, "--threshold", "latency.p95 < 400ms")
    rig.check(counted(rig, "node2")["responses"] > 20, "the slow one took part")


# --- how much fits through ---


@scenario(limited("path"))
def a_link_of_9_megabits_with_a_deep_buffer(rig):
    """The router sends 9 Mbit/s towards us, and keeps the rest in its buffer; pages of 24 kB, and 30 users who wait for nothing else: each page
    waits in the router for half a second. The threshold is 250 ms. No cause of the list fits."""
    router, _, _ = routed(rig, "", "", "--length", 24_000)
    inside(rig, router, *"tc qdisc add dev near1 root tbf rate 9mbit burst 16kb latency 3s".split())
    rig.throng("run", rig.url, "-c", "30", "--ramp", "60/s", "-d", "5s", "--timeout", "5s", "--threshold", "latency.p95 < 250ms")
    said = inside(rig, router, "tc", "-s", "qdisc", "show", "dev", "near1")
    sent, dropped = re.search(r"Sent (\d+) bytes \d+ pkt \(dropped (\d+),", said).groups()
    rig.check(int(sent) > 4_500_000 and int(dropped) < 20, f"the link was full, and its buffer was not: {said}")


@scenario(healthy())
def a_link_of_9_megabits_half_full(rig):
    """The same link with pages of 8 kB, 60 a second: half of what it carries; the same threshold."""
    router, _, _ = routed(rig, "", "", "--length", 8_000)
    inside(rig, router, *"tc qdisc add dev near1 root tbf rate 9mbit burst 16kb latency 3s".split())
    rig.throng("run", rig.url, "-c", "40", "--rate", "60/s", "-d", "5s", "--timeout", "5s", "--threshold", "latency.p95 < 250ms")


@scenario(limited("host"))
def our_own_link_is_shaped(rig):
    """This machine sends 5 Mbit/s (a shaper of its own), uploads of 21 kB are due 45 times a second: they wait here, in its own queue. The
    threshold is 200 ms. No cause of the list fits."""
    site_of = rig.far()
    site(rig, netns=site_of)
    rig.check(rig.start(*"tc qdisc add dev veth0 root tbf rate 5mbit burst 16kb latency 9s".split(), wait=False).wait(5) == 0, "a shaper")
    rig.throng("run", f"{rig.url}order", "--body", "u" * 21_000, "-c", "60", "--rate", "45/s", "-d", "6s", "--timeout", "8s", "--threshold", "latency.p95 < 200ms")
    rig.start("tc", "-s", "qdisc", "show", "dev", "veth0", wait=False, log="tc.log").wait(5)
    sent = int(re.search(r"Sent (\d+) bytes", rig.output("tc.log"))[1])
    rig.check(3_000_000 < sent < 9_000_000, f"the shaper was full: {rig.output('tc.log')}")


@scenario(limited("path", "timeout", "unacknowledged"))
def a_policer_that_drops_large_pages(rig):
    """The router drops what is beyond 400 kB/s towards us, without a buffer; pages of 90 kB, 20 of which are due each second: they lose more
    than they get, and time out."""
    router, far, _ = routed(rig, "ip saddr 10.77.2.2 limit rate over 400 kbytes/second burst 30 kbytes counter drop", "", "--length", 90_000)
    one_by_one(rig, far)
    rig.throng("run", rig.url, "-c", "40", "--rate", "20/s", "-d", "6s", "--timeout", "2500ms")
    acted(rig, router)


# --- the size of packets ---


def narrow(rig, router, far, mtu, filtered):
    """The link between us and the router carries packets of `mtu` bytes, and the far host does not know it; `filtered`: nor
    do the router's messages about that arrive."""
    one_by_one(rig, far)
    rig.check(rig.start("ip", "-n", router, "link", "set", "dev", "near1", "mtu", mtu, wait=False).wait(5) == 0, "an MTU")
    inside(rig, router, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
    verdict = "drop" if filtered else "accept"
    rig.nft("table inet mtu {\n chain says {\n type filter hook output priority 0\n"
            f" icmp type destination-unreachable icmp code 4 counter {verdict}\n icmpv6 type packet-too-big counter {verdict}\n }}\n}}\n", router)


def messages(rig, router):
    rules = inside(rig, router, "nft", "list", "table", "inet", "mtu")
    return sum(map(int, re.findall(r"counter packets (\d+)", rules)))


PAGES = """target = "{url}"
timeout = "2500ms"
ramp = "50/s"
duration = "4s"
think = "200ms..500ms"
[[population]]
name = "readers"
connections = 50
[[population.step]]
name = "list"
request = "GET /list"
[[population.step]]
name = "again"
request = "GET /list"
[[population.step]]
name = "page"
request = "GET /page?length=41000"
"""


@scenario(limited("path", "timeout", "unacknowledged"))
def large_pages_into_a_black_hole(rig):
    """A link of 1,180 bytes on the way, whose ICMP messages are filtered: lists of 900 bytes come, and pages of 41 kB never do, although the
    server sends them."""
    router, far = rig.behind_router()
    narrow(rig, router, far, 1_180, filtered=True)
    site(rig, netns=far)
    rig.throng("run", rig.write("load.toml", PAGES.format(url=rig.url)))
    rig.check(visits(rig)["page"] >= 40 and visits(rig)["list"] >= 90, f"it sent them: {visits(rig)}")
    rig.check(messages(rig, router) > 40, "messages were filtered")


@scenario(healthy())
def large_pages_over_a_narrow_link(rig):
    """The same link, and its ICMP messages arrive: the server sends smaller packets from then on."""
    router, far = rig.behind_router()
    narrow(rig, router, far, 1_180, filtered=False)
    site(rig, netns=far)
    rig.throng("run", rig.write("load.toml", PAGES.format(url=rig.url)))
    rig.check(visits(rig)["page"] >= 40, f"it sent them: {visits(rig)}")
    rig.check(messages(rig, router) > 0, "messages were sent")


@scenario(limited("path", "timeout", "unacknowledged", "tls"))
def certificates_into_a_black_hole(rig):
    """Over IPv6, the same with 1,280 bytes: connections open, and the server's certificate, of 4 kB with its 150 names, does not come."""
    router, far = rig.behind_router()
    narrow(rig, router, far, 1_280, filtered=True)
    names = ",".join(f"DNS:shop-{nth}.eu.example.com" for nth in range(150))
    both = rig.folder / "names.pem"
    made = rig.start(*"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj /CN=shop".split(), "-addext",
                     f"subjectAltName={names}", "-keyout", rig.folder / "key.pem", "-out", rig.folder / "cert.pem", wait=False)
    rig.check(made.wait(10) == 0, "a certificate")
    both.write_text((rig.folder / "cert.pem").read_text() + (rig.folder / "key.pem").read_text())
    rig.odd("--address", "::", "--cert", both, netns=far)
    time.sleep(2.5)  # Until neighbours of IPv6 know each other.
    rig.throng("run", f"https://[fd77:2::2]:{rig.port}/", "-k", "-c", "45", "--ramp", "45/s", "-d", "3s", "--timeout", "2500ms")
    rig.check(rig.counted()["accepted"] >= 40 and rig.counted()["responses"] <= 12, f"connections opened: {rig.counted()}")
    rig.check(messages(rig, router) > 20, "messages were filtered")


# --- what a firewall dislikes ---

ORDERS = """target = "{url}"
timeout = "3s"
ramp = "60/s"
duration = "4s"
think = "150ms..350ms"
[[population]]
name = "shoppers"
connections = 60
[[population.step]]
name = "list"
weight = 12
request = "GET /list"
[[population.step]]
name = "order"
weight = 1
request = "POST /order"
body = "item=17"
"""


@scenario(limited("path", "closed"))
def a_firewall_resets_each_order(rig):
    """The router looks into packets, and replies with a reset to those that begin with POST; the server gets none of them."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} @ih,0,32 0x504f5354 counter reject with tcp reset"), router)
    site(rig, netns=far)
    rig.throng("run", rig.write("load.toml", ORDERS.format(url=rig.url)))
    acted(rig, router)
    rig.check(visits(rig)["order"] == 0 and visits(rig)["list"] > 100, f"orders did not arrive: {visits(rig)}")


@scenario(unknowable(may=("tls", "closed")))
def something_resets_each_client_hello(rig):
    """Each ClientHello gets a reset from the firewall of the server's host, which the server's process could have sent as well."""
    far = rig.far()
    rig.odd("--cert", rig.certificate(), netns=far)
    rig.nft(own("input", f"tcp dport {rig.port} @ih,0,8 0x16 counter reject with tcp reset"), far)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "-c", "35", "--ramp", "35/s", "-d", "2s", *PACED)
    acted(rig, far)
    rig.check(rig.counted()["responses"] == 0, "none was served")


@scenario(limited("host", "denied", at=(161, 165), verdicts=("fail", "invalid")))
def our_own_firewall_lets_163_out(rig):
    """This machine's own firewall drops its SYNs beyond 163 connections; the server would take all."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("output", f"tcp dport {rig.port} ct state new ct count over 163 counter drop"))
    rig.throng("run", rig.url, "-c", "240", "--ramp", "120/s", "-d", "3s", *PACED)
    rig.check(160 <= rig.counted()["most_open"] <= 164, f"163 came: {rig.counted()}")


# --- moments, and two faults ---


@scenario(limited("path", "no-syn-ack", at=(138, 142)))
def a_full_router_and_later_a_pause(rig):
    """The router drops SYNs beyond 140 connections, from the ramp on; in second 4.5 the server is stopped for 0.9 s, which makes nothing fail."""
    router, _, server = routed(rig, "tcp dport 8080 ct state new ct count over 140 counter drop")
    rig.later(4.5, "kill", "-STOP", server.pid)
    rig.later(5.4, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", "210", "--ramp", "100/s", "-d", "5s", "--think", "200ms..500ms", "--timeout", "3s")
    acted(rig, router)
    rig.check(rig.counted()["most_open"] <= 141, "140 connections")


@scenario(healthy())
def a_path_that_is_away_for_700_ms(rig):
    """From second 2.5 to 3.2 the router drops all; what was sent is sent again by TCP, and comes through within the timeout of 5 s."""
    router, _, _ = routed(rig)
    rules_later(rig, router, 2.5, "meta l4proto tcp counter drop")
    rig.later(3.2, "ip", "netns", "exec", router, "nft", "flush", "chain", "ip", "path", "forward")
    rig.throng("run", rig.url, "-c", "55", "--ramp", "80/s", "-d", "5s", "--think", "200ms..600ms", "--timeout", "5s")
    rig.check(rig.counted()["accepted"] == 55, "no connection was lost")
    rig.check(rig.summary["latency_us"]["max"] > 200_000, "it was away")


@scenario(limited("path", "refused"))
def a_router_refuses_beyond_33_a_second(rig):
    """The router replies with a reset to SYNs beyond 33 a second; 52 arrive, however few are open."""
    router, _, _ = routed(rig, "tcp flags & (syn | ack) == syn limit rate over 33/second burst 9 packets counter reject with tcp reset")
    rig.throng("run", rig.url, "--arrive", "52/s", "--calls", "2", "-d", "5s", "--timeout", "3s")
    rig.check(packets(rig, router) > 30, "it refused")
