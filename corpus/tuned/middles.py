"""What begins in the middle of a run, or ends there: stops of the target and of throng, thresholds that no load can meet, pauses of a JVM."""

import time

from recording import FOLDER, healthy, limited, scenario, unknowable
from tuned.paths import acted, routed, rules_later
from tuned.processors import SPIN

QUICK = ("--think", "100ms..300ms", "--timeout", "3s")
ACCEPTS = FOLDER.parent / "crates/cli/tests/interop/java/Accepts.java"


# --- stops ---


@scenario(limited("target", "stall", certainty="seen", at=(20, 20), detail=r"was stopped \(process .*state T"))
def stopped_for_2_s_and_its_state_is_seen(rig):
    """SIGSTOP in second 2, SIGCONT in second 4."""
    server = rig.odd()
    rig.later(2, "kill", "-STOP", server.pid)
    rig.later(4, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", "20", "--think", "20ms..60ms", "-d", "6s", "--threshold", "latency.max < 300ms")


@scenario(healthy(reason="no connection received a response"))
def stopped_for_2_s_without_a_threshold(rig):
    """The same, and nothing is asked of latency: a pass, whose silence is said."""
    server = rig.odd()
    rig.later(2, "kill", "-STOP", server.pid)
    rig.later(4, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", "20", "--think", "20ms..60ms", "-d", "6s", "--timeout", "8s")


def with_a_stop_of_throng(rig, *options):
    """throng itself is stopped in second 1.5 for 0.6 s; the server runs, and nothing fails."""
    rig.odd("--delay", "0.01")
    each = 'for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" = "{}" ] && kill -{} ${{p#/proc/}} && echo {}; done'
    stop, go = (each.format(rig.binary, name, word) for name, word in (("STOP", "stopped"), ("CONT", "continued")))
    script = rig.write("stop.sh", f"{stop}\nsleep 0.6\n{go}\n")
    rig.later("1.5", "sh", "-c", f"sh {script} > {rig.folder}/stop.log")
    rig.throng("run", rig.url, "-c", "8", "--ramp", "0s", "-d", "3s", *options)
    rig.check("continued" in rig.output("stop.log"), "throng was stopped and continued")


@scenario(limited("host", "stall", "cpu", verdicts=("invalid",)), alone=True)
def throng_is_stopped_and_the_maximum_is_judged(rig):
    """throng is stopped for 0.6 s; the threshold is on the longest latency: there is no result."""
    with_a_stop_of_throng(rig, "--threshold", "latency.max < 100ms")


@scenario(limited("host", "stall", "cpu", verdicts=("invalid",)), alone=True)
def throng_is_stopped_at_a_rate(rig):
    """throng is stopped for 0.6 s, and for one request in a hundred that was long: there is no result."""
    with_a_stop_of_throng(rig, "--rate", "200/s", "--threshold", "latency.p99 < 100ms")


@scenario(limited("host", "cpu", verdicts=("invalid", "fail"), detail=r"the same processors \(0\)|throng was "), alone=True)
def both_ends_on_one_processor(rig):
    """Load and server share processor 0, and nothing else runs."""
    rig.odd(cpus={0})
    rig.throng("run", rig.url, "-c", "50", "-d", "3s", "--threshold", "latency.p50 < 1us", cpus={0})


@scenario(limited("host", "cpu", verdicts=("invalid",), reason="throng was "), alone=True)
def throng_has_a_tenth_of_a_processor(rig):
    """throng shares processor 0 with nine programs that spin, and gets a tenth of it; the server has the other one."""
    rig.odd(cpus={1})
    for _ in range(9):
        rig.start("python3", "-c", SPIN, cpus={0}, wait=False)
    time.sleep(0.3)
    rig.throng("run", rig.url, "-c", "50", "--threads", "1", "-d", "3s", "--threshold", "latency.p99 < 10s", cpus={0})


@scenario(limited("host", "cpu", "stall", verdicts=("invalid", "fail"), fix="more processors|processor"), alone=True)
def handshakes_without_a_processor(rig):
    """The same with a fortieth, and full TLS handshakes, 400 connections a second: our own cryptography is not the target's limit."""
    rig.start(rig.binary, "serve", "--listen", f"127.0.0.1:{rig.port}", "--tls", "--threads", 1, cpus={1})
    for _ in range(39):
        rig.start("python3", "-c", SPIN, cpus={0}, wait=False)
    time.sleep(0.3)
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "--no-resume", "--threads", "1", "--arrive", "400/s", "-d", "3s",
               "--threshold", "tls.p99 < 10s", cpus={0})


# --- thresholds ---


@scenario(limited("target",
                  fix="^search the highest load that meets it .throng find http://127.0.0.1:8080/ --threshold 'latency.p99 < 1ns'., or profile", never="strace"))
def a_threshold_below_any_latency(rig):
    """1 ns for the slowest in a hundred: no cause, and a load that meets it is to be searched."""
    rig.odd()
    rig.throng("run", rig.url, "-c", "4", "-d", "2s", "--think", "5ms", "--threshold", "latency.p99 < 1ns", "--max-lag", "10s")


@scenario(limited("target", reason="all requests at 100/s completed; raise --rate to 1100/s", never="throng find"))
def a_threshold_above_the_rate(rig):
    """More than 1,000 responses a second are asked for, and 100 requests are due: the load is at fault."""
    rig.odd()
    rig.throng("run", rig.url, "-c", "4", "-d", "2s", "--rate", "100/s", "--threshold", "per_s > 1000", "--max-lag", "10s")


# --- from some moment on ---


@scenario(limited("host", "too-few-connections", fix="use -c (3[5-9]|4[0-9]) or more"))
def too_few_connections_from_second_4_on(rig):
    """From second 4 on each response takes 1 s, before 20 ms: 40/s that are due need 40 connections then, of which there are 10."""
    rig.odd("--delay", "0.02", "--then", "delay", "--at", 4, "--amount", 1)
    rig.throng("run", rig.url, "-c", "10", "--rate", "40/s", "-d", "9s", "--timeout", "8s", "--threshold", "latency.p99 < 3s")
    rig.check(rig.counted()["odd"] > 30, "slow ones")


@scenario(unknowable(may=("closed", "refused"), reason="second|[78](\\.\\d)? s|reset"))
def router_resets_all_from_second_8_on(rig):
    """From second 8 on the router resets all, as the server could: not one in five of all, but all from a moment on."""
    router, _, _ = routed(rig)
    rules_later(rig, router, 8, "meta l4proto tcp counter reject with tcp reset")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "10s", *QUICK, "--reconnect", "100ms..500ms")
    acted(rig, router)


