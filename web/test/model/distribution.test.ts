import assert from "node:assert/strict";
import { test } from "node:test";
import { Distribution } from "../../src/model/distribution";
import { latency, random } from "../synthetic";

test("nothing recorded reads zero", () => {
  for (const nothing of [undefined, null, {}, { histogram: "" }, latency([])]) {
    const figures = Distribution.of(nothing).quantiles();
    assert.deepEqual(Object.values(figures), [...Array(12).fill(0), null, null]);
  }
});

test("a ramp of times has its quantiles", () => {
  const times = Distribution.of(latency(Array.from({ length: 10_000 }, (_, i) => [(i + 1) * 1000, 1])));
  const q = times.quantiles();
  assert.deepEqual([q.count, q.min, q.max, q.mean], [10_000, 1, 10_000, 5000.5]);
  const expected = { p50: 5000, p75: 7500, p90: 9000, p95: 9500, p99: 9900, p999: 9990, p9999: 9999, stdev: 2886.75 };
  for (const [name, want] of Object.entries(expected)) {
    const got = q[name as keyof typeof expected];
    assert.ok(Math.abs(got / want - 1) < 0.002, `${name}: ${got} for ${want}`);
  }
});

test("a quantile is the highest of its place, and never more than the longest", () => {
  // Places of 64 ns below 131,072 ns, of 128 ns from there.
  const check = (ns: number[], q: number, expected: number) =>
    assert.equal(Distribution.of(latency(ns.map((one) => [one, 1]))).quantile(q), expected, `${ns} ${q}`);
  check([100, 1_000_000], 0.5, 127);
  check([100], 0.5, 100);
  check([131_000, 9e9], 0, 131_007);
  check([131_072, 9e9], 0.5, 131_199);
  check([1, 2e6, 3e6], 1, 3e6);
  check([3_600_000_000_000], 0.5, 3_600_000_000_000);
});

test("merging is the same as recording together, in any order", () => {
  const draw = random(7);
  const lists = [0, 30, 200, 1].map((n) => Array.from({ length: n }, (): [number, number] => [Math.floor(draw() * 1e10), 1 + Math.floor(draw() * 1e6)]));
  const together = Distribution.of(latency(lists.flat())).quantiles();
  const parts = lists.map((list) => Distribution.of(latency(list)));
  const merged = [Distribution.merged(parts), Distribution.merged(parts.reverse()), Distribution.merged([Distribution.merged(parts.slice(0, 2)), ...parts.slice(2)])];
  for (const one of merged) {
    const { mean, stdev, ...figures } = one.quantiles();
    const { mean: wantMean, stdev: wantStdev, ...want } = together;
    assert.deepEqual(figures, want);
    assert.ok(Math.abs(mean / wantMean - 1) < 1e-12 && Math.abs(stdev / wantStdev - 1) < 1e-9);
  }
});

test("what never ended is longer than all that did", () => {
  // As in Rust: with a time (1 ms, 2 ms, …), without, quantile, milliseconds.
  const check = (n: number, censored: number, q: number, expected: number | null) => {
    const times = Array.from({ length: n }, (_, i): [number, number] => [(i + 1) * 1e6, 1]);
    const got = Distribution.of({ ...latency(times), censored }).judgedQuantile(q);
    assert.equal(got === null ? null : Math.round(got / 1e6), expected, `${n} with a time, ${censored} without, ${q}`);
  };
  check(0, 0, 0.5, null);
  check(0, 5, 0.5, null);
  check(100, 0, 0.99, 99);
  check(100, 0, 1, 100);
  check(990, 10, 0.99, 990);
  check(990, 11, 0.99, null);
  check(100, 100, 0.25, 50);
  check(100, 100, 0.5, 100);
  check(100, 101, 0.5, null);
  check(1, 0, 0.001, 1);
  const one = Distribution.of({ ...latency([[4e6, 3]]), censored: 1 });
  const q = Distribution.merged([one, Distribution.of({ censored: 1 }), Distribution.EMPTY, one]).quantiles();
  assert.deepEqual([q.count, q.mean, q.max, q.censored?.count, q.censored?.share, q.censored?.p99], [6, 4000, 4000, 3, 1 / 3, null]);
  assert.ok(Math.abs(q.censored!.p50! / 4000 - 1) < 1e-3);
  assert.deepEqual(Distribution.of({ censored: 2 }).quantiles().censored?.share, 1);
});

/** As another writer of the format would have it: two digits, from one nanosecond. */
function coarse(index: number, n: number): string {
  const payload: number[] = [];
  const number = (value: number) => {
    let rest = value >= 0 ? value * 2 : -value * 2 - 1;
    for (; rest >= 128; rest = Math.floor(rest / 128)) payload.push((rest % 128) + 128);
    payload.push(rest);
  };
  number(-index);
  number(n);
  const bytes = Buffer.alloc(40 + payload.length);
  bytes.writeUInt32BE(0x1c849303, 0);
  bytes.writeUInt32BE(payload.length, 4);
  bytes.writeUInt32BE(2, 12);
  bytes.writeBigUInt64BE(1n, 16);
  bytes.writeBigUInt64BE(3_600_000_000_000n, 24);
  bytes.writeDoubleBE(1, 32);
  bytes.set(payload, 40);
  return bytes.toString("base64");
}

test("a histogram of other digits is taken over place by place", () => {
  // Two digits have 256 places at first, 128 in each doubling: place 256 + 128 + 5 is from (128 + 5) · 4 ns.
  const times = Distribution.of({ histogram: coarse(256 + 128 + 5, 7), sum: 1, min: 1, max: 1e9 });
  assert.equal(times.count, 7);
  assert.equal(times.quantile(0.5), Math.floor(532 / 64) * 64 + 63);
  // Doubled ten times: 133 · 1024.
  const longer = Distribution.of({ histogram: coarse(128 * 11 + 5, 1), sum: 1, min: 1, max: 1e9 });
  assert.deepEqual([...longer.places()], [[133 * 1024, 1]]);
});

test("what is no histogram reads as nothing", () => {
  assert.equal(Distribution.of({ histogram: "AAAA", max: 5 }).count, 0);
  assert.equal(Distribution.of({ histogram: Buffer.alloc(60).toString("base64") }).count, 0);
});
