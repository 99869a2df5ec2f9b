"""Between the load and the server, and around the load's own host: tables that forget or count, routes and links that go away and come back,
one of two families and one of four addresses, sizes and directions, limits for each source, firewalls at both ends, and limits of our own."""

import json
import re
import resource
import socket
import time

from recording import healthy, limited, scenario, unknowable
from tuned.paths import SYN, acted, forwards, own, routed
from tuned.middleboxes import inside, packets

PACED = ("--think", "250ms..550ms", "--timeout", "2200ms")
UNKNOWN_ONES = "ct state new tcp flags & (syn | ack) != syn counter drop\n ct state invalid counter drop"


def ways(rig, mode, netns, certificate=False):
    """servers/t4_ways.go."""
    words = [rig.certificate()] if certificate else []
    return rig.start(rig.built("t4_ways.go"), mode, rig.port, *words, netns=netns)


def did(rig, name="ways"):
    """What a server says it did."""
    time.sleep(0.3)
    return json.loads(rig.output(f"{name}.json") or "{}")


def chats(rig, netns):
    rig.needs("node")
    return rig.start("node", rig.server("t3_ws.js"), rig.port, netns=netns)


def here(rig, *words):
    rig.check(rig.start(*words, wait=False, log="here.log").wait(9) == 0, " ".join(map(str, words)))


def kernel(rig, counter, netns=None):
    """A counter of the kernel, of this host's network or of another one's."""
    enter = ["ip", "netns", "exec", netns] if netns else []
    here(rig, *enter, "sh", "-c", f"nstat -asz {counter} > {rig.folder}/nstat.log")
    return int(re.search(rf"{counter}\s+(\d+)", rig.output("nstat.log"))[1])


def pinged(host):
    """Whether a host replies to a ping: an ICMP echo request with no data."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(2)
        raw.sendto(bytes.fromhex("0800f7ff00000000"), (host, 0))
        return raw.recv(99)[20] == 0


def nft_later(rig, after_s, rules, netns=None):
    file = rig.write("later.nft", rules)
    enter = ["ip", "netns", "exec", netns] if netns else []
    rig.later(after_s, *enter, "nft", "-f", file)


def forgets(rig, router, seconds):
    """The router forgets what was idle for so long, and drops what it does not know."""
    inside(rig, router, "sysctl", "-qw", f"net.netfilter.nf_conntrack_tcp_timeout_established={seconds}", "net.netfilter.nf_conntrack_tcp_loose=0")
    rig.nft(forwards(UNKNOWN_ONES), router)


def load(rig, text):
    return rig.write("load.toml", text)


# --- tables that forget, and those that count ---


@scenario(limited("path", "unacknowledged", "idle-cut"))
def a_nat_forgets_the_quiet_half_of_the_chats(rig):
    """A NAT forgets what was silent for 2 s, and drops what comes on it later. Chats send each 600 ms, and stay; watchers send a keep-alive each
    3.3 s, which is too seldom. The server, in Node, has all of them open."""
    router, far = rig.behind_router()
    forgets(rig, router, 2)
    chats(rig, far)
    rig.throng("run", load(rig, f"""target = "ws://{rig.host}:{rig.port}/chat"
