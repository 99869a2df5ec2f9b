"""Runs with a plain suspect that is innocent: a limit that is close and not reached, a log line of another time, a busy neighbour."""

from held_out.starting import Cgroup, c, counted, echo, go, java, kernel, loop, nginx
from recording import healthy, limited, scenario

HOLD = ("-d", "3s", "--timeout", "3s")
FAST = ("--threshold", "latency.p99 < 300ms")
HOG = "while True: pass"


def climb(rig, connections, ramp, *more):
    """Connections at a rate, each with a request now and then."""
    return rig.throng("run", rig.url, "-c", connections, "--ramp", ramp, "--think", "800ms", *HOLD, *more)


@scenario(limited("target", "connection-limit", at=(245, 251)))
def own_limit_just_below_the_files(rig):
    """270 open files, and the server closes what is above 250 connections: it never runs out of files."""
    loop(rig, "--max", 250, "--over", "fin", files=270)
    climb(rig, 500, "100/s")
    rig.check("Too many open files" not in rig.output() and "over at 251" in rig.output(), "its own limit, not the files")


@scenario(limited("target", "saturated"))
def lock_and_a_hog_elsewhere(rig):
    """A lock of 20 ms a request, and a stranger computes on the other core without end."""
    rig.start("python3", "-c", HOG, cpus={0}, wait=False)
    loop(rig, "--lock", 0.02, cpus={1})
    rig.throng("run", rig.url, "-c", 60, "--rate", "80/s", "-d", "3s", "--timeout", "8s", *FAST)


@scenario(limited("target", "saturated"))
def lock_with_an_old_line_in_the_log(rig):
    """The log says `too many open files` from the start of the day; today a lock of 20 ms a request is the limit."""
    old = "2024/01/02 03:04:05 accept: too many open files; retrying"
    rig.start("sh", "-c", f"echo '{old}'; exec python3 {rig.server('ho_async.py')} {rig.port} --lock 0.02")
    rig.throng("run", rig.url, "-c", 100, "--rate", "100/s", "-d", "3s", "--timeout", "8s", *FAST)


@scenario(limited("target", "ended", at=(148, 152)))
def exits_as_a_neighbour_runs_out_of_memory(rig):
    """The server ends itself at 151 connections with status 3; at about the same time the kernel kills another process, whose group is full."""
    with Cgroup(rig, "memory", {"memory.limit_in_bytes": 30 << 20}) as group:
        server = loop(rig, "--max", 150, "--over", "exit")
        script = "import time\ntime.sleep(1.2)\nkept = []\nwhile True: kept.append(bytes(1 << 20)); time.sleep(0.001)\n"
        other = rig.start("python3", "-c", script, wait=False)
        group.take(other)
        climb(rig, 300, "100/s")
        rig.check(server.wait(timeout=5) == 3, "it ended itself")
        rig.check(other.wait(timeout=5) == -9, "the neighbour was killed")


@scenario(healthy())
def neighbour_runs_out_of_memory(rig):
    """The kernel kills another process, whose group is full; the server is well."""
    with Cgroup(rig, "memory", {"memory.limit_in_bytes": 30 << 20}) as group:
        loop(rig)
        script = "import time\ntime.sleep(1.5)\nkept = []\nwhile True: kept.append(bytes(1 << 20)); time.sleep(0.001)\n"
        other = rig.start("python3", "-c", script, wait=False)
        group.take(other)
        climb(rig, 100, "100/s")
        rig.check(other.wait(timeout=5) == -9, "the neighbour was killed")


@scenario(limited("target", "wrong-answer"))
def errors_of_a_busy_server(rig):
    """Half of a core is used, and after 150 requests each response is 500: the errors are what fails."""
    loop(rig, "--spin", 0.004, "--bad", "500 Internal Server Error", "--after", 150, cpus={1})
    rig.throng("run", rig.url, "-c", 50, "--rate", "100/s", *HOLD)
    rig.check("bad" in rig.output(), "500 was sent")


@scenario(limited("target", "wrong-answer"))
def errors_after_a_crowded_start(rig):
    """A backlog of 5 overflows in the first instant, and all connect in the end; then a fifth of the responses is 500."""
    loop(rig, "--backlog", 5, "--pause", 0.15, "--every", 0.5, "--bad", "500 Internal Server Error", "--share", 0.2, "--after", 100)
    rig.throng("run", rig.url, "-c", 150, "--ramp", "400/s", "--think", "400ms", "-d", "5s", "--timeout", "5s")
    rig.check("bad" in rig.output(), "500 was sent")
    rig.check(kernel("ListenOverflows") > 0, "the queue overflowed at the start")


