import assert from "node:assert/strict";
import { test } from "node:test";
import { phases, type Axis, type Chart } from "../../src/model/chart";
import { Distribution } from "../../src/model/distribution";
import { figuresOf, keyFigures, nowFigures } from "../../src/model/figures";
import { acceptQueue, jvm, memory, processors } from "../../src/model/host_charts";
import { heatMap, latencyByConnections, latencyOverTime, noResponseOverTime, percentiles } from "../../src/model/latency_charts";
import type { Lenient } from "../../src/model/lenient";
import { connections, faults, populations, rates } from "../../src/model/load_charts";
import { messageCharts } from "../../src/model/message_charts";
import { bytes, count, time } from "../../src/model/quantity";
import type { TickRecord } from "../../src/model/records";
import { runOf, type Run } from "../../src/model/run";
import { stepRates } from "../../src/model/step_charts";
import { costTable, stepTable, timeTable } from "../../src/model/table";
import { isLeftOut, ticks } from "../../src/view/drawing";
import { latency, storedRun } from "../synthetic";

/** A run of ticks of two seconds each. */
const of = (records: Lenient<TickRecord>[]): Run =>
  runOf({
    width: 2,
    ticks: records.map((record, n) => ({ ...record, tick: { from: n * 2e9, until: (n + 1) * 2e9, ...record.tick } })),
  });

const points = (chart: { lines: { name: string; points: { x: number; y: number }[] }[] }) =>
  Object.fromEntries(chart.lines.map(({ name, points }) => [name, points.map(({ x, y }) => [x, y])]));

test("rates are of the time that they took", () => {
  const run = of([{ tick: { counts: { opened: 600, answered: 10 } } }, { tick: { counts: { opened: 0, answered: 30 }, until: 6e9 } }]);
  assert.deepEqual(points(rates(run)), {
    responses: [[2, 5], [6, 7.5]],
    connects: [[2, 300], [6, 0]],
  });
});

test("processors are the growth of CPU time, and none where it is not known", () => {
  const process = (s: number) => ({ cpu_user_ns: s * 5e8, cpu_system_ns: s * 5e8 });
  const looks = (own: number, target: number) => ({ looks: { own: process(own), target: { process: process(target) } } });
  const run = of([looks(1, 2), looks(4, 4), { looks: { own: process(5) } }]);
  assert.deepEqual(points(processors(run)), { throng: [[2, NaN], [4, 1.5], [6, 0.5]], target: [[2, NaN], [4, 1], [6, NaN]] });
  assert.deepEqual(nowFigures(run).slice(-2).map(({ value }) => value), ["0.5", "–"]);
});

test("a backlog far above an empty accept queue is in no legend", () => {
  const queue = (...waiting: number[]) => acceptQueue(of(waiting.map((accept_queue) => ({ looks: { target: { accept_queue, accept_backlog: 4096 } } }))));
  const named = (chart: Chart, ...hidden: string[]) =>
    chart.lines.filter((line) => !isLeftOut(chart, line, new Set(hidden))).map(({ name }) => name);
  assert.deepEqual(named(queue(0, 0)), ["waiting"]);
  assert.deepEqual(named(queue(0, 12)), ["waiting"]);
  assert.deepEqual(named(queue(0, 4000)), ["waiting", "backlog"]);
  // Alone it is drawn, and a line that was hidden can be shown again.
  assert.deepEqual(named(queue(0, 12), "waiting"), ["waiting", "backlog"]);
  assert.deepEqual(named(queue(0, 4000), "backlog"), ["waiting", "backlog"]);
  assert.deepEqual(acceptQueue(of([{}, {}])).lines, []);
});

test("the kernel's memory is what it took more than at first", () => {
  const run = of([700, 700, 1000].map((kernel_bytes) => ({ looks: { host: { kernel_bytes } } })));
  assert.deepEqual(points(memory(run)), { "kernel, since the first sample": [[2, 0], [4, 0], [6, 300]] });
});

