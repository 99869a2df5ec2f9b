import { ownProcess } from "./agents";
import { atLeast } from "./distribution";
import { figuresOf, faultsSeen, faultTotal } from "./figures";
import type { Lenient } from "./lenient";
import { bytes, grouped, percent, rate, time } from "./quantity";
import type { FaultCount, Fit, PopulationSummary, Quantiles } from "./records";
import type { Comparison } from "./report";
import { commandLine, nameOf, type Run } from "./run";
import { stepName, stepPlaces } from "./step_charts";
import { judgement } from "./verdict";

/** Rows of text under a heading. */
export interface Table {
  id: string;
  title: string;
  says?: string;
  columns: Column[];
  rows: string[][];
  /** Of more rows only so many are shown, the first in the order that is chosen. */
  most?: number;
  /** Places of rows that tell of something that should not be. */
  bad?: number[];
  /** Only its title is shown until it is opened. */
  folded?: boolean;
}

export interface Column {
  name: string;
  /** Of numbers: aligned to the right. */
  numeric?: boolean;
  /** Of text as it came from a server. */
  code?: boolean;
}

const words = (...names: string[]): Column[] => names.map((name) => ({ name }));
const numbers = (...names: string[]): Column[] => names.map((name) => ({ name, numeric: true }));

export function faultTable(run: Run): Table {
  const faults = faultsSeen(run.summary?.faults ?? run.total.faults);
  return {
    id: "fault-table",
    title: "Faults by side, stage and kind",
    columns: [...words("side", "stage", "kind"), ...numbers("count")],
    rows: faults.map(({ side, stage, kind, count }: FaultCount) => [side, stage, kind, grouped(count)]),
    bad: faults.map((_, place) => place),
  };
}

export function statusTable(run: Run): Table {
  const statuses = run.summary?.requests?.status ?? Object.fromEntries(run.total.status);
  const rows = Object.entries(statuses).map(([status, n]) => [status, grouped(n ?? 0)]);
  const bad = rows.flatMap(([status], place) => (/^[45]\d\d$/.test(status!) || (/\D/.test(status!) && status !== "OK") ? [place] : []));
  return { id: "statuses", title: "Responses by status", columns: [...words("status"), ...numbers("responses")], rows, bad };
}

const QUANTILES = numbers("count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max", "no response");

function quantilesRow(q: Lenient<Quantiles> | null | undefined): string[] {
  const times = [timeOf(q, q?.p50, 0.5), timeOf(q, q?.p90, 0.9), timeOf(q, q?.p95, 0.95), timeOf(q, q?.p99, 0.99), timeOf(q, q?.p999, 0.999)];
  return [grouped(q?.count ?? 0), timeOf(q, q?.mean, 1), ...times, timeOf(q, q?.max, 1), noResponse(q)];
}

/** Where there is nothing to show. */
const NONE = "–";

/** A figure that a share (0..=1) of the times decides; none of a distribution in which nothing has a time. */
function timeOf(q: Lenient<Quantiles> | null | undefined, us: number | null | undefined, share: number): string {
  if ((q?.count ?? 0) === 0 && q?.censored) return NONE;
  return atLeast(q, share) + time.text(us ?? 0);
}

/** The share that the percentiles say nothing of: requests without a response, dials without a connection. */
function noResponse(q: Lenient<Quantiles> | null | undefined): string {
  return q?.censored ? percent(q.censored.share ?? 0) : NONE;
}

/** Whether anything has a time, or should have had one. */
const isThere = (q: Lenient<Quantiles> | null | undefined) => (q?.count ?? 0) > 0 || q?.censored != null;