@scenario(limited("target", "saturated", "threads"))
def permits_in_a_small_heap(rig):
    """Java in a small heap with collections now and then; four permits of 100 ms are the limit."""
    java(rig, "waits", 4, flags=("-Xms64m", "-Xmx64m", "-XX:+UseSerialGC"))
    rig.throng("run", rig.url, "-c", 80, "--think", "400ms", "-d", "3s", "--timeout", "8s", *FAST)


@scenario(limited("path", "no-syn-ack", "connection-limit", at=(198, 202)))
def firewall_just_below_the_files(rig):
    """The router drops SYNs above 200 connections; the server has 256 open files and never runs out."""
    router, far = rig.behind_router()
    go(rig, "plain", netns=far, files=256)
    rules = "table inet corpus {\n chain forward {\n  type filter hook forward priority 0\n  ct state new tcp dport 8080 ct count over 200 counter drop\n }\n}\n"
    rig.nft(rules, router)
    climb(rig, 400, "120/s")
    rig.check(counted(rig, router) > 0 and "too many" not in rig.output(), "the router's limit, not the files")


@scenario(limited("target", "connection-limit", at=(95, 101)))
def own_limit_with_few_ports(rig):
    """The server resets above 100 connections; this machine has 300 local ports, which suffice."""
    loop(rig, "--max", 100, netns=rig.far())
    rig.sysctl("net.ipv4.ip_local_port_range", "40000 42299")
    rig.sysctl("net.ipv4.ip_local_reserved_ports", "1024-39999,42300-65535")
    climb(rig, 200, "60/s")
    rig.check("over at 101" in rig.output(), "the 101st was reset")


@scenario(limited("target", "saturated", "wrong-answer"))
def nginx_warns_of_files(rig):
    """nginx warns at its start that worker_connections exceed the open files, which is harmless here; its server's lock is the limit."""
    loop(rig, "--lock", 0.03)
    site = f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; }} }}"
    nginx(rig, site, events="worker_connections 100000;", port=8_090, files=20_000)
    rig.port = 8_090
    rig.throng("run", rig.url, "-c", 60, "--rate", "80/s", "-d", "3s", "--timeout", "8s", *FAST)
    rig.check("exceed open file resource limit" in rig.output(), "it warned")


@scenario(healthy())
def warnings_in_the_log(rig):
    """The log says `too many open files` and `out of memory` from long ago; the server is well."""
    old = "2024/01/02 accept: too many open files; retrying\\n2024/01/03 fatal: out of memory\\nWORKER TIMEOUT\\n"
    rig.start("sh", "-c", f"printf '{old}'; exec python3 {rig.server('ho_async.py')} {rig.port}")
    climb(rig, 150, "100/s")


@scenario(healthy())
def files_at_ninety_percent(rig):
    """Go with 256 open files for 230 connections, and threads and memory to spare."""
    go(rig, "plain", files=256)
    climb(rig, 230, "150/s")
    rig.check("too many" not in rig.output(), "the files suffice")


@scenario(limited("target", "closed", "reset-after"))
def resets_at_random_with_low_files(rig):
    """Files nearly used up, and a twentieth of the responses is a reset by the program itself."""
    loop(rig, "--drop", "rst", "--share", 0.05, files=230)
    climb(rig, 200, "100/s")
    rig.check("reset" in rig.output() and "Too many" not in rig.output(), "its own resets, not the files")


@scenario(limited("target", "closed"))
def websockets_closed_at_two_hundred_files(rig):
    """A WebSocket server with files to spare closes each connection with 1008 after two messages."""
    echo(rig, "ws-close:2", files=220)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "-c", 200, "--ping", "500ms", "-d", "3s", "--timeout", "3s")
    rig.check("closed by policy" in rig.output() and "Too many" not in rig.output(), "it closed them, and had files to spare")


@scenario(limited("target", "slow-accept", "accept-queue"))
def slow_accept_beside_a_hog(rig):
    """Accepts twelve connections a second on purpose; a stranger computes on the same core."""
    c(rig, 2_048, 12, 0, cpus={1})
    rig.start("python3", "-c", HOG, cpus={1}, wait=False)
    rig.throng("run", rig.url, "-c", 200, "--ramp", "200/s", "--think", "500ms", *HOLD)


@scenario(limited("target", "cpu", "saturated"))
def target_starved_by_a_neighbour(rig):
    """The server has one core, which eight strangers use as well: a ninth of it is too little."""
    go(rig, "spin", 3, cpus={1})
    for _ in range(8):
        rig.start("python3", "-c", HOG, cpus={1}, wait=False)
    rig.throng("run", rig.url, "-c", 60, "--rate", "100/s", *HOLD, *FAST, cpus={0})
