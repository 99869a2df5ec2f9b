"""All outside data of one run: the wire, the server's log, the kernel's counters; the input of the rules."""

import os
import resource

import kernel
import models
from outside import EDGE, SLICE, Lag, Scope, Times, first_dials, schedule
from compare import Setting

TICKS = 2.0 / kernel.TICK
# The kernel counts resident pages per processor and adds them up in batches (percpu_counter), for each of three kinds.
BATCH = 3 * max(32, 2 * os.cpu_count()) * os.cpu_count() * kernel.PAGE


class Probe:
    """The probe's requests; every second one on a fresh connection."""

    def __init__(self, connections, rate, begin, end):
        self.connections, self.rate, self.begin, self.end = connections, rate, begin, end
        self.exchanges = sorted((x for c in connections for x in c.exchanges), key=lambda x: x.asked)
        self.fresh = [x for x in self.exchanges if len(x.connection.exchanges) == 1 and x.asked - x.connection.syn < 0.1]
        self.kept = [x for x in self.exchanges if x not in self.fresh]
        self.begun = lambda x: x.connection.syn if x in self.fresh else x.asked
        # Its slots, like those of an open loop.
        self.exchanges.sort(key=self.begun)
        base = min(self.begun(x) - at / rate for at, x in enumerate(self.exchanges))
        for at, x in enumerate(self.exchanges):
            x.due = base + at / rate

    def count(self, key):
        answered = sum(x.answered is not None for x in self.exchanges)
        return {"sent": len(self.exchanges), "answered": answered, "failed": 0, "rate": self.rate,
                "unanswered": len(self.exchanges) - answered}[key]

    def times(self, name):
        if name == "connect_us":
            return [c.synack - c.exchanges[0].due if c.exchanges and c.exchanges[0] in self.fresh else c.synack - c.syn
                    for c in self.connections]
        chosen = {"latency_us": self.exchanges, "kept_us": self.kept, "fresh_us": self.fresh,
                  "held_us": [x for x in self.exchanges if self.begin <= x.due < self.end]}[name]
        return [x.answered - x.due for x in chosen if x.answered]

    def outside(self, name):
        times = Times(self.times(name), [self.begun(x) - x.due for x in self.exchanges], exact=True)
        # The first connection is kept from its first request on, and one with a single request looks fresh.
        times.edges = {"kept_us": 4, "fresh_us": 4, "held_us": 1}.get(name, 0)
        return times

    def figure(self, name, key):
        import rules_summary
        if key.startswith("censored") or key == "stalled":
            return None
        times = self.outside(name)
        return rules_summary.figure(lambda c: times, key)(None)

    def point(self, name):
        times = [t * 1e6 for key in ("latency_us", "connect_us") for t in self.times(key)]
        if name.endswith("connections"):
            return 0, 16, 32
        return 0.0, max(times), max(times) + 5000.0