test("the target's own count goes before its open files", () => {
  const look = (open_files: number, connections?: number) => ({ looks: { target: { open_files }, connections } });
  assert.deepEqual(Object.keys(points(connections(of([look(9)])))), ["open", "wanted by the plan", "open files of the target"]);
  assert.deepEqual(points(connections(of([look(9, 5)])))["on the target's side"], [[2, 5]]);
  // Unless it is that of others: 1,000 sockets more, or fewer, beside so few connections.
  for (const others of [1000, 0]) {
    const run = of([{ tick: { open: 50 }, ...look(59, others) }]);
    assert.deepEqual(Object.keys(points(connections(run))), ["open", "wanted by the plan", "open files of the target"]);
    const once = of([{ tick: { open: 50 }, ...look(59, others) }, ...[1, 2, 3].map(() => ({ tick: { open: 50 }, ...look(59, 50) }))]);
    assert.deepEqual(Object.keys(points(connections(once))), ["open", "wanted by the plan", "on the target's side"]);
  }
});

test("latency over time is of all answers, whenever they were due", () => {
  const run = of([{ tick: { ramp_latency: latency([[1e6, 99], [5e6, 1]]) } }, {}, { tick: { latency: latency([[2e6, 1]]), ramp_latency: latency([[4e6, 1]]) } }]);
  const chart = latencyOverTime(run);
  assert.deepEqual(chart.lines.map(({ name }) => name), ["p50", "p95", "p99", "max"]);
  const { p50, p95, p99, max } = points(chart);
  assert.deepEqual(max, [[2, 5000], [4, NaN], [6, 4000]]);
  const near = (got: number, want: number) => assert.ok(Math.abs(got / want - 1) < 0.001, `${got} for ${want}`);
  near(p50![0]![1]!, 1000);
  near(p99![0]![1]!, 1000);
  near(p50![2]![1]!, 2000);
  near(p99![2]![1]!, 4000);
  near(p95![2]![1]!, 4000);
  const twenty = of([{ tick: { latency: latency([[1e6, 18], [3e6, 1], [9e6, 1]]) } }]);
  near(points(latencyOverTime(twenty))["p95"]![0]![1]!, 3000);
  assert.deepEqual(nowFigures(twenty).slice(3, 6).map(({ name, value }) => [name, value]), [["p50", "1 ms"], ["p95", "3 ms"], ["p99", "9 ms"]]);
});

test("requests of each step are all its responses, whenever they were due, of the time that they took", () => {
  const two = (n: number) => latency([[1e6, n]]);
  const run = of([
    { tick: { ramp_steps: [two(4), two(2)] } },
    { tick: { steps: [two(6), { ...latency([]), censored: 3 }], ramp_steps: [two(4)] } },
    { tick: { steps: [two(5), two(1)], until: 10e9 } },
  ]);
  run.record = { header: { steps: ["users.login"] } };
  assert.deepEqual(points(stepRates(run)), { "users.login": [[2, 2], [4, 5], [10, 5 / 6]], "step 2": [[2, 1], [4, 0], [10, 1 / 6]] });
  assert.deepEqual(stepRates(of([{ tick: { latency: two(1) } }])).lines, []);
  const many = of([{ tick: { steps: [1, 9, 2, 8, 3, 7, 4, 6].map(two) } }]);
  const chart = stepRates(many);
  assert.deepEqual(chart.lines.map(({ name }) => name), ["step 2", "step 4", "step 5", "step 6", "step 7", "step 8"]);
  assert.equal(chart.says, "Responses; the 6 most frequent of 8 steps");
  // Of an entry of several ticks, and the whole.
  assert.equal(many.total.steps.length, 8);
  assert.deepEqual(run.total.ramp_steps.map(({ count }) => count), [8, 2]);
});

test("a step of a run under way that had no request at full load is in the table with those of the ramp", () => {
  const run = of([{ tick: { steps: [latency([]), latency([[2e6, 3]])], ramp_steps: [latency([[1e6, 7]]), latency([[9e6, 2]]), latency([])] } }]);
  assert.deepEqual(stepTable(run).rows.map(([name, count, mean]) => [name, count, mean]), [["step 1 (ramp)", "7", "1 ms"], ["step 2", "3", "2 ms"]]);
});

