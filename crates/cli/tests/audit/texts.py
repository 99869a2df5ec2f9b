"""Figures in sentences: each number of the summary's text and of the Markdown is a rounding of the JSON's, which is audited."""

import re

from compare import Setting
from context import TICKS

UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "%": 0.01, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
         "bytes": 1}
NUMBER = re.compile(r"(?<![\w.])(-?\d[\d,]*(?:\.\d+)?)(?: (ns|µs|ms|s|m|%|B|KiB|MiB|GiB|bytes)(?![\w]))?")


def numbers(text):
    """(value, half a unit of its last digit, unit) of each number."""
    for match in NUMBER.finditer(text):
        digits, unit = match[1].replace(",", ""), match[2]
        step = 10.0 ** -len(digits.partition(".")[2])
        yield match[0], float(digits) * UNITS.get(unit, 1), step * UNITS.get(unit, 1), unit


def rounds(value, step, figure):
    # To the nearest, or cut.
    return abs(value - figure) <= step * 1.0001


def at(told, path):
    for key in path.split("/"):
        told = told.get(key) if isinstance(told, dict) else None
    return told


def leaves_below(told, path):
    value = at(told, path)
    if isinstance(value, dict):
        for key in value:
            yield from leaves_below(told, f"{path}/{key}")
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, dict):
                yield from (v for v in one.values() if isinstance(v, (int, float)))
    elif isinstance(value, (int, float)):
        yield value


def restated(table, where, told, row, text, paths):
    """Each number of `text` is one of the figures below `paths`, to its last digit."""
    for word, value, step, unit in numbers(text):
        # Seconds of the JSON are seconds, its times of requests microseconds.
        figures = [figure for path in paths for figure in leaves_below(told, path)]
        scaled = [figure * 1e6 if unit == "s" else figure for figure in figures] + (figures if unit == "s" else [])
        right = any(rounds(value, step, figure) for figure in scaled)
        table.compare(where, f"{row}: {word}", right, True, 0.0, "a rounding of a figure of the JSON: " + ", ".join(paths))


# Rows of the text, by their first word, and the paths of their figures.
SUMMARY_ROWS = {
    "connections": ["connections"], "destination": ["destinations"], "ramp": ["ramp_s", "connections/open_per_s"], "ended": ["duration_s", "planned_s"], "connect": ["connect_us"],
    "tls": ["tls_us"], "messages": ["requests/messages"], "gap": ["gap_us"], "delay": ["delay_us"], "spread": ["spread_us"], "ping": ["ping_rtt_us"], "tls resumed": ["tls_resumed_us"],
    "handshake": ["handshake_us"], "requests": ["requests", "duration_s"], "missed": ["requests/missed"], "latency": ["latency_us"],
    "first byte": ["first_byte_us"], "ramp latency": ["ramp_latency_us"], "lag": ["lag_us"], "probe": ["probe"], "probe fresh": ["probe/fresh_us"],
    "probe kept": ["probe/kept_us"], "probe connect": ["probe/connect_us"], "throng": ["generator"], "target": ["target_cost"],
    "kernel": ["kernel_bytes_per_connection"], "cost": ["cost"], "repeat with": ["seed"], "status": ["requests/status"],
    "errors": ["errors"], "throughput": ["requests"],
}


def errors(whole, requests):
    """Requests and connections apart: what is not of requests is of connections that failed with none under way."""
    of = requests["due"]
    connections = whole["of"] - of if of else whole["count"]
    apart = {"requests": of, "failed requests": whole["count"] - connections, "connections": connections}
    return {**whole, **apart, "share": whole["count"] / whole["of"]}


