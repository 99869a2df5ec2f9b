"""Servers that are short of CPU, and those that only look as if they were."""

import pathlib
import time

from recording import healthy, limited, scenario

SPIN = "import time\nwhile True: time.thread_time()"


def cpu_of(program):
    """Seconds of CPU that it has used."""
    fields = pathlib.Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def was_busy(rig, program, least_s):
    rig.check(cpu_of(program) >= least_s, f"it used {cpu_of(program)} s of CPU, and not {least_s} s")


@scenario(limited("target", "cpu", at=(20, 20), detail="busiest thread", fix="processors", reason="threshold latency.p50 < 20ms failed"), alone=True)
def closed_loop_of_5_ms_of_work(rig):
    """5 ms of CPU for each request in one thread, 20 connections in a closed loop; the threshold is 20 ms."""
    server = rig.odd("--work", "0.005")
    rig.throng("run", rig.url, "-c", "20", "-d", "4s", "--timeout", "5s", "--threshold", "latency.p50 < 20ms", "--max-lag", "200ms")
    was_busy(rig, server, 3)


@scenario(limited("target", "cpu"), alone=True)
def one_core_is_full_and_the_queue_follows(rig):
    """20 ms of CPU for each request in one thread, 100 connections a second arrive, a backlog of 32: the queue overflows for lack of CPU."""
    server = rig.odd("--work", "0.02", "--backlog", 32)
    rig.throng("run", rig.url, "--arrive", "100/s", "-d", "6s", "--timeout", "3s")
    was_busy(rig, server, 4)


@scenario(limited("target", "cpu"), alone=True)
def one_core_is_full_in_a_ramp(rig):
    """10 ms of CPU for each request in one thread; connections come at 100/s and send each second: slower and slower."""
    server = rig.odd("--work", "0.01", "--backlog", 64)
    rig.throng("run", rig.url, "-c", "400", "--ramp", "100/s", "-d", "4s", "--think", "1s", "--timeout", "2s")
    was_busy(rig, server, 4)


@scenario(limited("target", "cpu"), alone=True)
def one_core_is_full_at_a_rate(rig):
    """10 ms of CPU for each request; 200/s are due on 100 connections."""
    server = rig.odd("--work", "0.01")
    rig.throng("run", rig.url, "-c", "100", "--rate", "200/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p99 < 300ms")
    was_busy(rig, server, 4)


@scenario(limited("target", "cpu"), alone=True)
def work_from_second_3_on(rig):
    """From second 3 on each request takes 20 ms of CPU; before, none."""
    server = rig.odd("--then", "work", "--at", 3, "--amount", "0.02")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "7s", "--think", "100ms..300ms", "--timeout", "5s",
               "--threshold", "latency.p99 < 200ms")
    was_busy(rig, server, 3)


@scenario(limited("target", "cpu"), alone=True)
def go_on_one_core(rig):
    """A Go service with GOMAXPROCS=1, 10 ms of CPU for each request; 60 connections in a closed loop."""
    server = rig.start(rig.built("service.go"), rig.port, "-work", "10ms", env={"GOMAXPROCS": "1"})
    rig.throng("run", rig.url, "-c", "60", "-d", "4s", "--timeout", "5s", "--threshold", "latency.p95 < 100ms", "--max-lag", "200ms")
    was_busy(rig, server, 3)


@scenario(limited("target", "cpu"), alone=True)
def go_on_one_core_with_a_limit_of_connections(rig):
    """The same with 60 connections accepted at a time: 100 come, and they wait because CPU is short."""
    server = rig.start(rig.built("service.go"), rig.port, "-work", "10ms", "-most", "60", env={"GOMAXPROCS": "1"})
    rig.throng("run", rig.url, "--arrive", "200/s", "-d", "5s", "--timeout", "2s", "--max-lag", "200ms")
    was_busy(rig, server, 3)


@scenario(healthy(), alone=True)
def go_with_work_enough_for_half_a_core(rig):
    """5 ms of CPU for each request, 80/s."""
    server = rig.start(rig.built("service.go"), rig.port, "-work", "5ms")
    rig.throng("run", rig.url, "-c", "80", "--rate", "80/s", "-d", "4s", "--timeout", "4s")
    was_busy(rig, server, 1)


@scenario(limited("target", "timeout"), alone=True)
def a_stuck_request(rig):
    """One of thousands of requests spins for ever in one of four threads; a processor is left, and the others are served in milliseconds."""
    server = rig.start(rig.built("service.go"), rig.port, "-stuck", "300", env={"GOMAXPROCS": "4"})
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    was_busy(rig, server, 2)
    rig.check(rig.summary["latency_us"]["p95"] < 50_000, "the others were served in milliseconds")