test("the table of steps has the faults of each", () => {
  const fault = (kind: string, count: number) => ({ side: "target", stage: "exchange", kind, count });
  const steps = [latency([[1e6, 7]]), latency([[1e6, 7]])];
  const faults = (run: Run) => [stepTable(run).rows.map((row) => row.at(-1)), stepTable(run).bad];
  const run = of([
    { tick: { steps, step_faults: [[], [fault("timeout", 2), fault("closed", 1)]] } },
    { tick: { steps } },
    { tick: { steps, step_faults: [[], [fault("timeout", 1500)]] } },
  ]);
  assert.deepEqual(faults(run), [["0", "1,503"], [1]]);
  assert.deepEqual(run.total.step_faults, [[], [fault("timeout", 1502), fault("closed", 1)]]);
  assert.deepEqual(faults(of([{ tick: { steps } }])), [["0", "0"], []]);
  const summary = { populations: { users: { steps: { login: { latency_us: { count: 7 }, faults: [fault("closed", 4)] }, look: { latency_us: { count: 7 } } } } } };
  assert.deepEqual(faults({ ...run, summary }), [["4", "0"], [0]]);
});

test("PINGs, gaps and delays of messages have charts where there were any", () => {
  const run = of([
    { tick: { ping_rtt: latency([[1e6, 98], [5e6, 2]]), delay: latency([[2e6, 1]]) } },
    { tick: { ping_rtt: { ...latency([]), censored: 4 } } },
    { tick: { delay: latency([[4e6, 1]]), counts: { messages: 7 } } },
  ]);
  run.record = { header: { thresholds: [{ expr: "users.ping_rtt.p99 < 9ms", figure: "populations.users.ping_rtt_us.p99", bound: 9e3, is_share: false }] } };
  const [messages, ping, gap, delay] = messageCharts(run);
  assert.deepEqual(points(messages!), { messages: [[2, 0], [4, 0], [6, 3.5]] });
  assert.deepEqual([messages!.id, ping!.id, gap!.id, delay!.id], ["messages", "ping-rtt", "gap", "delay"]);
  assert.deepEqual(gap!.lines, []);
  const rounded = (chart: Parameters<typeof points>[0]) => Object.entries(points(chart)).map(([name, at]) => [name, ...at.map(([, y]) => Math.round(y! / 1e3))]);
  assert.deepEqual(rounded(ping!), [["p50", 1, NaN, NaN], ["p95", 1, NaN, NaN], ["p99", 5, NaN, NaN], ["max", 5, NaN, NaN]]);
  assert.deepEqual(rounded(delay!), ["p50", "p95", "p99", "max"].map((name) => [name, 2, NaN, 4]));
  assert.deepEqual([ping!.bounds!.map(({ y }) => y), delay!.bounds], [[9e3], []]);
  // A clock that is ahead makes delays of nothing, which a log axis does not have.
  assert.deepEqual(messageCharts(of([{ tick: { delay: latency([[0, 5]]) } }]))[3]!.lines, []);
  // Without an acknowledgement they are in no percentile.
  assert.deepEqual(points(noResponseOverTime(run)), { PINGs: [[2, 0], [4, 1], [6, NaN]] });
  assert.ok(messageCharts(of([{ tick: { latency: latency([[1e6, 1]]) } }])).every(({ lines }) => lines.length === 0));
});

/** A response of so many milliseconds while so many were open. */
const tick = (open: number, ms: number) => ({ tick: { open, open_ns: open * 2e9, latency: latency([[ms * 1e6, 1]]) } });

test("latency against connections takes together what had about as many open", () => {
  const { p95, p99 } = points(latencyByConnections(of([tick(1000, 9), tick(100, 1), tick(1000, 5)])));
  assert.deepEqual(p95, p99);
  assert.deepEqual(p99!.map(([x, y]) => [x, Math.round(y! / 1e3)]), [[100, 1], [1000, 9]]);
});

test("against connections held, a line ends where those without a response begin", () => {
  const silent = tick(2000, 5);
  silent.tick.latency.censored = 50;
  const run = of([tick(1000, 9), silent]);
  run.summary = { probe: { by_connections: [{ connections: 1000, latency_p50_us: 4, latency_p99_us: 9, no_response: 0.2 }, { connections: 2000, latency_p50_us: 5, latency_p99_us: 7, no_response: 0 }] } };
  const lines = Object.fromEntries(latencyByConnections(run).lines.map(({ name, points }) => [name, points.map(({ x, y }) => (Number.isFinite(y) ? x : -x))]));
  assert.deepEqual(lines["probe p50"], [1000, 2000]);
  assert.deepEqual(lines["probe p99"], [-1000, 2000]);
  // Of the population, one group is left with a p99: a point is no line.
  assert.equal(lines["p99"], undefined);
});

