"""Small services as they are written every day: pools, locks, agents, breakers, caches, journals, and the deploys around them."""

import json
import os
import pathlib
import re
import signal
import time

from recording import healthy, limited, run_quietly, scenario
from tuned.processors import SPIN, cpu_of, was_busy


def node(rig, kind, *values, port=None, **start):
    rig.needs("node")
    return rig.start("node", rig.server("t3_apps.js"), port or rig.port, kind, *values, port=port, **start)


def node_counts(rig, port=None):
    return json.loads(rig.output(f"counts-{port or rig.port}.json"))


def go(rig, *options, around=(), **start):
    return rig.start(*around, rig.built("t3_apps.go"), rig.port, *options, **start)


def jdk(rig, kind, *values, memory="64m", idle=200):
    rig.needs("java")
    options = (f"-Xmx{memory}", "-XX:+UseSerialGC", "-Xlog:gc:gc.log", f"-Dsun.net.httpserver.maxIdleConnections={idle}")
    return rig.start("java", *options, rig.server("t3_Apps.java"), rig.port, kind, *values)


# --- Node ---


@scenario(limited("target", "open-files", at=(255, 293)))
def node_out_of_files(rig):
    """293 open files for 410 connections: libuv accepts those that it has no file for, and closes them."""
    server = node(rig, "plain", files=293)
    rig.later("3.5", "sh", "-c", f"ls /proc/{server.pid}/fd | wc -l > {rig.folder}/files")
    rig.throng("run", rig.url, "-c", "410", "--ramp", "200/s", "-d", "3s", "--think", "1s..2s", "--timeout", "3s")
    rig.check(int(rig.output("files") or 0) >= 291, f"{rig.output('files').strip()} files open")


@scenario(limited("target", "saturated"))
def node_gateway_of_six_sockets(rig):
    """A gateway whose agent has six sockets (maxSockets) to a service of 85 ms: 70/s, and 97/s are due. It waits in its own queue."""
    rig.odd("--delay", "0.085", port=3_001)
    node(rig, "gateway", 6, log="gateway.log")
    rig.throng("run", rig.url, "-c", "290", "--rate", "97/s", "-d", "7s", "--timeout", "8s", "--threshold", "latency.p95 < 400ms")
    rig.check(node_counts(rig)["most_waiting"] > 100, "requests waited for a socket")


@scenario(limited("target", "wrong-answer", says="50[23]"))
def node_opens_its_circuit_breaker(rig):
    """What it depends on fails for a second; its breaker opens, and all get 503 for two seconds; then all is well again."""
    node(rig, "breaker", 2_000)
    rig.throng("run", rig.url, "-c", "64", "--ramp", "130/s", "-d", "7s", "--think", "150ms..450ms", "--timeout", "3s")
    counts = node_counts(rig)
    rig.check(counts["fast_failures"] > 100 and "CLOSED -> OPEN" in rig.output(), f"{counts['fast_failures']} without asking")


@scenario(healthy())
def node_of_nine_requests_a_connection(rig):
    """maxRequestsPerSocket 9: each ninth response announces a close."""
    node(rig, "sockets", 9)
    rig.throng("run", rig.url, "-c", "43", "--ramp", "90/s", "-d", "4s", "--think", "30ms..90ms", "--timeout", "3s")
    rig.check(node_counts(rig)["connections"] > 200, "many connections")


@scenario(limited("target", "idle-cut"))
def node_closes_idle_ones_and_its_log_is_noise(rig):
    """Closes connections that are idle for 1.9 s, and does not announce it; its log is full of a watcher of files that found no room
    (EMFILE), which has nothing to do with it."""
    node(rig, "noise", 1_900)
    rig.throng("run", rig.url, "-c", "55", "--ramp", "40/s", "-d", "5s", "--think", "6s..9s", "--timeout", "3s")
    rig.check(node_counts(rig)["expired"] > 40, "it closed idle ones")


# --- Java ---


