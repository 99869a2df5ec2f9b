import assert from "node:assert/strict";
import { test } from "node:test";
import { agentCharts, lossMarks } from "../../src/model/agent_charts";
import { agentLine, agentMap, labelsOf, MEASURES, shownFirst } from "../../src/model/agent_map";
import { agentTable } from "../../src/model/agent_table";
import { figuresOfAgent, stateOf } from "../../src/model/agents";
import { nowFigures } from "../../src/model/figures";
import { memory, processors } from "../../src/model/host_charts";
import type { Lenient } from "../../src/model/lenient";
import { placesIn } from "../../src/model/order";
import type { AgentTicks } from "../../src/model/records";
import { runOf, type Run } from "../../src/model/run";
import { drawingOrder } from "../../src/view/drawing";
import { placed } from "../../src/view/moments";
import { fleetRun } from "../fleet";
import { storedRun } from "../synthetic";

/** A run of seconds of agents a, b, … with two processors and a share of 100 connections each. */
const of = (ids: string[], seconds: Lenient<AgentTicks>[], running = true): Run => {
  const ticks = seconds.map((agents, n) => ({ tick: { from: n * 1e9, until: (n + 1) * 1e9, phase: "hold" as const, agents } }));
  const agents = ids.map((id) => ({ id, wanted: 100, cores: 2 }));
  return runOf({ width: 1, ticks, run: { header: { agents } } }, undefined, running);
};

const [cpu, lag] = [MEASURES[0]!, MEASURES[1]!];

test("a run on one machine has no agents", () => {
  const run = runOf(storedRun(5));
  assert.deepEqual(agentCharts(run, null), []);
  assert.deepEqual(lossMarks(run), []);
  assert.equal(shownFirst(run), -1);
});

test("an agent's figures are of its place, and none where it has not reported", () => {
  const second = { reports: [1, 0, 1], lost: [0, 1], open: [90], connects: [7], requests: [50, 0, 3], faults: [2], latency_p99_us: [4000], lag_p99_us: [12], cpu_ms: [500] };
  const run = of(["a", "b", "c"], [second]);
  const entry = run.entries[0]!;
  assert.deepEqual(figuresOfAgent(entry, 0, 2), {
    open: 90, connects_per_s: 7, requests_per_s: 50, faults_per_s: 2, latency_p99_us: 4000, lag_p99_us: 12, cpu_share: 0.25,
  });
  assert.equal(figuresOfAgent(entry, 1, 2), null);
  // A column may end before its place.
  assert.deepEqual([figuresOfAgent(entry, 2, 2)!.requests_per_s, figuresOfAgent(entry, 2, 2)!.open], [3, 0]);
  assert.deepEqual([0, 1, 2, 3].map((place) => stateOf(entry, place)), ["reports", "lost", "reports", "silent"]);
  assert.equal(agentLine(run, entry, 0), "90 of 100 connections · 7/s connects · 50/s requests · 2/s faults · latency p99 4 ms · lag p99 12 µs · CPU 25 % of 2 processors");
  assert.equal(agentLine(run, entry, 1), "lost");
});

test("a second in which nothing was due has no lag, and one without a response no latency", () => {
  const silent = { reports: [1, 1], open: [90, 90], latency_p99_us: [0, 400], lag_p99_us: [0, 12], cpu_ms: [500, 500] };
  const run = of(["a", "b"], [silent]);
  const entry = run.entries[0]!;
  const figures = [0, 1].map((place) => figuresOfAgent(entry, place, 2)!);
  assert.deepEqual(figures.map(({ lag_p99_us }) => lag_p99_us), [NaN, 12]);
  assert.deepEqual(figures.map(({ latency_p99_us }) => latency_p99_us), [NaN, 400]);
  assert.equal(agentLine(run, entry, 0), "90 of 100 connections · 0/s requests · CPU 25 % of 2 processors");
  assert.deepEqual(agentMap(run, entry, lag).cells.map(({ state, text, shade }) => [state, text, shade]), [["reports", "–", 0], ["reports", "12 µs", 0.0012]]);
  assert.deepEqual(agentTable(run, entry).rows.map((row) => row.slice(5, 7)), [["–", "–"], ["400 µs", "12 µs"]]);
  const chart = agentCharts(run, null).find(({ id }) => id === "agent-lag_p99_us")!;
  assert.deepEqual(chart.lines.find(({ name }) => name === "lowest")!.points.map(({ y }) => y), [12]);
});