timeout = "2200ms"
ramp = "60/s"
duration = "6500ms"
[[population]]
name = "chats"
connections = 38
ping = "600ms"
[[population]]
name = "watchers"
connections = 23
ping = "3300ms"
"""))
    acted(rig, router)
    rig.check(did(rig, "ws")["opened"] >= 61, f"all had been open: {did(rig, 'ws')}")


@scenario(healthy())
def http2_pings_keep_a_nats_entry(rig):
    """The same NAT, and HTTP/2 whose requests are 3.5 s apart or more: a PING each 900 ms keeps what the table would forget."""
    router, far = rig.behind_router()
    forgets(rig, router, 2)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--http2", "-c", "33", "--ramp", "70/s", "--think", "3500ms..4500ms", "--ping", "900ms", "-d", "6500ms", "--timeout", "3s")
    rig.check(packets(rig, router) == 0, "nothing was unknown to it")
    rig.check(did(rig)["http2"] >= 50, f"requests after a pause: {did(rig)}")


@scenario(limited("path", "reset-after", "closed"))
def a_firewall_ends_sessions_of_3100_ms(rig):
    """A firewall resets each session 3.1 s after its SYN, however busy it is. Raw TCP in Ruby, whose side stays open; a message each 350 ms."""
    rig.needs("ruby")
    router, far = rig.behind_router()
    young = "set young {\n type ipv4_addr . inet_service\n flags dynamic,timeout\n timeout 3s100ms\n size 4096\n }"
    rig.nft(forwards(f"tcp dport {rig.port} {SYN} add @young {{ ip saddr . tcp sport }}\n"
                     f" tcp dport {rig.port} ip saddr . tcp sport != @young counter reject with tcp reset", young), router)
    rig.start("ruby", rig.server("t4_lines.rb"), rig.port, netns=far)
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "44", "--ramp", "22/s", "-d", "4s", "--message", "tick", "--ping", "350ms", "--timeout", "2s")
    rig.check(packets(rig, router) >= 40, "it reset them")


@scenario(limited("path", "unacknowledged", "timeout"))
def a_gateway_cuts_flows_of_66_kilobytes(rig):
    """A gateway that inspects uploads lets 66 kB of a flow through, and drops what comes after them: seven orders of 9.1 kB on each connection."""
    router, far = rig.behind_router()
    inside(rig, router, "sysctl", "-qw", "net.netfilter.nf_conntrack_acct=1")
    rig.nft(forwards(f"tcp dport {rig.port} ct original bytes > 66000 counter drop"), router)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "--body", "o" * 9_100, "-c", "37", "--ramp", "80/s", "--rate", "90/s", "-d", "6s", "--timeout", "2s")
    acted(rig, router)
    rig.check(200 <= did(rig)["requests"] <= 37 * 8, f"seven of each: {did(rig)}")


# --- routes and links that go away and come back ---


@scenario(limited("path", "unreachable", "no-syn-ack"))
def no_route_for_two_seconds(rig):
    """The router has no route to the server from second 1.7 to 3.9, and says so by ICMP, as seldom as its kernel does by default; 41 arrive each
    second, before and after it, too."""
    router, far = rig.behind_router()
    ways(rig, "http", far)
    route = ("ip", "-n", router, "route")
    rig.later(1.7, *route, "add", "unreachable", "10.77.2.2/32")
    rig.later(3.9, *route, "del", "unreachable", "10.77.2.2/32")
    rig.throng("run", rig.url, "--arrive", "41/s", "-d", "6s", "--timeout", "1900ms")
    rig.check(kernel(rig, "IcmpOutDestUnreachs", router) > 0, "it said so")
    rig.check(did(rig)["requests"] > 110, f"before and after: {did(rig)}")


def flaps(rig, router, away_s, back_s, times):
    """The router's route is a black hole for a while, again and again."""
    route = f"ip -n {router} route"
    rig.start("sh", "-c", f"sleep 1.6; for i in $(seq {times}); do {route} add blackhole 10.77.2.2/32; sleep {away_s}; {route} del blackhole 10.77.2.2/32;"
              f" echo back; sleep {back_s}; done", wait=False, log="flaps.log")


@scenario(healthy())
def a_route_that_flaps_and_patient_users(rig):
    """The route is away for 0.4 s three times; TCP sends again, and the timeout is 5 s."""
    router, _, _ = routed(rig)
    flaps(rig, router, 0.4, 1.1, 3)
    rig.throng("run", rig.url, "-c", "52", "--ramp", "70/s", "-d", "5s", "--think", "250ms..550ms", "--timeout", "5s")
    rig.check(rig.output("flaps.log").count("back") == 3, "it flapped")
    rig.check(kernel(rig, "TcpRetransSegs") > 20, "segments were sent again")
    rig.check(rig.counted()["accepted"] == 52, "no connection was lost")


@scenario(limited("path", "unacknowledged", "stall"))
def a_route_that_flaps_and_a_threshold(rig):
    """The route is away for 0.7 s of each 1.7 s; what is sent meanwhile is sent again. WebSockets with a message each 300 ms; the threshold is
    90 ms at p95. The server never waits."""
    router, far = rig.behind_router()
    chats(rig, far)
    flaps(rig, router, 0.7, 1, 3)
    rig.throng("run", f"ws://{rig.host}:{rig.port}/chat", "-c", "47", "--ramp", "70/s", "-d", "6s", "--ping", "300ms", "--timeout", "6s",
               "--threshold", "latency.p95 < 90ms")
    rig.check(kernel(rig, "TcpRetransSegs") > 40, "segments were sent again")


