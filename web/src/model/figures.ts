import { growth, perSecond } from "./chart";
import { ownProcess } from "./agents";
import type { Entry } from "./fold";
import { atLeast } from "./distribution";
import { cpuOfTarget, cpuOfThrong } from "./host_charts";
import { latencyOf } from "./latency_charts";
import type { Lenient } from "./lenient";
import { connects, faultsOf, length_s, type Period } from "./period";
import { bytes, count, grouped, percent, rate, span, time } from "./quantity";
import type { FaultCount, Fit, Quantiles } from "./records";
import type { Run } from "./run";

/** One figure as it is read. */
export interface Figure {
  name: string;
  value: string;
  note?: string;
  /** Of what should not be. */
  bad?: boolean;
}

/** Faults, the most frequent first. */
export const faultsSeen = (faults: Lenient<FaultCount[]>): FaultCount[] =>
  faultsOf(faults).sort((a, b) => b.count - a.count);

export const faultTotal = (faults: Lenient<FaultCount[]>): number =>
  faultsOf(faults).reduce((sum, fault) => sum + fault.count, 0);

/** The figures of the summary; of a run without one, by what its ticks add up to. */
export interface Figures {
  wanted: number;
  held: number;
  peak: number;
  open_per_s: number;
  requests_per_s: number;
  lower_bound: boolean;
  latency_us: Lenient<Quantiles>;
  lag_us: Lenient<Quantiles>;
  faults: FaultCount[];
}

export function figuresOf(run: Run): Figures {
  const { summary, total, entries } = run;
  if (summary) {
    const { connections, requests } = summary;
    return {
      wanted: connections?.wanted ?? 0,
      held: connections?.held ?? 0,
      peak: connections?.peak ?? 0,
      open_per_s: connections?.open_per_s ?? 0,
      requests_per_s: requests?.per_s ?? 0,
      lower_bound: requests?.lower_bound ?? false,
      latency_us: summary.latency_us ?? {},
      lag_us: summary.lag_us ?? {},
      faults: faultsSeen(summary.faults ?? []),
    };
  }
  const last = entries.at(-1)?.period;
  const inPhase = (phase: string) => entries.filter(({ period }) => period.phase === phase).map(({ period }) => period);
  // On the way to fewer connections nothing is opened, and that is no ramp.
  const closes = ({ open, wanted, counts }: Period) => open > wanted && counts.opened === 0;
  return {
    wanted: Math.max(run.record.header?.connections ?? 0, last?.wanted ?? 0),
    held: last?.open ?? 0,
    peak: entries.reduce((most, { period }) => Math.max(most, period.open), 0),
    open_per_s: meanRate(inPhase("ramp").filter((period) => !closes(period)), (period) => period.counts.opened),
    requests_per_s: meanRate(inPhase("hold"), (period) => period.counts.answered),
    lower_bound: false,
    latency_us: (total.latency.count + total.latency.censored > 0 ? total.latency : latencyOf(total)).quantiles(),
    lag_us: total.lag.quantiles(),
    faults: faultsSeen(total.faults),
  };
}

function meanRate(periods: Period[], of: (period: Period) => number): number {
  const seconds = periods.reduce((sum, period) => sum + length_s(period), 0);
  return seconds > 0 ? periods.reduce((sum, period) => sum + of(period), 0) / seconds : 0;
}

/** Whether its value is more than what its scatter alone could make of nothing (`Fit::is_known`). */
const isKnown = (fit: Lenient<Fit> | null | undefined) => (fit?.value ?? 0) > 2 * (fit?.error ?? 0);

/** Bytes a connection by the fitted line; where that tells nothing, by the slope over the ramp. */
function each(fit: Lenient<Fit> | null | undefined, slope?: number | null): string | null {
  if (isKnown(fit)) return bytes.text(fit?.value ?? 0);
  return slope && slope > 0 ? bytes.text(slope) : null;
}

/** Connections held, of those wanted; where all of them arrive, none is held, and those that were dialled count, as in the text summary. */
function connections(run: Run, f: Figures): Figure {
  const c = run.summary?.connections;
  const wanted = `of ${grouped(f.wanted)} wanted`;
  if (c?.arriving && c.arriving === c.wanted) {
    const dialled = (c.opened ?? 0) + (c.failed ?? 0) + (c.given_up ?? 0);
    return { name: "dialled", value: grouped(dialled), note: `${wanted}, ${grouped(f.held)} open at the end of the load`, bad: (c.failed ?? 0) > 0 };
  }
  return { name: "held", value: grouped(f.held), note: `${wanted}, peak ${grouped(f.peak)}`, bad: isOver(run) && f.held < f.wanted };
}

