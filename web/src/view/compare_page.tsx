import { isSeen, SECONDS, type Chart } from "../model/chart";
import {
  CONNECTIONS, LATENCY, latencyOf, NO_RESPONSE, noResponseOfRun, p99ByConnections, p99OverTime, PERCENTILE, percentiles,
} from "../model/latency_charts";
import type { Lenient } from "../model/lenient";
import { answeredOverTime, openOverTime } from "../model/load_charts";
import { rate } from "../model/quantity";
import type { Comparison } from "../model/report";
import { nameOf, type Run } from "../model/run";
import { comparisonTables, overviewTable } from "../model/table";
import { Grid } from "./grid";
import { Plan } from "./plan";
import { Section } from "./section";
import { Tools } from "./tools";

/** Several runs over one another: one colour and dash for each. */
export function ComparePage({ runs, comparison }: { runs: Run[]; comparison?: Lenient<Comparison> | null }) {
  return (
    <>
      {comparisonTables(comparison).map((table) => <Grid key={table.id} table={table} />)}
      <Grid table={overviewTable(runs)} />
      <Tools />
      <Section title="Curves" charts={overlaid(runs)} />
      {runs.map((run, place) => <Plan key={place} run={run} name={nameOf(run, place)} />)}
    </>
  );
}

function overlaid(runs: Run[]): Chart[] {
  const of = (line: (run: Run, name: string) => Chart["lines"][number]) =>
    runs.map((run, place) => line(run, nameOf(run, place))).filter(({ points }) => points.length > 0);
  const says = "One line per run";
  return [
    { id: "connections", title: "Connections open", says, x: SECONDS, y: CONNECTIONS, lines: of(openOverTime) },
    { id: "rates", title: "Responses", says, x: SECONDS, y: { label: "a second", quantity: rate }, lines: of(answeredOverTime) },
    { id: "latency", title: "Latency p99 over time", says, x: SECONDS, y: LATENCY, lines: of(p99OverTime) },
    // Nothing to see where each request of every run had a response.
    {
      id: "no-response",
      title: "Requests without a response over time",
      says,
      x: SECONDS,
      y: NO_RESPONSE,
      lines: of(noResponseOfRun).some((line) => isSeen(line, false)) ? of(noResponseOfRun) : [],
    },
    { id: "by-connections", title: "Latency p99 against connections held", says, x: CONNECTIONS, y: LATENCY, lines: of(p99ByConnections) },
    {
      id: "percentiles",
      title: "Percentiles",
      says: "All requests of each run",
      x: PERCENTILE,
      y: LATENCY,
      lines: of((run, name) => percentiles(name, latencyOf(run.total))),
    },
  ];
}