@scenario(limited("target", "connection-limit", "closed", at=(195, 215)))
def jdk_keeps_200_idle_connections(rig):
    """The HTTP server of the JDK closes a connection after its response when 200 others are idle (maxIdleConnections); 317 come."""
    jdk(rig, "quick")
    count = f"ss -tnH state established sport = :{rig.port} | wc -l"
    rig.later("5.4", "sh", "-c", f"{count} > {rig.folder}/open")
    rig.throng("run", rig.url, "-c", "317", "--ramp", "300/s", "-d", "5s", "--think", "1s..3s", "--timeout", "3s")
    rig.check(195 <= int(rig.output("open") or 0) <= 215, f"{rig.output('open').strip()} are open")


@scenario(limited("target", "closed", "saturated", "connection-limit"))
def jdk_rejects_what_its_pool_has_no_place_for(rig):
    """Six threads and eleven places to wait, 130 ms for each request: 46/s; 67 arrive in a second, and those
    beyond seventeen are closed."""
    jdk(rig, "pool", 6, 11, 130)
    rig.throng("run", rig.url, "--arrive", "67/s", "-d", "6s", "--timeout", "3s")
    rig.check(rig.output().count("rejected") > 30, "its pool rejected some")


@scenario(limited("target", "saturated"))
def jdk_of_twelve_threads(rig):
    """Twelve threads, 90 ms for each request, and a queue without an end: 133/s, and 171/s are due."""
    jdk(rig, "pool", 12, 1_000_000, 90, idle=5_000)
    rig.throng("run", rig.url, "-c", "370", "--rate", "171/s", "-d", "6s", "--timeout", "8s", "--threshold", "latency.p90 < 350ms")
    rig.check("rejected" not in rig.output(), "none was rejected")


@scenario(healthy())
def jdk_collects_small_garbage_often(rig):
    """A heap of 48 MB, and 400 kB of garbage for each request: a young collection several times a second, of milliseconds each."""
    jdk(rig, "garbage", 400_000, memory="48m")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "5s", "--think", "200ms..600ms", "--timeout", "3s",
               "--threshold", "latency.p99 < 700ms")
    rig.check(rig.output("gc.log").count("Pause Young") > 15, "it collected")


# --- a store that speaks as Redis does ---


STORE = """ramp = "100/s"
duration = "7s"
timeout = "5s"
thresholds = ["clients.latency.p99 < 250ms"]
[[population]]
name = "clients"
target = "tcp://127.0.0.1:{port}"
connections = 36
[[population.step]]
name = "ping"
send = "PING\\r\\n"
expect = {{ body = "+PONG" }}
[[population.step]]
wait = "60ms..140ms"
[[population]]
name = "report"
target = "tcp://127.0.0.1:{port}"
connections = 1
[[population.step]]
wait = "1900ms"
[[population.step]]
name = "keys"
send = "KEYS *\\r\\n"
expect = {{ body = "*0" }}
"""


@scenario(limited("target", "stall", "cpu"), alone=True)
def a_report_asks_for_all_keys(rig):
    """A store of one thread; a report sends KEYS each few seconds, which takes 0.8 s, and all others wait meanwhile."""
    server = rig.start("python3", rig.server("t3_resp.py"), rig.port, "--keys", "0.8")
    rig.throng("run", rig.write("load.toml", STORE.format(port=rig.port)))
    rig.check(rig.counted()["keys"] >= 2, "KEYS was asked for")
    was_busy(rig, server, 1.5)


WRITES = """ramp = "50/s"
duration = "5s"
timeout = "3s"
[[population]]
name = "writers"
target = "tcp://127.0.0.1:{port}"
connections = 26
[[population.step]]
name = "set"
send = "SET key:{{seq}} value\\r\\n"
expect = {{ body = "+OK" }}
[[population.step]]
wait = "90ms..210ms"
"""


