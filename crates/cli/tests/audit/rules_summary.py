"""`throng.summary/1`, leaf by leaf: what each figure is compared with."""

from compare import Rule, Setting

# Per cent or so of a second: from the first dial, as throng's clock has it, to its SYN at the tap, and the last event's way back.
CLOCK = 0.006


def kept(scope, answered):
    """Responses after which the connection was not closed as announced; which side closes first does not show at the run's end."""
    calls = scope.model.calls
    last = lambda x: calls and x.number + 1 >= calls
    n = sum(not x.goodbye and not last(x) for x in answered)
    return n, n, n + (sum(bool(last(x)) for x in answered) if calls else 0)


def us(times):
    """Seconds to microseconds."""
    return tuple(None if t is None else t * 1e6 for t in times)


PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
JITTER = ("wire: from due to the packet; throng reads and sends within its seen turnaround, and its histogram has three digits")


def around(n, edges):
    return n - edges, n, n + edges


def figure(of, key):
    """A figure of a distribution; `of` gives the outside Times."""
    def expect(context, *groups):
        times = of(context, *groups)
        if key == "count":
            return around(times.n, times.edges)
        if times.n <= times.edges:
            # None of it may have been counted; and where there is none, there is no time.
            return (0.0, times.values[-1], times.values[-1] * 1e6 + 1e4) if times.n else 0.0
        if key in PERCENTILES:
            return us(times.quantile(PERCENTILES[key]))
        return us({"mean": times.mean, "stdev": times.stdev, "min": times.least, "max": times.most}[key]())
    return expect


def censored(of, key):
    def expect(context, *groups):
        times = of(context, *groups)
        without = times.censored
        if key is None:
            # If there are any, there is no such leaf: it has members.
            return None if without <= times.edges else "some"
        if key == "count":
            return around(without, times.edges)
        if key == "share":
            share = without / (without + times.n)
            slack = times.edges / (without + times.n)
            return share - slack, share, share + slack
        low, middle, high = us(times.quantile(PERCENTILES[key], beyond=without))
        inside = lambda t: None if t == float("inf") else t
        return Censored(low, middle, high) if high == float("inf") else (low, inside(middle), high)
    return expect


def Censored(low, middle, high):
    """Where the percentile may lie among those without a response: null, or a time."""
    return (None, None, None) if low == float("inf") or middle == float("inf") else (low, middle, high)


NO_STALL = "no run is audited in which throng itself stood still"


def times(prefix, of, counted):
    """All figures of one distribution."""
    keys = ["count", "mean", "stdev", "min", *PERCENTILES, "max"]
    rules = [Rule(f"{prefix}/{key}", figure(of, key), counted if key == "count" else JITTER) for key in keys]
    rules += [Rule(f"{prefix}/censored/{key}", censored(of, key), "wire: requests due then that had no response")
              for key in ["count", "share", *PERCENTILES]]
    rules.append(Rule(f"{prefix}/stalled", lambda *_: None, NO_STALL))
    rules.append(Rule(f"{prefix}/stalled/*", Setting(NO_STALL), ""))
    return [*rules, Rule(f"{prefix}/censored", censored(of, None), "wire: requests due then that had no response")]


WINDOW = "wire: those due at full load; either side of its bounds by 6 ms"


