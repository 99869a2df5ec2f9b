"""All that is known from outside of one run: the wire, the server's log, the kernel's counts; what the rules ask."""

import os
import resource

import kernel
import models
from outside import EDGE, Scope, Times, schedule
from compare import Setting

TICKS = 2.0 / kernel.TICK
# The kernel counts resident pages by processor and hands them over in batches (percpu_counter), for each of its three kinds.
BATCH = 3 * max(32, 2 * os.cpu_count()) * os.cpu_count() * kernel.PAGE


class Probe:
    """The probe lane's requests; every second one on a fresh connection."""

    def __init__(self, connections, rate, begin, end):
        self.connections, self.rate, self.begin, self.end = connections, rate, begin, end
        self.exchanges = sorted((x for c in connections for x in c.exchanges), key=lambda x: x.asked)
        self.fresh = [x for x in self.exchanges if len(x.connection.exchanges) == 1 and x.asked - x.connection.syn < 0.1]
        self.kept = [x for x in self.exchanges if x not in self.fresh]

    def count(self, key):
        answered = sum(x.answered is not None for x in self.exchanges)
        return {"sent": len(self.exchanges), "answered": answered, "failed": 0, "rate": self.rate,
                "unanswered": len(self.exchanges) - answered}[key]

    def times(self, name):
        if name == "connect_us":
            return [c.synack - c.syn for c in self.connections]
        begun = lambda x: x.connection.syn if x in self.fresh else x.asked
        chosen = {"latency_us": self.exchanges, "kept_us": self.kept, "fresh_us": self.fresh,
                  "held_us": [x for x in self.exchanges if self.begin <= begun(x) < self.end]}[name]
        return [x.answered - begun(x) for x in chosen if x.answered]

    def outside(self, name):
        # Due before the first packet by throng's lateness, which nothing outside shows for so few: 5 ms.
        times = Times(self.times(name), [0.005])
        # The first connection is kept from its first request on, and one that nothing more was asked on looks fresh.
        times.edges = {"kept_us": 4, "fresh_us": 4, "held_us": 1}.get(name, 0)
        return times

    def figure(self, name, key):
        import rules_summary
        if key.startswith("censored"):
            return None
        times = self.outside(name)
        return rules_summary.figure(lambda c: times, key)(None)

    def point(self, name):
        times = [t * 1e6 for key in ("latency_us", "connect_us") for t in self.times(key)]
        if name.endswith("connections"):
            return 0, 16, 32
        return 0.0, max(times), max(times) + 5000.0


