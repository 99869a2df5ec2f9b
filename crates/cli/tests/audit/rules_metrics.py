"""The metrics of each second, by their names in docs/reference/metrics.md: files, Prometheus."""

import re

from compare import Rule, Setting
from kernel import TCP_EVENTS

NAME = re.compile(r"(\w+?)(?:\{(.*)\})?\Z")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
TIMES = ("latency", "ramp_latency", "first_byte", "connect", "tls", "tls_resumed", "handshake", "gap", "delay", "spread", "ping_rtt", "lag", "probe_latency")
POPULATION = ("opened", "failed", "dropped", "closed", "redialled", "finished")


def split(series):
    """`throng_x_total{a="b"}` → name, labels."""
    name, labels = NAME.match(series).groups()
    return name, dict(LABEL.findall(labels or ""))


def rule(pattern, expect, reason):
    """`expect(moment, labels, groups…)`."""
    return re.compile(pattern + r"\Z"), expect, reason


def population(moment, labels):
    return moment.scope(labels.get("population"))


WIRE = "wire: until the line's time, 6 ms around"
PROC = "/proc, every 50 ms of the second before"
STARTED = Setting("the target is no JVM")
ALONE = Setting("a run on one machine has no agents; the tests `fleet` compare theirs with the servers' and the summary's counts")


RULES = [
    rule(r"throng_run_info", lambda m, l: 1.0, "there is one run"),
    rule(r"throng_phase", lambda m, l: Setting("the phase is throng's own word"), ""),
    rule(r"throng_connections_(\w+)_total", lambda m, l, name: m.counter(name, population(m, l), l), WIRE),
    rule(r"throng_(connections_open|connections_wanted|requests_waiting)", lambda m, l, name: m.gauge(name, population(m, l)), WIRE),
    rule(r"throng_requests_total", lambda m, l: m.counter("requests", population(m, l), l), WIRE),
    rule(r"throng_probe_(requests|answers|failed|unanswered)_total", lambda m, l, name: probe(m, name), "wire: requests of the probe's path"),
    rule(r"throng_(requests_missed|requests_due|requests_failed|requests_withdrawn|requests_revoked|responses_wrong|requests_without_response|requests_unanswered|messages_told|messages_received|answers|statuses|received_bytes|"
         r"received_body_bytes|sent_bytes|faults)_total", lambda m, l, name: m.counter(name, population(m, l), l), WIRE),
    rule(r"throng_(push\w*|broadcasts\w*)_total", lambda m, l, name: 0, "the server only replies"),
    rule(rf"throng_({'|'.join(TIMES)})_seconds_bucket", lambda m, l, name: m.bucket(name, float(l["le"].replace("+Inf", "inf")), population(m, l), l),
         "wire: times up to the bucket's bound, by throng's seen lateness"),
    rule(rf"throng_({'|'.join(TIMES)})_seconds_(\w+)", lambda m, l, name, ending: m.distribution(name, ending, population(m, l), l),
         "wire: as of the summary; percentiles of the line's second"),
    rule(r"throng_destination_connections_open", lambda m, l: m.gauge("connections_open", there(m, l)), WIRE),
    rule(r"throng_destination_(requests|answers|faults)_total", lambda m, l, name: m.counter(name, there(m, l), {}), WIRE),
    rule(r"throng_destination_without_response_total", lambda m, l: m.without_response(there(m, l)), "wire: of requests due at full load"),
    rule(r"throng_destination_latency_seconds_bucket", lambda m, l: m.bucket("latency", float(l["le"].replace("+Inf", "inf")), there(m, l), {}),
         "wire: times up to the bucket's bound, by throng's seen lateness"),
    rule(r"throng_destination_latency_seconds_(\w+)", lambda m, l, ending: two_digits(m.distribution("latency", ending, there(m, l), {}), ending),
         "wire: as of the summary; percentiles of the line's second, to two digits"),
    rule(r"throng_agents|throng_agent_\w+", lambda m, l: ALONE, ""),
    rule(r"throng_generator_cpu_seconds_total", lambda m, l: m.cpu("throng", l["mode"]), "/proc/PID/stat, and two clock ticks"),
    rule(r"throng_generator_resident_bytes", lambda m, l: m.memory("throng"), PROC),
    rule(r"throng_generator_stall_seconds", lambda m, l: (0.0, 0.0, m.context.stall()[2] / 1e6), "wire: no stretch in which what was due was not sent is shorter"),
    rule(r"throng_(generator|target)_busiest_thread", lambda m, l, who: m.context.process({"generator": "throng", "target": "server"}[who], "busiest_thread/max"), PROC),
    rule(r"throng_target_connections", lambda m, l: target_connections(m), "/proc/net/sockstat: the sockets beyond those before the run, half of them where both ends are sockets"),
    rule(r"throng_target_processes", lambda m, l: 1, "the server is one process"),
    rule(r"throng_target_threads", lambda m, l: m.seen(lambda one: one["server"] and one["server"]["threads"]), PROC),
    rule(r"throng_target_resident_bytes", lambda m, l: m.memory("server"), PROC),
    rule(r"throng_target_cpu_seconds_total", lambda m, l: m.cpu("server", l["mode"]), "/proc/PID/stat, and two clock ticks"),
    rule(r"throng_target_open_files", lambda m, l: m.open_files(), "the server's log: its connections, and what it had before"),
    rule(r"throng_target_open_files_limit", lambda m, l: m.context.files_limit(), "prlimit"),
    rule(r"throng_target_jvm_\w+", lambda m, l: STARTED, ""),
    rule(r"throng_target_accept_queue", lambda m, l: m.context.queue(), "sock_diag"),
    rule(r"throng_target_accept_queue_limit", lambda m, l: 512, "the server's listen()"),
    rule(r"throng_host_tcp_sockets", lambda m, l: m.seen(lambda one: one["sockets"]["inuse"], m.context.socket_slack()), "/proc/net/sockstat; a question of this audit's may be open; connections come and go"),
    rule(r"throng_host_tcp_orphans", lambda m, l: m.seen(lambda one: one["sockets"]["orphan"], 1), "/proc/net/sockstat"),
    rule(r"throng_host_tcp_time_wait", lambda m, l: m.seen(lambda one: one["sockets"]["tw"], 2), "/proc/net/sockstat"),
    rule(r"throng_host_tcp_memory_pages", lambda m, l: m.seen(lambda one: one["sockets"]["mem"], 64), "/proc/net/sockstat, of the whole machine"),
    rule(r"throng_host_tcp_events_total", lambda m, l: m.seen(lambda one: one["tcp"][l["event"]]), "/proc/net/snmp and netstat"),
    rule(r"throng_host_conntrack", lambda m, l: m.seen(lambda one: one["conntrack"], 2), "nf_conntrack_count"),
    rule(r"throng_host_conntrack_limit", lambda m, l: m.context.conntrack_max(), "nf_conntrack_max"),
    rule(r"throng_host_available_bytes", lambda m, l: m.seen(lambda one: one["available"], 64 << 20), "/proc/meminfo: others use it too"),
    rule(r"throng_host_kernel_bytes", lambda m, l: m.seen(lambda one: one["kernel"], 64 << 20), "/proc/meminfo: others use it too"),
    rule(r"throng_host_oom_kills_total", lambda m, l: m.seen(lambda one: one["oom_kills"]), "/proc/vmstat"),
]