test("a percentile curve ends with the longest", () => {
  const { points } = percentiles("", Distribution.of(latency(Array.from({ length: 1000 }, (_, i) => [(i + 1) * 1e6, 1]))));
  assert.deepEqual(points.at(-1), { x: 1000, y: 1e6 });
  const at = (x: number) => points.find((point) => Math.abs(point.x / x - 1) < 1e-9)!.y;
  assert.ok(Math.abs(at(10) / 900e3 - 1) < 0.001 && Math.abs(at(100) / 990e3 - 1) < 0.001);
  assert.deepEqual(percentiles("", Distribution.EMPTY).points, []);
});

test("each answer is in one cell of the heat map", () => {
  const run = runOf(storedRun(400));
  const cells = heatMap(run).cells!;
  const all = run.total.latency.count + run.total.ramp_latency.count;
  assert.equal(cells.reduce((sum, cell) => sum + cell.count, 0), all);
  assert.ok(new Set(cells.map(({ from }) => from.x)).size <= 150);
  assert.ok(cells.every(({ shade, from, to }) => shade > 0 && shade <= 1 && to.y > from.y && to.x > from.x));
});

test("faults stand by kind, the seldom ones together", () => {
  const kinds = ["refused", "reset", "timeout", "closed", "truncated", "wrong-status", "wrong-body", "denied"];
  const record = { tick: { faults: kinds.map((kind, i) => ({ side: "target" as const, stage: "dial" as const, kind, count: 2 * (i + 1) })) } };
  const { lines } = faults(of([record]));
  assert.deepEqual(lines.map(({ name, points }) => [name, points[0]!.y]), [
    ["target dial denied", 8], ["target dial wrong-body", 7], ["target dial wrong-status", 6], ["target dial truncated", 5], ["target dial closed", 4],
    ["target dial timeout", 3], ["2 others", 3],
  ]);
});

test("faults of one kind have a line for each detail", () => {
  const broke = (detail: string | undefined, count: number) => ({ side: "target" as const, stage: "exchange" as const, kind: "bad-answer", count, ...(detail && { detail }) });
  const { lines } = faults(of([{ tick: { faults: [broke("malformed chunk", 6), broke(undefined, 2)] } }, { tick: { faults: [broke("malformed chunk", 4)] } }]));
  assert.deepEqual(lines.map(({ name, points }) => [name, points.map(({ y }) => y)]), [
    ["target exchange bad-answer (malformed chunk)", [3, 2]], ["target exchange bad-answer", [1, 0]],
  ]);
});

test("each population has a chart of its own, from when it is there", () => {
  const run = of([{ tick: { populations: [{ open: 1 }] } }, { tick: { populations: [{ open: 2 }, { open: 7, wanted: 8 }] } }]);
  assert.deepEqual(populations(run).map((chart) => points(chart)["open"]), [[[2, 1], [4, 2]], [[2, NaN], [4, 7]]]);
});

test("a collector's pause is a mark where its time grew", () => {
  const look = (gc_pause_ns: number) => ({ looks: { target: { jvm: { heap_used_bytes: 1, heap_committed_bytes: 2, gc_count: 1, gc_pause_ns } } } });
  assert.deepEqual(jvm(of([look(5e6), look(5e6), look(28e6)])).marks, [{ x: 6, what: "GC 23 ms", label: "GC 23 ms" }]);
});

test("phases are stretches without gaps", () => {
  const run = of((["ramp", "ramp", "hold", "pause", "hold", "drain"] as const).map((phase) => ({ tick: { phase } })));
  assert.deepEqual(phases(run.entries).map(({ name, from, to }) => [name, from, to]), [
    ["ramp", 0, 4], ["hold", 4, 6], ["pause", 6, 8], ["hold", 8, 10], ["drain", 10, 12],
  ]);
});

test("a run without a summary has the figures of its ticks", () => {
  const run = of([
    { tick: { phase: "ramp", open: 60, wanted: 100, counts: { opened: 60 }, ramp_latency: latency([[1e6, 3]]) } },
    { tick: { phase: "hold", open: 90, wanted: 100, counts: { opened: 40, answered: 50 }, faults: [{ side: "path", stage: "hold", kind: "reset", count: 4 }] } },
  ]);
  const figures = figuresOf(run);
  assert.deepEqual([figures.held, figures.wanted, figures.peak, figures.open_per_s, figures.requests_per_s], [90, 100, 90, 30, 25]);
  assert.equal(figures.latency_us.max, 1000);
  const shown = Object.fromEntries(keyFigures(run).map(({ name, value, note }) => [name, [value, note]]));
  assert.deepEqual(shown["faults"], ["4", "4 × path · hold · reset"]);
  assert.deepEqual(shown["held"], ["90", "of 100 wanted, peak 90"]);
});

