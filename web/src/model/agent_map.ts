import { agentsOf, figuresOfAgent, lastReported, stateOf, type AgentFigures, type AgentState } from "./agents";
import type { Entry } from "./fold";
import * as quantity from "./quantity";
import type { Run } from "./run";

/** What a map of agents can show. */
export interface Measure {
  id: string;
  name: string;
  of: (figures: AgentFigures) => number;
  text: (value: number) => string;
  /** What has the strongest colour, if it is not the highest of all agents: a lag from here on makes a run invalid. */
  full?: number;
}

const percent = (share: number) => quantity.percent(share);

export const MEASURES: readonly Measure[] = [
  { id: "cpu", name: "CPU", of: (figures) => figures.cpu_share, text: percent, full: 1 },
  { id: "lag", name: "lag p99", of: (figures) => figures.lag_p99_us, text: quantity.time.text, full: 10_000 },
  { id: "latency", name: "latency p99", of: (figures) => figures.latency_p99_us, text: quantity.time.text },
  { id: "open", name: "connections", of: (figures) => figures.open, text: quantity.count.text },
  { id: "requests", name: "requests", of: (figures) => figures.requests_per_s, text: quantity.rate.text },
  { id: "faults", name: "faults", of: (figures) => figures.faults_per_s, text: quantity.rate.text },
];

/** A cell of the map: an agent. */
export interface AgentCell {
  name: string;
  /** What the name differs by, where all names have the same long beginning: cells are narrow. */
  label: string;
  state: AgentState;
  /** What it shows, 0..=1 and as text; of an agent that reports. */
  shade: number;
  text: string;
}

export interface AgentMap {
  cells: AgentCell[];
  /** What the strongest colour stands for. */
  full: string;
  /** How many are in each state. */
  counts: Record<AgentState, number>;
}

/** The longest name that a cell has room for. */
const ROOM = 12;

/** Names without the beginning that all have, but for the last word of it; short names as they are. */
export function labelsOf(names: readonly string[]): string[] {
  const [first = "", ...others] = names;
  if (others.length === 0 || names.every((name) => name.length <= ROOM)) return [...names];
  let same = 0;
  while (same < first.length && others.every((name) => name[same] === first[same])) same++;
  const words = first.slice(0, same).split(/(?<=[-._])/).filter((word) => /[-._]$/.test(word));
  const cut = words.slice(0, -1).join("").length;
  return names.map((name) => (cut > 0 ? `…${name.slice(cut)}` : name));
}

/** All agents in a period. */
export function agentMap(run: Run, entry: Entry, measure: Measure): AgentMap {
  const agents = agentsOf(run);
  const values = agents.map(({ cores }, place) => {
    const figures = figuresOfAgent(entry, place, cores);
    return figures ? measure.of(figures) : NaN;
  });
  const most = values.reduce((most, value) => Math.max(most, value || 0), 0);
  const full = Math.max(measure.full ?? 0, most);
  const labels = labelsOf(agents.map(({ id }) => id));
  const counts: Record<AgentState, number> = { reports: 0, silent: 0, lost: 0 };
  const cells = agents.map(({ id }, place): AgentCell => {
    const [state, value] = [stateOf(entry, place), values[place]!];
    counts[state]++;
    const text = state === "lost" ? "lost" : state === "silent" ? "no report" : Number.isNaN(value) ? "–" : measure.text(value);
    return { name: id, label: labels[place]!, state, shade: full > 0 && value > 0 ? value / full : 0, text };
  });
  return { cells, full: full > 0 ? measure.text(full) : "", counts };
}

/** The period of the map that is shown first: of a run that is over, the last of its full load. */
export function shownFirst(run: Run): number {
  const last = lastReported(run.entries);
  if (run.running) return last;
  const held = run.entries.findLastIndex(({ period, agents }) => period.phase === "hold" && agents?.reports.some((n) => n > 0));
  return held < 0 ? last : held;
}

/** All that is known of an agent in a period, in a line. */
export function agentLine(run: Run, entry: Entry, place: number): string {
  const { wanted = 0, cores = 0 } = agentsOf(run)[place] ?? {};
  const figures = figuresOfAgent(entry, place, cores);
  if (!figures) return stateOf(entry, place) === "lost" ? "lost" : "no report in this second";
  const { open, connects_per_s, requests_per_s, faults_per_s, latency_p99_us, lag_p99_us, cpu_share } = figures;
  return [
    `${quantity.grouped(open)} of ${quantity.grouped(wanted)} connections`,
    connects_per_s > 0 && `${quantity.rate.text(connects_per_s)} connects`,
    `${quantity.rate.text(requests_per_s)} requests`,
    faults_per_s > 0 && `${quantity.rate.text(faults_per_s)} faults`,
    !Number.isNaN(latency_p99_us) && `latency p99 ${quantity.time.text(latency_p99_us)}`,
    !Number.isNaN(lag_p99_us) && `lag p99 ${quantity.time.text(lag_p99_us)}`,
    !Number.isNaN(cpu_share) && `CPU ${percent(cpu_share)} of ${cores} processors`,
    stateOf(entry, place) === "lost" && "lost",
  ].filter(Boolean).join(" · ");
}