def figures_of(prefix, scope):
    """The figures that a run and a population have in common."""
    def of(read):
        return lambda context, *groups: read(scope(context, *groups))
    def per_elapsed(way):
        def expect(context, *groups):
            octets, span = scope(context, *groups).octets(way), context.elapsed()
            return span if isinstance(span, Setting) else tuple(octets / s for s in reversed(span))
        return expect
    whole = lambda path, read, reason, tolerance=0.0: Rule(f"{prefix}{path}", of(read), reason, tolerance)
    rules = [
        whole("connections/wanted", lambda s: s.wanted, "the command line"),
        whole("connections/arriving", lambda s: s.wanted, "the command line: all of them come and go"),
        whole("connections/opened", lambda s: s.opened(), "wire: SYN-ACKs to first dials"),
        whole("connections/failed", lambda s: s.failed(), "wire: SYNs that were answered by a reset"),
        whole("connections/peak", lambda s: s.peak(), "wire: SYN-ACK to the first FIN or RST; the others of its threads as of the last 0.2 s, and an end is seen up to 6 ms later"),
        whole("connections/held", lambda s: s.held(), "wire: open at the end of full load, 6 ms around"),
        whole("connections/dropped", lambda s: s.fated("dropped"), "wire: ended by the server without notice, or given up after the timeout"),
        whole("connections/dropped_in_drain", lambda s: s.dropped_in_drain(), "wire: those after the end of full load"),
        whole("connections/closed", lambda s: s.fated("closed"), "wire: ended behind `Connection: close`, or a close frame"),
        whole("connections/redialled", lambda s: s.redialled(), "wire: SYN-ACKs beyond those of first dials"),
        whole("connections/finished", lambda s: s.fated("finished"), "wire: ended by throng, nothing outstanding, before the load's end"),
        whole("connections/open_per_s", open_per_s, "wire: opened over the ramp, 6 ms of it"),
        whole("requests/sent", lambda s: s.sent(), "wire: requests and messages, without those that crossed an announced close and were sent again"),
        whole("requests/answered", lambda s: len(s.answered()), "wire: whole responses"),
        whole("requests/unanswered", lambda s: s.caused("unanswered"), "wire: neither a response nor an end before the timeout"),
        whole("requests/due", lambda s: s.due(), "wire: requests and messages, and those whose connection was refused"),
        whole("requests/wrong", lambda s: len(s.wrong()), "wire: whole responses that are not as expected"),
        whole("requests/kept", lambda s: kept(s, s.answered()), "wire: whole responses after which the connection stayed open"),
        whole("requests/failed", lambda s: len(s.lost()), "wire: requests that ended otherwise"),
        whole("requests/missed", lambda s: s.missed(), "wire: SYNs of requests that were answered by a reset, and messages that fell due unsent"),
        whole("requests/messages", lambda s: 0, "no gRPC, and a server that only replies"),
        *(whole(f"pushes/{key}", lambda s: 0, "the server only replies") for key in (
            "count", "per_s", "bytes", "bytes_max", "unread", "ahead", "numbered", "lost", "duplicates", "out_of_order", "restarts", "broadcasts",
            "complete")),
        Rule(f"{prefix}pushes/clock_offset_us", lambda context, *g: None, "no message has a time"),
        whole("requests/told", lambda s: 0, "the scenario: every message has an echo"),
        whole("requests/per_s", lambda s: s.per_s(), "wire: responses at full load; either side of its bounds by 6 ms"),
        whole("requests/lower_bound", lambda s: False, "throng's processors were not used up"),
        whole("requests/bytes_in", lambda s: s.octets("in"), "wire: octets of payload from the server, none twice"),
        whole("requests/bytes_out", lambda s: s.octets("out"), "wire: octets of payload to it"),
        Rule(f"{prefix}requests/bytes_in_per_s", per_elapsed("in"), "wire: octets from the server over the time from the first dial to the end of full load"),
        Rule(f"{prefix}requests/bytes_out_per_s", per_elapsed("out"), "wire: octets to it over the same time"),
        whole("errors/count", lambda s: sum(errors(s).values()) + s.caused("unanswered") + len(s.backlog()), "wire: faults of each kind, and requests with no end"),
        whole("errors/of", error_base, "wire: requests, and connections that failed with none under way; where there is no request, dials"),
        whole("requests/body_bytes_in", lambda s: s.bodies(), "wire: octets of content, and of messages"),
        Rule(f"{prefix}requests/status", lambda context, *g: Setting("no HTTP response"), ""),
        Rule(f"{prefix}faults/*/detail", Setting("the kernel's error, where there is one"), ""),
        Rule(f"{prefix}faults", lambda context, *g: "empty" if not scope(context, *g).faults() else "some", "wire: no faults"),
        whole("duration_s", duration, "the command line, and a tick of 200 ms until the order arrives", 0.0),
        whole("ramp_s", lambda s: (s.ramp() - CLOCK, s.ramp(), s.ramp() + CLOCK), "wire: first SYN to the last SYN-ACK or reset of a first dial"),
        *times(f"{prefix}latency_us", of(lambda s: s.latency()), WINDOW),
        *times(f"{prefix}ramp_latency_us", of(lambda s: s.ramp_latency()), WINDOW),
        *times(f"{prefix}connect_us", of(lambda s: s.connect()), "wire: SYN-ACKs"),
        *times(f"{prefix}tls_us", of(lambda s: s.tls()), "no TLS"),
        *times(f"{prefix}tls_resumed_us", of(lambda s: s.tls()), "no TLS"),
        *times(f"{prefix}handshake_us", of(lambda s: s.handshake()), "wire: 101s"),
        *times(f"{prefix}gap_us", of(lambda s: s.tls()), "no gRPC, and a server that only replies"),
        *times(f"{prefix}delay_us", of(lambda s: s.tls()), "the server only replies"),
        *times(f"{prefix}spread_us", of(lambda s: s.tls()), "the server only replies"),
        *times(f"{prefix}ping_rtt_us", of(lambda s: s.tls()), "no HTTP/2"),
        *times(f"{prefix}first_byte_us", of(lambda s: s.first_byte()), WINDOW),
    ]
    def status(context, *groups):
        *groups, code = groups
        return scope(context, *groups).statuses().get(code, 0)
    def fault(context, *groups):
        *groups, kind = groups
        return scope(context, *groups).faults().get(kind, 0)
    words = [Rule(f"{prefix}faults/*/{key}", Setting("names the fault that is counted"), "") for key in ("side", "stage", "kind")]
    return [Rule(f"{prefix}requests/status/*", status, "wire: status lines"), *words,
            Rule(f"{prefix}faults/*/count", fault, "wire: what became of each request and dial"), *rules]