@scenario(limited("target", "connection-limit", at=(145, 155)))
def a_limit_after_six_seconds(rig):
    """150 connections at most, met in second 7 of a slow ramp: all before was in order."""
    rig.odd("--most", 150)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "25/s", "-d", "2s", *QUICK)
    rig.check(rig.counted()["turned_away"] > 0, "turned away")


@scenario(limited("target", "closed", sentence=r"\(1 in [456] "))
def one_in_five_is_reset_from_second_5_on(rig):
    """From second 5 on one request in five is reset; before, none."""
    rig.odd("--then", "reset", "--every", 5, "--at", 5)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "8s", *QUICK, "--reconnect", "100ms..500ms")
    rig.check(rig.counted()["odd"] > 10, "resets")


@scenario(limited("target", "timeout"))
def one_in_ten_hangs_from_second_4_on(rig):
    """From second 4 on one request in ten gets no response."""
    rig.odd("--then", "hang", "--every", 10, "--at", 4)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "7s", *QUICK)
    rig.check(rig.counted()["odd"] > 10, "silent ones")


@scenario(limited("target", "cpu", says="quota|limit|throttl"), alone=True)
def a_quota_that_is_set_in_the_middle(rig):
    """A control group gets a quota of a fifth of a core in second 3; each request takes 5 ms of CPU, 100/s are due."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000)
    rig.odd_in(around, "--work", "0.005")
    rig.later(3, "sh", "-c", f"echo 20000 > {group}/cpu.cfs_quota_us")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "8s", "--think", "1s", "--timeout", "2s")
    rig.check(int((group / "cpu.stat").read_text().split("nr_throttled")[1].split()[0]) > 20, "throttled")


@scenario(limited("target", "memory", sentence="OOM|memory", never="its host was"))
def memory_of_its_group_by_requests(rig):
    """A control group of 60 MiB; each connection keeps 0.8 MB: the OOM killer ends it, and its host has gigabytes left."""
    around, _ = rig.cgroup("memory", limit_in_bytes=60 << 20)
    server = rig.odd_in(around, "--bytes", "800000")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "50/s", "-d", "2s", *QUICK)
    rig.check(server.poll() == -9, "it was killed")


# --- a JVM ---


def java(rig, source, *options, heap, more=()):
    """A server in Java, with standard error in a plain file, as a service has that logs to one."""
    rig.needs("java", "javac")
    rig.check(rig.start("javac", "-d", rig.folder, source, wait=False).wait(60) == 0, "compiled")
    script = 'exec java "$@" 2> error.log'
    words = ("-XX:+UseSerialGC", *more, f"-Xmx{heap}", "-cp", rig.folder, source.stem, *options)
    rig.start("sh", "-c", script, "sh", *words, wait=False, log="out.log")
    for _ in range(600):
        if "listening on" in rig.output("out.log"):
            rig.port = int(rig.output("out.log").split("listening on 127.0.0.1:")[1].split()[0])
            return
        time.sleep(0.1)
    rig.check(False, f"it listens: {rig.output('error.log')}")


SIMPLE = ("-c", "200", "--ramp", "100/s", "--think", "300ms", "-d", "1s", "--timeout", "2s")


@scenario(limited("target", "heap", certainty="seen", at=(20, 64), fix="-Xmx",
                  detail='its log: Exception in thread "my-acceptor" java.lang.OutOfMemoryError'))
def java_acceptor_finds_no_heap(rig):
    """256 KiB of 16 MiB for each connection: the accept thread dies of an OutOfMemoryError, and the process lives on."""
    java(rig, ACCEPTS, "hoard", 262_144, heap="16m", more=("-XX:TieredStopAtLevel=1",))
    rig.throng("run", rig.url, *SIMPLE)
    rig.check("OutOfMemoryError" in rig.output("error.log"), "in its log")


@scenario(limited("target", "thread", certainty="seen", at=(55, 60),
                  detail='(?s)thread "my-acceptor" of process .*connections in its accept queue are not accepted.*IllegalStateException: no place for'))
def java_acceptor_dies(rig):
    """The accept thread dies of an exception at the 60th connection; the process lives on."""
    java(rig, ACCEPTS, "throw", 60, heap="64m", more=("-XX:TieredStopAtLevel=1",))
    rig.throng("run", rig.url, *SIMPLE)
    rig.check("IllegalStateException" in rig.output("error.log"), "in its log")


def collecting(rig, millis, most):
    java(rig, rig.server("Pauses.java"), millis, heap="3g")
    rig.later(3, "python3", "-c", f'import urllib.request as r; r.urlopen("{rig.url}collect")')
    rig.throng("run", rig.url, "-c", "20", "--think", "20ms", "-d", "5s", "--timeout", "10s", "--threshold", f"latency.max < {most}")


@scenario(limited("target", "stall", sentence=" ms, while the target collected garbage$"), alone=True)
def java_collects_for_a_quarter_of_a_second(rig):
    """One full collection of 250 ms; the threshold is 125 ms."""
    collecting(rig, 250, "125ms")


@scenario(limited("target", "stall", detail="the target was collecting garbage"), alone=True)
def java_collects_for_a_second(rig):
    """One full collection of 1 s; the threshold is 500 ms."""
    collecting(rig, 1_000, "500ms")
