import assert from "node:assert/strict";
import { test } from "node:test";
import { clockText, sinceText, timeTicks } from "../../src/model/clock";
import type { Chart, Mark } from "../../src/model/chart";
import { commonTables } from "../../src/model/common_table";
import { SECONDS } from "../../src/model/chart";
import { errorTable, eventTable, shownBytes } from "../../src/model/error_table";
import { latencyOverTime } from "../../src/model/latency_charts";
import { connections, rates } from "../../src/model/load_charts";
import type { Lenient } from "../../src/model/lenient";
import { marksOf } from "../../src/model/marks";
import { count } from "../../src/model/quantity";
import type { TickRecord } from "../../src/model/records";
import type { StoredRun } from "../../src/model/report";
import { runOf, type Run } from "../../src/model/run";
import { stepsOverTime } from "../../src/model/step_charts";
import { boundsOf, standings } from "../../src/model/thresholds";
import { standing } from "../../src/model/verdict";
import { failed } from "../summary";
import { isBeyond } from "../../src/view/drawing";
import { placed } from "../../src/view/moments";
import { cellText, inWords, nearest, readings } from "../../src/view/readings";
import { latency } from "../synthetic";

/** A run of ticks of a second each. */
const of = (ticks: Lenient<TickRecord>[], rest: Lenient<StoredRun> = {}, running = false): Run =>
  runOf({ width: 1, ticks: ticks.map((record, n) => ({ ...record, tick: { from: n * 1e9, until: (n + 1) * 1e9, ...record.tick } })), ...rest }, undefined, running);

const fault = (kind: string, n: number) => ({ side: "target" as const, stage: "exchange" as const, kind, count: n });
const alive = (processes: number) => ({ target: { process: { processes } } });

test("marks are the stages, commands, first faults of each kind, and the end of the target", () => {
  const run = of([
    { tick: { marks: [{ at: 0, kind: "stage", what: "idle ones" }] }, looks: alive(2) },
    { tick: { faults: [fault("timeout", 3)], marks: [{ at: 1.5e9, kind: "command", what: "paused" }] }, looks: alive(2) },
    { tick: { faults: [fault("timeout", 5), fault("reset", 1), fault("closed", 4)] }, looks: alive(0) },
    { tick: { faults: [fault("reset", 9)] }, looks: alive(0) },
    { looks: alive(1) },
  ], { summary: { asks: [{ at_s: 1.5, what: "paused" }], limit: { first_seen_s: 3, cause: "ended" } } });
  assert.deepEqual(marksOf(run), [
    { x: 0, kind: "stage", what: "stage idle ones begins", label: "idle ones" },
    { x: 1.5, kind: "command", what: "paused", label: "paused" },
    { x: 2, kind: "fault", what: "first faults: 3 × target exchange timeout", label: "timeout" },
    { x: 3, kind: "fault", what: "first faults: 4 × target exchange closed, 1 × target exchange reset", label: "closed, reset" },
    { x: 3, kind: "end", what: "the target's process has exited", label: "target exited" },
    { x: 5, kind: "end", what: "the target's process is back", label: "target is back" },
  ]);
  assert.deepEqual(eventTable(run, marksOf(run)).bad, [2, 3, 4, 5]);
});

test("an older run has its commands from the summary, and what limited it where no fault shows that", () => {
  const limit = { first_seen_s: 4, cause: "open-files", sentence: "the target ran out of open files" };
  const old = (faults: ReturnType<typeof fault>[]) => of([{}, { tick: { faults } }], { summary: { asks: [{ at_s: 1, what: "paused" }], limit } });
  assert.deepEqual(marksOf(old([])).map(({ x, kind, label }) => [x, kind, label]), [[1, "command", "paused"], [4, "end", "open-files"]]);
  assert.deepEqual(marksOf(old([fault("refused", 1)])).map(({ kind }) => kind), ["command", "fault"]);
});

test("names of marks do not lie over one another, and the target's end is named first", () => {
  const marks: Mark[] = [
    { x: 90, what: "", label: "stage two", kind: "stage" },
    { x: 100, what: "", label: "reset", kind: "fault" },
    { x: 102, what: "", label: "target exited", kind: "end" },
    { x: 450, what: "", label: "paused", kind: "command" },
    { x: 590, what: "", label: "resumed", kind: "command" },
  ];
  const names = placed(marks, (x) => x, 600);
  assert.deepEqual(names.map(({ text, before }) => [text, before]), [["target exited", false], ["paused", false], ["resumed", true], ["stage two", true]]);
  for (const one of names) for (const other of names) if (one !== other) assert.ok(one.to < other.from || one.from > other.to);
});

