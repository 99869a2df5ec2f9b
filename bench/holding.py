"""One hold, both ends on this machine, watched from outside: what hold-1m, hold-2m and hold-more have in common."""

import dataclasses
import statistics
import time

import harness

PAIR_BYTES = 8_600  # what a connection costs the kernel, both ends on one machine, and ourselves
SLOWEST_RAMP = 2_000  # connections/s; slower than that is not waited for
SAMPLE_S, HOLD_SAMPLE_S = 0.5, 5
SAMPLE = ("s", "open", "sockets", "run_rss_bytes", "serve_rss_bytes", "run_cpu_s", "serve_cpu_s", "served", "memory_bytes")


@dataclasses.dataclass
class Held:
    """How a hold went."""

    wanted: int
    summary: dict | None  # none if the run ended without one
    status: int  # of `throng run`, negative: killed by that signal
    serve_status: int | None  # the same of `throng serve`, none as long as it runs
    words: str  # the last that the run said
    samples: list
    counters: dict
    kernel_ends: int = 2  # of each connection, how many the kernel of this machine has

    def complete(self):
        """All held, none lost, nothing wrong, and server and kernel agree."""
        if not self.summary or self.serve_status is not None:
            return False
        connections = self.summary["connections"]
        seen = max((sample[1] for sample in self.samples), default=0)
        sockets = max((sample[2] for sample in self.samples), default=0)
        return (
            connections["held"] == self.wanted
            and connections["failed"] == connections["dropped"] == 0
            and not self.summary["faults"]
            and seen >= self.wanted
            and sockets >= self.kernel_ends * self.wanted
        )

    def stopped_by(self):
        """What ended it, in words: the limit that throng names, else its last words, else the signal."""
        if self.serve_status is not None:
            return f"throng serve ended with {self.serve_status} (negative: the signal)"
        if self.status < 0:
            return f"throng run was killed by signal {-self.status}"
        limit = (self.summary or {}).get("limit")
        return f"{limit['side']}, {limit['cause']}: {limit['detail']}" if limit else self.words

    def slope(self, column):
        """User bytes a connection: least squares of resident memory over the server's count, while it grows."""
        rise = self.samples[: 1 + max(range(len(self.samples)), key=lambda i: self.samples[i][1], default=0)]
        points = [(s[1], s[SAMPLE.index(column)]) for s in rise if s[1] >= self.wanted / 10]
        return harness.slope(points) if len(points) >= 3 else None

    def full(self):
        """The samples when all were open."""
        return [sample for sample in self.samples if sample[1] >= self.wanted]

    def bytes_each(self, column):
        """Resident memory over connections, at full load, the program's fixed cost included."""
        at_full = [sample[SAMPLE.index(column)] / self.wanted for sample in self.full()]
        return statistics.median(at_full) if at_full else None

    def per_s(self, column, skip_s=0):
        """By how much a counter rises each second at full load, without the first `skip_s` of it."""
        full, at = self.full(), SAMPLE.index(column)
        kept = [sample for sample in full if sample[0] >= full[0][0] + skip_s]
        return (kept[-1][at] - kept[0][at]) / (kept[-1][0] - kept[0][0]) if len(kept) > 1 else None

    def record(self, bench, **more):
        """Keeps everything of it as a round."""
        state = "complete" if self.complete() else f"not complete, exit {self.status}"
        bench.record(
            f"{self.wanted:,} connections: {state}: {self.words}",
            wanted=self.wanted,
            complete=self.complete(),
            status=self.status,
            serve_status=self.serve_status,
            words=self.words,
            tcp_counters=self.counters,
            summary=self.summary,
            sampled=SAMPLE,
            samples=self.samples,
            **more,
        )


def sample(began, serve, run):
    """One line of SAMPLE; `None` while the server is too busy to say its count, or gone."""
    try:
        stats = serve.stats()
    except OSError:
        return None
    at, sockets = round(time.monotonic() - began, 3), harness.sockets_in_use()
    sizes = [run.rss_bytes(), serve.rss_bytes()]
    spent = [run.cpu_s(), serve.cpu_s()]
    # Without the connection that asks, and its questions.
    others, served = stats["open"] - 1, stats["requests"] - serve.asked
    return [at, others, sockets, *sizes, *spent, served, harness.memory_available_bytes()] if all(sizes) else None