test("samples of throng itself are the coordinator's, and agents' CPU is a line beside it", () => {
  const ticks = [0, 1].map((n) => ({ tick: { from: 2 * n * 1e9, until: 2 * (n + 1) * 1e9, cpu_ns: 3e9 }, looks: { own: { cpu_user_ns: n * 1e9, rss_bytes: 5 } } }));
  const names = (agents: { id: string; wanted: number; cores: number }[]) => {
    const run = runOf({ width: 1, ticks, run: { header: { agents } } });
    const points = processors(run).lines.map(({ name, points }) => [name, points.map(({ y }) => y)]);
    return [Object.fromEntries(points), memory(run).lines.map(({ name }) => name), nowFigures(run).map(({ name }) => name).filter((name) => name.endsWith("CPU"))];
  };
  assert.deepEqual(names([{ id: "a", wanted: 1, cores: 2 }]), [
    { coordinator: [NaN, 0.5], "all agents": [1.5, 1.5] },
    ["coordinator"],
    ["coordinator's CPU", "target's CPU"],
  ]);
  assert.deepEqual(names([]), [{ throng: [NaN, 0.5] }, ["throng"], ["throng's CPU", "target's CPU"]]);
});

test("cells have the part of a name that differs, and marks its end where there is no room", () => {
  assert.deepEqual(labelsOf(["throng-agents-eu-west-1", "throng-agents-eu-west-12"]), ["…west-1", "…west-12"]);
  assert.deepEqual(labelsOf(["throng-ab12cd-0", "throng-ab12cd-1"]), ["…ab12cd-0", "…ab12cd-1"]);
  for (const names of [["load-1", "load-2"], ["load-1"], ["a-long-name-of-an-agent"], ["eu-west-throng-agents-1", "us-east-throng-agents-1"], []]) assert.deepEqual(labelsOf(names), names);
  const named = ["throng-agents-of-eu-west-3 lost", "a lost"].map((label) => placed([{ x: 0, what: label, label }], (x) => x, 900)[0]!.text);
  assert.deepEqual(named, ["…-agents-of-eu-west-3 lost", "a lost"]);
});

test("the line of the selected agent is drawn over the others", () => {
  const run = of(["a", "b"], [{ reports: [1, 1], open: [10, 30] }]);
  const order = (place: number | null) => {
    const { lines } = agentCharts(run, place).find(({ id }) => id === "agent-open")!;
    return drawingOrder(lines).map((place) => lines[place]!.name);
  };
  assert.deepEqual(order(1), ["mean", "highest", "lowest", "b"]);
  assert.deepEqual(order(null), ["mean", "highest", "lowest"]);
});

test("two reports in a second are two seconds of CPU time", () => {
  const run = of(["a"], [{ reports: [0] }, { reports: [2], cpu_ms: [3000] }]);
  assert.equal(figuresOfAgent(run.entries[1]!, 0, 2)!.cpu_share, 0.75);
});

test("the map has a cell for each agent, coloured by what is chosen", () => {
  const run = of(["a", "b", "c"], [{ reports: [1, 1, 0], lag_p99_us: [5000, 20_000], cpu_ms: [500, 2000] }, { reports: [1, 0, 1], lost: [0, 1], lag_p99_us: [100, 0, 0] }]);
  const [first, second] = [run.entries[0]!, run.entries[1]!];
  assert.deepEqual(agentMap(run, first, cpu), {
    cells: [
      { name: "a", label: "a", state: "reports", shade: 0.25, text: "25 %" },
      { name: "b", label: "b", state: "reports", shade: 1, text: "100 %" },
      { name: "c", label: "c", state: "silent", shade: 0, text: "no report" },
    ],
    full: "100 %",
    counts: { reports: 2, silent: 1, lost: 0 },
  });
  // What is beyond the scale extends it; what is far below has hardly a colour.
  assert.deepEqual([agentMap(run, first, lag).full, agentMap(run, first, lag).cells[0]!.shade], ["20 ms", 0.25]);
  const map = agentMap(run, second, lag);
  assert.deepEqual([map.full, map.cells.map(({ text, shade }) => [text, shade])], ["10 ms", [["100 µs", 0.01], ["lost", 0], ["–", 0]]]);
});