def errors(s):
    """Faults, without the ends of connections by a response that is a fault itself."""
    follows = ("hold·missing-value", "hold·value-too-long")
    return {kind: n for kind, n in s.faults().items() if not kind.endswith(follows)}


def error_base(s):
    stages = {}
    for kind, n in errors(s).items():
        stages[kind.split("·")[1]] = stages.get(kind.split("·")[1], 0) + n
    if s.sent():
        return s.sent() + len(s.backlog()) + sum(n for stage, n in stages.items() if stage != "exchange")
    return s.opened() + sum(stages.get(stage, 0) for stage in ("dial", "tls", "handshake"))


def open_per_s(s):
    n, span = s.opened(), s.ramp()
    return n / (span + CLOCK), n / span, n / (span - CLOCK)


def duration(s):
    if s.model.duration is None:
        # Until the last connection is closed; that is known with a tick.
        span = max(c.over()[0] for c in s.connections) - s.connections[0].syn
        return span - CLOCK, span, span + 0.4
    # A shard applies the orders to begin and to end in its next turn.
    return s.model.duration, s.model.duration, s.model.duration + 0.05




WORDS = Setting("words, not a count")
GIVEN = Setting("a setting, as it was asked for or chosen")

TOP = [
    Rule("schema", lambda c: "throng.summary/1", "the contract"),
    Rule("verdict", lambda c: c.verdict(), "the contract: a fault, or a load that was not reached, is a fail"),
    *[Rule(path, WORDS, "") for path in ("headline", "reasons", "reasons/*", "limit", "limit/**", "unreliable", "failure")],
    *[Rule(path, GIVEN, "") for path in ("target", "populations/*/target", "seed", "io", "threads", "populations/*/threads",
                                         "thresholds", "planned_s", "rig", "rig/**", "asks")],
    Rule("elapsed_s", lambda c: c.elapsed(), "wire: first SYN to the last request, or a pause between two later"),
    Rule("populations/*/elapsed_s", lambda c, name: c.elapsed(), "wire: first SYN to the last request, or a pause between two later"),
    Rule("connections/seen_by_target", lambda c: c.seen_by_target(), "the server's log: open at the end of full load"),
    Rule("connections/unaccepted", lambda c: 0, "the server's log: each connection was accepted"),
    Rule("connections/quiet_s", lambda c: c.quiet(), "wire: from the last packet of the server, be it an acknowledgement, to the end of full load"),
    *[Rule(f"populations/*/connections/{key}", lambda c, name: None, "only of the whole run")
      for key in ("seen_by_target", "unaccepted", "quiet_s")],
    *times("lag_us", lambda c: c.lag(), WINDOW),
    Rule("populations/*/steps/*/latency_us/**", lambda c, name, step, key: step_figure(c.step_scope(name, step).latency(), key), "wire: the step's requests; as of latency"),
    Rule("populations/*/steps/*/ramp_latency_us/**", lambda c, name, step, key: step_figure(c.step_scope(name, step).ramp_latency(), key), "wire: the step's requests; as of latency"),
    Rule("populations/*/steps/*/faults", lambda c, name, step: "some" if c.faults_of(c.step_scope(name, step)) else "empty", "wire: no faults"),
    Rule("populations/*/steps/*/faults/*/count", lambda c, name, step, kind: c.faults_of(c.step_scope(name, step)).get(kind, 0), "wire: what became of the step's requests"),
    *[Rule(f"populations/*/steps/*/faults/*/{key}", WORDS, "") for key in ("side", "stage", "kind")],
    Rule("populations/*/steps", lambda c, name: "empty" if c.step_names(name) == [""] else "some", "the scenario has no steps"),
    Rule("populations", WORDS, ""),
]


