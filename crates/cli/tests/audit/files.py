"""throng's output files, one by one, to the table."""

import base64
import csv
import datetime
import gzip
import json
import os
import re

import hdr
import rules_metrics
import rules_ticks
import texts
from compare import leaves
from moment import Moment
from rules_summary import SUMMARY
from wire import Wire


def books(table, context):
    """The outside counts compared with each other: the server's log and the kernel's counters with the wire."""
    wire, log = context.wire, context.log
    compare = lambda path, value, expected, reason: table.compare("outside", path, value, expected, 0.0, reason)
    accepted = sum(c.synack is not None for c in wire.connections)
    compare("accepts", sum(e["what"] == "accept" for e in log), accepted, "the server's log against SYN-ACKs")
    asked = sum(e["what"] in ("request", "message") for e in log)
    seen = sum(len(c.exchanges) + bool(c.handshake) for c in wire.connections)
    compare("requests", asked, seen, "the server's log against the wire")
    answered = sum(e["what"] == "response" or e["what"] == "message" and e["answer"] not in ("silence", "close", "crossing") for e in log)
    whole = sum(x.answered is not None for c in wire.connections for x in [*c.exchanges, *([c.handshake] if c.handshake else [])])
    compare("responses", answered, whole, "the server's log against the wire")
    compare("octets in", sum(e["bytes_in"] for e in log if e["what"] == "end"),
            sum(c.out.octets for c in wire.connections if c.over()[0]), "the server's log against the wire")
    compare("octets out", sum(e["bytes_out"] for e in log if e["what"] == "end"),
            sum(c.into.octets for c in wire.connections if c.over()[0]), "the server's log against the wire")
    first, last = context.looks.all[0]["tcp"], context.looks.all[-1]["tcp"]
    compare("segment retransmissions", wire.retransmitted, (0, last["retrans_segs"] - first["retrans_segs"], 1e9),
            "the wire against RetransSegs: not less where any was")
    # Over a device the client's are not the kernel's.
    resets = sum(wire.resets.values()) if context.ends_in_kernel == 2 else wire.resets["server"]
    compare("resets", resets, (0, last["out_resets"] - first["out_resets"], last["out_resets"] - first["out_resets"]),
            "the wire against OutRsts, which counts those of other ports too")
    compare("requests at all", min(len(context.whole.exchanges), 1) if context.model.kind != "none" else 1, 1, "nothing measured is nothing audited")


def summary(table, context, folder):
    """The JSON, leaf by leaf; and nothing that happened is missing in it."""
    told = context.summary
    table.audit("summary", SUMMARY, context, leaves(told))
    complete(table, "summary", context, told, context.whole)
    for name, own in told["populations"].items():
        complete(table, f"summary populations/{name}", context, own, context.scopes[name])
    for event in told["observed"]["host"]["tcp_ramp"]:
        both = sum(told["observed"]["host"][phase][event] for phase in ("tcp_ramp", "tcp_hold"))
        table.compare("summary", f"observed/host/tcp_ramp + tcp_hold/{event}", both, context.tcp_total(event), 0.0,
                      "/proc/net/snmp and netstat at the run's bounds, a look apart")
    with open(os.path.join(folder, "bundle", "summary.json")) as file:
        table.compare("bundle", "summary.json is --json", json.load(file) == told, True, 0.0, "the same")
    with open(os.path.join(folder, "stderr.txt")) as err, open(os.path.join(folder, "stdout.txt")) as out:
        texts.summary(table, told, err.read() + out.read())


def complete(table, where, context, told, scope):
    """Each fault and status of the wire is there."""
    faults = {"·".join(one[key] for key in ("side", "stage", "kind")) for one in told["faults"]}
    table.compare(where, "kinds of faults", sorted(faults), sorted(scope.faults()), 0.0, "wire: each that occurred")
    table.compare(where, "statuses", sorted(told["requests"]["status"]), sorted(scope.statuses()), 0.0, "wire: each that came")
    lost = sum(one["count"] for one in told["faults"] if one["stage"] == "exchange" and not one["kind"].startswith("wrong"))
    requests = told["requests"]
    table.compare(where, "answered + lost + unanswered", requests["answered"] + lost + requests["unanswered"], scope.sent(), 0.0,
                  "wire: every request has one end")


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def own_lines(folder):
    """Those of --jsonl."""
    with open(os.path.join(folder, "own.jsonl")) as file:
        return [json.loads(line) for line in file]