test("of connections that arrive those that were dialled are shown, and none is missing", () => {
  const shown = (failed: number, given_up = 0) => {
    const opened = 100 - failed - given_up;
    const connections = { wanted: 500, arriving: 500, opened, failed, given_up, held: 3, finished: 97 - failed };
    const run = { ...of([{ tick: { phase: "hold" } }]), summary: { connections } };
    return keyFigures(run)[0];
  };
  assert.deepEqual(shown(0), { name: "dialled", value: "100", note: "of 500 wanted, 3 open at the end of the load", bad: false });
  assert.deepEqual([shown(9)!.value, shown(9)!.bad], ["100", true]);
  assert.equal(shown(9, 5)!.value, "100", "a dial that was given up at the end was one");
});

test("closing connections is no ramp", () => {
  const run = of([
    { tick: { phase: "ramp", open: 60, wanted: 60, counts: { opened: 60 } } },
    { tick: { phase: "ramp", open: 40, wanted: 20 } },
    { tick: { phase: "ramp", open: 20, wanted: 80 } },
    { tick: { phase: "ramp", open: 80, wanted: 80, counts: { opened: 60 } } },
  ]);
  assert.equal(figuresOf(run).open_per_s, 20);
});

test("a ramp of milliseconds is in milliseconds", () => {
  const note = (ramp_s: number) => keyFigures(runOf({ ...storedRun(3), summary: { ramp_s } })).find(({ name }) => name === "connects")?.note;
  assert.deepEqual([note(0.00674), note(5.1)], ["over a ramp of 6.74 ms", "over a ramp of 5.1 s"]);
});

test("a figure that throng's own stalls reach is a lower bound", () => {
  const stalled = { ...latency([[1e6, 98], [3e6, 2]]), stalled: 2, taken_off: 4e7 };
  const run = of([{ tick: { phase: "hold", counts: { answered: 100 }, latency: stalled } }]);
  const [, count, ...cells] = timeTable(run).rows[0]!;
  assert.equal(count, "100");
  assert.deepEqual(cells.map((cell) => cell.startsWith("≥ ")), [true, false, false, false, true, true, true, false]);
  const bounds = keyFigures(run).filter(({ value }) => value.startsWith("≥ ")).map(({ name }) => name);
  assert.deepEqual(bounds, ["latency p99", "latency p99.9", "latency max"]);
});

test("what had no response stands beside the percentiles", () => {
  const without = (times: [number, number][], censored: number) => ({ ...latency(times), censored });
  const run = of([
    { tick: { phase: "ramp", connect: without([[1e6, 1]], 1) } },
    { tick: { phase: "hold", counts: { answered: 98 }, latency: without([[1e6, 90], [3e6, 8]], 2) } },
    { tick: { phase: "hold", latency: without([], 5) } },
    { tick: { phase: "hold", latency: latency([[1e6, 1]]) } },
  ]);
  assert.deepEqual(points(noResponseOverTime(run)), {
    requests: [[2, NaN], [4, 0.02], [6, 1], [8, 0]],
    dials: [[2, 0.5], [4, NaN], [6, NaN], [8, NaN]],
  });
  assert.deepEqual(noResponseOverTime(of([{ tick: { latency: latency([[1e6, 1]]) } }])).lines, []);
  const shown = Object.fromEntries(keyFigures(run).map(({ name, value, note }) => [name, [value, note]]));
  assert.deepEqual(shown["no response"], ["6.6 %", "7 requests, in no percentile; p99 falls among them"]);
  const rows = Object.fromEntries(timeTable(run).rows.map(([name, ...cells]) => [name, cells]));
  assert.equal(timeTable(run).columns.at(-1)!.name, "no response");
  assert.deepEqual([rows["latency at full load"]!.at(-1), rows["connect"]!.at(-1)], ["6.6 %", "50 %"]);
  // A second of nothing else is shown by no figure of the second before.
  const now = (records: Lenient<TickRecord>[]) => nowFigures(of(records)).map(({ name, value }) => [name, value]);
  const figures = Object.fromEntries(now([{ tick: { latency: without([], 5) } }]));
  assert.deepEqual([figures["p99"], figures["no response"]], ["–", "100 %"]);
  assert.ok(!now([{ tick: { latency: latency([[1e6, 1]]) } }]).some(([name]) => name === "no response"));
  const only = runOf({ ticks: [{ tick: { phase: "hold", latency: without([], 5) } }] });
  assert.deepEqual(timeTable(only).rows, [["latency at full load", "0", "–", "–", "–", "–", "–", "–", "–", "100 %"]]);
});