def step_figure(times, key):
    if key.startswith("censored"):
        return censored(lambda c: times, key.partition("/")[2] or None)(None)
    return None if key == "stalled" else figure(lambda c: times, key)(None)


def destination(context, name, key):
    s = context.destinations[name]
    if key == "destination" or key == "last":
        return name
    if key.startswith("latency_us/censored/"):
        return censored(lambda c: s.latency(), key.rsplit("/", 1)[1])(context)
    if key == "latency_us/censored":
        return censored(lambda c: s.latency(), None)(context)
    if key == "latency_us/stalled":
        return None
    if key.startswith("latency_us/"):
        expected = figure(lambda c: s.latency(), key.split("/")[1])(context)
        if isinstance(expected, tuple) and key != "latency_us/count":
            # A destination's histogram has two digits.
            low, middle, high = expected
            return low * 0.99, middle, high * 1.01
        return expected
    if key == "faults":
        return "empty" if not s.faults() else "some"
    if key.startswith("faults/"):
        _, kind, what = key.split("/")
        return s.faults().get(kind, 0) if what == "count" else Setting("names the fault that is counted")
    return {
        "opened": lambda: s.opened(), "failed": lambda: s.failed(), "dropped": lambda: s.fated("dropped"),
        "closed": lambda: s.fated("closed"), "redialled": lambda: s.redialled(),
        "open": s.left, "sent": s.sent, "answered": lambda: len(s.answered()),
    }[key]()


def probe(context, key):
    """The probe: its requests by their path; one was due at an unknown time before its first packet."""
    p = context.probe
    if key in ("sent", "answered", "failed", "unanswered", "rate"):
        return p.count(key)
    if key == "failures":
        return "empty"
    distribution, _, name = key.partition("/")
    if distribution == "by_connections":
        return p.point(name)
    return p.figure(distribution, name)


OWN = "/proc of the process, looked at every 50 ms"