def ticks(folder):
    """The report's records."""
    with open(os.path.join(folder, "bundle", "report.json")) as file:
        return json.load(file)["runs"][0]["ticks"]


NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../docs/reference/metrics.md")


def metrics(table, context, folder, scrapes):
    with open(NAMES) as file:
        names = [line.split("`")[1] for line in file if line.startswith("| `throng_")]
    table.compare("metrics", "names in the reference", len(names), (50, 60, 999), 0.0, "docs/reference/metrics.md")
    unknown = [name for name in names if not rules_metrics.find(name) and not rules_metrics.find(f"{name}_count")]
    table.compare("metrics", "names without an outside count", unknown, [], 0.0, "docs/reference/metrics.md")
    lines = own_lines(folder)
    table.compare("jsonl", "lines", len(lines), (3, 5, 60), 0.0, "about one a second")
    before = 0.0
    for at, line in enumerate(lines):
        moment = Moment(context, context.epoch + line["elapsed_s"], before)
        before = moment.time
        table.compare("jsonl", f"line {at}: time", seconds(line["time"]), (moment.time - 0.1, moment.time, moment.time + 0.1), 0.0,
                      "throng's clock on the wire's; the date is that at which throng began to run")
        series = {key: value for key, value in line.items() if key not in ("time", "elapsed_s")}
        rules_metrics.audit(table, f"jsonl {at}", moment, series)
    rows(table, folder, lines)
    scraped(table, context, lines, scrapes)


def histograms(table, context, folder):
    """The histogram log: the number of values in each, and the maximum."""
    counted = {}
    with open(os.path.join(folder, "bundle", "histograms.hlog")) as file:
        for line in file:
            if not line.startswith("Tag="):
                continue
            tag, _, _, longest, packed = line.strip().split(",")
            n, most = counted.get(tag[4:], (0, 0.0))
            counted[tag[4:]] = n + sum(count for _, count in hdr.decode(packed)), max(most, float(longest))
    table.compare("hlog", "tags", len(counted), (1, 3, 40), 0.0, "what there was anything of")
    for tag, (n, longest) in counted.items():
        *of, name = tag.split(".")
        scope = context.scopes[of[0]] if of else context.whole
        if len(of) == 2:
            scope = context.step_scope(*of)
        times = context.lag() if name == "lag" and not of else getattr(scope, name)()
        table.compare("hlog", f"{tag}: count", n, (times.n - times.edges, times.n, times.n + times.edges), 0.0, "wire: as of the summary")
        low, most, high = times.most()
        table.compare("hlog", f"{tag}: longest, ms", longest, (low * 999, most * 1e3, high * 1001), 0.0, "wire: as of the summary")


def rows(table, folder, lines):
    """CSV has the same numbers; its open connections are one sum."""
    with open(os.path.join(folder, "own.csv"), newline="") as file:
        table_rows = list(csv.DictReader(file))
    table.compare("csv", "rows", len(table_rows), len(lines), 0.0, "those of --jsonl")
    for at, (row, line) in enumerate(zip(table_rows, lines)):
        differ = []
        for column, cell in row.items():
            value = line.get(column)
            if value is None:
                mine = [n for key, n in line.items() if key.partition("{")[0] == column]
                value = sum(mine) if mine else None
            same = cell == value if column == "time" else (cell == "" and value is None or value is None and float(cell or 0) == 0
                                                           or value is not None and cell != "" and float(cell) == value)
            if not same:
                differ.append(f"{column} {cell!r} {value!r}")
        table.compare("csv", f"row {at}: cells that differ", differ, [], 0.0, "each cell is the number of --jsonl")
        lacking = {rules_metrics.split(key)[0] for key in line} - {rules_metrics.split(key)[0] for key in row}
        table.compare("csv", f"row {at}: metrics that are lacking", sorted(lacking), [], 0.0, "each metric of --jsonl")


