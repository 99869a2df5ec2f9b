import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeOf, searchCharts, stepsTable } from "../../src/model/search";

const step = (step: number, load: number, pass: boolean, p99: number, more = {}) => ({
  step, load, pass, latency_p50_us: p99 / 2, latency_p99_us: p99, errors: pass ? 0 : 0.25, ...more,
});

// As stored: by load.
const found = {
  by: "rate", unit: "requests/s", outcome: "found" as const, max: 400, failed: 500,
  curve: [
    step(1, 10, true, 2_000),
    step(4, 400, true, 3_000, { target_cores: 1.25, target_cores_limit: 2, target_thread: 0.5 }),
    step(2, 400, false, 9_000),
    step(3, 500, false, 80_000, { latency_p99_us: null, reasons: ["480 of 500 answered", "late"] }),
  ],
};

test("the curve has the last step of each load, and its knee", () => {
  const [latency, errors, cpu] = searchCharts(found);
  assert.deepEqual([latency!.x.label, latency!.x.log, searchCharts({ ...found, curve: found.curve.slice(1) })[0]!.x.log], ["requests/s", true, false]);
  const points = Object.fromEntries(latency!.lines.map(({ name, points }) => [name, points.map(({ x, y }) => [x, y])]));
  assert.deepEqual(points, { p50: [[10, 1_000], [400, 1_500], [500, 40_000]], p99: [[10, 2_000], [400, 3_000], [500, NaN]] });
  assert.deepEqual(errors!.lines[0]!.points.map(({ y }) => y), [0, 0, 0.25]);
  assert.deepEqual(cpu!.lines.map(({ name, points }) => [name, points[1]!.y]), [["used", 1.25], ["busiest thread", 0.5], ["may use", 2]]);
  assert.deepEqual(latency!.marks!.map(({ x, label }) => [x, label]), [[400, "max 400"], [500, undefined]]);
  const open = searchCharts({ ...found, outcome: "unsettled" });
  assert.deepEqual(open[0]!.marks!.map(({ x, label }) => [x, label]), [[500, "500 failed"]]);
});

test("steps are listed in the order of time", () => {
  const { rows, bad, columns } = stepsTable(found);
  assert.equal(columns[1]!.name, "requests/s");
  assert.deepEqual(rows.map((row) => row.slice(0, 2)), [["1", "10"], ["2", "400"], ["3", "500"], ["4", "400"]]);
  assert.deepEqual(rows[2], ["3", "500", "40 ms", "–", "–", "–", "25 %", "–", "fail", "480 of 500 answered; late"]);
  assert.equal(rows[3]![7], "1.25 of 2");
  assert.deepEqual(bad, [1, 2]);
});

test("a search is judged by its outcome", () => {
  const of = (more: object, sentence: string) => outcomeOf({ found: { ...found, ...more }, sentence });
  assert.deepEqual(of({}, "max 400 ± 9 requests/s"), { word: "found", tone: "good", sentence: "max 400 ± 9 requests/s", seen: [] });
  assert.deepEqual(of({ outcome: "unsettled" }, "unsettled: 400 passed"), { word: "unsettled", tone: "doubt", sentence: "400 passed", seen: [] });
  assert.equal(of({ outcome: "not-reached", invalid: true }, "at least 400").tone, "doubt");
  assert.equal(of({ interrupted: true }, "interrupted: 400 passed").word, "interrupted");
  assert.equal(of({ outcome: "impossible" }, "impossible: none").tone, "bad");
});