test("PINGs beside requests have a row where there were any, on the way and at the end", () => {
  const rows = (run: Run) => timeTable(run).rows.filter(([name]) => name === "round trip of PINGs").map(([, ...cells]) => cells);
  const requests = { phase: "hold" as const, latency: latency([[9e6, 5]]) };
  const run = of([
    { tick: { ...requests, ping_rtt: latency([[1e6, 60]]) } },
    { tick: { ...requests, ping_rtt: { ...latency([[2e6, 30]]), censored: 10 } } },
  ]);
  const [cells] = rows(run);
  // 90 with a time, of which the later 30 took twice as long; 10 of 100 without.
  assert.deepEqual(cells, ["90", "1.33 ms", "1 ms", "2 ms", "2 ms", "2 ms", "2 ms", "2 ms", "10 %"]);
  const ping_rtt_us = { ...of([]).total.ping_rtt.quantiles(), count: 7, mean: 3e3, p50: 3e3, max: 4e3 };
  assert.deepEqual(rows({ ...run, summary: { ping_rtt_us } })[0]!.slice(0, 3), ["7", "3 ms", "3 ms"]);
  assert.deepEqual([rows(of([{ tick: requests }])), rows({ ...of([{ tick: requests }]), summary: {} })], [[], []]);
});

test("TLS handshakes have their counts, times and costs, and nothing where there were none", () => {
  const run = of([{ tick: { phase: "ramp", tls: latency([[2e6, 12]]), tls_resumed: latency([[1e6, 34]]) } }]);
  const rows = (of: Run) => timeTable(of).rows.filter(([name]) => name!.startsWith("TLS")).map(([name, count]) => [name, count]);
  assert.deepEqual(rows(run), [["TLS, full handshake", "12"], ["TLS, resumed", "34"]]);
  assert.deepEqual(rows(of([{ tick: { phase: "ramp", connect: latency([[1e6, 1]]) } }])), []);
  const fit = (value: number) => ({ value, error: 1, r2: 0.99 });
  const cost = { target_cpu_us_per_handshake: fit(131), generator_cpu_us_per_handshake: fit(155) };
  assert.deepEqual(costTable({ ...run, summary: { cost } } as Run).rows.map(([what, , value]) => [what, value]), [
    ["CPU per connection and TLS handshake", "131 µs"],
    ["CPU per connection and TLS handshake", "155 µs"],
  ]);
});

test("a percentile curve ends where those without a response begin", () => {
  const times = Distribution.of({ ...latency(Array.from({ length: 900 }, (_, i) => [(i + 1) * 1e6, 1])), censored: 100 });
  const { points } = percentiles("", times);
  const last = points.at(-1)!;
  assert.ok(last.x <= 10 + 1e-9 && Math.abs(last.y / 900e3 - 1) < 0.001, `${last.x} ${last.y}`);
  const at = (x: number) => points.find((point) => Math.abs(point.x / x - 1) < 1e-9)!.y;
  assert.ok(Math.abs(at(1) / 1e3 - 1) < 0.1 && points.length === 21);
});

test("axes have round marks", () => {
  const check = (axis: Partial<Axis>, domain: [number, number], about: number, expected: number[]) =>
    assert.deepEqual(ticks({ label: "", quantity: count, ...axis }, domain, about), expected);
  check({}, [0, 3180], 5, [0, 1000, 2000, 3000]);
  check({}, [0, 17.3], 6, [0, 5, 10, 15]);
  check({}, [-5, 12], 5, [-5, 0, 5, 10]);
  check({ quantity: bytes }, [0, 35 * 2 ** 20], 4, [0, 10, 20, 30].map((n) => n * 2 ** 20));
  check({ quantity: time, log: true }, [40, 12_000], 5, [50, 100, 200, 500, 1000, 2000, 5000, 10_000]);
  check({ quantity: time, log: true }, [0.9, 2e6], 5, [1, 100, 1e4, 1e6]);
});
