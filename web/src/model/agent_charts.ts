import { agentsOf, figuresOfAgent, losses, type AgentFigures } from "./agents";
import { isSeen, phases, SECONDS, type Axis, type Chart, type Line, type Mark } from "./chart";
import type { Distribution } from "./distribution";
import { remembered, type Entry } from "./fold";
import { latencyOf } from "./latency_charts";
import { RATE } from "./load_charts";
import { marksOf } from "./marks";
import type { Period } from "./period";
import * as quantity from "./quantity";
import type { AgentShare } from "./records";
import type { Run } from "./run";

/** A figure over all agents that reported in a period. */
interface Spread {
  lowest: number;
  mean: number;
  highest: number;
}

type Figure = keyof AgentFigures;

/** An entry never changes, so the figures of its agents are computed once. */
const known = new WeakMap<Entry, Record<Figure, Spread>>();

function spreadOf(entry: Entry, agents: readonly AgentShare[]): Record<Figure, Spread> {
  const there = known.get(entry);
  if (there) return there;
  const all = agents.flatMap(({ cores }, place) => figuresOfAgent(entry, place, cores) ?? []);
  const of = (figure: Figure): Spread => {
    let [lowest, highest, sum, n] = [Infinity, -Infinity, 0, 0];
    for (const { [figure]: value } of all) {
      if (Number.isNaN(value)) continue;
      [lowest, highest, sum, n] = [Math.min(lowest, value), Math.max(highest, value), sum + value, n + 1];
    }
    return n > 0 ? { lowest, mean: sum / n, highest } : { lowest: NaN, mean: NaN, highest: NaN };
  };
  const found: Record<Figure, Spread> = {
    open: of("open"),
    connects_per_s: of("connects_per_s"),
    requests_per_s: of("requests_per_s"),
    faults_per_s: of("faults_per_s"),
    latency_p99_us: of("latency_p99_us"),
    lag_p99_us: of("lag_p99_us"),
    cpu_share: of("cpu_share"),
  };
  known.set(entry, found);
  return found;
}

const TIME: Axis = { label: "time", quantity: quantity.time };

interface Kind {
  figure: Figure;
  title: string;
  y: Axis;
  /** All agents as one, where that is not their mean. */
  merged?: (entry: Entry) => number;
  /** Not shown where it is zero all the time. */
  seldom?: boolean;
}

const p99Of = (times: (period: Period) => Distribution) =>
  remembered(({ period }) => (times(period).count > 0 ? times(period).quantile(0.99) / 1e3 : NaN));

const KINDS: readonly Kind[] = [
  { figure: "open", title: "Connections of an agent", y: { label: "connections", quantity: quantity.count } },
  { figure: "connects_per_s", title: "Connects of an agent", y: RATE },
  { figure: "requests_per_s", title: "Requests of an agent", y: RATE },
  { figure: "faults_per_s", title: "Faults of an agent", y: RATE, seldom: true },
  { figure: "latency_p99_us", title: "Latency p99 of an agent", y: TIME, merged: p99Of(latencyOf) },
  { figure: "lag_p99_us", title: "Lag p99 of an agent", y: TIME, merged: p99Of((period) => period.lag) },
  { figure: "cpu_share", title: "CPU of an agent", y: { label: "of its processors", quantity: { text: (share) => quantity.percent(share), unit: () => 0.01 } } },
];

/** The most agents that a mark names; of more it has the number. */
const NAMED = 3;

/** Marks at the seconds in which agents were lost or came back. */
export function lossMarks(run: Run): Mark[] {
  const [agents, at] = [agentsOf(run), new Map<string, Mark & { names: string[] }>()];
  for (const { x, place, isLost } of losses(run)) {
    const what = isLost ? "lost" : "back";
    const key = `${x} ${what}`;
    if (!at.has(key)) at.set(key, { x, what, names: [] });
    at.get(key)!.names.push(agents[place]?.id ?? "");
  }
  return [...at.values()].map(({ x, what, names }): Mark => {
    const named = `${names.length > NAMED ? `${names.length} agents` : names.join(", ")} ${what}`;
    return { x, what: named, label: named, kind: what === "lost" ? "end" : "command" };
  });
}

/** Charts of the agent at a place compared with all, or of all. */
export function agentCharts(run: Run, place: number | null): Chart[] {
  const { entries } = run;
  const agents = agentsOf(run);
  if (agents.length === 0) return [];
  const own = place === null ? undefined : agents[place];
  const marks = [...marksOf(run), ...lossMarks(run)];
  const over = (name: string, of: (entry: Entry) => number): Line => ({ name, points: entries.map((entry) => ({ x: entry.period.until_s, y: of(entry) })) });
  return KINDS.map(({ figure, title, y, merged, seldom }): Chart => {
    const spread = (which: keyof Spread) => (entry: Entry) => spreadOf(entry, agents)[figure][which];
    const lines = [
      ...(own ? [{ ...over(own.id, (entry) => figuresOfAgent(entry, place!, own.cores)?.[figure] ?? NaN), front: true }] : []),
      merged ? over("all merged", merged) : over("mean", spread("mean")),
      ...(agents.length > 1 ? [over("highest", spread("highest")), over("lowest", spread("lowest"))] : []),
    ];
    const says = own ? `${own.id} beside all ${agents.length} agents` : `All ${agents.length} agents; select one on the map to see it beside them`;
    return {
      id: `agent-${figure}`,
      title,
      says,
      x: SECONDS,
      y,
      lines: lines.some((line) => isSeen(line, !seldom)) ? lines : [],
      bands: phases(entries),
      marks,
    };
  });
}