class Context:
    """`summary` is only used for settings of the run, and for the length of its windows, which are audited separately."""

    def __init__(self, model, wire, log, looks, run, summary):
        self.model, self.wire, self.log, self.looks, self.run, self.summary = model, wire, log, looks, run, summary
        self.server_pid = run["server"]
        # Over a device throng's ends are no sockets.
        self.ends_in_kernel = 1 if run["io"] == "tun" else 2
        # A shard resets what is open as soon as the load has ended; the kernel closes sockets with their process, tens of milliseconds later.
        Scope.grace = EDGE if self.ends_in_kernel == 2 else 0.0
        load = [c for c in wire.connections if c.port in self.ports(model)]
        probing = [c for c in load if self.is_probe(c)]
        load = [c for c in load if c not in probing]
        Times.stall = summary["generator"]["stall_us"] / 1e6 if summary["generator"]["stall_us"] >= 10_000 else 0.0
        self.asked = sorted(x.asked for c in load for x in c.exchanges)
        parts = model.populations or {"main": model}
        of = {name: [c for c in load if not model.populations or c.port == part.port] for name, part in parts.items()}
        new = {name: first_dials(of[name], part, part.connections) for name, part in parts.items()}
        # When the first dial was due: it may have been late.
        self.first_syn = min(c.due for first in new.values() for c in first)
        self.end = self.load_end(load)
        self.scopes = {}
        for name, part in parts.items():
            mine, first = of[name], new[name]
            span = summary["populations"][name]["duration_s"]
            schedule(mine, first, part, self.end - span)
            self.scopes[name] = Scope(mine, part, self.end - span, self.end, part.connections, first)
        first = [c for scope in self.scopes.values() for c in scope.first]
        self.begin = self.end - summary["duration_s"]
        # A thread that wakes up may wait for one time slice of each runnable program.
        running = max(one["running"] for one in looks.all)
        Times.slice = SLICE * max(1.0, running / os.cpu_count())
        Times.turnarounds = sorted(x.asked - x.due for s in self.scopes.values() for x in s.exchanges)
        self.whole = Scope(load, model, self.begin, self.end, sum(s.wanted for s in self.scopes.values()), first)
        self.destinations = {}
        if model.populations:
            parts = {f"127.0.0.1:{scope.model.port}": scope for scope in self.scopes.values()}
            self.destinations = parts if len(parts) > 1 else {}
        if len(model.destinations) > 1:
            for host in model.destinations:
                mine = [c for c in load if c.host == host]
                first = [c for c in self.whole.first if c.host == host]
                self.destinations[f"{host}:{model.port}"] = Scope(mine, model, self.begin, self.end, len(first), first)
        self.probe = Probe(probing, 20.0, self.begin, self.end) if model.probe else None
        self.steps = bool(model.scenario)

    def ports(self, model):
        return {part.port for part in model.populations.values()} or {model.port}

    def is_probe(self, c):
        if not self.model.probe or c.port != models.HTTP:
            return False
        return all(x.path.startswith(self.model.probe) for x in c.exchanges)

    def load_end(self, load):
        """The end of full load, by the last request: in closed loops and schedules the next one would have followed at once."""
        if self.model.kind == "arrive":
            return max(c.over()[0] for c in load)
        # By the figure, which `elapsed` compares with the last request.
        return self.first_syn + self.summary["elapsed_s"]

    def elapsed(self):
        """To the last request of the load, or as long after it as the longest pause between requests of its last second."""
        if self.model.kind == "arrive":
            end = self.end - self.first_syn
            return end - EDGE, end, end + EDGE
        if not self.asked:
            return Setting("nothing was sent")
        last = [t for t in self.asked if t > self.asked[-1] - 1.0]
        pause = max((b - a for a, b in zip(last, last[1:])), default=1.0)
        end = self.asked[-1] - self.first_syn
        return end - EDGE, end, end + pause + EDGE

    def step_scope(self, population, step):
        s = self.scopes[population]
        return Scope(s.connections, s.model, s.begin, s.end, s.wanted, s.first, f"step={step}")

    def lag(self):
        scopes = [s.lag() for s in self.scopes.values()]
        late = [v for s in scopes for v in s.values]
        edges = sum(s.edges for s in scopes)
        if self.probe:
            # The probe's requests have a lag too; on the wire it does not show.
            late += [self.probe.begun(x) - x.due for x in self.probe.exchanges if self.begin <= x.due < self.end]
            edges += 2
        return Lag(late, edges, all(s.exact for s in scopes))

    def step_at(self, at):
        """A step by its index among those of all populations."""
        places = [(population, step) for population in self.scopes for step in self.step_names(population)]
        return self.step_scope(*places[at])

    @staticmethod
    def faults_of(step):
        """Of requests: what befalls a connection between two of them is no step's."""
        return {kind: n for kind, n in step.faults().items() if "·exchange·" in kind}

    def step_names(self, population):
        s = self.scopes[population]
        named = {x.path.partition("step=")[2].partition("&")[0] for x in s.exchanges if x.path and "step=" in x.path}
        return sorted(named) or [""]

    def set_clock(self, lines, ticks):
        """Determines the offset of throng's clock from the wire's: with it its counts of requests (or of connections) agree, second
        by second, with those of the wire. Everything else must then agree."""
        key, moments = ("requests_total", self.asked) if self.asked else \
            ("connections_opened_total", sorted(c.synack for c in self.whole.succeeded()))
        fits = []
        for line in lines:
            n = int(sum(value for name, value in line.items() if name.partition("{")[0] == f"throng_{key}"))
            if 0 < n < len(moments):
                fits += [moments[n - 1] - line["elapsed_s"], moments[n] - line["elapsed_s"]]
        self.epoch = sorted(fits)[len(fits) // 2]
        # Lines count from the first period's beginning.
        self.clock = self.epoch - ticks[0]["tick"]["from"] / 1e9
        self.sealed = self.clock + ticks[-1]["tick"]["until"] / 1e9

    def ramped(self, s):
        """When the last first dial had its result, by that clock, in nanoseconds."""
        at = (max(c.synack or c.refused for c in s.first) - self.clock) * 1e9
        # A period is flushed with a turn of the loop, and so are the counts of the lines.
        return at - 3e7, at, at + 3e7

    def verdict(self):
        verdict = "fail" if self.whole.faults() or self.whole.failed() else "pass"
        if self.summary["verdict"] == "invalid":
            return Setting(f"throng was late, and says that it cannot judge; else {verdict}")
        return verdict

    def seen_by_target(self):
        """By the server's own log, 6 ms around."""
        def open_at(time):
            begun = sum(e["what"] == "accept" and e["t"] <= time for e in self.log)
            return begun - sum(e["what"] == "end" and e["t"] <= time for e in self.log)
        counts = [open_at(self.end + shift) for shift in (-EDGE, 0.0, EDGE)]
        if self.model.kind == "arrive":
            # All have arrived and left.
            return None
        return min(counts), counts[1], max(counts)

    def quiet(self):
        """Of the connections open at the end: the least time since anything came; the kernel counts milliseconds."""
        heard = [c for c in self.whole.succeeded() if (c.over()[0] or 1e99) > self.end and c.heard_before(self.end)]
        if not heard:
            return None
        quiet = min(self.end - c.heard_before(self.end) for c in heard)
        # throng queries the kernel once its shards have reported the end of the load.
        return max(0.0, quiet - 0.010), quiet, quiet + 0.150

    # Processes and hosts, by samples 50 ms apart

    def seen(self, begin, end, of):
        """The values of a period, by the samples in it and the nearest ones on both sides of it that have a value: a sample may be late,
        or begun while a process ran and finished after its end."""
        return [of(one) for one in self.looks.within(begin, end, lambda one: usable(one, of))]

    def at(self, time, of, slack=0.3):
        """The range of a gauge within `slack` of a time."""
        values = self.seen(time - slack, time + slack, of)
        return min(values), max(values)

    def socket_slack(self):
        """Sockets of a question of this audit's; and of connections that come and go between two samples, as each does that arrives."""
        arriving = self.model.rate * kernel.PERIOD if self.model.kind == "arrive" else 0
        return 2 + int(arriving) * self.ends_in_kernel

    def gauge(self, key, of, slack=0, own=False):
        seen = self.seen(self.first_syn - 0.5, self.end + 0.3, of)
        low, high = min(seen), max(seen)
        if key == "first":
            low, high = self.at(self.first_syn - 0.1, of)
        if key in ("first", "min") and own:
            # Its first sample of itself is during its start, within our period.
            low = 0
        if key == "last":
            low, high = self.at(self.end, of)
        if key == "min":
            return low - slack, low, high + slack
        return low - slack, high, high + slack

    def counter(self, phase, of, slack=0, own=False):
        """Growth in a phase: its bounds are throng's own samples, up to 0.3 s from ours."""
        first, begin, end = (self.at(t, of) for t in (self.first_syn - 0.1, self.begin, self.end))
        (a_low, a_high), (b_low, b_high) = (first, begin) if phase == "ramp" else (begin, end)
        if own and phase == "ramp":
            # Its first sample of itself is during its start, which may be before ours.
            a_low = 0
        return max(0, b_low - a_high) - slack, b_high - a_low, b_high - a_low + slack

    def tcp(self, phase, event):
        return self.counter(phase, lambda l: l["tcp"][event])

    def tcp_total(self, event):
        (a, b), (c, d) = self.at(self.first_syn - 0.1, lambda l: l["tcp"][event], 0.1), self.at(self.end, lambda l: l["tcp"][event], 0.06)
        return c - b, d - a, d - a

    def files(self, begin, end, base):
        """The server's descriptors: those it had before, and its connections by its own log, the least and the most of a stretch."""
        changes = sorted([(e["t"], 1) for e in self.log if e["what"] == "accept"] + [(e["t"], -1) for e in self.log if e["what"] == "end"])
        open_, seen = 0, []
        for time, change in changes:
            if time >= begin and not seen:
                seen.append(open_)
            open_ += change
            if begin <= time <= end:
                seen.append(open_)
            if time > end:
                break
        seen = seen or [open_]
        return base + min(seen), base + seen[-1], base + max(seen)

    def open_files(self, key):
        base = self.looks.all[0]["server"]["files"]
        spans = {"first": (0.0, self.first_syn), "last": (self.end - 0.3, self.end + 0.3)}
        begin, end = spans.get(key, (0.0, self.end + 0.3))
        low, middle, high = self.files(begin, end, base)
        return (base, base, high) if key == "min" else (low, high, high)

    def process(self, who, key):
        name, _, part = key.partition("/")
        of = lambda field: lambda look: look[who] and look[who][field]
        if name in ("cpu_user_ns", "cpu_system_ns"):
            low, middle, high = self.counter(part, of(name.split("_")[1]), TICKS, who == "throng")
            return low * 1e9, middle * 1e9, high * 1e9
        if name == "run_queue_wait_ns":
            low, middle, high = self.counter(part, of("wait"), 0.001, who == "throng")
            return low * 1e9, middle * 1e9, high * 1e9
        if name == "involuntary_switches":
            return (0, 0, 0) if who == "server" else self.counter(part, of("switches"), 20, who == "throng")
        if name == "rss_bytes":
            return self.gauge(part, of("rss"), BATCH, who == "throng")
        if name == "threads":
            return self.gauge(part, of("threads"), 0, who == "throng")
        if name == "processes":
            return 1
        if name == "cores":
            return len(os.sched_getaffinity(0))
        if name == "threads_full":
            return 0, 0, self.gauge("max", of("threads"))[2]
        if name == "busiest_wanted_hold" or name == "busiest_wanted":
            # With the time for which the thread had none: not more than there is.
            return 0.0, self.cores_used(who), 1.05
        # Shares of periods that only throng knows, the shortest a tick: between none and all that the process used in 200 ms.
        return 0.0, self.cores_used(who), self.cores_used(who) + 0.35

    def cores_used(self, who):
        """In 200 ms, at most. Where samples were late it may have used all of that in so short a time."""
        looks = [one for one in self.looks.all if usable(one, lambda one: one[who]["threads"])]
        cpu = lambda one: one[who]["user"] + one[who]["system"]
        pairs = [(a, b) for a, b in zip(looks, looks[4:]) if b["t"] - a["t"] > 0.1]
        # None, where samples were late throughout: it may have used all that there is.
        used = ((cpu(b) - cpu(a)) / min(b["t"] - a["t"], 0.25) for a, b in pairs)
        return max(used, default=float(os.cpu_count()))

    def own_cpu(self, mode=None):
        of = lambda one: one["throng"]["system"] if mode else one["throng"]["user"] + one["throng"]["system"]
        low, _ = self.at(self.end, of, 0.1)
        usage = self.run["usage"]
        whole = usage.ru_stime if mode else usage.ru_utime + usage.ru_stime
        return low - TICKS, low, whole + TICKS

    def own_time(self):
        """Samples are taken from before the first packet on, and once more when the last connection is closed."""
        span = self.end - self.first_syn
        return span, span, span + 3.0

    def own_memory(self):
        values = self.seen(self.begin, self.end + 0.5, lambda one: one["throng"]["rss"])
        return min(values) - BATCH, max(values), max(values) + BATCH

    def own_share(self):
        cpu = lambda one: one["throng"]["user"] + one["throng"]["system"]
        (a, b), (c, d) = self.at(self.begin, cpu), self.at(self.end, cpu)
        threads = min(self.summary["threads"], len(os.sched_getaffinity(0)))
        span = self.end - self.begin
        return (c - b - TICKS) / span / threads, (d - a) / span / threads, (d - a + TICKS) / span / threads

    def stall(self):
        """A late turn shows as a period in which nothing was sent, and as lateness of what was due in it."""
        late = max((x.asked - x.due for s in self.scopes.values() for x in s.exchanges), default=0.0)
        waits = max((c.syn - c.due for c in self.whole.connections), default=0.0)
        return 0.0, max(late, waits) * 1e6, (max(late, waits) + 0.020) * 1e6

    def server_memory(self):
        values = self.seen(self.first_syn - 0.5, self.end + 0.3, lambda one: one["server"]["rss"])
        return min(values) - BATCH, max(values), max(values) + BATCH

    def server_cpu(self):
        of = lambda one: one["server"]["user"] + one["server"]["system"]
        (a, b), (c, d) = self.at(self.first_syn - 0.1, of), self.at(self.end, of, 0.1)
        return c - b - TICKS, d - a, d - a + TICKS

    def cpu_slope(self, who, per, key):
        if key in ("error", "r2"):
            return Setting("the fit's own error")
        process = {"target": "server", "generator": "throng"}[who]
        of = lambda one: one[process]["user"] + one[process]["system"]
        span = (self.begin, self.end) if per == "request" else (self.first_syn - 0.1, self.begin)
        (a, b), (c, d) = self.at(span[0], of, 0.1), self.at(span[1], of, 0.1)
        if per == "request":
            n = self.whole.until(span[1], [x.answered for x in self.whole.answered()])[1] - \
                self.whole.until(span[0], [x.answered for x in self.whole.answered()])[1]
        else:
            n = self.whole.opened()
        error = 3 * self.summary["cost"][f"{who}_cpu_us_per_{per}"]["error"]
        return (c - b - TICKS) / n * 1e6 * 0.8 - error, (d - a) / n * 1e6, (d - a + TICKS) / n * 1e6 * 1.2 + error

    def queue(self):
        """Between two of our samples all connections opened in between may have waited, with those that waited before."""
        opened = [c.synack for c in self.whole.succeeded()]
        looks = self.looks.all
        bursts = [a["queue"] + sum(a["t"] <= t <= b["until"] for t in opened) for a, b in zip(looks, looks[1:])]
        return 0, max(one["queue"] for one in looks), max(bursts)

    def files_limit(self):
        return resource.prlimit(self.server_pid, resource.RLIMIT_NOFILE)[0] if os.path.exists(f"/proc/{self.server_pid}") \
            else self.run["files_limit"]

    def tcp_mem(self):
        # A network namespace has none.
        words = kernel.read("/proc/sys/net/ipv4/tcp_mem").split()
        return int(words[1]) if words else None

    def conntrack_max(self):
        text = kernel.read("/proc/sys/net/netfilter/nf_conntrack_max")
        return int(text) if text else None


def usable(look, of):
    try:
        return of(look) is not None
    except (TypeError, KeyError):
        return False
