import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, lineOf, pathOf, placeOf, queryOf, trendChart } from "../../src/model/listing";

test("an address says what is shown, and what is not proper shows the list", () => {
  const check = (path: string, expected: object) => assert.deepEqual(placeOf(path), expected, path);
  check("/", { what: "list" });
  check("/run/0abc123", { what: "run", run: "0abc123" });
  check("/compare/a/tag%3Ab", { what: "compare", base: "a", other: "tag:b" });
  check("/trend/%C3%BC", { what: "trend", tag: "ü" });
  for (const path of ["/run/", "/run", "/compare/a", "/compare//b", "/trend/", "/other/x", "/run/%zz"]) check(path, { what: "list" });
  assert.equal(pathOf("compare", "a/b", "tag:ü"), "/compare/a%2Fb/tag%3A%C3%BC");
});

test("a filter survives its way through an address", () => {
  const filter = { target: "/a&b c", verdict: "fail", tag: "ü" };
  assert.deepEqual(filterOf(queryOf(filter)), filter);
  assert.equal(queryOf({ target: "", verdict: "", tag: "" }), "");
  assert.equal(queryOf({ target: "", verdict: "pass", tag: "" }, "0ab"), "?verdict=pass&before=0ab");
  assert.deepEqual(filterOf("?other=1"), { target: "", verdict: "", tag: "" });
});

test("a line has what is known of a run, and a dash for the rest", () => {
  const run = { id: "a", began_ms: 1_795_282_449_000, verdict: "fail", held: 9_812, wanted: 10_000, elapsed_s: 61.4, requests_per_s: 12_345.6, latency_p99_us: 9_900, errors: 188 };
  assert.deepEqual(lineOf(run), {
    verdict: "fail", tone: "bad", began: "2026-11-21 17:34", time: "1m1s", held: "9,812 of 10,000", requests: "12.3k/s", p99: "9.9 ms", errors: "188",
  });
  const none = lineOf({ is_under_way: true });
  assert.deepEqual([none.verdict, none.tone, none.requests, none.p99, none.errors], ["running", "none", "–", "–", "–"]);
  assert.equal(lineOf({ is_under_way: false }).verdict, "unfinished");
});

test("a trend is drawn over its runs, with gaps where one has no value", () => {
  const chart = trendChart({ figure: "latency_us.p99", name: "latency p99", unit: "us", values: [1000, null, 3000], slope_per_run: 1000, p: 0.01, trend: "rises" });
  assert.deepEqual(chart.lines[0]!.points.map(({ x, y }) => [x, y]), [[1, 1000], [2, NaN], [3, 3000]]);
  assert.equal(chart.lines[1]!.dots, true);
  assert.deepEqual([chart.id, chart.says, chart.x.quantity.text(3), chart.y.quantity.text(3000)], ["trend-latency_us-p99", "rises", "3", "3 ms"]);
  const share = trendChart({ figure: "x", name: "no response", unit: "share", values: [0.5], slope_per_run: null, p: null, trend: "" });
  assert.equal(share.y.quantity.text(0.5), "50 %");
});
