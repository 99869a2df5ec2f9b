"""A closed loop of one client, alone against one nginx worker or one thread of `throng serve`: the server on core 1, the client on core 0.

Requests/s and the client's CPU are taken from outside, over the same window for every client, when all connections are open: the server's
own count of requests, and /proc."""

import re
import time

import harness

CLIENT_CPU, SERVER_CPU = 0, 1
SETTLE_S = 0.5
SPARE_S = 2  # dialling, settling, and the end


class Client:
    """A client of the loop: its name, how it is started, and what it says of itself at its end."""

    def __init__(self, name, start, claimed):
        """`start(bench, url, connections, seconds)` gives a process; `claimed(process)` answers and requests/s."""
        self.name, self.start, self.claimed = name, start, claimed


def throng(*more):
    """throng with these words more."""

    def start(bench, url, connections, seconds):
        words = ["-c", connections, "--threads", "1", "--ramp", "100k/s", "-d", f"{seconds}s", *more]
        return harness.Run(bench, url, *words, cpu=CLIENT_CPU)

    def claimed(run):
        requests = run.passed(60)["requests"]
        return requests["answered"], requests["per_s"]

    return Client("throng", start, claimed)


def nginx(listen=""):
    """One worker of nginx, with these words in its `listen`."""
    return lambda bench: harness.Nginx(bench, cpu=SERVER_CPU, listen=listen)


def serve(*words):
    """One thread of `throng serve`, with these words more."""
    return lambda bench: harness.Serve(bench, "--threads", "1", *words, cpu=SERVER_CPU)


def one(bench, client, connections, window_s, scheme="http", server=nginx(), **about):
    """The client against a fresh server in a fresh namespace; requests/s and CPU seconds per request. `about`: what else the record says."""
    harness.fresh_namespace()
    busy = harness.busy_before()
    target = server(bench)
    process = client.start(bench, f"{scheme}://127.0.0.1:{target.port}/", connections, window_s + SPARE_S)
    if not harness.wait_until(lambda: target.open() >= connections or not process.alive(), SPARE_S, 0.02):
        raise harness.Failed(f"{client.name}: not all open after {SPARE_S} s, wanted {connections}: {target.open()}")
    time.sleep(SETTLE_S)
    served_0, cpu_0, server_0, at_0 = target.served(), process.cpu_s(), target.cpu_s(), time.monotonic()
    time.sleep(window_s)
    served_1, cpu_1, server_1, at_1 = target.served(), process.cpu_s(), target.cpu_s(), time.monotonic()
    if not process.alive():
        raise harness.Failed(f"{client.name} ended inside the window: {process.last_words()}")
    answered, claimed_rate = client.claimed(process)
    served = target.served()
    target.stop()
    requests = served_1 - served_0
    rate, cpu, server_cpu = requests / (at_1 - at_0), (cpu_1 - cpu_0) / requests, (server_1 - server_0) / requests
    words = {"connections": connections, **about}.items()
    named = ", ".join(f"{name} {value}" if isinstance(value, str) else f"{value:,} {name}" for name, value in words)
    bench.record(
        f"{client.name:6} {named:24}  {rate:9,.0f}/s  {cpu * 1e6:5.2f} us",
        side=client.name,
        connections=connections,
        busy_before=busy,
        rate=rate,
        cpu_s=cpu,
        server_cpu_s=server_cpu,
        claimed_rate=claimed_rate,
        whole_cpu_s=process.used_cpu_s() / answered,
        answered=answered,
        served=served,
        summary=process.summary(0) if isinstance(process, harness.Run) else None,
        **about,
    )
    both = (cpu + server_cpu) * 1e6
    whole = process.used_cpu_s() / answered * 1e6
    return {"rate": rate, "cpu": cpu * 1e6, "both": both, "whole": whole, "uncounted": served - answered}


def judge(bench, what, pairs, under_way, at_least_rate, at_most_cpu, at_most_both=None):
    """The figures of throng and of another client, a pair for each round; `under_way`: requests at the end, at most."""

    def both(figure):
        return [(ours[figure], theirs[figure]) for ours, theirs in pairs]

    bench.compare(f"{what}: requests/s", both("rate"), at_least=at_least_rate)
    bench.compare(f"{what}: CPU us a request", both("cpu"), at_most=at_most_cpu)
    bench.compare(f"{what}: the same, whole run", both("whole"))
    bench.compare(f"{what}: CPU us a request, both ends", both("both"), at_most=at_most_both)
    # What the server served and we did not count can only be what was under way at the end.
    uncounted = [ours for ours, _ in both("uncounted")]
    worst = max(uncounted, key=lambda n: n if n >= 0 else float("inf"))
    bench.limit(f"{what}: served but not counted", abs(worst), at_most=under_way if worst >= 0 else 0)


def against_wrk(bench, sizes, at_least_rate, scheme="http", server=nginx(), words=()):
    """throng with these words beside wrk; `sizes`: connections, and CPU per request at most."""
    window_s = 1 if bench.quick else 4
    sizes = {size: cpu for size, cpu in sizes.items() if size <= bench.connections}
    if not sizes:
        raise harness.Failed(f"--connections: below the smallest size: {bench.connections}")
    ours, found = throng(*words), {size: [] for size in sizes}
    for turn in range(bench.rounds):
        for size in sizes:
            sides = (ours, WRK) if turn % 2 else (WRK, ours)
            figures = {side: one(bench, side, size, window_s, scheme, server) for side in sides}
            found[size].append((figures[ours], figures[WRK]))
    for size, at_most in sizes.items():
        judge(bench, f"{size:6,} connections", found[size], size, at_least_rate, at_most)


def _start_wrk(_bench, url, connections, seconds):
    return harness.Process(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url], cpu=CLIENT_CPU)


def _claimed_by_wrk(wrk):
    done = wrk.finish(60)
    answered = re.search(r"(\d+) requests in", done.output())
    rate = re.search(r"Requests/sec:\s*([\d.]+)", done.output())
    if done.status != 0 or not answered or not rate:
        raise harness.Failed(f"wrk ended with {done.status}: {done.last_words()}")
    return int(answered[1]), float(rate[1])


WRK = Client("wrk", _start_wrk, _claimed_by_wrk)
