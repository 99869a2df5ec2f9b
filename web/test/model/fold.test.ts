import assert from "node:assert/strict";
import { test } from "node:test";
import { entryOf, Thin, total } from "../../src/model/fold";
import { faultName, joined, periodOf, type Period } from "../../src/model/period";
import type { Quantiles } from "../../src/model/records";
import type { StoredRun } from "../../src/model/report";
import { fixture, type Entries } from "../fixture";
import { latency, storedRun } from "../synthetic";

const { records, folded, limit, width, thinned, late, amended } = fixture();

/** Equal but for the last digits of sums of floating-point numbers. */
function same(got: Quantiles, want: Quantiles, what: string): void {
  const { censored, stalled, ...figures } = want;
  for (const [name, value] of Object.entries(figures)) {
    const ours = got[name as keyof typeof figures];
    assert.ok(Math.abs(ours - value) <= Math.abs(value) * 1e-9, `${what} ${name}: ${ours}, and ${value} in Rust`);
  }
  assert.deepEqual(got.censored, censored, `${what}: what has no response`);
  assert.deepEqual(got.stalled, stalled, `${what}: what is a lower bound`);
}

test("records add up to what Rust makes of them", () => {
  const all = total(records.map(entryOf));
  assert.deepEqual(all.counts, { ...all.counts, ...folded.counts });
  const counts = (faults: typeof folded.faults) => Object.fromEntries(faults.map((fault) => [faultName(fault), fault.count]));
  assert.deepEqual(counts(all.faults), counts(folded.faults));
  assert.deepEqual(Object.fromEntries(all.status), folded.status);
  same(all.latency.quantiles(), folded.latency_us, "latency");
  same(all.ramp_latency.quantiles(), folded.ramp_latency_us, "ramp latency");
  same(all.connect.quantiles(), folded.connect_us, "connect");
  same(all.lag.quantiles(), folded.lag_us, "lag");
  assert.ok(folded.latency_us.censored!.count > 0 && folded.connect_us.censored!.count > 0 && folded.counts.unanswered > 0);
  assert.ok(folded.connect_us.stalled!.count > 0);
  assert.equal(all.populations.length, folded.populations.length);
  folded.populations.forEach((want, i) => {
    assert.deepEqual(all.populations[i]!.counts, { ...all.populations[i]!.counts, ...want.counts });
    same(all.populations[i]!.latency.quantiles(), want.latency_us, `population ${i}`);
  });
  assert.equal(all.steps.length, folded.steps.length);
  folded.steps.forEach((want, i) => same(all.steps[i]!.quantiles(), want, `step ${i}`));
});

const figures = (thin: Thin): Entries => {
  const of = (figure: (period: Period) => number) => thin.entries.map(({ period }) => figure(period));
  return {
    open: of((period) => period.open),
    answered: of((period) => period.counts.answered),
    population_open: of((period) => period.populations[0]!.open),
    latency_p99_us: of((period) => period.latency.quantile(0.99) / 1e3),
    no_response: of((period) => period.latency.censored),
    agents: thin.entries.map(({ agents }) => agents!),
  };
};

test("a history is thinned, and what comes late added to it, as Rust does it", () => {
  const thin = new Thin(limit);
  records.forEach((record) => thin.add(record));
  assert.equal(thin.width, width);
  assert.deepEqual(figures(thin), thinned);
  late.forEach((record) => thin.amend(record));
  assert.deepEqual(figures(thin), amended);
  assert.notDeepEqual(amended.open, thinned.open);
  new Thin(limit).amend(late[0]!);
});

/** What a page knows of a history. */
const known = (thin: Thin) => ({
  width: thin.width,
  count: thin.count,
  entries: thin.entries.map(({ period, looks }) => ({
    ...period,
    latency: period.latency.quantiles(),
    ramp_latency: period.ramp_latency.quantiles(),
    lag: period.lag.quantiles(),
    connect: period.connect.quantiles(),
    handshake: null, first_byte: null, ramp_first_byte: null, silence: null,
    probe: period.probe && period.probe.kept.quantiles(),
    looks,
  })),
});

test("one that joined late has what one has that was there from the beginning", () => {
  const run = storedRun(23);
  const whole = new Thin(8);
  run.ticks.forEach((tick) => whole.add(tick));
  assert.equal(whole.width, 4);
  for (const joinedAt of [0, 1, 7, 8]) {
    const late = Thin.of({ ...run, width: 1, count: joinedAt, ticks: run.ticks.slice(0, joinedAt) }, 8);
    run.ticks.slice(joinedAt).forEach((tick) => late.add(tick));
    assert.deepEqual(known(late), known(whole), `joined at ${joinedAt}`);
  }
});

test("the last of thinned entries is gone on with, told or not how many it holds", () => {
  const tick = (n: number) => ({ tick: { from: n * 1e9, until: (n + 1) * 1e9, open: n } });
  const merged = (n: number, width: number) => ({ tick: { from: n * 1e9, until: (n + width) * 1e9, open: n + width - 1 } });
  // Ten ticks, four an entry: the last holds two.
  const run = { width: 4, ticks: [merged(0, 4), merged(4, 4), merged(8, 2)] };
  for (const count of [undefined, 10]) {
    const thin = Thin.of({ ...run, count } as unknown as StoredRun);
    [10, 11, 12].forEach((n) => thin.add(tick(n)));
    assert.deepEqual(thin.entries.map(({ period }) => period.open), [3, 7, 11, 12], `${count}`);
    assert.equal(thin.count, 13);
  }
});

test("a history never has more entries than its limit", () => {
  for (let n = 1; n <= 40; n++) {
    const thin = new Thin(5);
    for (let i = 0; i < n; i++) thin.add({ tick: { open: i, counts: { sent: 1 } } });
    assert.ok(thin.entries.length <= 5 && thin.entries.length > (n > 2 ? 2 : 0), `${n}: ${thin.entries.length}`);
    assert.equal(total(thin.entries).counts.sent, n);
    assert.equal(thin.entries.at(-1)!.period.open, n - 1);
  }
});

test("what a record lacks is as if nothing had happened", () => {
  const empty = entryOf({});
  assert.deepEqual(empty.looks, {});
  const period = joined([periodOf({ open: 5, counts: { sent: 2 } }), periodOf({}), periodOf({ latency: latency([[1000, 2]]) })]);
  assert.deepEqual([period.open, period.counts.sent, period.counts.opened, period.latency.count, period.probe], [0, 2, 0, 2, null]);
  assert.deepEqual(total([]).latency.quantiles().max, 0);
});

test("a population that comes later is added up from when it came", () => {
  const one = periodOf({ populations: [{ open: 3, counts: { opened: 3 } }] });
  const two = periodOf({ populations: [{ open: 4, counts: { opened: 1 } }, { open: 9, counts: { opened: 9 } }] });
  const all = joined([one, two]);
  assert.deepEqual(all.populations.map(({ open, counts }) => [open, counts.opened]), [[4, 4], [9, 9]]);
});