test("a run that is over is shown at the end of its full load", () => {
  const run = of(["a"], [{ reports: [1] }, { reports: [1] }, { reports: [1] }], false);
  run.entries[2]!.period.phase = "drain";
  assert.equal(shownFirst(run), 1);
  assert.equal(shownFirst({ ...run, running: true }), 2);
});

test("an agent's lines are beside those of all", () => {
  const run = of(["a", "b"], [{ reports: [1, 1], open: [10, 30], lag_p99_us: [4, 9], cpu_ms: [200, 1000] }, { reports: [0, 1], lost: [1], open: [0, 30], cpu_ms: [0, 400] }, { reports: [1, 1], open: [4, 30] }]);
  const lines = (place: number | null, id: string) =>
    Object.fromEntries(agentCharts(run, place).find((chart) => chart.id === id)!.lines.map(({ name, points }) => [name, points.map(({ y }) => y)]));
  assert.deepEqual(lines(0, "agent-open"), { a: [10, NaN, 4], mean: [20, 30, 17], highest: [30, 30, 30], lowest: [10, 30, 4] });
  assert.deepEqual(lines(null, "agent-cpu_share"), { mean: [0.3, 0.2, 0], highest: [0.5, 0.2, 0], lowest: [0.1, 0.2, 0] });
  assert.deepEqual(Object.keys(lines(1, "agent-lag_p99_us")), ["b", "all merged", "highest", "lowest"]);
  assert.deepEqual(lossMarks(run), [
    { x: 2, what: "a lost", label: "a lost", kind: "end" },
    { x: 3, what: "a back", label: "a back", kind: "command" },
  ]);
  // Nothing failed: there is no chart of nothing.
  assert.deepEqual(agentCharts(run, 0).find((chart) => chart.id === "agent-faults_per_s")!.lines, []);
});

test("many agents lost at once are one mark", () => {
  const run = of(["a", "b", "c", "d"], [{ reports: [1, 1, 1, 1] }, { lost: [1, 1, 1, 1] }]);
  assert.deepEqual(lossMarks(run).map(({ x, what }) => [x, what]), [[2, "4 agents lost"]]);
});

test("of many agents the table has those to look at", () => {
  const run = runOf(fleetRun(1000, 10), undefined, true);
  const table = agentTable(run, run.entries[8]!);
  assert.equal(table.most, 20);
  assert.deepEqual(table.rows[0]!.slice(0, 4), ["load-0001", "lost", "–", "3"]);
  assert.ok(table.rows.slice(1, 20).every(([id]) => Number(id!.slice(5)) % 50 === 7), `${table.rows.map(([id]) => id)}`);
  assert.match(table.says!, /^20 of 1,000/);
  // Those of the highest lag are not among them, and are found.
  const first = placesIn({ at: 6, name: "lag p99", falls: true }, table.columns, table.rows).slice(0, 20).map((place) => table.rows[place]![0]!);
  assert.ok(first.every((id) => Number(id.slice(5)) % 50 === 33), `${first}`);
});

test("after a run the table is its summary's", () => {
  const run = of(["a", "b"], [{ reports: [1, 1] }]);
  run.summary = {
    agents: [
      { id: "a", state: "done", wanted: 100, held: 99, began_late_ms: 0.24, lag_p99_us: 90, cpu_share: 0.5 },
      { id: "b", state: "lost", wanted: 100, held: 40, away_s: 3, taken_over_by: ["a"] },
    ],
  };
  assert.deepEqual(agentTable(run, run.entries[0]!).rows, [
    ["a", "done", "99", "100", "+0.2 ms", "90 µs", "50 %", "–", ""],
    ["b", "lost", "40", "100", "–", "–", "–", "3 s", "taken over by a"],
  ]);
});
