import { Distribution } from "./distribution";
import type { Lenient } from "./lenient";
import type { Counts, ErrorSample, Example, FaultCount, Mark, Phase, Probe, Tick } from "./records";

/** All of them, each with nothing counted. */
const NO_COUNTS: Counts = {
  opened: 0, failed: 0, dropped: 0, closed: 0, forced: 0, ended_after: 0, redialled: 0, finished: 0, done: 0, left: 0, addresses_skipped: 0, dialled: 0, given_up: 0,
  undialled: 0, connection_faults: 0, due: 0, sent: 0, withdrawn: 0, revoked: 0, failed_requests: 0, wrong: 0, unanswered: 0, told: 0, pushed: 0, messages: 0, missed: 0, answered: 0, answered_at_load: 0, kept: 0, bytes_in: 0, bytes_out: 0, body_bytes_in: 0,
};
const COUNTS = Object.keys(NO_COUNTS) as (keyof Counts)[];

const TIMES = [
  "latency", "ramp_latency", "connect", "tls", "tls_resumed", "handshake", "first_byte", "ramp_first_byte", "lag", "gap", "delay", "spread", "ping_rtt",
  "silence",
] as const satisfies readonly (keyof Tick)[];

type Times = Record<(typeof TIMES)[number], Distribution>;

/** What the probe lane did in a period. */
export interface ProbePeriod {
  sent: number;
  answered: number;
  failed: number;
  unanswered: number;
  kept: Distribution;
  fresh: Distribution;
  held: Distribution;
  connect: Distribution;
}

/** A stage that began, a command that was carried out, or a question to the target with its answer. */
export interface Moment {
  /** Seconds since the start. */
  x: number;
  kind: "stage" | "command" | "experiment";
  what: string;
}

/** A wrong response, as `samples::ErrorSample` has it. */
export interface ErrorSeen {
  side: string;
  stage: string;
  kind: string;
  at_s: number;
  status: number | null;
  /** Whether its first bytes are those of the response. */
  from_start: boolean;
  /** Base64. */
  bytes: string;
}

/** An exchange that went wrong as a whole, as `samples::Example` has it. */
export interface ExampleSeen {
  /** `target exchange wrong-status` */
  fault: string;
  at_s: number;
  text: string;
}

/** A tick, or several one after another, with its histograms to be read; what the page shows of a `samples::Tick`. */
export interface Period extends Times {
  /** Seconds since the start of the run. */
  from_s: number;
  until_s: number;
  phase: Phase;
  open: number;
  wanted: number;
  waiting: number;
  /** Connections times the seconds that they were open in it. */
  open_s: number;
  counts: Counts;
  faults: FaultCount[];
  status: Map<string, number>;
  steps: Distribution[];
  ramp_steps: Distribution[];
  step_faults: FaultCount[][];
  populations: Period[];
  probe: ProbePeriod | null;
  marks: Moment[];
  errors: ErrorSeen[];
  examples: ExampleSeen[];
  /** By how much a turn of throng's loop came too late, the most; microseconds. */
  stalled_us: number;
  /** CPU time of all agents of a fleet, seconds. */
  cpu_s: number;
}

export function periodOf(tick: Lenient<Tick> | null | undefined): Period {
  const times = Object.fromEntries(TIMES.map((name) => [name, Distribution.of(tick?.[name])])) as Times;
  return {
    ...times,
    from_s: (tick?.from ?? 0) / 1e9,
    until_s: (tick?.until ?? 0) / 1e9,
    phase: tick?.phase ?? "ramp",
    open: tick?.open ?? 0,
    wanted: tick?.wanted ?? 0,
    waiting: tick?.waiting ?? 0,
    open_s: (tick?.open_ns ?? 0) / 1e9,
    counts: Object.fromEntries(COUNTS.map((name) => [name, tick?.counts?.[name] ?? 0])) as unknown as Counts,
    faults: faultsOf(tick?.faults ?? []),
    status: new Map(Object.entries(tick?.status ?? {}).map(([status, n]) => [status, n ?? 0])),
    steps: (tick?.steps ?? []).map((step) => Distribution.of(step)),
    ramp_steps: (tick?.ramp_steps ?? []).map((step) => Distribution.of(step)),
    step_faults: (tick?.step_faults ?? []).map((step) => faultsOf(step ?? [])),
    populations: (tick?.populations ?? []).map(periodOf),
    probe: probeOf(tick?.probe),
    marks: (tick?.marks ?? []).map(momentOf),
    errors: (tick?.error_samples ?? []).map(errorOf),
    examples: (tick?.examples ?? []).map(exampleOf),
    stalled_us: (tick?.stalled ?? 0) / 1e3,
    cpu_s: (tick?.cpu_ns ?? 0) / 1e9,
  };
}