test("names of moments close to one another are left out before they touch", () => {
  const marks: Mark[] = [{ x: 250, what: "", label: "resumed", kind: "command" }, { x: 305, what: "", label: "load 90 %", kind: "command" }];
  assert.deepEqual(placed(marks, (x) => x, 600).map(({ text }) => text), ["resumed"]);
  assert.deepEqual(placed(marks, (x) => x + (x > 300 ? 10 : 0), 600).map(({ text }) => text), ["resumed", "load 90 %"]);
});

const bounds = [
  { expr: "latency.p99 < 50ms", figure: "latency_us.p99", bound: 50e3, is_share: false },
  { expr: "held >= 99.9%", figure: "connections.held", bound: 99.9, is_share: true },
  { expr: "requests.per_s > 1k/s", figure: "requests.per_s", bound: 1000, is_share: false },
  { expr: "users.look.latency.p99 < 9ms", figure: "populations.users.steps.look.latency_us.p99", bound: 9e3, is_share: false },
];
const header = { connections: 2000, thresholds: bounds, steps: ["users.login", "users.look"] };
const results = (...values: (number | null)[]) => values.map((value, i) => ({ expr: bounds[i]!.expr, value, shown: value === null ? "" : `${value} shown`, pass: value !== null && value < 60 }));

test("thresholds stand as judged so far, and what may still come is not failed during the ramp", () => {
  const run = (phase: "ramp" | "hold", values: (number | null)[], running = true) =>
    of([{ tick: { phase, open: 50, wanted: 60 }, looks: { thresholds: results(...values) } }, { tick: { phase, open: 55, wanted: 60 } }], { run: { header } }, running);
  const states = (run: Run) => standings(run).map(({ state }) => state);
  assert.deepEqual(states(run("ramp", [70, 70, 70, null])), ["failed", "waits", "waits", "waits"]);
  assert.deepEqual(states(run("hold", [70, 50, 70, null])), ["failed", "met", "failed", "waits"]);
  assert.deepEqual(standings(run("hold", [70, 50, 70, null])).map(({ shown }) => shown), ["70 shown", "50 shown", "70 shown", "not measured yet"]);
  const faults = { expr: "faults == 0", figure: "faults", bound: 0, is_share: false };
  const ramp = of([{ tick: { phase: "ramp" }, looks: { thresholds: [{ expr: faults.expr, value: 3, shown: "3", pass: false }] } }], { run: { header: { thresholds: [faults] } } }, true);
  assert.deepEqual(states(ramp), ["failed"], "no fault is taken back");
  const ended = { ...run("hold", [1, 1, 1, 1], false), summary: { thresholds: [{ expr: "held >= 1", value: null, shown: "", pass: false }] } };
  assert.deepEqual(standings(ended), [{ expr: "held >= 1", shown: "nothing was measured", state: "failed" }]);
  const silent = { expr: bounds[0]!.expr, value: null, shown: "2.3 % had no response in time", pass: false };
  const failed = { expr: silent.expr, shown: silent.shown, state: "failed" };
  assert.deepEqual(standings({ ...ended, summary: { thresholds: [silent] } }), [failed]);
  assert.deepEqual(states({ ...ended, summary: { thresholds: [{ ...silent, unreliable: true }] } }), ["void"], "throng was late");
  const live = of([{ tick: { phase: "hold" }, looks: { thresholds: [silent] } }], { run: { header: { thresholds: [bounds[0]!] } } }, true);
  assert.deepEqual(standings(live), [failed]);
});