@scenario(limited("target", "wrong-answer", "memory"))
def a_store_at_its_maxmemory(rig):
    """A store with room for 391 values and without eviction: `OOM command not allowed` to each write from then on."""
    rig.start("python3", rig.server("t3_resp.py"), rig.port, "--maxmemory", 391 * 500)
    rig.throng("run", rig.write("load.toml", WRITES.format(port=rig.port)))
    counts = rig.counted()
    rig.check(counts["sets"] == 391 and counts["refused"] > 5, f"{counts}")


# --- Go ---


LOCKED = """target = "http://127.0.0.1:{port}/read"
ramp = "100/s"
duration = "6s"
timeout = "5s"
thresholds = ["writers.latency.p90 < 300ms", "readers.latency.p99 < 300ms"]
[[population]]
name = "readers"
connections = 52
think = "150ms..350ms"
[[population]]
name = "writers"
target = "http://127.0.0.1:{port}/write"
method = "POST"
body = "n=1"
connections = 47
think = "200ms..400ms"
"""


@scenario(limited("target", "saturated"))
def go_writes_one_after_the_other(rig):
    """Each write holds a lock for 28 ms: 36/s at most, for 47 writers; readers are served at once, and there is CPU to spare."""
    server = go(rig, "-hold", "28ms")
    rig.throng("run", rig.write("load.toml", LOCKED.format(port=rig.port)))
    rig.check(cpu_of(server) < 2, f"it used {cpu_of(server)} s of CPU")


@scenario(limited("target", "timeout", "stall"))
def go_deadlocks(rig):
    """At request 400 two goroutines take two locks in opposite order: no request gets a response from then on, and nothing is busy."""
    server = go(rig, "-audit", "400")
    rig.throng("run", rig.url, "-c", "58", "--ramp", "120/s", "-d", "6s", "--think", "150ms..450ms", "--timeout", "2s")
    os.kill(server.pid, signal.SIGQUIT)
    server.wait(5)
    rig.check(rig.output().count("sync.Mutex.Lock") + rig.output().count("sync.(*Mutex).Lock") > 20, "goroutines wait for a lock")