const momentOf = ({ at, kind, what }: Lenient<Mark>): Moment => ({ x: (at ?? 0) / 1e9, kind: kind ?? "command", what: what ?? "" });

const errorOf = ({ side, stage, kind, at, status, from_start, bytes }: Lenient<ErrorSample>): ErrorSeen => ({
  side: side ?? "unknown",
  stage: stage ?? "exchange",
  kind: kind ?? "other",
  at_s: (at ?? 0) / 1e9,
  status: status ?? null,
  from_start: from_start ?? true,
  bytes: bytes ?? "",
});

const exampleOf = ({ side, stage, kind, at, text }: Lenient<Example>): ExampleSeen => ({
  fault: [side ?? "unknown", stage ?? "exchange", kind ?? "other"].join(" "),
  at_s: (at ?? 0) / 1e9,
  text: text ?? "",
});

/** One fault in words: `target exchange timeout`. */
export const faultName = ({ side, stage, kind, detail }: FaultCount) => `${side} ${stage} ${kind}${detail ? ` (${detail})` : ""}`;

export function faultsOf(faults: Lenient<FaultCount[]>): FaultCount[] {
  return faults.map(({ side, stage, kind, count, detail }) => ({
    side: side ?? "unknown",
    stage: stage ?? "exchange",
    kind: kind ?? "other",
    count: count ?? 0,
    ...(detail ? { detail } : {}),
  }));
}

function probeOf(probe: Lenient<Probe> | null | undefined): ProbePeriod | null {
  if (!probe) return null;
  return {
    sent: probe.sent ?? 0,
    answered: probe.answered ?? 0,
    failed: probe.failed ?? 0,
    unanswered: probe.unanswered ?? 0,
    kept: Distribution.of(probe.kept),
    fresh: Distribution.of(probe.fresh),
    held: Distribution.of(probe.held),
    connect: Distribution.of(probe.connect),
  };
}

const total = <T>(all: readonly T[], of: (one: T) => number) => all.reduce((sum, one) => sum + of(one), 0);

/** Periods one after another, at least one: counts and times add up, the state is the last one's (`Tick::extend`). */
export function joined(all: readonly Period[]): Period {
  const last = all[all.length - 1]!;
  const merged = (of: (one: Period) => Distribution | undefined) =>
    Distribution.merged(all.map((one) => of(one) ?? Distribution.EMPTY));
  const times = Object.fromEntries(TIMES.map((name) => [name, merged((one) => one[name])])) as Times;
  const counts = Object.fromEntries(COUNTS.map((name) => [name, total(all, (one) => one.counts[name])]));
  const places = (of: (one: Period) => unknown[]) => all.reduce((most, one) => Math.max(most, of(one).length), 0);
  const bySteps = (of: (one: Period) => Distribution[]) => Array.from({ length: places(of) }, (_, i) => merged((one) => of(one)[i]));
  return {
    ...last,
    ...times,
    from_s: all.reduce((least, one) => Math.min(least, one.from_s), Infinity),
    until_s: all.reduce((most, one) => Math.max(most, one.until_s), 0),
    open_s: total(all, (one) => one.open_s),
    counts: counts as unknown as Counts,
    faults: addedFaults(all.flatMap((one) => one.faults)),
    status: addedStatuses(all.map((one) => one.status)),
    steps: bySteps((one) => one.steps),
    ramp_steps: bySteps((one) => one.ramp_steps),
    step_faults: Array.from({ length: places((one) => one.step_faults) }, (_, i) => addedFaults(all.flatMap((one) => one.step_faults[i] ?? []))),
    populations: Array.from({ length: places((one) => one.populations) }, (_, i) =>
      joined(all.flatMap((one) => one.populations[i] ?? [])),
    ),
    probe: joinedProbes(all.flatMap((one) => one.probe ?? [])),
    marks: all.flatMap((one) => one.marks).sort((a, b) => a.x - b.x).slice(0, MARKS),
    errors: firstOfEach(all.flatMap((one) => one.errors)),
    examples: firstExamples(all.flatMap((one) => one.examples)),
    stalled_us: all.reduce((most, one) => Math.max(most, one.stalled_us), 0),
    cpu_s: total(all, (one) => one.cpu_s),
  };
}

