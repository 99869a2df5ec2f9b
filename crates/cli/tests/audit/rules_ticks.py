"""The records of the page, live and as a report: all ticks of a run, merged, compared with the outside counts."""

import hdr
from compare import Rule, Setting
from rules_summary import PERCENTILES, kept

# What a record omits if it is zero.
HISTOGRAMS = ("latency", "ramp_latency", "connect", "tls", "tls_resumed", "handshake", "first_byte", "ramp_first_byte", "lag", "gap", "delay", "spread", "ping_rtt", "silence", "kept", "fresh",
              "held", "shard_rates")
# As they are at the end of a period.
STATE = ("index", "until", "phase", "open", "wanted", "resolved", "waiting", "unsettled", "owed", "ramped_at")
# A few of many, as they are.
SAMPLED = ("error_samples", "examples", "marks")
MOST = ("stalled", "dial_lag", "longest_silence", "keep_alive_s", "max")
LEAST = ("from", "min")


def fold(ticks):
    """All ticks merged into one: counters add up, gauges are the last one's."""
    total = None
    for tick in ticks:
        total = plus(total, tick, "")
    return finish(total)


def plus(a, b, key):
    if key in HISTOGRAMS and not isinstance(b, int) or isinstance(b, dict) and "histogram" in b:
        return add_times(a or {}, b or {})
    if a is None:
        a = {} if isinstance(b, dict) else [] if isinstance(b, list) else None
    if isinstance(b, dict):
        return {k: plus(a.get(k), b[k], k) if k in b else a[k] for k in {**a, **b}}
    if key in SAMPLED:
        return (a or []) + (b or [])
    if isinstance(b, list) and any("kind" in one for one in b + a if isinstance(one, dict)):
        return add_faults(a, b)
    if isinstance(b, list):
        return [plus(a[i] if i < len(a) else None, b[i], key) if i < len(b) else a[i] for i in range(max(len(a), len(b)))]
    if a is None or b is None or key in STATE or isinstance(b, (str, bool)):
        return b if b is not None or key in STATE else a
    return max(a, b) if key in MOST else min(a, b) if key in LEAST else a + b


def add_times(a, b):
    """Sum, least, most, censored, and the histogram as counts by value."""
    counts = dict(a.get("counts", {}))
    for value, count in hdr.decode(b["histogram"]) if "histogram" in b else ():
        counts[value] = counts.get(value, 0) + count
    least = [one["min"] for one in (a, b) if "min" in one]
    return {"counts": counts, "sum": a.get("sum", 0) + b.get("sum", 0), "max": max(a.get("max", 0), b.get("max", 0)),
            "censored": a.get("censored", 0) + b.get("censored", 0), **({"min": min(least)} if least else {})}


def add_faults(a, b):
    kinds = {}
    for one in a + b:
        key = (one["side"], one["stage"], one["kind"], one.get("detail"))
        kinds[key] = {**one, "count": kinds.get(key, {"count": 0})["count"] + one["count"]}
    return list(kinds.values())