/** All times of a run in figures. */
export function timeTable(run: Run): Table {
  const { summary, total } = run;
  const probe = summary?.probe;
  const all: [string, Lenient<Quantiles> | null | undefined][] = [
    ["latency at full load", summary?.latency_us ?? total.latency.quantiles()],
    ["ramp latency", summary?.ramp_latency_us ?? total.ramp_latency.quantiles()],
    ["time to first byte", summary?.first_byte_us ?? total.first_byte.quantiles()],
    ["gap between messages", summary?.gap_us ?? total.gap.quantiles()],
    ["delay of messages", summary?.delay_us ?? total.delay.quantiles()],
    ["spread of broadcasts", summary?.spread_us ?? total.spread.quantiles()],
    ["round trip of PINGs", summary?.ping_rtt_us ?? total.ping_rtt.quantiles()],
    ["connect", summary?.connect_us ?? total.connect.quantiles()],
    ["TLS, full handshake", summary?.tls_us ?? total.tls.quantiles()],
    ["TLS, resumed", summary?.tls_resumed_us ?? total.tls_resumed.quantiles()],
    ["handshake", summary?.handshake_us ?? total.handshake.quantiles()],
    ["lag (how late throng sent)", summary?.lag_us ?? total.lag.quantiles()],
    ["probe, kept connections", probe?.kept_us ?? total.probe?.kept.quantiles()],
    ["probe, fresh connections", probe?.fresh_us ?? total.probe?.fresh.quantiles()],
    ["probe, connect", probe?.connect_us ?? total.probe?.connect.quantiles()],
  ];
  const rows = all.filter(([, q]) => isThere(q)).map(([name, q]) => [name, ...quantilesRow(q)]);
  return { id: "times", title: "Times", columns: [...words("time"), ...QUANTILES], rows };
}

export function populationTable(run: Run): Table {
  const populations = Object.entries(run.summary?.populations ?? {});
  const row = ([name, p]: [string, Lenient<PopulationSummary> | null | undefined]) => [
    name,
    p?.target ?? "",
    grouped(p?.connections?.held ?? 0),
    grouped(p?.connections?.wanted ?? 0),
    rate.text(p?.connections?.open_per_s ?? 0),
    rate.text(p?.requests?.per_s ?? 0),
    timeOf(p?.latency_us, p?.latency_us?.p50, 0.5),
    timeOf(p?.latency_us, p?.latency_us?.p95, 0.95),
    timeOf(p?.latency_us, p?.latency_us?.p99, 0.99),
    noResponse(p?.latency_us),
    grouped(faultTotal(p?.faults ?? [])),
  ];
  return {
    id: "populations",
    title: "Populations",
    columns: [...words("population", "target"), ...numbers("held", "wanted", "connects", "requests", "p50", "p95", "p99", "no response", "faults")],
    rows: populations.length > 1 ? populations.map(row) : [],
    bad: populations.flatMap(([, p], place) => (faultTotal(p?.faults ?? []) > 0 ? [place] : [])),
  };
}

export function stepTable(run: Run): Table {
  const populations = Object.entries(run.summary?.populations ?? {});
  // Without a request due at full load, those of the ramp are all that there is.
  const row = (step: string, load: Lenient<Quantiles> | null | undefined, ramp: Lenient<Quantiles> | null | undefined, faults: Lenient<FaultCount[]>) => ({
    cells: [...(isThere(load) || !isThere(ramp) ? [step, ...quantilesRow(load)] : [`${step} (ramp)`, ...quantilesRow(ramp)]), grouped(faultTotal(faults))],
    isBad: faultTotal(faults) > 0,
  });
  const ended = populations.flatMap(([name, p]) =>
    Object.entries(p?.steps ?? {}).map(([step, s]) => row(`${name}.${step}`, s?.latency_us, s?.ramp_latency_us, s?.faults ?? [])),
  );
  const running = stepPlaces(run.total).flatMap((place) => {
    const [load, ramp] = [run.total.steps[place]?.quantiles(), run.total.ramp_steps[place]?.quantiles()];
    return isThere(load) || isThere(ramp) ? [row(stepName(run, place), load, ramp, run.total.step_faults[place] ?? [])] : [];
  });
  const rows = run.summary ? ended : running;
  return {
    id: "steps",
    title: "Steps",
    says: "Latency at full load (during the ramp if a step has no requests there) and faults of the whole run, by step",
    columns: [...words("step"), ...QUANTILES, ...numbers("faults")],
    rows: rows.map(({ cells }) => cells),
    bad: rows.flatMap(({ isBad }, place) => (isBad ? [place] : [])),
  };
}

