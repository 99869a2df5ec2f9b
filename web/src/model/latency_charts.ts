import { isSeen, overTime, phases, SECONDS, type Axis, type Cell, type Chart, type Line, type Point } from "./chart";
import { Distribution } from "./distribution";
import { remembered, type Entry } from "./fold";
import { marksOf } from "./marks";
import type { Period } from "./period";
import * as quantity from "./quantity";
import type { Run } from "./run";
import { boundsOf } from "./thresholds";

export const LATENCY: Axis = { label: "time, log scale", quantity: quantity.time, log: true };
export const CONNECTIONS: Axis = { label: "connections open", quantity: quantity.count };

/** Every answer's time, whenever it was due. */
export const latencyOf = (period: Period) => Distribution.merged([period.latency, period.ramp_latency]);
const firstByteOf = (period: Period) => Distribution.merged([period.first_byte, period.ramp_first_byte]);
const probeOf = ({ probe }: Period) => (probe ? Distribution.merged([probe.kept, probe.fresh]) : Distribution.EMPTY);

/** Microseconds; none without any. */
const quantile = (times: Distribution, q: number) => (times.count > 0 ? times.quantile(q) / 1e3 : null);

/** Percentiles that are drawn over time, and the longest; microseconds. */
const figuresOf = (times: Distribution) => ({
  p50: quantile(times, 0.5), p95: quantile(times, 0.95), p99: quantile(times, 0.99), max: times.count > 0 ? times.max / 1e3 : null,
});
type Figures = ReturnType<typeof figuresOf>;

/** Those of some times of an entry, which are computed once. */
export const figuresOver = (times: (period: Period) => Distribution) => remembered(({ period }) => figuresOf(times(period)));

/** A line for each of them. */
export const figureLines = (run: Run, of: (entry: Entry) => Figures): Line[] =>
  (["p50", "p95", "p99", "max"] as const).map((name) => overTime(run.entries, name, (entry) => of(entry)[name]));

const latencyFigures = figuresOver(latencyOf);
const probeP99 = remembered(({ period }) => quantile(probeOf(period), 0.99));
const lagP99 = remembered(({ period }) => quantile(period.lag, 0.99));

export const p99OverTime = (run: Run, name: string): Line => overTime(run.entries, name, (entry) => latencyFigures(entry).p99);

export function latencyOverTime(run: Run): Chart {
  const { entries } = run;
  return {
    id: "latency",
    title: "Latency over time",
    says: "From due to the response; lag: how late throng sent",
    x: SECONDS,
    y: LATENCY,
    lines: [
      ...figureLines(run, latencyFigures),
      overTime(entries, "probe p99", probeP99),
      overTime(entries, "lag p99", lagP99),
    ].filter((line) => isSeen(line)),
    bands: phases(entries),
    marks: marksOf(run),
    bounds: boundsOf(run, /^(populations\.[^.]+\.)?(latency_us|lag_us|probe\.latency_us)\.(p\d+|max|mean)$/),
  };
}

export const NO_RESPONSE: Axis = { label: "share without a response", quantity: { text: quantity.percent, unit: () => 0.01 } };

/** None of nothing. */
const shareWithout = (times: Distribution) => (times.count + times.censored > 0 ? times.censoredShare : null);

export const noResponseOfRun = (run: Run, name: string): Line =>
  overTime(run.entries, name, ({ period }) => shareWithout(latencyOf(period)));

/** What the percentiles beside it say nothing of. */
export function noResponseOverTime(run: Run): Chart {
  const { entries } = run;
  // Histograms are read only where something is missing: most runs have nothing of it, and are drawn again each second.
  const line = (name: string, of: (period: Period) => Distribution, lacks: (period: Period) => number): Line[] =>
    entries.some(({ period }) => lacks(period) > 0) ? [overTime(entries, name, ({ period }) => shareWithout(of(period)))] : [];
  const lines = [
    ...line("requests", latencyOf, ({ latency, ramp_latency }) => latency.censored + ramp_latency.censored),
    ...line("dials", (period) => period.connect, (period) => period.connect.censored),
    ...line("PINGs", (period) => period.ping_rtt, (period) => period.ping_rtt.censored),
    ...line("probe", probeOf, ({ probe }) => (probe?.kept.censored ?? 0) + (probe?.fresh.censored ?? 0)),
  ];
  return {
    id: "no-response",
    title: "Without a response",
    says: "Share of requests and PINGs without a response, and of dials without a connection; not included in the percentiles",
    x: SECONDS,
    y: NO_RESPONSE,
    lines,
    bands: phases(entries),
    marks: marksOf(run),
  };
}

/** Periods in which about as many connections were open, taken together. */
interface Group {
  connections: number;
  latency: Distribution;
  connect: Distribution;
}

/** All entries in such groups, ascending. */
function byConnections(entries: readonly Entry[]): Group[] {
  const open = ({ open_s, from_s, until_s, open }: Period) => (open_s > 0 ? open_s / (until_s - from_s) : open);
  const most = entries.reduce((most, { period }) => Math.max(most, open(period)), 1);
  const groups = new Map<number, Period[]>();
  for (const { period } of entries) {
    const place = Math.floor((open(period) / most) * GROUPS);
    groups.set(place, [...(groups.get(place) ?? []), period]);
  }
  const mean = (periods: Period[]) => periods.reduce((sum, period) => sum + open(period), 0) / periods.length;
  return [...groups.entries()]
    .sort(([a], [b]) => a - b)
    .map(([, periods]) => ({
      connections: mean(periods),
      latency: Distribution.merged(periods.map(latencyOf)),
      connect: Distribution.merged(periods.map((period) => period.connect)),
    }));
}

/** Enough for a curve, few enough for a sound percentile in each. */
const GROUPS = 50;