def scraped(table, context, lines, scrapes):
    """Each scrape is a line; its buckets are compared with the wire."""
    found = [rules_metrics.prometheus(text) for text in scrapes]
    found = [one for one in found if one.get("throng_requests_total", sum(v for k, v in one.items() if k.startswith("throng_requests_total"))) or
             any(v for k, v in one.items() if k.startswith("throng_connections_opened_total"))]
    table.compare("prometheus", "scrapes with something", len(found), (2, 4, 200), 0.0, "two a second")
    for at, one in enumerate(found):
        plain = {key: value for key, value in one.items() if "_bucket" not in key}
        same = [line for line in lines if all(close(line.get(key, 0 if "le=" in key else None), value) for key, value in plain.items()
                                              if not key.startswith("throng_phase") and key in line)]
        table.compare("prometheus", f"scrape {at}: lines of --jsonl with all its numbers", len(same), (1, 1, len(lines)), 0.0, "each scrape is of one second")
        lacking = sorted(key for key in plain if not any(key in line for line in lines))
        table.compare("prometheus", f"scrape {at}: series that --jsonl never has", lacking, [], 0.0, "the same names")
        if at + 1 == len(found) and same:
            moment = Moment(context, context.epoch + same[0]["elapsed_s"], 0.0)
            buckets = {key: value for key, value in one.items() if "_bucket" in key}
            table.compare("prometheus", "buckets", len(buckets), (19, 19, 1000), 0.0, "each histogram has 18 and one of all")
            rules_metrics.audit(table, f"prometheus {at}", moment, buckets)


def close(a, b):
    return a is not None and abs(a - b) <= 1e-9 * max(1.0, abs(a))


def report(table, context, folder, throng):
    """The bundle's report: its data, the same in the page, and the text."""
    bundle = os.path.join(folder, "bundle")
    with open(os.path.join(bundle, "report.json")) as file:
        data = json.load(file)
    run = data["runs"][0]
    table.compare("report", "summary", run["summary"] == context.summary, True, 0.0, "the same as --json")
    records(table, "report", context, run["ticks"])
    table.compare("report", "count", run["count"], (len(run["ticks"]), len(run["ticks"]), len(run["ticks"])), 0.0, "no tick is thinned in so short a run")
    with open(os.path.join(bundle, "report.html")) as file:
        page = file.read()
    packed = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1]
    embedded = json.loads(gzip.decompress(base64.b64decode(packed)))
    table.compare("page", "data of report.html is report.json", embedded == data, True, 0.0, "the same")
    with open(os.path.join(bundle, "report.md")) as file:
        texts.markdown(table, context.summary, file.read())


def records(table, where, context, ticks):
    folded = {"tick": rules_ticks.fold([one["tick"] for one in ticks])}
    table.audit(where, rules_ticks.TICKS, context, leaves(folded))
    last = ticks[-1]
    for key, value in leaves({"looks": last["looks"]}):
        texts.look(table, where, context, key, value)


def page(table, context, events):
    """The live page's stream: the state when it was opened, and each second since."""
    names = [name for name, _ in events]
    table.compare("live page", "events", [names[0], names[-1], names.count("summary")], ["run", "end", 1], 0.0, "docs/reference/report.md")
    # A page opened before the run begins gets `run` again when it does.
    begun = max(at for at, name in enumerate(names) if name == "run")
    ticks = events[begun][1]["ticks"] + [event for name, event in events[begun:] if name == "tick"]
    summary = next(event for name, event in events if name == "summary")
    table.compare("live page", "summary", summary == context.summary, True, 0.0, "the same as --json")
    records(table, "live page", context, ticks)
