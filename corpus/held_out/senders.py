"""Who sends resets: a router between, or the host of the target, which is two links away. Both are seen beside SYN-ACKs of the target."""

from held_out.starting import counted, echo, loop
from recording import limited, scenario

FAR_SIX = "fd77:2::2"
ECHO_SIX = """import asyncio, socket, sys

async def serve(reader, writer):
    try:
        while part := await reader.read(65_536):
            writer.write(part)
    except ConnectionError:
        pass
    finally:
        writer.close()

async def main():
    await asyncio.start_server(serve, "", int(sys.argv[1]), backlog=4_096, family=socket.AF_INET6)
    await asyncio.sleep(3_600)

asyncio.run(main())
"""


def chain(hook, rule):
    """A ruleset with one rule at this hook."""
    return f"table inet corpus {{\n chain {hook} {{\n  type filter hook {hook} priority 0\n  {rule}\n }}\n}}\n"


@scenario(limited("path", "closed"))
def router_resets_messages_by_chance(rig):
    """The router answers three of a hundred packets with data to a WebSocket server with a reset, by chance, in the whole run."""
    router, far = rig.behind_router()
    echo(rig, "ws", netns=far)
    rig.nft(chain("forward", "tcp dport 8080 tcp flags & psh == psh numgen random mod 100 < 3 counter reject with tcp reset"), router)
    rig.throng("run", f"ws://{rig.host}:{rig.port}/", "-c", 100, "--ping", "400ms", "-d", "4s", "--timeout", "3s", "--threshold", "faults == 0")
    rig.check(counted(rig, router) > 3, "packets were rejected")


@scenario(limited("path", "closed", "reset-after"))
def router_resets_tcp_of_ipv6_late(rig):
    """TCP over IPv6: late in the run the router begins to answer each packet of open connections with a reset; SYNs still pass."""
    router, far = rig.behind_router()
    rig.start("python3", rig.write("echo_six.py", ECHO_SIX), rig.port, netns=far)
    file = rig.write("later.nft", chain("forward", "tcp dport 8080 tcp flags & (syn | fin | rst) == 0x0 counter reject with tcp reset"))
    rig.later(4, "ip", "netns", "exec", router, "nft", "-f", file)
    words = ("-c", 80, "--ramp", "40/s", "--ping", "400ms", "--message", "hello", "-d", "4s", "--timeout", "3s")
    rig.throng("run", f"tcp://[{FAR_SIX}]:{rig.port}", *words)
    rig.check(counted(rig, router) > 0, "packets were rejected")


@scenario(limited("target", "closed"))
def far_server_resets_answers_of_ipv6(rig):
    """HTTP over IPv6: the server itself, behind a router that forwards all, resets four of a hundred connections instead of a response, from
    the 150th request on."""
    router, far = rig.behind_router()
    loop(rig, "--six", "--drop", "rst", "--share", 0.04, "--after", 150, netns=far)
    rig.nft(chain("forward", "tcp sport 8080 tcp flags & rst == rst counter accept"), router)
    words = ("-c", 100, "--ramp", "50/s", "--think", "400ms", "-d", "4s", "--timeout", "3s", "--threshold", "faults == 0")
    rig.throng("run", f"http://[{FAR_SIX}]:{rig.port}/", *words)
    rig.check("reset" in rig.output(), "it reset some")
    rig.check(counted(rig, router) > 0, "resets of the server passed the router")


@scenario(limited("path", "refused"))
def router_refuses_fast_arrivals(rig):
    """The router passes 30 SYNs a second and answers the others with a reset; 90 short connections a second come from the start on."""
    router, far = rig.behind_router()
    loop(rig, netns=far)
    rig.nft(chain("forward", "tcp flags syn / syn,ack limit rate over 30/second burst 10 packets counter reject with tcp reset"), router)
    rig.throng("run", rig.url, "--arrive", "90/s", "-d", "3s", "--timeout", "3s")
    rig.check(counted(rig, router) > 50, "SYNs were rejected")


@scenario(limited("target", "refused", "connection-limit", at=(88, 92)))
def firewall_of_the_far_host_refuses_tcp(rig):
    """Raw TCP: rules of the server's own host, behind a router that forwards all, answer the SYN of each connection above 90 with a reset."""
    _, far = rig.behind_router()
    echo(rig, "tcp", netns=far)
    rig.nft(chain("input", "ct state new tcp dport 8080 ct count over 90 counter reject with tcp reset"), far)
    words = ("-c", 180, "--ramp", "60/s", "--ping", "500ms", "--message", "hello", "-d", "3s", "--timeout", "3s")
    rig.throng("run", f"tcp://{rig.host}:{rig.port}", *words)
    rig.check(counted(rig, far) > 0, "SYNs were rejected")


@scenario(limited("path", "requests-per-connection", "closed"))
def router_resets_after_some_packets(rig):
    """The router passes 14 packets of each connection to the server and resets it at the next one, which is about the seventh request;
    pauses are of random length."""
    router, far = rig.behind_router()
    loop(rig, netns=far)
    rig.netns_output(router, "sysctl", "-qw", "net.netfilter.nf_conntrack_acct=1")
    rig.nft(chain("forward", "tcp dport 8080 ct original packets > 14 counter reject with tcp reset"), router)
    rig.throng("run", rig.url, "-c", 80, "--ramp", "40/s", "--think", "150ms..900ms", "-d", "6s", "--timeout", "3s")
    rig.check(counted(rig, router) > 0, "packets were rejected")