test("a run under way is said to stand as it would be judged", () => {
  const check = (tick: Lenient<TickRecord>, rest: Lenient<StoredRun>, tone: string, sentence: string) => {
    const { word, ...said } = standing(of([tick], rest, true));
    assert.deepEqual([word, said.tone, said.sentence], ["running", tone, sentence]);
  };
  const tick = { phase: "hold" as const, open: 60, wanted: 60 };
  check({ tick }, {}, "good", "60 of 60 connections open, no fault so far");
  check({ tick: { ...tick, phase: "ramp", open: 20 } }, {}, "none", "20 of 60 connections open, no fault so far");
  check({ tick: { ...tick, open: 59 } }, {}, "bad", "59 of 60 connections open, no fault so far");
  check({ tick: { ...tick, faults: [fault("reset", 1), fault("timeout", 2)] } }, {}, "bad", "60 of 60 connections open, 3 faults, most of them target exchange timeout so far");
  const judged = (...values: (number | null)[]) => ({ tick: { ...tick, faults: [fault("reset", 1)] }, looks: { thresholds: results(...values) } });
  const two = { run: { header: { thresholds: bounds.slice(0, 2) } } };
  check(judged(1, 2), two, "good", "2 of 2 thresholds met so far; 60 of 60 connections open, 1 fault, most of them target exchange reset");
  check(judged(70, 2), two, "bad", "1 of 2 thresholds not met so far: latency.p99 < 50ms: 70 shown; 60 of 60 connections open, 1 fault, most of them target exchange reset");
  check(judged(1, null), two, "none", "60 of 60 connections open, 1 fault, most of them target exchange reset so far");
});

test("thresholds are bounds of the charts that show their figures", () => {
  const steps = [latency([[1e6, 9]]), latency([[2e6, 3], [4e6, 3]])];
  const run = of([{ tick: { open: 1, latency: latency([[1e6, 1]]), counts: { answered: 1 }, steps }, looks: { thresholds: results(70, 1, 1, 1) } }], { run: { header } });
  assert.deepEqual(latencyOverTime(run).bounds, [{ name: "latency.p99 < 50ms", y: 50e3, failed: true }]);
  assert.deepEqual(connections(run).bounds!.map(({ name, y }) => [name, Math.round(y)]), [["held >= 99.9%", 1998]]);
  assert.deepEqual(rates(run).bounds, [{ name: "requests.per_s > 1k/s", y: 1000, failed: false }]);
  const chart = stepsOverTime(run);
  assert.deepEqual(chart.bounds!.map(({ y }) => y), [9e3]);
  const read = Object.fromEntries(chart.lines.map(({ name, points, off }) => [name, [Math.round(points[0]!.y / 100) / 10, off]]));
  assert.deepEqual(read, { "users.login p99": [1, false], "users.look p99": [4, false], "users.login p95": [1, true], "users.look p95": [4, true], "users.login p50": [1, true], "users.look p50": [2, true] });
  assert.deepEqual(boundsOf(of([{}], { run: { header: { thresholds: bounds } } }), /held/, () => NaN), []);
});

test("a limit far above what is drawn does not squash it, and a near one is shown", () => {
  const chart = (limit: number, log = false): Chart => ({
    id: "", title: "", says: "", x: SECONDS, y: { label: "", quantity: count, log }, lines: [{ name: "used", points: [{ x: 1, y: 10 }, { x: 2, y: 100 }] }], bounds: [{ name: "limit", y: limit, failed: false }],
  });
  assert.deepEqual([150, 161, 5000].map((limit) => isBeyond(chart(limit), limit)), [false, true, true]);
  assert.deepEqual([2, 1, 590, 700].map((limit) => isBeyond(chart(limit, true), limit)), [false, true, false, true]);
});