/** What a run comes to, the most important first. */
export function keyFigures(run: Run): Figure[] {
  const f = figuresOf(run);
  const { cost, kernel_bytes_per_connection: kernel, generator, target_cost: target, probe } = run.summary ?? {};
  const answered = (f.latency_us.count ?? 0) > 0;
  const without = f.latency_us.censored;
  const us = (value: number | null | undefined) => time.text(value ?? 0);
  const latency = (value: number | null | undefined, share: number) => atLeast(f.latency_us, share) + us(value);
  const load = run.summary ? "at full load" : "so far";
  const all: (Figure | false | null | undefined)[] = [
    connections(run, f),
    { name: "connects", value: rate.text(f.open_per_s), note: rampNote(run) },
    (answered || f.requests_per_s > 0) && {
      name: "requests",
      value: (f.lower_bound ? "≥ " : "") + rate.text(f.requests_per_s),
      note: f.lower_bound ? "a lower bound: throng had no CPU left" : load,
    },
    answered && { name: "latency p50", value: latency(f.latency_us.p50, 0.5), note: `mean ${latency(f.latency_us.mean, 1)}` },
    answered && { name: "latency p95", value: latency(f.latency_us.p95, 0.95), note: load },
    answered && { name: "latency p99", value: latency(f.latency_us.p99, 0.99), note: load },
    answered && { name: "latency p99.9", value: latency(f.latency_us.p999, 0.999), note: `${grouped(f.latency_us.count ?? 0)} responses` },
    answered && { name: "latency max", value: latency(f.latency_us.max, 1), note: "the longest" },
    without != null && {
      name: "no response",
      value: percent(without.share ?? 0),
      note: `${grouped(without.count ?? 0)} requests, in no percentile${judgedNote(f.latency_us)}`,
      bad: true,
    },
    (f.lag_us.count ?? 0) > 0 && { name: "lag p99", value: us(f.lag_us.p99), note: "how late throng sent" },
    probe && { name: "probe p99", value: atLeast(probe.latency_us, 0.99) + us(probe.latency_us?.p99), note: `${grouped(probe.answered ?? 0)} of ${grouped(probe.sent ?? 0)} answered` },
    { name: "faults", value: grouped(faultTotal(f.faults)), note: f.faults[0] ? mostFrequent(f.faults[0]) : "none", bad: f.faults.length > 0 },
    memory("target", each(cost?.target_bytes, target?.user_bytes_per_connection)),
    memory(ownProcess(run), each(cost?.generator_bytes, generator?.user_bytes_per_connection)),
    memory("kernel", kernel ? bytes.text(kernel.value ?? 0) : each(cost?.kernel_bytes), kernel?.both_ends ? "per connection, both ends" : undefined),
    generator?.cpu_share != null && { name: `${ownProcess(run)}'s CPU`, value: percent(generator.cpu_share), note: "of its threads' time at full load" },
  ];
  return all.filter((figure) => !!figure);
}

/** Whether its load has ended: before, what is wanted may still come. */
const isOver = ({ summary, running }: Run) => summary != null || !running;

/** The 99th percentile where those without a response count as longer than all others: by which thresholds are judged. */
function judgedNote({ count: n, censored }: Lenient<Quantiles>): string {
  if (!n || !censored) return "";
  return censored.p99 == null ? "; p99 falls among them" : `; with them p99 ${time.text(censored.p99)}`;
}

const mostFrequent = ({ side, stage, kind, detail, count: n }: FaultCount) =>
  `${grouped(n)} × ${side} · ${stage} · ${kind}${detail ? ` (${detail})` : ""}`;

const memory = (whose: string, value: string | null, note = "per connection"): Figure | null =>
  value ? { name: `memory of ${whose}`, value, note } : null;

function rampNote({ summary }: Run): string {
  const ramp = summary?.ramp_s;
  return ramp ? `over a ramp of ${ramp < 1 ? time.text(ramp * 1e6) : span(ramp)}` : "during the ramp";
}

/** What happens right now. */
export function nowFigures(run: Run): Figure[] {
  const entry = run.entries.at(-1);
  if (!entry) return [];
  const { period } = entry;
  const times = latencyOf(period);
  const us = (q: number) => (times.count > 0 ? time.text(times.quantile(q) / 1e3) : "–");
  const [throng, target] = coresUsed(run.entries);
  const lost = faultTotal(run.total.faults);
  return [
    { name: "open", value: grouped(period.open), note: `of ${grouped(period.wanted)} wanted now`, bad: period.phase === "hold" && period.open < period.wanted },
    { name: "connects", value: rate.text(perSecond(period, connects(period))), note: `${grouped(connects(run.total))} in all` },
    { name: "requests", value: rate.text(perSecond(period, period.counts.answered)), note: `${grouped(period.waiting)} under way` },
    { name: "p50", value: us(0.5), note: "latency now" },
    { name: "p95", value: us(0.95), note: "latency now" },
    { name: "p99", value: us(0.99), note: "latency now" },
    ...(times.censored > 0 ? [{ name: "no response", value: percent(times.censoredShare), note: "of the requests now", bad: true }] : []),
    { name: "faults", value: grouped(lost), note: faultsSeen(run.total.faults)[0] ? mostFrequent(faultsSeen(run.total.faults)[0]!) : "none", bad: lost > 0 },
    { name: `${ownProcess(run)}'s CPU`, value: throng, note: "cores" },
    { name: "target's CPU", value: target, note: "cores" },
  ];
}

/** Cores used by throng and by the target since the entry before. */
function coresUsed(entries: Entry[]): string[] {
  const [before, now] = [entries.at(-2), entries.at(-1)!];
  return [cpuOfThrong, cpuOfTarget].map((of) => {
    const cores = growth(now, before, of);
    return cores === null ? "–" : count.text(Number(cores.toFixed(2)));
  });
}