@scenario(limited("host", "unacknowledged", "unreachable", "denied", "timeout", verdicts=("fail", "invalid")))
def our_own_link_is_down_for_three_seconds(rig):
    """The interface of this machine is down from second 2.2 to 5.1, and its routes with it; then all goes on."""
    far = rig.far()
    rig.odd(netns=far)
    rig.later(2.2, "ip", "link", "set", "veth0", "down")
    rig.later(5.1, "ip", "link", "set", "veth0", "up")
    rig.throng("run", rig.url, "-c", "48", "--ramp", "80/s", "-d", "6s", "--think", "200ms..600ms", "--timeout", "1700ms")
    here(rig, "sh", "-c", f"cat /sys/class/net/veth0/carrier_changes > {rig.folder}/carrier.log")
    rig.check(int(rig.output("carrier.log")) >= 3, f"it went down and up: {rig.output('carrier.log')}")


# --- one of several ways ---


@scenario(limited("path", "unacknowledged"))
def ipv6_is_lost_beside_ipv4(rig):
    """A site of both families, in Go; from second 2.2 on the tunnel that carries IPv6 loses all, and IPv4 is as before."""
    router, far = rig.behind_router()
    ways(rig, "http", far)
    time.sleep(2.2)  # Until neighbours of IPv6 know each other.
    nft_later(rig, 2.2, forwards("meta l4proto tcp counter drop").replace("table ip path", "table ip6 path"), router)
    rig.throng("run", load(rig, f"""timeout = "1200ms"
ramp = "140/s"
duration = "2800ms"
think = "250ms..550ms"
[[population]]
name = "offices"
target = "http://{rig.host}:{rig.port}/"
connections = 41
[[population]]
name = "mobiles"
target = "http://[fd77:2::2]:{rig.port}/"
connections = 29
"""))
    acted(rig, router)
    rig.check(did(rig)["accepted"] >= 70, "all had been open")


@scenario(limited("path", "refused", never=r"nothing (listens|is listening)"))
def a_router_refuses_one_of_four_addresses(rig):
    """Four addresses of one HTTPS server; the router replies with a reset to each SYN to the third one, from the first
    dial on, where the server listens as at the others."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"ip daddr 10.77.2.33 tcp dport {rig.port} counter reject with tcp reset"), router)
    for last in range(31, 35):
        here(rig, "ip", "-n", far, "addr", "add", f"10.77.2.{last}/24", "dev", "next1")
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://10.77.2.{{31..34}}:{rig.port}/", "-k", "-c", "64", "--ramp", "60/s", "-d", "3s", *PACED)
    acted(rig, router)
    inside(rig, far, "bash", "-c", f": < /dev/tcp/10.77.2.33/{rig.port}")  # It listens there.
    rig.check(did(rig)["accepted"] >= 48 and did(rig)["most"] <= 56, f"three quarters were served: {did(rig)}")


# --- sizes and directions ---


@scenario(limited("path", "unacknowledged", "timeout"))
def messages_of_a_middle_size_vanish(rig):
    """A broken offload engine on the way drops packets of 600 to 1,000 bytes towards the server; smaller ones pass. One message in 15 has 700."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} ip length 600-1000 counter drop"), router)
    chats(rig, far)
    rig.throng("run", load(rig, f"""target = "ws://{rig.host}:{rig.port}/chat"
timeout = "1600ms"
ramp = "70/s"
duration = "4500ms"
[[population]]
name = "people"
connections = 42
[[population.step]]
name = "line"
weight = 14
send = "see you at {{rand 1 12}}"
expect = {{ echo = true }}
think = "150ms..350ms"
[[population.step]]
name = "sticker"
weight = 1
send = "{'s' * 700}"
expect = {{ echo = true }}
think = "150ms..350ms"
"""))
    acted(rig, router)
    rig.check(did(rig, "ws")["messages"] > 150, "others came through")