test("an axis of time has the marks of a clock", () => {
  assert.deepEqual(timeTicks([0, 100], 5), [0, 30, 60, 90]);
  assert.deepEqual(timeTicks([0, 1], 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(timeTicks([0, 3600], 6), [0, 600, 1200, 1800, 2400, 3000, 3600]);
  const began = Date.UTC(2026, 10, 21, 20, 45, 31, 900);
  const ticks = timeTicks([0, 60], 4, began / 1e3);
  assert.deepEqual(ticks.map((at) => clockText(at, began)), ["20:45:45", "20:46:00", "20:46:15", "20:46:30"]);
  assert.equal(clockText(0.2, began, true), "20:45:32.1");
  assert.deepEqual([0, 12, 90, 3600].map(sinceText), ["0 s", "12 s", "1m30s", "1h"]);
});

test("samples of errors have status, time and first bytes, a few of each fault however ticks are merged", () => {
  const sample = (at: number, kind: string, text: string, status: number | null = 503) => ({
    side: "target", stage: "exchange", kind, at: at * 1e9, status, from_start: at !== 2, bytes: Buffer.from(text).toString("base64"),
  });
  const run = of([
    { tick: { error_samples: [sample(0.5, "wrong-status", "HTTP/1.1 503 No\r\n\r\n<b>bu\u00fcsy</b>"), sample(0.6, "wrong-status", "b"), sample(0.7, "wrong-body", "b"), sample(0.8, "wrong-body", "b")] } },
    { tick: { error_samples: [sample(1.2, "wrong-status", "c"), sample(1.3, "wrong-status", "d"), sample(2, "bad-answer", "\u0001x", null)] } },
  ], { run: { began_ms: Date.UTC(2026, 0, 1, 10) } });
  assert.deepEqual(errorTable(run).rows, [
    ["target exchange wrong-status", "503", "0.5 s · 10:00:00", "HTTP/1.1 503 No\n\n<b>bu\u00fcsy</b>"],
    ["target exchange wrong-status", "503", "0.6 s · 10:00:00", "b"],
    ["target exchange wrong-body", "503", "0.7 s · 10:00:00", "b"],
    ["target exchange wrong-status", "503", "1.2 s · 10:00:01", "c"],
    ["target exchange bad-answer", "–", "2 s · 10:00:02", "… \u2401x"],
  ]);
  assert.equal(shownBytes(new Uint8Array([0xff, 0x41])), "\ufffdA");
  // What would turn the text of the page around, or is not seen.
  assert.equal(shownBytes(new TextEncoder().encode("a\u202eb\u2066c\u007f\u0085d\u200fé\u200d")), "a\\u202eb\\u2066c\u2421\\u0085d\\u200fé\u200d");
});

test("what the slow ones have in common is a table with its sentence", () => {
  const run = { ...of([]), summary: failed() };
  const [table, ...others] = commonTables(run);
  assert.equal(others.length, 0);
  assert.deepEqual([table!.id, table!.says], ["common-slow", "all of the 4.3 % that took 301 ms went to 10.0.0.3:8000"]);
  assert.deepEqual(table!.columns.map(({ name }) => name), ["destination", "slow", "others", "share"]);
  assert.deepEqual(table!.rows, [["10.0.0.3:8000", "1,000", "0", "100 %"], ["10.0.0.1:8000", "0", "22,000", "0 %"]]);
  assert.deepEqual(table!.bad, [0]);
  assert.deepEqual(commonTables({ ...of([]), summary: null }), []);
});

test("a place of a chart reads all its lines, what happened since the place before, and the clock", () => {
  const began = Date.UTC(2026, 0, 1, 10);
  const chart: Chart = {
    id: "", title: "", says: "", x: SECONDS, y: { label: "", quantity: count }, bands: [{ name: "hold", from: 0, to: 9 }], marks: [{ x: 1.5, what: "paused" }],
    lines: [{ name: "a", points: [{ x: 1, y: 5 }, { x: 2, y: 6 }] }, { name: "b", points: [{ x: 2, y: NaN }, { x: 4, y: 7 }] }],
  };
  const all = readings(chart, began);
  assert.deepEqual(all.map(({ x }) => x), [1, 2, 4]);
  assert.equal(inWords(all[1]!), "2 s · 10:00:02 UTC, hold · a 6 · paused");
  assert.deepEqual([0, 1.4, 1.6, 3.1, 99].map((x) => nearest(all, x)!.x), [1, 1, 2, 4, 4]);
  assert.equal(nearest([], 1), null);
  const heat: Chart = { ...chart, lines: [], cells: [{ from: { x: 0, y: 10 }, to: { x: 1, y: 20 }, count: 7, shade: 1 }, { from: { x: 0, y: 20 }, to: { x: 1, y: 40 }, count: 3, shade: 1 }] };
  assert.equal(inWords(readings(heat, null)[0]!), "1 s, hold · responses 10 · most near 10");
  assert.deepEqual(cellText(heat, 0.5, 30), [{ place: -1, name: "20 to 40", text: "3" }]);
  assert.deepEqual(cellText(heat, 0.5, 50), []);
});

test("an experiment has its name above a chart, and its answer in the list", () => {
  const what = "half: served in 210 µs, with 10 connections open";
  const run = of([{}, { tick: { marks: [{ at: 1.5e9, kind: "experiment", what }] } }], { summary: {} });
  assert.deepEqual(marksOf(run).map(({ kind, what, label }) => ({ kind, what, label })), [{ kind: "experiment", what: `asked ${what}`, label: "half" }]);
});