@scenario(limited("target", "cpu"), alone=True)
def go_in_short_bursts_under_a_quota(rig):
    """A quota of 15 ms of CPU each 100 ms; each request uses 22 ms in two goroutines, five times a second: less than it may on average, and
    throttled each time. The threshold is 60 ms."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000, cfs_quota_us=15_000)
    go(rig, "-parallel", 2, "-work", "11ms", around=around, cpus={1})
    rig.throng("run", rig.url, "-c", "12", "--rate", "5/s", "-d", "8s", "--timeout", "4s", "--threshold", "latency.p90 < 60ms", cpus={0})
    figures = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    rig.check(int(figures["nr_throttled"]) > 15, f"throttled in {figures['nr_throttled']} of {figures['nr_periods']} periods")


@scenario(limited("target", "memory", "ended"))
def go_is_killed_for_its_cache_and_started_again(rig):
    """A cache without an end in a control group of 44 MiB: the OOM killer ends it, its supervisor starts it again after 0.4 s, and so on."""
    around, _ = rig.cgroup("memory", limit_in_bytes=44 << 20)
    program = rig.built("t3_apps.go")
    loop = f'while :; do "$@"; echo "supervisor: exit status $?, again in 0.4 s"; sleep 0.4; done'
    rig.start("sh", "-c", loop, "sh", *around, program, rig.port, "-keep", 120_000)
    rig.throng("run", rig.url, "-c", "40", "--ramp", "80/s", "-d", "7s", "--think", "100ms..300ms", "--timeout", "3s", "--reconnect", "100ms..500ms")
    rig.check(rig.output().count("exit status 137") >= 2, "it was killed twice")


@scenario(healthy())
def go_grows_within_its_group(rig):
    """A control group of 210 MiB; its cache grows by some megabytes a second, and the load ends before that is a trouble."""
    around, group = rig.cgroup("memory", limit_in_bytes=210 << 20)
    go(rig, "-keep", 50_000, around=around)
    rig.throng("run", rig.url, "-c", "80", "--ramp", "160/s", "-d", "5s", "--think", "300ms..700ms", "--timeout", "3s")
    most = int((group / "memory.max_usage_in_bytes").read_text())
    rig.check(35 << 20 < most < 200 << 20, f"{most >> 20} MiB at most")


@scenario(healthy(may=("ended",)))
def go_hands_over_to_its_successor(rig):
    """A deploy: the next version listens at the same port (SO_REUSEPORT) in second 2, the old one drains and ends in second 2.6; 71
    connections arrive in a second, with a request each, and none fails."""
    program = rig.built("t3_apps.go")
    old = rig.start(program, rig.port, "-reuse-port", log="old.log")
    rig.later(2, "sh", "-c", f"exec {program} {rig.port} -reuse-port > {rig.folder}/new.log 2>&1")
    rig.later("2.6", "kill", "-TERM", old.pid)
    rig.throng("run", rig.url, "--arrive", "71/s", "-d", "5s", "--timeout", "3s")
    rig.check(old.wait(5) == 0 and "served" in rig.output("old.log"), "the old one drained and ended")
    new = rig.programs[-2].pid
    os.kill(new, signal.SIGTERM)
    time.sleep(0.5)
    served = re.search(r"served (\d+)", rig.output("new.log"))
    rig.check(served and int(served[1]) > 100, "the new one served the others")


@scenario(limited("target", "cpu"), alone=True)
def a_nightly_job_beside_a_nice_service(rig):
    """A service with nice 5 and 7 ms of work for each request, 60/s; from second 2.5 on, two programs spin for 3 s on its processor, and
    leave it a seventh. The threshold is 150 ms."""
    server = rig.start("nice", "-n", "5", rig.built("t3_apps.go"), rig.port, "-work", "7ms", cpus={1})
    for _ in range(2):
        rig.later("2.5", "taskset", "-c", "1", "timeout", "3", "python3", "-c", SPIN)
    rig.throng("run", rig.url, "-c", "90", "--rate", "60/s", "-d", "7s", "--timeout", "6s", "--threshold", "latency.p90 < 150ms", cpus={0})
    waited = sum(int(file.read_text().split()[1]) for file in pathlib.Path(f"/proc/{server.pid}/task").glob("*/schedstat")) / 1e9
    rig.check(waited > 2, f"its threads waited {waited:.1f} s for the processor")


# --- journals ---


@scenario(limited("target", "stall"))
def rotates_its_journal_under_a_lock(rig):
    """Each 2.6 s its journal goes to a slow archive, for 1.2 s, and each request waits for the lock of the journal; the threshold is 350 ms."""
    rig.start("python3", rig.server("t3_journal.py"), rig.port, rig.folder / "app.journal", "--rotate-each", "2.6", "--rotate-for", "1.2")
    rig.throng("run", rig.url, "-c", "48", "--ramp", "100/s", "-d", "7s", "--think", "100ms..300ms", "--timeout", "5s",
               "--threshold", "latency.p99 < 350ms")
    rig.check(rig.output().count("rotated in 1.2") >= 1, "it was rotated")


@scenario(limited("target", "wrong-answer", says="500|No space left"))
def its_journal_has_no_space_left(rig):
    """A file system of 96 kB is full in the middle: each request that cannot be written to the journal is 500."""
    disk = rig.folder / "disk"
    disk.mkdir()
    run_quietly("mount", "-t", "tmpfs", "-o", "size=96k", "none", str(disk))
    rig.start("python3", rig.server("t3_journal.py"), rig.port, disk / "app.journal")
    rig.throng("run", rig.url, "-c", "47", "--ramp", "90/s", "-d", "4s", "--think", "150ms..350ms", "--timeout", "3s")
    rig.check("No space left on device" in rig.output(), "its log says so")
    run_quietly("umount", "-l", str(disk))