@scenario(limited("path", "unacknowledged", "timeout"))
def an_access_list_lets_only_syns_through(rig):
    """A list of the router permits SYNs to the port and forgets what follows them: connections open here, the server never sees the end of the
    handshake, and no ClientHello arrives."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} tcp flags & syn == 0 counter drop"), router)
    ways(rig, "https", far, certificate=True)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "--arrive", "23/s", "--calls", "3", "-d", "4s", "--timeout", "2s")
    acted(rig, router)
    rig.check(did(rig)["accepted"] == 0, "none was complete")


@scenario(limited("path", "no-syn-ack"))
def pings_pass_and_new_connections_do_not(rig):
    """From second 1.6 on, in the middle of a slow ramp, the router drops what is new at the port; what is open goes on, and its pings do. TLS."""
    router, far = rig.behind_router()
    ways(rig, "tls", far, certificate=True)
    nft_later(rig, 1.6, forwards(f"tcp dport {rig.port} {SYN} counter drop"), router)
    rig.throng("run", f"tls://{rig.host}:{rig.port}", "-k", "-c", "71", "--ramp", "23/s", "-d", "1500ms", "--message", "beat", "--ping", "450ms", "--timeout", "2s")
    acted(rig, router)
    rig.check(pinged(rig.host), "it replies to pings")
    rig.check(15 <= did(rig)["accepted"] <= 45, f"those before it: {did(rig)}")


# --- limits for each source ---


def thirteen_a_second(rig):
    """The router drops SYNs of a source beyond 13 a second."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"{SYN} add @of {{ ip saddr limit rate over 13/second burst 6 packets }} counter drop",
                     "set of {\n type ipv4_addr\n flags dynamic\n size 999\n }"), router)
    ways(rig, "http", far)
    return router


@scenario(limited("path", "syn-loss", "no-syn-ack"))
def a_limit_of_syns_for_each_source(rig):
    """The router drops SYNs of a source beyond 13 a second; 31 arrive from one, with two requests each."""
    router = thirteen_a_second(rig)
    rig.throng("run", rig.url, "--arrive", "31/s", "--calls", "2", "-d", "5s", "--timeout", "2500ms")
    rig.check(packets(rig, router) > 50, "it dropped")


@scenario(healthy())
def five_sources_below_their_limit(rig):
    """The same, and the 31 come from five sources."""
    router = thirteen_a_second(rig)
    sources = [f"10.77.1.{last}" for last in range(11, 16)]
    for address in sources:
        here(rig, "ip", "addr", "add", f"{address}/24", "dev", "near0")
    rig.throng("run", rig.url, "--sources", ",".join(sources), "--arrive", "31/s", "--calls", "2", "-d", "5s", "--timeout", "2500ms")
    rig.check(did(rig)["accepted"] > 140, "more than one may")
    rig.check(packets(rig, router) == 0, "none was dropped")


# --- firewalls at both ends ---


@scenario(limited("target", "refused", "connection-limit", at=(72, 74)))
def the_targets_own_firewall_resets_beyond_73(rig):
    """The firewall of the server's own host replies with a reset to SYNs beyond 73 connections (connlimit). WebSockets; Node would take all."""
    far = rig.far()
    chats(rig, far)
    rig.nft(own("input", f"tcp dport {rig.port} ct state new ct count over 73 counter reject with tcp reset"), far)
    rig.throng("run", f"ws://{rig.host}:{rig.port}/chat", "-c", "115", "--ramp", "60/s", "-d", "3s", "--ping", "500ms", "--timeout", "2s")
    acted(rig, far)
    rig.check(72 <= did(rig, "ws")["opened"] <= 74, f"73 came: {did(rig, 'ws')}")


