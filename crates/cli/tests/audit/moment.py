"""The outside counts at one time of the run, which the metrics of a second and the last tick are compared with."""

from compare import Setting
from context import BATCH, TICKS
from outside import Lag, Times

# A shard flushes its period with a turn of its loop, at most this much off the whole second of the line.
SEAL = 0.015


class Moment:
    """`before`: the time of the line before, whose second this is."""

    def __init__(self, context, time, before):
        self.context, self.time, self.before = context, time, before

    def scope(self, population):
        return self.context.scopes[population] if population else self.context.whole

    def until(self, times):
        n = [sum(t <= self.time + shift for t in times) for shift in (-SEAL, 0.0, SEAL)]
        return tuple(n)

    def summed(self, marks):
        return tuple(sum(n for t, n in marks if t <= self.time + shift) for shift in (-SEAL, 0.0, SEAL))

    # Counters of one population

    def counter(self, name, s, labels):
        ends = lambda fate: [c.over()[0] for c in s.connections if s.fate(c) == fate]
        gone = lambda x: x.connection.over()[0] or 1e99
        first = set(map(id, s.first))
        fates = {"dropped": "dropped", "closed": "closed", "finished": "finished"}
        if name in fates:
            return self.until(ends(fates[name]))
        if name == "statuses":
            status = labels.get("status")
            return self.until([x.answered for x in s.answered() if x.status and status in (None, str(x.status))])
        if name == "faults":
            return self.faults(s, labels)
        if name in ("received_bytes", "sent_bytes"):
            half = (lambda c: c.into) if name == "received_bytes" else (lambda c: c.out)
            return self.summed([mark for c in s.connections for mark in half(c).marks])
        return {
            "opened": lambda: self.until([c.synack for c in s.succeeded() if id(c) in first]),
            "redialled": lambda: self.until([c.synack for c in s.succeeded() if id(c) not in first]),
            "failed": lambda: self.until([c.refused for c in s.connections if c.synack is None and c.refused]),
            "requests": lambda: self.until([x.asked for x in s.exchanges]),
            "requests_due": lambda: self.due(s),
            "requests_failed": lambda: self.until([gone(x) for x in s.lost()]),
            "responses_wrong": lambda: self.until([x.answered for x in s.wrong()]),
            "answers": lambda: self.until([x.answered for x in s.answered()]),
            "requests_withdrawn": lambda: self.until([gone(x) for x in s.exchanges if s.cause(x) == "withdrawn"]),
            "requests_revoked": lambda: 0, "given_up": lambda: 0, "missed": lambda: 0, "told": lambda: 0,
            "requests_missed": lambda: (0, s.missed(), s.missed()), "messages_told": lambda: 0, "messages_received": lambda: 0,
            "requests_without_response": lambda: self.with_backlog(s, self.until([gone(x) for x in s.exchanges if s.cause(x) not in (None, "withdrawn")])),
            "requests_unanswered": lambda: self.until([gone(x) for x in s.exchanges if s.cause(x) == "unanswered"]),
            "received_body_bytes": lambda: self.summed([(x.answered, x.body) for x in s.answered()]),
        }[name]()

    def with_backlog(self, s, times):
        """What was never sent is counted with the end of its connection, or of the load."""
        low, n, most = times
        return low, n, most + len(s.backlog())

    def due(self, s):
        """When each was due is known to throng; on the wire it is there once it is sent."""
        all_due = [x for x in s.exchanges if s.cause(x) != "withdrawn"]
        low, n, _ = self.until([x.asked for x in all_due])
        return low, n, self.until([min(x.due or x.asked, x.asked) for x in all_due])[2] + s.missed()

    def faults(self, s, labels):
        times = []
        for x in s.exchanges:
            cause = s.cause(x)
            if cause and cause not in ("unanswered", "withdrawn"):
                times.append((f"target·exchange·{cause}", x.connection.over()[0]))
            elif x.answered and x.status and not 200 <= x.status < 300:
                times.append(("target·exchange·wrong-status", x.answered))
            elif x.answered and not x.right:
                times.append(("target·exchange·wrong-echo", x.answered))
        for c in s.connections:
            if c.synack is None and c.refused:
                times.append(("target·dial·refused", c.refused))
            elif s.fate(c) == "dropped" and not any(s.cause(x) for x in c.exchanges):
                times.append(("target·hold·reset" if c.into.rst else "target·hold·closed", c.over()[0]))
        kind = "·".join(labels[key] for key in ("side", "stage", "kind")) if labels.get("kind") else None
        return self.until([t for fault, t in times if kind in (None, fault)])

    def without_response(self, s):
        gone = lambda x: x.connection.over()[0] or 1e99
        edges = s.edges([x.due for x in s.exchanges])
        low, n, high = self.until([gone(x) for x in s.exchanges if s.at_load(x) and s.cause(x) not in (None, "withdrawn")])
        return max(0, low - edges), n, high + edges

    def gauge(self, name, s):
        if name == "connections_open" and self.time >= self.context.sealed - 0.01:
            # At the end throng still has its own connections, and closes them.
            return s.open_at_last()
        if name == "connections_open":
            moments = [m for c in s.connections for m in (c.synack, c.over()[0]) if m and abs(m - self.time) <= SEAL]
            n = [s.open_at(m) for m in (self.time - SEAL, *moments, self.time + SEAL)]
            return min(n), s.open_at(self.time), max(n)
        if name == "requests_waiting":
            def waiting(t):
                done = lambda x: x.answered or x.connection.over()[0] or 1e99
                return sum(x.asked <= t < done(x) for x in s.exchanges)
            done = lambda x: x.answered or x.connection.over()[0] or 1e99
            least = sum(x.asked <= self.time - SEAL and done(x) > self.time + SEAL for x in s.exchanges)
            most = sum(x.asked <= self.time + SEAL and done(x) > self.time - SEAL for x in s.exchanges)
            return least, waiting(self.time), most
        # Wanted: dialled by now, of the final number.
        dialled = sum(c.syn <= self.time + SEAL for c in s.first)
        return min(dialled, s.wanted), s.wanted, s.wanted

    # Distributions

    def samples(self, name, s, labels):
        """(when it was counted, value, lateness) of each."""
        late = lambda x: x.asked - x.due
        of = {
            "latency": lambda s: [(x.answered, x.answered - x.due, late(x)) for x in s.answered() if s.at_load(x)],
            "ramp_latency": lambda s: [(x.answered, x.answered - x.due, late(x)) for x in s.answered() if x.due < s.begin],
            "first_byte": lambda s: [(x.first, x.first - x.due, late(x)) for x in s.exchanges
                                     if x.first and s.at_load(x) and not x.connection.handshake],
            "connect": lambda s: [(c.synack, c.synack - c.due, s.dial_late(c)) for c in s.succeeded()],
            "handshake": lambda s: [(h.answered, h.answered - h.asked, 0.0005) for c in s.connections
                                    for h in [c.handshake] if h and h.answered],
            "tls": lambda s: [], "tls_resumed": lambda s: [], "gap": lambda s: [],
            "delay": lambda s: [], "spread": lambda s: [], "ping_rtt": lambda s: [],
            "lag": self.lags,
        }
        if name == "probe_latency":
            return self.probe_samples(labels["connection"])
        scopes = [s] if s is not self.context.whole else self.context.scopes.values()
        return [one for s in scopes for one in of[name](s)]

    def lags(self, s):
        if s.model.kind == "arrive":
            return [(c.syn, c.syn - c.due, c.syn - c.due) for c in s.connections]
        # It is counted when throng takes a slot, also where no connection is free yet.
        lags = [(x.due + x.late(), x.late(), x.late()) for x in s.exchanges if s.at_load(x)]
        probe = self.context.probe
        if probe and s is self.context.scopes[min(self.context.scopes)]:
            lags += [(x.asked, 1e-4, 1e-4) for x in probe.exchanges if probe.begin <= x.asked < probe.end]
        return lags

    def probe_samples(self, connection):
        probe = self.context.probe
        if probe is None:
            return []
        return [(x.answered, x.answered - x.due, x.asked - x.due) for x in getattr(probe, connection) if x.answered]

    def distribution(self, name, ending, s, labels):
        samples = self.samples(name, s, labels)
        edges = s.edges([x.due for x in s.exchanges]) if name in ("latency", "ramp_latency", "first_byte", "lag") else 0
        if name == "probe_latency":
            edges = 4
        if ending == "count":
            low, n, high = self.until([t for t, _, _ in samples])
            return max(0, low - edges), n, high + edges
        if ending == "sum":
            return self.sum(samples, edges)
        second = [one for one in samples if self.before < one[0] <= self.time]
        if not second:
            return None
        near = sum(min(abs(t - self.before), abs(t - self.time)) <= SEAL for t, _, _ in samples)
        exact = name in ("connect", "handshake", "probe_latency") or s.model.kind in ("rate", "ping")
        values, late = [v for _, v, _ in second], [l for _, _, l in second]
        times = Times(values, late, edges=near + edges, exact=exact)
        if name == "lag":
            # As of the whole run: where the response before decides when a request is due, the wire shows no more than a bound.
            times = Lag(late, near + edges, s.model.kind in ("rate", "arrive"))
        from rules_summary import PERCENTILES
        return times.most() if ending == "max" else times.quantile(PERCENTILES[ending])

    def sum(self, samples, edges):
        low, middle, high = self.summed([(t, v) for t, v, _ in samples])
        # As for the mean: differences cancel along a connection, and are at most the lateness.
        late = sum(l for t, _, l in samples if t <= self.time) + 1e-4 * len(samples)
        longest = max((v for _, v, _ in samples), default=0.0)
        return low - late - edges * longest, middle, high + late + edges * longest

    def bucket(self, name, le, s, labels):
        samples = [one for one in self.samples(name, s, labels)]
        edges = s.edges([x.due for x in s.exchanges])
        late = Times([v for _, v, _ in samples], [l for _, _, l in samples]).slack(0.01) if samples else 0.0
        def count(limit, shift):
            return sum(v <= limit and t <= self.time + shift for t, v, _ in samples)
        far = 4 if name == "probe_latency" else edges + len(samples) // 50
        return (max(0, count(le * 0.999 - late, -SEAL) - far), count(le, 0.0), count(le * 1.001 + late, SEAL) + far)

    # Processes and hosts

    def seen(self, of, slack=0):
        """The value at about this time: throng samples once a second, and shows the last sample."""
        # After the load's end throng takes no more samples.
        time = min(self.time, self.context.end + 0.2)
        # Its sample is up to a second and a tick old.
        values = self.context.seen(time - 1.4, time + 0.1, of)
        return min(values) - slack, values[-1], max(values) + slack

    def open_files(self):
        time = min(self.time, self.context.end + 0.2)
        return self.context.files(time - 1.4, time + 0.1, self.context.looks.all[0]["server"]["files"])

    def ends(self):
        """Whether throng drains its connections at this time, or this is its last look: it looks with each of these ticks."""
        return self.time > min(self.context.end + 0.2, self.context.sealed - 0.01)

    def memory(self, who):
        of = lambda one: one[who] and one[who]["rss"]
        low, value, high = self.seen(of, BATCH)
        if who == "throng" and self.ends():
            # When its shards have ended, what they had is free again, and none of our samples may be from the time between that and its
            # own end.
            low = min(self.context.seen(0.0, self.time, of)) - BATCH
        return low, value, high

    def cpu(self, who, mode):
        of = lambda one: one[who] and one[who][mode]
        low, value, high = self.seen(of, TICKS)
        if who == "throng" and self.ends():
            high = max(self.context.seen(0.0, self.time + 0.1, of)) + TICKS
        return low, value, high


def none(why):
    return Setting(why)