export function costTable(run: Run): Table {
  const { cost } = run.summary ?? {};
  const cpu = (us: number) => time.text(us);
  const all: [string, string, Lenient<Fit> | null | undefined, (value: number) => string][] = [
    ["memory per connection", "target", cost?.target_bytes, bytes.text],
    ["memory per connection", ownProcess(run), cost?.generator_bytes, bytes.text],
    ["memory per connection", "kernel here", cost?.kernel_bytes, bytes.text],
    ["memory per connection", "kernel of the target's host", cost?.target_kernel_bytes, bytes.text],
    ["CPU per connection opened", "target", cost?.target_cpu_us_per_open, cpu],
    ["CPU per connection opened", ownProcess(run), cost?.generator_cpu_us_per_open, cpu],
    ["CPU per connection and TLS handshake", "target", cost?.target_cpu_us_per_handshake, cpu],
    ["CPU per connection and TLS handshake", ownProcess(run), cost?.generator_cpu_us_per_handshake, cpu],
    ["CPU per response", "target", cost?.target_cpu_us_per_request, cpu],
    ["CPU per response", ownProcess(run), cost?.generator_cpu_us_per_request, cpu],
    ["CPU per idle second", "target", cost?.target_cpu_us_per_idle_second, cpu],
    ["CPU per idle second", ownProcess(run), cost?.generator_cpu_us_per_idle_second, cpu],
  ];
  const rows = all.flatMap(([what, whose, fit, text]) =>
    fit ? [[what, whose, text(fit.value ?? 0), `± ${text(fit.error ?? 0)}`, (fit.r2 ?? 0).toFixed(3)]] : [],
  );
  const ceiling = cost?.ceiling_connections;
  if (ceiling != null) rows.push(["memory of the target's host exhausted", "target", `${grouped(ceiling)} connections`, "", ""]);
  return {
    id: "cost",
    title: "Cost per connection and request",
    says: "Slopes of fitted lines, with standard error and R²",
    columns: [...words("cost", "side"), ...numbers("value", "error", "R²")],
    rows,
  };
}

/** How near the machine came to what it could do when it was calibrated. */
export function rigTable(run: Run): Table {
  const { rig } = run.summary ?? {};
  const all: [string, number | null | undefined][] = [
    ["requests", rig?.requests_per_s],
    ["connects", rig?.open_per_s],
    ["connections that would fit", rig?.connections],
  ];
  return {
    id: "rig",
    title: "Share of this machine's calibration",
    says: `Shares of what it did against throng's own server, a lower bound (calibrated ${(rig?.calibrated_at ?? "").split("T")[0]})`,
    columns: [...words("what"), ...numbers("share")],
    rows: all.flatMap(([what, share]) => (share == null ? [] : [[what, percent(share)]])),
  };
}

/** One row for each run of a comparison. */
export function overviewTable(runs: Run[]): Table {
  const memory = (run: Run) => {
    const { cost } = run.summary ?? {};
    const each = (name: string, fit: Lenient<Fit> | null | undefined) => (fit ? [`${name} ${bytes.text(fit.value ?? 0)}`] : []);
    return [...each("target", cost?.target_bytes), ...each(ownProcess(run), cost?.generator_bytes), ...each("kernel", cost?.kernel_bytes)];
  };
  const row = (run: Run, place: number) => {
    const f = figuresOf(run);
    return [
      nameOf(run, place),
      judgement(run.summary, run.running).word,
      `${grouped(f.held)} of ${grouped(f.wanted)}`,
      rate.text(f.open_per_s),
      rate.text(f.requests_per_s),
      timeOf(f.latency_us, f.latency_us.p50, 0.5),
      timeOf(f.latency_us, f.latency_us.p95, 0.95),
      timeOf(f.latency_us, f.latency_us.p99, 0.99),
      noResponse(f.latency_us),
      grouped(faultTotal(f.faults)),
      memory(run).join(", ") || "–",
      commandLine(run.record),
    ];
  };
  return {
    id: "overview",
    title: "Runs",
    columns: [
      ...words("run", "verdict"),
      ...numbers("held", "connects", "requests", "p50", "p95", "p99", "no response", "faults"),
      ...words("memory per connection", "command"),
    ],
    rows: runs.map(row),
  };
}

/** What came with a comparison: what is compared, and a table for each group of runs but the first. */
export function comparisonTables(comparison: Lenient<Comparison> | null | undefined): Table[] {
  const strings = (row: (string | null)[] | null) => (row ?? []).map((cell) => cell ?? "");
  const facts = {
    id: "compared",
    title: "Comparison",
    says: (comparison?.remarks ?? []).join(" · ") || undefined,
    columns: words("group", "runs"),
    rows: (comparison?.facts ?? []).map(strings),
  };
  const tables = (comparison?.tables ?? []).map((table, nth) => {
    const [, base = "", other = "", ...rest] = strings(table?.head ?? []);
    const columns = [...words("figure"), ...numbers(base, other, ...rest.slice(0, -1)), ...words(...rest.slice(-1))];
    return { id: `comparison-${nth + 1}`, title: `${other} against ${base}`, columns, rows: (table?.rows ?? []).map(strings) };
  });
  return comparison ? [facts, ...tables] : [];
}