/** `samples::Marks::MAX`, and `ErrorSamples::OF_EACH` and `MAX`. */
const MARKS = 64;
const OF_EACH = 3;
const ERRORS = 24;
/** `samples::Examples::MAX` */
const EXAMPLES = 8;

/** The earliest samples of each fault. */
function firstOfEach(all: ErrorSeen[]): ErrorSeen[] {
  if (all.length === 0) return all;
  const counts = new Map<string, number>();
  const kept = [...all].sort((a, b) => a.at_s - b.at_s).filter((sample) => {
    const name = `${sample.side} ${sample.stage} ${sample.kind}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts.get(name)! <= OF_EACH;
  });
  return kept.slice(0, ERRORS);
}

/** The first example of each fault (`samples::Examples`). */
function firstExamples(all: ExampleSeen[]): ExampleSeen[] {
  const first = new Map<string, ExampleSeen>();
  [...all].sort((a, b) => b.at_s - a.at_s).forEach((one) => first.set(one.fault, one));
  return [...first.values()].sort((a, b) => a.at_s - b.at_s).slice(0, EXAMPLES);
}

/** Half of the usual length of a stored tick, seconds. */
const HALF_S = 0.5;

/** Whether what comes late is of a period that ended then (`Tick::is_of`). */
export const isOf = (late: Period, until_s: number): boolean => late.until_s < until_s + HALF_S;

/** Whether what came late happened at the end of a period, and not in a part of it before. */
export const ends = (period: Period, late: Period): boolean => period.until_s < late.until_s + HALF_S;

/** A period with what came late of it, or of a part of it: only what ended with it adds to its state (`Tick::amend`). */
export function amended(period: Period, late: Period): Period {
  const all = { ...joined([late, period]), from_s: period.from_s, until_s: period.until_s };
  return ends(period, late) ? withState(all, period, late) : all;
}

function withState(all: Period, one: Period, other: Period): Period {
  const state = { open: one.open + other.open, wanted: one.wanted + other.wanted, waiting: one.waiting + other.waiting };
  const populations = all.populations.map((both, i) => {
    const [own, late] = [one.populations[i], other.populations[i]];
    return own && late ? withState(both, own, late) : both;
  });
  return { ...all, ...state, populations };
}

function addedFaults(faults: FaultCount[]): FaultCount[] {
  const sums = new Map<string, FaultCount>();
  for (const fault of faults) {
    const count = (sums.get(faultName(fault))?.count ?? 0) + fault.count;
    sums.set(faultName(fault), { ...fault, count });
  }
  return [...sums.values()];
}

function addedStatuses(all: Map<string, number>[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const one of all) for (const [status, n] of one) sums.set(status, (sums.get(status) ?? 0) + n);
  return sums;
}

function joinedProbes(all: ProbePeriod[]): ProbePeriod | null {
  if (all.length === 0) return null;
  return {
    sent: total(all, (one) => one.sent),
    answered: total(all, (one) => one.answered),
    failed: total(all, (one) => one.failed),
    unanswered: total(all, (one) => one.unanswered),
    kept: Distribution.merged(all.map((one) => one.kept)),
    fresh: Distribution.merged(all.map((one) => one.fresh)),
    held: Distribution.merged(all.map((one) => one.held)),
    connect: Distribution.merged(all.map((one) => one.connect)),
  };
}

/** Decodes all of its histograms, so that a period that stays keeps nothing of those it was joined from. */
export function settle(period: Period): Period {
  const { probe } = period;
  TIMES.forEach((name) => period[name].settle());
  [...period.steps, ...period.ramp_steps].forEach((step) => step.settle());
  period.populations.forEach(settle);
  if (probe) [probe.kept, probe.fresh, probe.held, probe.connect].forEach((times) => times.settle());
  return period;
}

/** How long it was, seconds. */
export const length_s = ({ from_s, until_s }: Period) => Math.max(until_s - from_s, 1e-9);

/** Dials that led to a connection, first and repeated ones, as the terminal counts them. */
export const connects = ({ counts }: { counts: Period["counts"] }) => counts.opened + counts.redialled;