@scenario(limited("host", "denied", verdicts=("fail", "invalid")))
def our_own_input_chain_drops_some_syn_acks(rig):
    """The input chain of this machine drops what comes from the server to one in four of its own ports (a stale rule of another service): SYN-ACKs
    arrive, and are not let in."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft(own("input", f"tcp sport {rig.port} jhash tcp dport mod 4 seed 0x2b == 1 counter drop"))
    rig.throng("run", rig.url, "-c", "76", "--ramp", "60/s", "-d", "3s", *PACED)
    here(rig, "sh", "-c", f"nft list ruleset > {rig.folder}/own.log")
    rig.check(int(re.search(r"counter packets (\d+)", rig.output("own.log"))[1]) > 20, "it dropped")


@scenario(limited("host", "denied", "closed", verdicts=("fail", "invalid")))
def our_own_output_chain_resets_from_second_2(rig):
    """An agent on this machine changes its output chain in second 2.4: `reject with tcp reset` to all that leaves for the port. HTTP/2."""
    far = rig.far()
    ways(rig, "http", far)
    nft_later(rig, 2.4, own("output", f"tcp dport {rig.port} counter reject with tcp reset"))
    rig.throng("run", rig.url, "--http2", "-c", "26", "--streams", "3", "--ramp", "60/s", "--rate", "170/s", "-d", "5s", "--timeout", "2s")
    here(rig, "sh", "-c", f"nft list ruleset > {rig.folder}/own.log")
    rig.check(int(re.search(r"counter packets (\d+)", rig.output("own.log"))[1]) > 20, "it reset")
    rig.check(did(rig)["http2"] > 200, "before, all was well")


@scenario(unknowable(may=("closed",)))
def resets_that_look_like_the_targets(rig):
    """A box on the way resets one packet in 130, and gives its resets the hop limit that those of the server would have here."""
    router, far = rig.behind_router()
    rig.nft(forwards(f"tcp dport {rig.port} tcp flags & syn == 0 numgen random mod 130 < 1 counter reject with tcp reset"), router)
    rig.nft("table ip looks {\n chain out {\n type filter hook output priority 0\n tcp flags & rst == rst counter ip ttl set 63\n }\n}\n", router)
    ways(rig, "http", far)
    rig.throng("run", rig.url, "-c", "58", "--ramp", "60/s", "--rate", "140/s", "-d", "5s", "--timeout", "2500ms")
    rig.check(packets(rig, router, "reject") >= 4 and packets(rig, router, "ttl") >= 4, "it reset, and said 63")


@scenario(unknowable(may=("no-syn-ack", "syn-loss"), never=r"from the \d+|and all after it"))
def syn_acks_are_lost_where_it_is_not_seen(rig):
    """The SYN-ACKs to two ports in five of ours never come: the output chain of the server's host drops them, as a way back could. Those that
    open are as many in the last half of the ramp as in the first. Raw TCP."""
    router, far = rig.behind_router()
    rig.nft(own("output", f"tcp sport {rig.port} tcp flags & (syn | ack) == (syn | ack) jhash tcp dport mod 5 seed 0x17 < 2 counter drop"), far)
    rig.start("ruby", rig.server("t4_lines.rb"), rig.port, netns=far)
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", "-c", "72", "--ramp", "55/s", "-d", "3s", "--message", "hi", "--ping", "400ms", "--timeout", "2500ms")
    acted(rig, far)
    rig.check(30 <= did(rig, "lines")["accepted"] <= 58, f"three in five: {did(rig, 'lines')}")
    rig.check(did(rig, "lines")["late"] >= 8, f"in the last part of the ramp, too: {did(rig, 'lines')}")


# --- limits of our own ---


@scenario(limited("host", "ports", "denied", "unreachable", verdicts=("fail", "invalid"), never="ip_local_port_range"))
def one_of_our_source_addresses_goes(rig):
    """Two source addresses of this machine; in second 2.5 one of them is removed, as when a lease ends: no dial from it is possible any more,
    and there are ports enough."""
    far = rig.far()
    rig.odd(netns=far)
    for last in (21, 22):
        here(rig, "ip", "addr", "add", f"10.77.0.{last}/24", "dev", "veth0")
    rig.later(2.5, "ip", "addr", "del", "10.77.0.22/24", "dev", "veth0")
    rig.throng("run", rig.url, "--sources", "10.77.0.21,10.77.0.22", "--arrive", "37/s", "--calls", "2", "-d", "5s", "--timeout", "2s")
    here(rig, "sh", "-c", f"ip addr show dev veth0 > {rig.folder}/addr.log")
    rig.check("10.77.0.22" not in rig.output("addr.log"), "it went")


@scenario(healthy())
def fewer_files_than_connections(rig):
    """`ulimit -n` of the load's own shell is 170, soft and hard; 243 connections by epoll, which divides them among processes or threads."""
    far = rig.far()
    rig.odd(netns=far)
    resource.setrlimit(resource.RLIMIT_NOFILE, (170, 170))
    rig.throng("run", rig.url, "--io", "epoll", "-c", "243", "--ramp", "130/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["most_open"] == 243, f"all were open: {rig.counted()}")