SUMMARY = [
    Rule("destinations", lambda c: "empty" if not c.destinations else "some", "the target has one destination"),
    Rule("destinations/*/**", destination, "wire: as of the whole, by the server's address; latency to two digits"),
    Rule("probe", lambda c: None if c.probe is None else "some", "no probe was asked for"),
    Rule("probe/**", probe, "wire: requests of its path; due before the first packet by throng's lateness"),
    Rule("generator/cpu_s", lambda c: c.own_cpu(), "/proc/PID/stat at the end of the load to its end, and two clock ticks"),
    Rule("generator/system_s", lambda c: c.own_cpu("system"), "/proc/PID/stat at the end of the load to its end, and two clock ticks"),
    Rule("generator/over_s", lambda c: c.own_time(), "the process, from its start on, to the last packet at least"),
    Rule("target_cost/over_s", lambda c: c.own_time(), "the same: it was there before"),
    Rule("generator/rss_bytes", lambda c: c.own_memory(), "/proc/PID/statm from the beginning of full load on; the kernel's count is off by up to 64 pages a processor and kind"),
    Rule("generator/cpu_share", lambda c: c.own_share(), "/proc/PID/stat over full load, by what its threads could have had; two clock ticks"),
    Rule("generator/stall_us", lambda c: c.stall(), "wire: no stretch in which throng sent nothing although something was due is shorter than it"),
    Rule("generator/user_bytes_per_connection", lambda c: None, "too few connections for a slope"),
    Rule("target_cost/pid", lambda c: c.server_pid, "the process that was started"),
    Rule("target_cost/rss_bytes", lambda c: c.server_memory(), "/proc/PID/statm, the most of the run; off by up to 64 pages a processor and kind"),
    Rule("target_cost/user_bytes_per_connection", lambda c: None, "too few connections for a slope"),
    Rule("target_cost/cpu_s", lambda c: c.server_cpu(), "/proc/PID/stat over the run, and two clock ticks"),
    Rule("target_cost/processes/0/pid", lambda c: c.server_pid, "the process that was started"),
    Rule("target_cost/processes/0/rss_bytes", lambda c: c.server_memory(), OWN),
    Rule("kernel_bytes_per_connection", lambda c: None, "too few connections for a slope"),
    Rule("cost/target_runtime", lambda c: "Python", "the server is one"),
    Rule("cost/*_cpu_us_per_*/**", lambda c, who, per, key: c.cpu_slope(who, per, key), "/proc/PID/stat over the same stretch by the wire's count; clock ticks of 10 ms"),
    Rule("cost/*_cpu_us_per_*", lambda c, who, per: None, "too little CPU time for a slope, or requests too often for an idle second"),
    *[Rule(f"cost/{key}", lambda c: None, "too few connections for a slope, or not asked for") for key in
      ("target_bytes", "generator_bytes", "kernel_bytes", "target_kernel_bytes", "ceiling_connections", "target_live_bytes",
       "target_live_failure", "target_live_fit")],
    Rule("cost/target_live_points", lambda c: "empty", "the server is no JVM"),
    *[Rule(f"observed/target/{key}", lambda c: None, "the server is no JVM") for key in ("jvm_heap_used_bytes", "jvm_heap_max_bytes")],
    Rule("observed/target/threads_gone", lambda c: "empty", "the server has one thread, and it lives"),
    Rule("observed/target/log", lambda c: "empty", "the server writes no log that others could read"),
    Rule("cost/discarded", lambda c: "empty", "no slope of so few connections"),
    Rule("in_common/**", Setting("a test of figures that are audited here, with tests of its own"), ""),
    Rule("observed/target/pid", lambda c: c.server_pid, "the process that was started"),
    Rule("observed/target/process/**", lambda c, key: c.process("server", key), OWN),
    Rule("observed/own/**", lambda c, key: c.process("throng", key), OWN),
    Rule("observed/target/open_files/*", lambda c, key: c.open_files(key), "the server's log: its connections, and what it had before"),
    Rule("observed/target/open_files_limit", lambda c: c.files_limit(), "prlimit"),
    Rule("observed/target/accept_queue/*", lambda c, key: c.queue(), "sock_diag, every 50 ms: a connection may wait between two looks"),
    Rule("observed/target/accept_backlog", lambda c: 512, "the server's listen()"),
    Rule("observed/target/accept_queue_full", lambda c: 0, "the queue was never near its 512"),
    Rule("observed/target/memory_available", lambda c: None, "no control group of its own"),
    Rule("observed/target/group_oom_kills/*", lambda c, key: 0, "nothing was killed"),
    Rule("observed/target/cpu_quota", lambda c: None, "no quota"),
    Rule("observed/target/quota_periods/*", lambda c, key: 0, "no quota"),
    Rule("observed/target/quota_throttled/*", lambda c, key: 0, "no quota"),
    Rule("observed/host/tcp_sockets/*", lambda c, key: c.gauge(key, lambda l: l["sockets"]["inuse"], c.socket_slack()), "/proc/net/sockstat, every 50 ms; a question of this audit's may be open; connections come and go"),
    Rule("observed/host/tcp_orphans/*", lambda c, key: c.gauge(key, lambda l: l["sockets"]["orphan"], 1), "/proc/net/sockstat, every 50 ms"),
    Rule("observed/host/tcp_time_wait/*", lambda c, key: c.gauge(key, lambda l: l["sockets"]["tw"], 2), "/proc/net/sockstat, every 50 ms"),
    Rule("observed/host/tcp_mem_pages/*", lambda c, key: c.gauge(key, lambda l: l["sockets"]["mem"], 64), "/proc/net/sockstat, every 50 ms: of the whole machine"),
    Rule("observed/host/tcp_mem_pressure_pages", lambda c: c.tcp_mem(), "tcp_mem"),
    Rule("observed/host/tcp_*/*", lambda c, phase, event: c.tcp(phase, event), "/proc/net/snmp and netstat at the bounds of the phase, a look apart"),
    Rule("observed/host/conntrack", lambda c: None, "no connection tracking in this namespace"),
    Rule("observed/host/conntrack/*", lambda c, key: c.gauge(key, lambda l: l["conntrack"], 2), "nf_conntrack_count"),
    Rule("observed/host/conntrack_max", lambda c: c.conntrack_max(), "nf_conntrack_max"),
    Rule("observed/host/conntrack_drops", lambda c: None, "the kernel does not count them"),
    Rule("observed/host/conntrack_drops/*", lambda c, key: 0, "nothing was dropped"),
    Rule("observed/host/memory_available/*", lambda c, key: c.gauge(key, lambda l: l["available"], 64 << 20), "/proc/meminfo, every 50 ms: of the whole machine, others use it too"),
    Rule("observed/host/oom_kills/*", lambda c, key: c.counter(key, lambda l: l["oom_kills"]), "/proc/vmstat"),
    Rule("observed/rejection", lambda c: None, "no message of ICMP was on the wire"),
    Rule("observed/target_host", lambda c: None, "no observer was asked"),
    Rule("observed/observer", lambda c: None, "no observer was asked"),
    *TOP,
    *figures_of("", lambda c: c.whole),
    *figures_of("populations/*/", lambda c, name: c.scopes[name]),
]
