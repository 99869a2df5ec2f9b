import assert from "node:assert/strict";
import { test } from "node:test";
import { cellsOf, COLUMNS, withEarlier } from "../../src/model/listing";
import { placesIn, pressed, type Order } from "../../src/model/order";
import { bytes, count, grouped, magnitude, percent, rate, signed, span, time } from "../../src/model/quantity";

const columns = [{ name: "step" }, { name: "p99", numeric: true }];
const by = (at: number, falls: boolean): Order => ({ at, name: columns[at]!.name, falls });

test("a text of a figure has the size of the figure", () => {
  const near = (text: string, want: number) => assert.ok(Math.abs(magnitude(text) / want - 1) < 0.006, `${text}: ${magnitude(text)} for ${want}`);
  for (const n of [0.0333, 1, 7.5, 999, 1000, 9_812, 12_345, 1.5e6, 2e9, 3e11]) {
    near(count.text(n), n);
    near(rate.text(n), n);
    near(time.text(n), n);
    near(`≥ ${time.text(n)}`, n);
    near(bytes.text(n * 7), n * 7);
    if (n >= 1) near(grouped(n), Math.round(n));
  }
  for (const s of [1.5, 59, 61, 90, 3600, 3661, 90_061]) near(span(s), s * 1e6);
  for (const share of [0.001, 0.031, 0.5, 1]) near(percent(share), share * 100);
  for (const [text, want] of [["9,812 of 10,000", 9812], ["30.4 s · 20:46:02", 30.4e6], ["1m30s · 20:46:02", 90e6], ["± 18.8 B", 18.8], ["19 missed", 19], ["2,877,533 connections", 2_877_533], ["0/s", 0], ["0 s", 0]] as const) {
    assert.equal(magnitude(text), want, text);
  }
  assert.deepEqual([signed(-1.25, 1), signed(0.3, 1), "-12 %"].map(magnitude), [-1.3, 0.3, -12]);
  for (const none of ["", "–", "not known", "± "]) assert.ok(Number.isNaN(magnitude(none)), none);
});

test("rows are sorted by what their figures are, with what has none last and equal ones as they came", () => {
  const rows = [["step 10", "1.2 ms"], ["step 9", "–"], ["login", "900 µs"], ["look", "2 s"], ["", "≥ 1.2 ms"]];
  const sorted = (order: Order | null) => placesIn(order, columns, rows);
  assert.deepEqual(sorted(by(1, true)), [3, 0, 4, 2, 1]);
  assert.deepEqual(sorted(by(1, false)), [2, 0, 4, 3, 1]);
  assert.deepEqual(sorted(by(0, false)), [2, 3, 1, 0, 4]);
  assert.deepEqual(sorted(by(0, true)), [0, 1, 3, 2, 4]);
  assert.deepEqual(sorted(null), [0, 1, 2, 3, 4]);
  // Of a table that has other columns now.
  assert.deepEqual(sorted({ at: 1, name: "max", falls: true }), [0, 1, 2, 3, 4]);
});

test("a name that is pressed sorts, then turns that around, then takes it back", () => {
  const press = (order: Order | null, at: number) => pressed(order, columns[at]!, at);
  assert.deepEqual(press(null, 1), by(1, true));
  assert.deepEqual(press(by(1, true), 1), by(1, false));
  assert.equal(press(by(1, false), 1), null);
  assert.deepEqual(press(by(1, true), 0), by(0, false));
  assert.deepEqual(press(by(0, false), 0), by(0, true));
  assert.equal(press(by(0, true), 0), null);
});

test("stored runs are sorted by each of their columns", () => {
  const run = (id: string, began_ms: number, elapsed_s: number, held: number, latency_p99_us: number | null) => ({ id, began_ms, verdict: "pass", target: "http://h/", elapsed_s, held, wanted: 9000, latency_p99_us, tags: [id] });
  const runs = [run("c", 3e12, 61, 900, null), run("b", 2e12, 7, 8000, 9_900), run("a", 1e12, 3600, 70, 12_000)];
  const ids = (name: string, falls: boolean) =>
    placesIn({ at: COLUMNS.findIndex((column) => column.name === name), name, falls }, COLUMNS, runs.map(cellsOf)).map((place) => runs[place]!.id).join("");
  assert.deepEqual(["run", "began, UTC", "tags", "time", "held", "p99", "errors"].map((name) => ids(name, false)), ["abc", "abc", "abc", "bca", "acb", "bac", "cba"]);
  assert.equal(ids("p99", true), "abc");
  assert.equal(cellsOf(runs[0]!).length, COLUMNS.length);
});

test("a list that has newer runs keeps the earlier ones that are shown", () => {
  const of = (...ids: string[]) => ids.map((id) => ({ id }));
  const shown = (runs: string[], more: boolean, known: string[]) => withEarlier({ runs: of(...runs), more }, of(...known)).map(({ id }) => id).join("");
  assert.equal(shown(["d", "c"], true, []), "dc");
  // One has begun, and one of its first page has no more room.
  assert.equal(shown(["e", "d"], true, ["d", "c", "b"]), "edcb");
  // What was removed meanwhile is gone.
  assert.equal(shown(["e", "c"], true, ["e", "d", "c", "b"]), "ecb");
  assert.equal(shown(["e", "d"], false, ["d", "c"]), "ed");
  assert.equal(shown([], false, ["d"]), "");
});