class Context:
    """`summary` is only asked for what is a setting of the run, and for the length of its windows, which are audited by themselves."""

    def __init__(self, model, wire, log, looks, run, summary):
        self.model, self.wire, self.log, self.looks, self.run, self.summary = model, wire, log, looks, run, summary
        self.server_pid = run["server"]
        load = [c for c in wire.connections if c.port in self.ports(model)]
        probing = [c for c in load if self.is_probe(c)]
        load = [c for c in load if c not in probing]
        self.first_syn = load[0].syn
        self.over = max([c.over()[0] or 0 for c in load])
        self.end = self.load_end(load)
        self.scopes = {}
        parts = model.populations or {"main": model}
        for name, part in parts.items():
            mine = [c for c in load if not model.populations or c.port == part.port]
            span = summary["populations"][name]["duration_s"]
            schedule(mine, part, part.connections, self.end - span)
            self.scopes[name] = Scope(mine, part, self.end - span, self.end, part.connections)
        first = [c for scope in self.scopes.values() for c in scope.first]
        self.begin = self.end - summary["duration_s"]
        self.whole = Scope(load, model, self.begin, self.end, sum(s.wanted for s in self.scopes.values()), first)
        self.destinations = {}
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
        """The end of full load, by the last request: of closed loops and schedules the next would have followed at once."""
        if self.model.kind == "arrive":
            return max(c.over()[0] for c in load)
        asked = [x.asked for c in load for x in c.exchanges]
        if self.model.kind == "none" or self.model.ping and self.model.ping > 0.2:
            # Too few requests to show the end: by the figure, from the first SYN.
            return self.first_syn + self.summary["populations"]["main"]["elapsed_s"]
        return max(asked)

    def step_scope(self, population, step):
        s = self.scopes[population]
        return Scope(s.connections, s.model, s.begin, s.end, s.wanted, s.first, f"step={step}")

    def step(self, population, step):
        return self.step_scope(population, step).latency()

    def lag(self):
        scopes = [s.lag() for s in self.scopes.values()]
        late = [v for s in scopes for v in s.values]
        times = Times(late, late, sum(s.edges for s in scopes))
        # In closed loop and with think time due is when throng read the response, and that is not seen: lag is up to the turnaround.
        times.least_known = True
        return times

    def step_at(self, at):
        """The latency of a step by its place among those of all populations."""
        places = [(population, step) for population in self.scopes for step in self.step_names(population)]
        return self.step(*places[at])

    def step_names(self, population):
        s = self.scopes[population]
        named = {x.path.partition("step=")[2].partition("&")[0] for x in s.exchanges if x.path and "step=" in x.path}
        return sorted(named) or [""]

    def set_clock(self, ticks):
        """Puts throng's own clock on the wire's, by when it knew the outcome of the last first dial."""
        ramped = ticks[-1]["tick"]["ramped_at"] / 1e9
        self.epoch = max(c.synack or c.refused for c in self.whole.first) - ramped
        self.sealed = self.epoch + ticks[-1]["tick"]["until"] / 1e9

    def ramped(self, s):
        """When the last first dial had its outcome, by that clock, in nanoseconds."""
        at = (max(c.synack or c.refused for c in s.first) - self.epoch) * 1e9
        return at - 4e6, at, at + 4e6

    def silence(self, s):
        """The longest time without anything read or written, of those open at the end."""
        def last(c):
            return max([t for half in (c.into, c.out) for t, _ in half.marks if t <= self.end], default=c.synack)
        open_ = [c for c in s.succeeded() if c.synack <= self.end and (c.over()[0] or 1e99) > self.end]
        longest = max((self.end - last(c) for c in open_), default=0.0) * 1e9
        return max(0.0, longest - 5e8), longest, longest + 5e8

    def verdict(self):
        return "fail" if self.whole.faults() or self.whole.failed() else "pass"

    def seen_by_target(self):
        """By the server's own log, 3 ms around."""
        def open_at(time):
            begun = sum(e["what"] == "accept" and e["t"] <= time for e in self.log)
            return begun - sum(e["what"] == "end" and e["t"] <= time for e in self.log)
        counts = [open_at(self.end + shift) for shift in (-EDGE, 0.0, EDGE)]
        return min(counts), counts[1], max(counts)

    def quiet(self):
        """Of the connections open at the end: the least time since anything came; the kernel counts milliseconds."""
        heard = [c for c in self.whole.succeeded() if (c.over()[0] or 1e99) > self.end and c.heard_before(self.end)]
        if not heard:
            return None
        quiet = min(self.end - c.heard_before(self.end) for c in heard)
        return max(0.0, quiet - 0.010), quiet, quiet + 0.020

    # Processes and hosts, by looks 50 ms apart

    def at(self, time, of, slack=0.3):
        """The range of a gauge within `slack` of a time."""
        values = [of(one) for one in self.looks.within(time - slack, time + slack) if usable(one, of)]
        return min(values), max(values)

    def gauge(self, key, of, slack=0):
        seen = [of(one) for one in self.looks.within(self.first_syn - 0.5, self.end + 0.3) if usable(one, of)]
        low, high = min(seen), max(seen)
        if key == "first":
            low, high = self.at(self.first_syn - 0.1, of)
        if key == "last":
            low, high = self.at(self.end, of)
        if key == "min":
            return low - slack, low, high + slack
        return low - slack, high, high + slack

    def counter(self, phase, of, slack=0):
        """Growth in a phase: its bounds are looks of throng's own, up to 0.3 s from ours."""
        first, begin, end = (self.at(t, of) for t in (self.first_syn - 0.1, self.begin, self.end))
        (a_low, a_high), (b_low, b_high) = (first, begin) if phase == "ramp" else (begin, end)
        return max(0, b_low - a_high) - slack, b_high - a_low, b_high - a_low + slack

    def tcp(self, phase, event):
        return self.counter(phase, lambda l: l["tcp"][event])

    def tcp_total(self, event):
        (a, b), (c, d) = self.at(self.first_syn - 0.1, lambda l: l["tcp"][event], 0.1), self.at(self.end, lambda l: l["tcp"][event], 0.06)
        return c - b, d - a, d - a

    def process(self, who, key):
        name, _, part = key.partition("/")
        of = lambda field: lambda look: look[who] and look[who][field]
        if name in ("cpu_user_ns", "cpu_system_ns"):
            low, middle, high = self.counter(part, of(name.split("_")[1]), TICKS)
            return low * 1e9, middle * 1e9, high * 1e9
        if name == "run_queue_wait_ns":
            low, middle, high = self.counter(part, of("wait"), 0.001)
            return low * 1e9, middle * 1e9, high * 1e9
        if name == "involuntary_switches":
            return (0, 0, 0) if who == "server" else self.counter(part, of("switches"), 20)
        if name == "rss_bytes":
            return self.gauge(part, of("rss"), BATCH)
        if name == "threads":
            return self.gauge(part, of("threads"))
        if name == "processes":
            return 1
        if name == "cores":
            return len(os.sched_getaffinity(0))
        if name == "threads_full":
            return 0, 0, self.gauge("max", of("threads"))[2]
        # Shares of stretches that only throng knows, the shortest a tick: between none and all that the process used in 200 ms.
        return 0.0, self.cores_used(who), self.cores_used(who) + 0.35

    def cores_used(self, who):
        looks = [one for one in self.looks.all if one[who]]
        cpu = lambda one: one[who]["user"] + one[who]["system"]
        pairs = [(a, b) for a, b in zip(looks, looks[4:]) if b["t"] - a["t"] > 0.1]
        return max((cpu(b) - cpu(a)) / (b["t"] - a["t"]) for a, b in pairs)

    def own_cpu(self, mode=None):
        of = lambda one: one["throng"]["system"] if mode else one["throng"]["user"] + one["throng"]["system"]
        low, _ = self.at(self.end, of, 0.1)
        usage = self.run["usage"]
        whole = usage.ru_stime if mode else usage.ru_utime + usage.ru_stime
        return low - TICKS, low, whole + TICKS

    def own_memory(self):
        values = [l["throng"]["rss"] for l in self.looks.within(self.begin, self.end + 0.5) if l["throng"]]
        return min(values) - BATCH, max(values), max(values) + BATCH

    def own_share(self):
        cpu = lambda one: one["throng"]["user"] + one["throng"]["system"]
        (a, b), (c, d) = self.at(self.begin, cpu), self.at(self.end, cpu)
        threads = min(self.summary["threads"], len(os.sched_getaffinity(0)))
        span = self.end - self.begin
        return (c - b - TICKS) / span / threads, (d - a) / span / threads, (d - a + TICKS) / span / threads

    def stall(self):
        """A turn that came late is seen as a stretch in which nothing was sent, and as lateness of what was due in it."""
        late = max((x.asked - x.due for s in self.scopes.values() for x in s.exchanges), default=0.0)
        waits = max((c.syn - c.due for c in self.whole.connections), default=0.0)
        return 0.0, max(late, waits) * 1e6, (max(late, waits) + 0.020) * 1e6

    def server_memory(self):
        values = [one["server"]["rss"] for one in self.looks.within(self.first_syn - 0.5, self.end + 0.3) if one["server"]]
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
        """Between two of our looks all that were opened there may have waited."""
        opened = sorted(c.synack for c in self.whole.succeeded())
        burst = max((sum(t <= u < t + 0.05 for u in opened) for t in opened), default=0)
        seen = max(one["queue"] for one in self.looks.all)
        return 0, seen, max(seen, burst)

    def files_limit(self):
        return resource.prlimit(self.server_pid, resource.RLIMIT_NOFILE)[0] if os.path.exists(f"/proc/{self.server_pid}") \
            else self.run["files_limit"]

    def tcp_mem(self):
        # A namespace of its own has none.
        words = kernel.read("/proc/sys/net/ipv4/tcp_mem").split()
        return int(words[1]) if words else None

    def conntrack_max(self):
        text = kernel.read("/proc/sys/net/netfilter/nf_conntrack_max")
        return int(text) if text else None


def usable(look, of):
    try:
        return of(look) is not None
    except TypeError:
        return False
