import type { Entry } from "./fold";
import type { Lenient } from "./lenient";
import { length_s } from "./period";
import type { AgentShare, AgentTicks } from "./records";
import type { Run } from "./run";

// How the columns of `samples::AgentTicks` are merged.
const SUMS = ["reports", "connects", "requests", "faults", "cpu_ms"] as const satisfies readonly (keyof AgentTicks)[];
const LATEST = ["lost", "open"] as const satisfies readonly (keyof AgentTicks)[];
const HIGHEST = ["latency_p99_us", "lag_p99_us"] as const satisfies readonly (keyof AgentTicks)[];

type Name = (typeof SUMS)[number] | (typeof LATEST)[number] | (typeof HIGHEST)[number];

/** What each agent of a fleet did in a period: a column for each figure has the agents by their places, 0 beyond its end. */
export type Columns = Record<Name, readonly number[]>;

export function columnsOf(agents: Lenient<AgentTicks> | null | undefined): Columns | null {
  if (!agents) return null;
  const columns = [...SUMS, ...LATEST, ...HIGHEST].map((name) => [name, (agents[name] ?? []).map((n) => n ?? 0)]);
  return Object.fromEntries(columns) as Columns;
}

const joined = (one: readonly number[], other: readonly number[], both: (a: number, b: number) => number): number[] =>
  Array.from({ length: Math.max(one.length, other.length) }, (_, i) => both(one[i] ?? 0, other[i] ?? 0));
const sum = (a: number, b: number) => a + b;

/** A later period of the same agents: counts add up, what is so at the end is the later one's (`AgentTicks::extend`). */
export function extendedColumns(one: Columns | null, later: Columns | null): Columns | null {
  if (!one || !later) return later ?? one;
  return {
    ...later,
    ...Object.fromEntries(SUMS.map((name) => [name, joined(one[name], later[name], sum)])),
    ...Object.fromEntries(HIGHEST.map((name) => [name, joined(one[name], later[name], Math.max)])),
  };
}

/** What came late; `ends`: at the end of the period, else of a part of it (`Tick::amend`). */
export function amendedColumns(one: Columns | null, late: Columns | null, ends: boolean): Columns | null {
  if (!one || !late) return one ?? late;
  const all = extendedColumns(late, one)!;
  return ends ? { ...all, ...Object.fromEntries(LATEST.map((name) => [name, joined(one[name], late[name], sum)])) } : all;
}

/** The agents of a run; none of a run on one machine. */
export function agentsOf(run: Run): AgentShare[] {
  const agents = run.record.header?.agents ?? [];
  return agents.map((agent, place) => ({ id: agent?.id ?? `agent ${place + 1}`, wanted: agent?.wanted ?? 0, cores: agent?.cores ?? 0 }));
}

/** The process that samples of throng itself are of: on a fleet the coordinator, which sends no load. */
export const ownProcess = (run: Run): "coordinator" | "throng" => (agentsOf(run).length > 0 ? "coordinator" : "throng");

/** A figure of an agent in a period; `cores`: its processors. */
export interface AgentFigures {
  open: number;
  connects_per_s: number;
  requests_per_s: number;
  faults_per_s: number;
  /** NaN without a response. */
  latency_p99_us: number;
  /** NaN where nothing was due at full load. */
  lag_p99_us: number;
  /** Of what its processors could have given, 0..=1; NaN where these are not known. */
  cpu_share: number;
}

export type AgentState = "reports" | "silent" | "lost";

export const stateOf = ({ agents }: Entry, place: number): AgentState =>
  agents?.lost[place] ? "lost" : agents?.reports[place] ? "reports" : "silent";

/** What an agent did in a period; none where it has reported nothing. */
export function figuresOfAgent({ agents, period }: Entry, place: number, cores: number): AgentFigures | null {
  const reports = agents?.reports[place] ?? 0;
  if (!agents || reports === 0) return null;
  const seconds = length_s(period);
  const perSecond = (column: readonly number[]) => (column[place] ?? 0) / seconds;
  return {
    open: agents.open[place] ?? 0,
    connects_per_s: perSecond(agents.connects),
    requests_per_s: perSecond(agents.requests),
    faults_per_s: perSecond(agents.faults),
    latency_p99_us: agents.latency_p99_us[place] || NaN,
    lag_p99_us: agents.lag_p99_us[place] || NaN,
    // A report that was late is another second's.
    cpu_share: cores > 0 ? (agents.cpu_ms[place] ?? 0) / 1e3 / Math.max(seconds, reports) / cores : NaN,
  };
}

/** Where the last period is in which any agent reported; -1 if there is none. */
export const lastReported = (entries: readonly Entry[]): number =>
  entries.findLastIndex(({ agents }) => agents?.reports.some((n) => n > 0));

/** The seconds in which agents were lost, and in which they came back. */
export function losses(run: Run): { x: number; place: number; isLost: boolean }[] {
  const changes: { x: number; place: number; isLost: boolean }[] = [];
  const lost = new Set<number>();
  for (const { agents, period } of run.entries) {
    if (!agents) continue;
    agents.lost.forEach((isLost, place) => {
      if (isLost && !lost.has(place)) changes.push({ x: period.until_s, place, isLost: true });
      if (isLost) lost.add(place);
    });
    for (const place of lost) {
      if (agents.lost[place]) continue;
      lost.delete(place);
      changes.push({ x: period.until_s, place, isLost: false });
    }
  }
  return changes;
}
