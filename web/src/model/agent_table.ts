import { agentsOf, figuresOfAgent, stateOf } from "./agents";
import type { Entry } from "./fold";
import type { Lenient } from "./lenient";
import { grouped, percent, rate, signed, span, time } from "./quantity";
import type { AgentSummary } from "./records";
import type { Run } from "./run";
import type { Column, Table } from "./table";

/** The most rows that are shown; of a larger fleet, at first lost agents and those with the highest CPU. */
const MOST = 20;

const NONE = "–";

/** Without a value where nothing was measured. */
const timeOf = (us = NaN) => (Number.isNaN(us) ? NONE : time.text(us));

const columns = (words: string[], numbers: string[], last: string[] = []): Column[] => [
  ...words.map((name) => ({ name })),
  ...numbers.map((name) => ({ name, numeric: true })),
  ...last.map((name) => ({ name })),
];

/** The agents of a run: as its summary has them, or in this second. */
export function agentTable(run: Run, entry: Entry): Table {
  const summed = run.summary?.agents ?? [];
  return summed.length > 0 ? ofSummary(summed) : ofSecond(run, entry);
}

const shown = (all: number) => (all > MOST ? `${MOST} of ${grouped(all)}: lost ones, and those with the highest CPU, first; a column's name sorts all of them` : undefined);

function ofSummary(agents: Lenient<AgentSummary[]>): Table {
  const sorted = agents.length > MOST ? [...agents].sort((a, b) => weight(b) - weight(a)) : agents;
  const rows = sorted.map((agent) => [
    agent?.id ?? "",
    agent?.state ?? "",
    grouped(agent?.held ?? 0),
    grouped(agent?.wanted ?? 0),
    agent?.began_late_ms == null ? NONE : `${signed(agent.began_late_ms, 1)} ms`,
    agent?.lag_p99_us == null ? NONE : time.text(agent.lag_p99_us),
    agent?.cpu_share == null ? NONE : percent(agent.cpu_share),
    agent?.away_s ? span(agent.away_s) : NONE,
    remark(agent),
  ]);
  const hasRemarks = rows.some((row) => row.at(-1));
  return {
    id: "agent-table",
    title: "Agents",
    says: shown(agents.length),
    columns: columns(["agent", "state"], ["held", "wanted", "began late", "lag p99", "CPU", "away"], hasRemarks ? ["remark"] : []),
    rows: hasRemarks ? rows : rows.map((row) => row.slice(0, -1)),
    most: MOST,
  };
}

const weight = (agent: Lenient<AgentSummary> | undefined) => (agent?.state === "done" ? 0 : 10) + (agent?.cpu_share ?? 0);

function remark(agent: Lenient<AgentSummary> | undefined): string {
  const by = agent?.taken_over_by ?? [];
  return [agent?.why ?? "", by.length > 0 ? `taken over by ${by.join(", ")}` : "", agent?.missing_ticks ? `${grouped(agent.missing_ticks)} reports are missing` : ""]
    .filter(Boolean)
    .join("; ");
}

function ofSecond(run: Run, entry: Entry): Table {
  const all = agentsOf(run).map(({ id, wanted, cores }, place) => {
    const figures = figuresOfAgent(entry, place, cores);
    const state = stateOf(entry, place);
    const cpu = figures?.cpu_share ?? NaN;
    return {
      weight: state === "lost" ? 20 : state === "silent" ? 10 : cpu || 0,
      row: [
        id,
        state === "silent" ? "no report" : state,
        figures ? grouped(figures.open) : NONE,
        grouped(wanted),
        figures ? rate.text(figures.requests_per_s) : NONE,
        timeOf(figures?.latency_p99_us),
        timeOf(figures?.lag_p99_us),
        Number.isNaN(cpu) ? NONE : percent(cpu),
        figures ? rate.text(figures.faults_per_s) : NONE,
      ],
    };
  });
  const sorted = all.length > MOST ? all.sort((a, b) => b.weight - a.weight) : all;
  return {
    id: "agent-table",
    title: "Agents in this second",
    says: shown(all.length),
    columns: columns(["agent", "state"], ["open", "share", "requests", "latency p99", "lag p99", "CPU", "faults"]),
    rows: sorted.map(({ row }) => row),
    most: MOST,
  };
}