def watch(serve, run, wanted, timeout_s):
    """Samples until the run has ended; rarely while it holds, when only little changes."""
    began, samples = time.monotonic(), []
    while run.alive() and serve.alive():
        if time.monotonic() - began > timeout_s:
            raise harness.Failed(f"still running after {timeout_s:.0f} s: {' '.join(run.words)}")
        found = sample(began, serve, run)
        if found:
            samples.append(found)
        pause_s = HOLD_SAMPLE_S if found and found[1] >= wanted else SAMPLE_S
        harness.wait_until(lambda: not run.alive(), pause_s, 0.05)
    return samples


def hold(bench, wanted, think_s, duration_s, *words):
    """Holds `wanted` connections with a think time of `think_s` (from, to) for `duration_s`, in a fresh namespace."""
    think = ["--think", f"{think_s[0]}s..{think_s[1]}s", "--expect", "status=200,length=$1"]
    return hold_at(bench, wanted, "http", "/?length={rand 1 4096}", duration_s, (), *think, *words)


def hold_at(bench, wanted, scheme, path, duration_s, serve_words, *words):
    """The same with other words for both ends."""
    harness.fresh_namespace()
    serve = harness.Serve(bench, *serve_words)
    target = f"{scheme}://127.0.0.1:{serve.port}{path}"
    run = harness.Run(bench, target, "-c", wanted, "-d", f"{duration_s}s", *words)
    samples = watch(serve, run, wanted, wanted / SLOWEST_RAMP + duration_s + 300)
    if not serve.alive():
        run.stop()
    try:
        summary = run.summary(60)
    except harness.Failed:
        summary = None  # refused before it began, or killed: `words` and `status` say
    serve_status = None if serve.alive() else serve.status
    serve.stop()
    kernel_ends = 1 if "tun" in words else 2
    return Held(wanted, summary, run.status, serve_status, run.last_words(), samples, harness.tcp_counters(), kernel_ends)


def judge(bench, held, think_s, at_least_rate=None, at_most_slope=None, paced=False):
    """The figures of one hold; `paced`: requests are due at fixed times, whenever the one before was answered."""
    counts = (held.summary or {}).get("connections", {})
    bench.limit("connections held, by throng", counts.get("held", 0), at_least=held.wanted)
    bench.limit("connections open, by the server", max((s[1] for s in held.samples), default=0), at_least=held.wanted)
    sockets = max((s[2] for s in held.samples), default=0)
    bench.limit("sockets, by the kernel", sockets, at_least=held.kernel_ends * held.wanted)
    if not held.summary:
        bench.fail(f"no summary: {held.words}")
        return
    faults = sum(fault["count"] for fault in held.summary["faults"])
    latency, requests = held.summary["latency_us"], held.summary["requests"]
    bench.limit("faults, failed, dropped", faults + counts["failed"] + counts["dropped"], at_most=0)
    bench.limit("requests without a response", requests["unanswered"], at_most=0)
    bench.limit("exit status", held.status, at_most=0)
    bench.note("connections/s, over the ramp", counts["open_per_s"])
    if latency["count"]:
        demanded = held.wanted / (sum(think_s) / 2 + (0 if paced else latency["mean"] / 1e6))
        bench.compare("requests/s by throng, against what think time demands", [(requests["per_s"], demanded)])
        # Until everyone has thought once, requests still come in the waves of the ramp.
        settled = held.per_s("served", skip_s=think_s[1])
        rate = "requests/s by the server, once settled"
        if settled is not None:
            bench.compare(rate, [(settled, demanded)], at_least=at_least_rate)
        else:
            bench.limit(rate, None, at_least=at_least_rate)
        bench.note("latency p99, ms", latency["p99"] / 1000)
        bench.note("lag p99, ms", held.summary["lag_us"]["p99"] / 1000)
    for end in ("run", "serve"):
        bench.limit(f"user bytes a connection, {end}: slope", held.slope(f"{end}_rss_bytes"), at_most=at_most_slope)
        bench.note(f"user bytes a connection, {end}: all of its memory", held.bytes_each(f"{end}_rss_bytes"))
        bench.note(f"cores while held, {end}", held.per_s(f"{end}_cpu_s"))
    bench.note(f"verdict: {held.summary['verdict']}", None)