@scenario(limited("target", "timeout", "stall", "closed"), alone=True)
def busy_only_after_its_faults(rig):
    """One request in ten gets no response in seconds 0.5 to 1.5; in seconds 5 to 6 it uses a core, and serves all the same."""
    rig.odd("--then", "hang", "--every", 10, "--at", "0.5", "--for", "1", "--spin-at", 5, "--spin-for", 1)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "2s")
    rig.check(rig.counted()["odd"] > 0, "requests without a response")


@scenario(limited("target", "closed"), alone=True)
def closes_and_is_busy_later(rig):
    """Closes one request in ten in seconds 0.5 to 1.5; in seconds 3 to 5 it uses a core."""
    rig.odd("--then", "close", "--every", 10, "--at", "0.5", "--for", "1", "--spin-at", 3, "--spin-for", 2)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "3s")
    rig.check(rig.counted()["odd"] > 0, "closes")


@scenario(healthy(), alone=True)
def busy_for_a_second_and_nothing_fails(rig):
    """In seconds 2 to 3 it uses a core, and responds within 30 ms all the same."""
    rig.odd("--spin-at", 2, "--spin-for", 1)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "200/s", "-d", "4s", "--think", "300ms..700ms", "--timeout", "5s")


@scenario(healthy(), alone=True)
def half_of_a_core(rig):
    """5 ms of CPU for each request, 60 connections that send each second."""
    rig.odd("--work", "0.004")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "4s", "--think", "1s", "--timeout", "5s")


@scenario(limited("target", "cpu", says="quota|cpu|limit|processor", never="more processors"), alone=True)
def a_quota_of_a_fifth_of_a_core(rig):
    """A control group with 20 ms of CPU each 100 ms, and 5 ms for each request: 100/s are due."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000, cfs_quota_us=20_000)
    rig.odd_in(around, "--work", "0.005")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "5s", "--think", "1s", "--timeout", "2s")
    throttled = int((group / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])
    rig.check(throttled > 20, f"throttled {throttled} times")


@scenario(healthy(), alone=True)
def a_quota_that_suffices(rig):
    """A control group with 60 ms of CPU each 100 ms, and next to none used."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000, cfs_quota_us=60_000)
    rig.odd_in(around)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "3s", "--think", "1s", "--timeout", "4s")


@scenario(limited("target", "cpu"), alone=True)
def a_neighbour_takes_its_processor(rig):
    """The server shares processor 1 with four programs that spin, and gets a fifth of it: too little."""
    for _ in range(4):
        rig.start("nice", "-n", "-5", "python3", "-c", SPIN, cpus={1}, wait=False)
    rig.odd("--work", "0.01", cpus={1})
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "5s", "--think", "1s", "--timeout", "2s", cpus={0})


@scenario(limited("host", "cpu", "stall", verdicts=("invalid", "fail")), alone=True)
def throng_has_no_processor(rig):
    """throng shares processor 0 with 29 programs that spin, and gets a thirtieth of it; the server has the other one."""
    rig.odd(cpus={1})
    for _ in range(29):
        rig.start("python3", "-c", SPIN, cpus={0}, wait=False)
    time.sleep(0.3)
    rig.throng("run", rig.url, "-c", "200", "--threads", "1", "-d", "4s", "--rate", "2000/s", "--threshold", "latency.p99 < 5ms", cpus={0})


@scenario(limited("host", "stall", "cpu", verdicts=("invalid", "fail")), alone=True)
def throng_is_stopped_for_a_second(rig):
    """throng itself is stopped in second 2, for 1.5 s; the server runs."""
    rig.odd()
    each = 'for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" = "$0" ] && kill -{} ${{p#/proc/}} && echo {}; done'
    script = rig.write("stop.sh", f"{each.format('STOP', 'stopped')}\nsleep 1.5\n{each.format('CONT', 'continued')}\n".replace('"$0"', f'"{rig.binary}"'))
    rig.later(2, "sh", "-c", f"sh {script} > {rig.folder}/stop.log")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "5s", "--think", "50ms..150ms", "--timeout", "1s",
               "--threshold", "latency.p99 < 200ms")
    rig.check("continued" in rig.output("stop.log"), "throng was stopped and continued")


@scenario(limited("target", "cpu"), alone=True)
def node_blocks_its_loop(rig):
    """Node with 15 ms of synchronous work for each request; 60 connections in a closed loop."""
    rig.needs("node")
    server = rig.start("node", rig.server("work.js"), rig.port, "15")
    rig.throng("run", rig.url, "-c", "60", "-d", "4s", "--timeout", "5s", "--threshold", "latency.p95 < 100ms", "--max-lag", "200ms")
    was_busy(rig, server, 3)


@scenario(limited("target", "cpu", "saturated"), alone=True)
def arrivals_slower_and_slower(rig):
    """20 ms of CPU for each request in one thread, 60 arrive in a second: a queue that grows, without a fault."""
    server = rig.odd("--work", "0.025")
    rig.throng("run", rig.url, "--arrive", "60/s", "-d", "6s", "--timeout", "8s", "--threshold", "latency.p95 < 300ms")
    was_busy(rig, server, 4)