/** A percentile of each group's times. */
function lineBy(groups: Group[], name: string, q: number, of: (group: Group) => Distribution): Line {
  // Where those without a response begin, there is no time.
  const judged = (times: Distribution) => (times.judgedQuantile(q) ?? NaN) / 1e3;
  const points = groups.map((group) => ({ x: group.connections, y: judged(of(group)) }));
  return { name, points: points.filter(({ y }) => Number.isFinite(y)), dots: true };
}

export const p99ByConnections = (run: Run, name: string) =>
  lineBy(byConnections(run.entries), name, 0.99, (group) => group.latency);

export function latencyByConnections(run: Run): Chart {
  const groups = byConnections(run.entries);
  const points = run.summary?.probe?.by_connections ?? [];
  const probe = (name: string, q: number, of: (point: (typeof points)[number]) => number | null | undefined): Line => ({
    name,
    points: points.map((point) => ({ x: point.connections ?? 0, y: (point.no_response ?? 0) <= 1 - q ? (of(point) ?? NaN) : NaN })),
    dots: true,
  });
  return {
    id: "by-connections",
    title: "Latency against connections held",
    says: "A point for each number of connections; none where too few had a response",
    x: CONNECTIONS,
    y: LATENCY,
    lines: [
      lineBy(groups, "p50", 0.5, (group) => group.latency),
      lineBy(groups, "p95", 0.95, (group) => group.latency),
      lineBy(groups, "p99", 0.99, (group) => group.latency),
      lineBy(groups, "connect p99", 0.99, (group) => group.connect),
      probe("probe p50", 0.5, (point) => point.latency_p50_us),
      probe("probe p99", 0.99, (point) => point.latency_p99_us),
    ].filter((line) => line.points.length > 1),
    bounds: boundsOf(run, /^latency_us\.(p\d+|max|mean)$/),
  };
}

const NINES = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7];

/** The n-th part from the top: 2 is the median, 100 the 99th percentile. */
export const PERCENTILE: Axis = {
  label: "percentile",
  quantity: { text: (n) => `${Number((100 - 100 / n).toPrecision(9))} %`, unit: () => 1 },
  log: true,
  ticks: NINES.map((at) => ({ at, name: `${Number((100 - 100 / at).toPrecision(9))} %` })),
};

/** Points of a percentile curve between two nines. */
const STEPS = 20;

/** Of all, those without a time included: it ends where these begin. */
export function percentiles(name: string, times: Distribution): Line {
  const points: Point[] = [];
  if (times.censored > 0) {
    for (let k = 0; ; k++) {
      const x = 10 ** (k / STEPS);
      const ns = times.judgedQuantile(1 - 1 / x);
      if (ns === null || x > times.count + times.censored) return { name, points };
      points.push({ x, y: ns / 1e3 });
    }
  }
  // Beyond one in so many as there are, it is the longest of them.
  for (let k = 0; 10 ** (k / STEPS) <= times.count; k++) {
    const x = 10 ** (k / STEPS);
    points.push({ x, y: times.quantile(1 - 1 / x) / 1e3 });
  }
  if (times.count > 1) points.push({ x: times.count, y: times.max / 1e3 });
  return { name, points };
}

export function percentileCurve(run: Run): Chart {
  const { total } = run;
  return {
    id: "percentiles",
    title: "Percentiles",
    says: "One more nine per step; a line ends where requests without a response begin",
    x: PERCENTILE,
    y: LATENCY,
    lines: [
      percentiles("latency at full load", total.latency),
      percentiles("ramp latency", total.ramp_latency),
      percentiles("time to first byte", firstByteOf(total)),
      percentiles("probe", probeOf(total)),
    ].filter((line) => line.points.length > 1),
  };
}

const COLUMNS = 150;
/** Rows for each tenfold time. */
const ROWS_A_DECADE = 12;

export function heatMap(run: Run): Chart {
  const { entries } = run;
  const width = Math.max(1, Math.ceil(entries.length / COLUMNS));
  const cells: Cell[] = [];
  for (let i = 0; i < entries.length; i += width) {
    const from_s = entries[i - 1]?.period.until_s ?? entries[i]!.period.from_s;
    cells.push(...column(entries.slice(i, i + width), from_s));
  }
  const most = cells.reduce((most, { count }) => Math.max(most, count), 1);
  cells.forEach((cell) => (cell.shade = (1 + Math.log(cell.count)) / (1 + Math.log(most))));
  return {
    id: "heat",
    title: "Latency heat map",
    says: "Each column covers the responses of a time interval; each row a range of latency",
    x: SECONDS,
    y: LATENCY,
    lines: [],
    cells,
    most,
    bands: phases(entries),
    marks: marksOf(run),
  };
}

/** How many answers of an entry lie in each row of the heat map. */
const rowsOf = remembered(({ period }) => {
  const rows = new Map<number, number>();
  for (const [ns, n] of latencyOf(period).places()) {
    const row = Math.floor(Math.log10(Math.max(ns, 64) / 1e3) * ROWS_A_DECADE);
    rows.set(row, (rows.get(row) ?? 0) + n);
  }
  return rows;
});

/** What lies between the last column's end and its own. */
function column(entries: readonly Entry[], from_s: number): Cell[] {
  const rows = new Map<number, number>();
  for (const entry of entries) for (const [row, n] of rowsOf(entry)) rows.set(row, (rows.get(row) ?? 0) + n);
  const until_s = entries.at(-1)!.period.until_s;
  const us = (row: number) => 10 ** (row / ROWS_A_DECADE);
  return [...rows].map(([row, count]) => ({
    from: { x: from_s, y: us(row) },
    to: { x: until_s, y: us(row + 1) },
    count,
    shade: 0,
  }));
}