def summary(table, told, text):
    """Rows are two spaces, a name of 13 letters, a space, the figures."""
    rows = 0
    # Losses after the load's end are reported separately.
    lost = told["connections"]["dropped"] - told["connections"]["dropped_in_drain"]
    told = {**told, "connections": {**told["connections"], "dropped before the end": lost}}
    if told["errors"]["of"]:
        told = {**told, "errors": errors(told["errors"], told["requests"])}
    # CPU is also in cores: of the time in which it was used.
    for process in ("generator", "target_cost"):
        if told.get(process) and told[process]["over_s"]:
            told = {**told, process: {**told[process], "cores": told[process]["cpu_s"] / told[process]["over_s"]}}
    for line in text.splitlines():
        match = re.match(r"  (\S.{12}) (\S.*)\Z", line)
        name = match and match[1].strip()
        first = line.split()[0] if line.startswith("  ") and line.split() else ""
        steps = {step: f"populations/{of}/steps/{step}" for of, own in told["populations"].items() for step in own["steps"]}
        alone = first and re.match(rf" +{re.escape(first)}(  |$)", line)
        if len(told["populations"]) > 1 and alone and (first in told["populations"] or first in steps):
            # A line of the populations' table; faults there are the sum of all kinds.
            path = f"populations/{first}" if first in told["populations"] else steps[first]
            faults = {"sum": sum(one["count"] for one in at(told, path).get("faults", []))}
            restated(table, "text", {**told, "faults in all": faults}, first, line.split(first, 1)[1],
                     [path, f"{path}/connections", f"{path}/requests", f"{path}/latency_us", "faults in all"])
            rows += 1
            continue
        if not match or name not in SUMMARY_ROWS:
            continue
        rows += 1
        value = re.sub(r"p99\.9|p\d+", "", match[2])
        if name == "status":
            value = re.sub(r"\w+ × ", "", value).partition("  and ")[0]
        if name == "destination":
            value = value.partition(": ")[2]
            value = re.sub(r"of [\d,]+ dialled", "", value)
            restated(table, "text", {"destinations": flat(told), "connections": {}}, name, value, ["destinations"])
            continue
        restated(table, "text", told, name, value, SUMMARY_ROWS[name])
    table.compare("text", "rows", rows, (6, 8, 30), 0.0, "the summary's text is there")


def flat(told):
    """Destinations, and their faults, as one list."""
    all_ = told["destinations"]
    without = [one["latency_us"]["censored"] for one in all_ if one["latency_us"]["censored"]]
    return [*all_, *(fault for one in all_ for fault in one["faults"]), *without]


MARKDOWN_ROWS = {
    "connections wanted": ["connections/wanted"], "connections held": ["connections/held"], "peak connections": ["connections/peak"],
    "connects/s": ["connections/open_per_s"], "responses": ["requests/answered"],
    "requests due": ["requests/due"], "requests failed": ["requests/failed"], "requests never sent": ["requests/missed"],
    "requests without a response at the end": ["requests/unanswered"], "requests lost with their agents": ["requests/lost"],
    "dials under way at the end": ["connections/given_up"], "connections open at the end of the load": ["connections/held"],
    "errors": SUMMARY_ROWS["errors"], "throughput": SUMMARY_ROWS["throughput"], "status": SUMMARY_ROWS["status"], "requests/s": ["requests/per_s"],
    "memory of throng per connection": ["generator/user_bytes_per_connection", "cost"],
    "memory of the target per connection": ["target_cost/user_bytes_per_connection", "cost"],
    "memory of the kernel per connection": ["kernel_bytes_per_connection", "cost"], "latency": ["latency_us"],
    "latency during the ramp": ["ramp_latency_us"], "time to first byte": ["first_byte_us"], "connect": ["connect_us"],
    "TLS, full handshake": ["tls_us"], "gap between messages": ["gap_us"], "delay of messages": ["delay_us"], "spread of broadcasts": ["spread_us"], "round trip of PINGs": ["ping_rtt_us"], "TLS, resumed": ["tls_resumed_us"],
    "handshake": ["handshake_us"], "probe": ["probe/latency_us"], "lag (how late throng sent)": ["lag_us"],
}


def markdown(table, told, text):
    rows, failures = 0, 0
    if told["errors"]["of"]:
        told = {**told, "errors": errors(told["errors"], told["requests"])}
    for line in text.split("\nRun ")[0].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells or set("".join(cells)) <= set("-:") or cells[0] in ("figure", "time", "latency of", "side", "threshold", "cost, by regression"):
            continue
        rows += 1
        name, value = cells[0].strip("`"), " | ".join(cells[1:])
        if name == "status":
            value = re.sub(r"\w+ × ", "", value).partition("  and ")[0]
        if name in MARKDOWN_ROWS:
            restated(table, "markdown", told, name, value, MARKDOWN_ROWS[name])
        elif name in ("target", "host", "path", "unknown"):
            count = next((f["count"] for f in told["faults"] if fault_cells(f) == cells[:3]), None)
            table.compare("markdown", f"fault {' '.join(cells[:3])}", float(cells[3].replace(",", "")), count, 0.0, "the JSON's")
        elif name.partition(".")[0] in told["populations"]:
            population, _, step = name.partition(".")
            own = told["populations"][population]
            restated(table, "markdown", own["steps"][f"{step}"] if step else own, name, value, ["latency_us"])
        elif re.match("(CPU|memory|live heap) of .* per ", name):
            restated(table, "markdown", told, name, value, ["cost"])
        else:
            failures += 1
            table.failures.append(f"markdown: {name} = {value}: no figure of the JSON is known for it")
    table.compare("markdown", "rows", rows, (6, 12, 60), 0.0, "the report's text is there")