def there(moment, labels):
    """The scope of a destination; without a label (CSV's columns before there are any) the total."""
    return moment.context.destinations[labels["destination"]]


def two_digits(expected, ending):
    if expected is None or ending in ("count", "sum"):
        return expected
    low, middle, high = expected
    return low - abs(low) * 0.01, middle, high * 1.01


def probe(m, name):
    p = m.context.probe
    if p is None or name in ("failed", "unanswered"):
        return 0
    if name == "requests":
        # Begun with the dial.
        low, n, high = m.until([x.asked for x in p.exchanges])
        return low, n, high + 1
    return m.until([x.answered for x in p.exchanges if x.answered])


def target_connections(m):
    first = m.context.at(m.context.first_syn - 0.1, lambda one: one["sockets"]["inuse"], 0.1)
    low, now, high = m.seen(lambda one: one["sockets"]["inuse"], m.context.socket_slack())
    ends = m.context.ends_in_kernel
    return (low - first[1]) // ends, (now - first[0]) // ends, (high - first[0]) // ends


def find(series):
    name, labels = split(series)
    for pattern, expect, reason in RULES:
        match = pattern.match(name)
        if match:
            return expect, reason, labels, match.groups()
    return None


def audit(table, where, moment, series):
    """All series of one line."""
    for key, value in series.items():
        found = find(key)
        if found is None:
            table.without_rule(where, key, value)
            continue
        if not table.compares:
            continue
        expect, reason, labels, groups = found
        expected = expect(moment, labels, *groups)
        # There is no percentile of a second without values.
        if expected is None:
            near = key.partition("{")[0].rsplit("_", 1)[1] in ("p50", "p90", "p95", "p99", "p999", "max")
            if not near or value not in (None, 0):
                table.compare(where, key, value, None, 0.0, reason)
            continue
        table.compare(where, key, value, expected, 0.0, reason)


def prometheus(text):
    """The text format: series → value."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            found[series] = float(value)
    return found


assert len(TCP_EVENTS) == 16