def finish(value):
    """Replaces histograms by figures."""
    if isinstance(value, dict) and "counts" in value and "censored" in value:
        counts, figures = sorted(value.pop("counts").items()), dict(value)
        figures["count"] = n = sum(count for _, count in counts)
        for name, q in PERCENTILES.items():
            left = max(1, -(-int(q * n * 1000) // 1000))
            for at, count in counts:
                left -= count
                if left <= 0:
                    figures[name] = at
                    break
        return figures
    if isinstance(value, dict):
        return {key: finish(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finish(one) for one in value]
    return value


def ns(times, grain):
    low, middle, high = times
    return low * 1e9 * (1 - grain), middle * 1e9, high * 1e9 * (1 + grain)


def distribution(of):
    """`of`(context, groups…) gives outside Times; the last group is the figure. Two digits in a report, three in the stream."""
    def expect(context, *groups):
        *groups, key = groups
        times = of(context, *groups)
        if key == "count":
            return times.n - times.edges, times.n, times.n + times.edges
        if key == "censored":
            return times.censored - times.edges, times.censored, times.censored + times.edges
        if times.n <= times.edges:
            # None of it may have been counted.
            return (0, 0, (times.values[-1] * 1e9 + 1e7) * times.n) if times.n else 0
        if key == "sum":
            low, mean, high = times.mean()
            edge = times.edges * times.values[-1]
            return (low * times.n - edge) * 1e9, mean * times.n * 1e9, (high * times.n + edge) * 1e9
        grain = 0.01
        return ns({"min": times.least, "max": times.most}[key]() if key in ("min", "max") else times.quantile(PERCENTILES[key]), grain)
    return expect


def counts(scope, key):
    answered = scope.answered()
    return {
        "opened": scope.opened, "failed": scope.failed, "redialled": scope.redialled,
        "dropped": lambda: scope.fated("dropped"), "closed": lambda: scope.fated("closed"), "finished": lambda: scope.fated("finished"),
        "done": lambda: 0 if scope.model.kind == "arrive" else scope.fated("finished"), "left": lambda: 0,
        "ended_after": scope.released, "forced": lambda: 0, "told": lambda: 0, "pushed": lambda: 0, "messages": lambda: 0, "missed": scope.missed, "withdrawn": lambda: scope.caused("withdrawn"),
        "addresses_skipped": lambda: Setting("a dial that met a taken address never shows on the wire"),
        "dialled": lambda: len(scope.connections), "given_up": lambda: 0, "undialled": lambda: 0, "revoked": lambda: 0,
        "connection_faults": lambda: sum(scope.faults().values()) - len(scope.lost()) - len(scope.wrong()) - scope.unconnected(),
        "due": scope.due, "failed_requests": lambda: len(scope.lost()), "wrong": lambda: len(scope.wrong()),
        "sent": lambda: len(scope.exchanges), "unanswered": lambda: scope.caused("unanswered"),
        "answered": lambda: len(answered),
        "answered_at_load": lambda: tuple(n * (scope.end - scope.begin) for n in scope.per_s()),
        "kept": lambda: kept(scope, answered),
        "bytes_in": lambda: scope.octets("in"), "bytes_out": lambda: scope.octets("out"), "body_bytes_in": scope.bodies,
    }[key]()


def moments(of):
    def expect(context, *groups):
        *groups, key = groups
        values = of(context, *groups)
        if not values:
            return 0
        return {"count": len(values), "sum": sum(values), "squares": sum(v * v for v in values), "min": min(values), "max": max(values)}[key]
    return expect


def http_heads(context):
    return [x.head for x in context.whole.answered() if x.head]


def open_seconds(scope, until):
    """The time integral of open connections: throng interpolates linearly between the ends of its periods."""
    spans = [min(c.over()[0] or until, until) - c.synack for c in scope.succeeded()]
    total = sum(spans)
    if scope.model.kind == "arrive":
        # throng interpolates linearly over periods of 0.2 s, and these connections are open for less.
        return total * 0.85e9, total * 1e9, total * 1.15e9
    return (total * 0.98 - 0.003 * len(spans)) * 1e9, total * 1e9, (total * 1.02 + 0.003 * len(spans)) * 1e9


SINCE = Setting("the run's own clock")
PAGE = "wire: as of the summary"


def tick_rules(prefix, scope):
    s = lambda read: lambda context, *g: read(scope(context, *g))
    by = lambda read: distribution(lambda context, *g: read(scope(context, *g)))
    return [
        Rule(f"{prefix}counts/*", lambda context, *g: counts(scope(context, *g[:-1]), g[-1]), PAGE),
        Rule(f"{prefix}faults", lambda context, *g: "some" if scope(context, *g).faults() else "empty", PAGE),
        Rule(f"{prefix}faults/*/count", lambda context, *g: scope(context, *g[:-1]).faults().get(g[-1], 0), PAGE),
        Rule(f"{prefix}faults/*/*", Setting("names the fault that is counted"), ""),
        Rule(f"{prefix}status", Setting("no HTTP response"), ""),
        Rule(f"{prefix}status/*", lambda context, *g: scope(context, *g[:-1]).statuses().get(g[-1], 0), PAGE),
        Rule(f"{prefix}latency/*", by(lambda s: s.latency()), PAGE),
        Rule(f"{prefix}ramp_latency/*", by(lambda s: s.ramp_latency()), PAGE),
        Rule(f"{prefix}first_byte/*", by(lambda s: s.first_byte()), PAGE),
        Rule(f"{prefix}ramp_first_byte/*", by(lambda s: s.ramp_first_byte()), PAGE),
        Rule(f"{prefix}connect/*", by(lambda s: s.connect()), PAGE),
        Rule(f"{prefix}tls/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}tls_resumed/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}handshake/*", by(lambda s: s.handshake()), PAGE),
        Rule(f"{prefix}gap/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}delay/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}spread/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}ping_rtt/*", by(lambda s: s.tls()), PAGE),
        Rule(f"{prefix}lag/*", by(lambda s: s.lag()), PAGE),
        Rule(f"{prefix}open", s(lambda s: s.open_at_last()), "wire: neither lost, closed nor finished before the run's end"),
        Rule(f"{prefix}wanted", s(lambda s: (0, s.wanted, s.wanted)), "the command line; a run that ends wants less"),
        Rule(f"{prefix}resolved", s(lambda s: sum(bool(c.synack or c.refused) for c in s.first)), "wire: first dials with an outcome"),
        Rule(f"{prefix}waiting", lambda *g: 0, "the run is over"),
        Rule(f"{prefix}unsettled", lambda *g: 0, "the run is over"),
        Rule(f"{prefix}owed", lambda *g: 0, "the run is over"),
        *[Rule(f"{prefix}{key}", SINCE, "") for key in ("index", "from", "until", "phase")],
        Rule(f"{prefix}ramped_at", lambda context, *g: context.ramped(scope(context, *g)), "wire: the last outcome of a first dial"),
        Rule(f"{prefix}open_ns", lambda context, *g: open_seconds(scope(context, *g), context.sealed), "wire: SYN-ACK to the first FIN or RST, or the last tick's end"),
        Rule(f"{prefix}shard_rates/*", Setting("of each shard by itself: outside they are one"), ""),
        Rule(f"{prefix}head_sizes/*", moments(lambda context, *g: [x.head for x in scope(context, *g).answered() if x.head]), "wire: octets of each response's head"),
        Rule(f"{prefix}answer_sizes/*", moments(lambda context, *g: [x.head + x.body for x in scope(context, *g).answered()]), "wire: octets of each response"),
        Rule(f"{prefix}silence/*", Setting("of connections that were lost: since when throng had heard nothing"), ""),
        Rule(f"{prefix}stalled", lambda context, *g: (0.0, 0.0, context.stall()[2] * 1e3), "wire: no stretch in which what was due was not sent is shorter"),
        Rule(f"{prefix}late_dials", Setting("of dials that were due while the generator stalled: when each was due is not on the wire"), ""),
        Rule(f"{prefix}dial_lag", Setting("the same: by how much"), ""),
        Rule(f"{prefix}longest_silence", Setting("evidence for an idle cut: of idle connections, and in half seconds"), ""),
        Rule(f"{prefix}keep_alive_s", Setting("what the server announced in Keep-Alive, in seconds"), ""),
        Rule(f"{prefix}served", Setting("evidence for a target that serves some of its connections only: before the load ended"), ""),
        Rule(f"{prefix}responses_at_close/*", Setting("of a sample of the connections that the target closed"), ""),
        Rule(f"{prefix}congestion/*", Setting("what an adaptive ramp judged soon after each dial, and adapted to"), ""),
        Rule(f"{prefix}error_samples/**", Setting("bytes of a few wrong responses, masked: black_box pages holds them against a scripted server"), ""),
        Rule(f"{prefix}examples/**", Setting("exchanges with a few wrong responses, masked: black_box tries holds them against a scripted server"), ""),
        Rule(f"{prefix}marks/**", Setting("stages and commands, by the run's own clock"), ""),
        Rule(f"{prefix}probe", lambda context, *g: None, "no probe was asked for, or not of a population"),
        Rule(f"{prefix}populations", Setting("there is one"), ""),
        *[Rule(f"{prefix}{key}", Setting("there is one"), "") for key in ("steps", "ramp_steps", "step_faults")],
        Rule(f"{prefix}destinations", Setting("there is one"), ""),
    ]


def population(context, at):
    return list(context.scopes.values())[int(at)]


def step(context, at):
    """Steps are numbered through all populations, in the scenario's order."""
    return context.step_at(int(at)).latency()


def ramp_step(context, at):
    return context.step_at(int(at)).ramp_latency()


def step_rules(prefix):
    """Of the whole run, and of a population, whose number is the first group then."""
    by = lambda of: lambda context, *groups: distribution(of)(context, *groups[-2:])
    return [
        Rule(f"{prefix}steps/*/*", by(step), "wire: the step's requests"),
        Rule(f"{prefix}ramp_steps/*/*", by(ramp_step), "wire: the step's requests due in the ramp"),
        Rule(f"{prefix}step_faults/*/*/count", lambda context, *groups: context.faults_of(context.step_at(int(groups[-2]))).get(groups[-1], 0), "wire: what became of the step's requests"),
        Rule(f"{prefix}step_faults/*/*/*", Setting("names the fault that is counted"), ""),
        Rule(f"{prefix}step_faults/*", lambda context, *groups: "some" if context.faults_of(context.step_at(int(groups[-1]))) else "empty", "wire: what became of the step's requests"),
    ]


def destination(context, at, key):
    s = list(context.destinations.values())[int(at)]
    if key in ("opened", "failed", "dropped", "closed", "redialled", "finished", "sent", "answered"):
        return counts(s, key)
    if key == "faults":
        return "some" if s.faults() else "empty"
    if key.startswith("faults/"):
        kind, what = key.split("/")[1:]
        return s.faults().get(kind, 0) if what == "count" else Setting("names the fault that is counted")
    return distribution(lambda context: s.latency())(context, key.split("/")[1])


def probe(context, key):
    p = context.probe
    if key in ("sent", "answered", "failed", "unanswered"):
        return p.count(key)
    if key == "faults":
        return "empty"
    name, figure = key.split("/")
    if name == "status":
        return p.count("answered") if figure == "200" else 0
    times = p.outside({"kept": "kept_us", "fresh": "fresh_us", "held": "held_us", "connect": "connect_us"}[name])
    return distribution(lambda context: times)(context, figure)


TICKS = [
    Rule("tick/probe/**", probe, "wire: requests of the probe's path"),
    Rule("tick/lag/*", distribution(lambda context: context.lag()), PAGE),
    *[Rule(f"tick/{key}/*", Setting("of a population that has one step only"), "") for key in ("steps", "ramp_steps")],
    *step_rules("tick/"),
    Rule("tick/destinations/*/**", destination, "wire: by the server's address"),
    *[Rule(f"tick/populations/*/{key}/*", Setting("another population's step"), "") for key in ("steps", "ramp_steps")],
    *step_rules("tick/populations/*/"),
    Rule("tick/populations/*/destinations/*/**", lambda c, population, at, key: destination(c, at, key), "wire: by the server's address"),
    Rule("tick/populations/*/destinations/*", Setting("another population's destination"), ""),
    Rule("tick/populations/*/lag/*", Setting("of the whole run only"), ""),
    *tick_rules("tick/populations/*/", population),
    *tick_rules("tick/", lambda context: context.whole),
]