def fault_cells(fault):
    detail = fault.get("detail")
    return [fault["side"], fault["stage"], f"{fault['kind']} ({detail})" if detail else fault["kind"]]


# A record's figures of processes and hosts: like the metrics of the last second.


def look(table, where, context, path, value):
    expected, reason = looked(context, path)
    table.compare(where, path, value, expected, 0.0, reason)


def looked(context, path):
    from moment import Moment
    moment = Moment(context, context.sealed, 0.0)
    keys = path.split("/")
    if keys[0] == "generator":
        cpu = {"cpu_s": lambda one: one["throng"] and one["throng"]["user"] + one["throng"]["system"],
               "system_s": lambda one: one["throng"] and one["throng"]["system"]}
        if keys[1] in cpu:
            return moment.seen(cpu[keys[1]], TICKS), "/proc/PID/stat, and two clock ticks"
        if keys[1] == "rss_bytes":
            return moment.memory("throng"), "/proc/PID/statm"
        return Setting("filled at the end of the run, in the summary"), ""
    if path in ("looks/target_host",):
        return None, "no observer was asked"
    if path == "looks/connections":
        from rules_metrics import target_connections
        return target_connections(moment), "/proc/net/sockstat"
    if keys[1] == "host":
        return host(moment, keys[2:]), "/proc, every 50 ms of the second before"
    who = {"target": "server", "own": "throng"}[keys[1]]
    if keys[1] == "target" and keys[2] != "process":
        return target(context, moment, keys[2]), "/proc, every 50 ms of the second before"
    return process(context, moment, who, keys[-1]), "/proc, every 50 ms of the second before"


def host(moment, keys):
    fields = {"tcp_inuse": "inuse", "tcp_orphans": "orphan", "tcp_tw": "tw", "tcp_mem_pages": "mem"}
    if keys[0] == "sockets":
        return moment.seen(lambda one: one["sockets"][fields[keys[1]]], 64 if keys[1] == "tcp_mem_pages" else 2)
    if keys[0] == "tcp":
        return moment.seen(lambda one: one["tcp"][keys[1]])
    machine = {"memory_available": "available", "kernel_bytes": "kernel"}
    if keys[0] in machine:
        return moment.seen(lambda one: one[machine[keys[0]]], 64 << 20)
    return {
        "conntrack": lambda: moment.seen(lambda one: one["conntrack"], 2), "conntrack_max": moment.context.conntrack_max,
        "conntrack_drops": lambda: 0, "oom_kills": lambda: moment.seen(lambda one: one["oom_kills"]),
        "tcp_mem_pressure_pages": moment.context.tcp_mem, "slab_reclaimable_bytes": lambda: Setting("a part of kernel_bytes"),
    }[keys[0]]()


def target(context, moment, key):
    return {
        "pid": lambda: context.server_pid, "command": lambda: Setting("a name"), "processes": lambda: "empty",
        "open_files": moment.open_files, "open_files_limit": context.files_limit,
        "accept_queue": context.queue, "accept_backlog": lambda: 512, "memory_available": lambda: None,
        "group_oom_kills": lambda: moment.seen(lambda one: one["group_oom_kills"]),
        "jvm": lambda: None, "cpu_quota": lambda: None,
    }[key]()


def process(context, moment, who, key):
    of = lambda field: lambda one: one[who] and one[who][field]
    if key in ("cpu_user_ns", "cpu_system_ns"):
        return tuple(n * 1e9 for n in moment.cpu(who, key.split("_")[1]))
    if key == "run_queue_wait_ns":
        return tuple(n * 1e9 for n in moment.seen(of("wait"), 0.020))
    if key == "involuntary_switches":
        return (0, 0, 0) if who == "server" else moment.seen(of("switches"), 20)
    if key == "threads":
        return moment.seen(of("threads"))
    if key == "rss_bytes":
        return moment.memory(who)
    if key in ("processes", "cores", "threads_full"):
        return context.process(who, f"{key}/max")
    if key in ("stopped", "blocked"):
        return 0, 0, 1 if key == "blocked" else 0
    if key == "cpus":
        return Setting("as the kernel writes it")
    return context.process(who, f"{key}/max")
