import type { ComponentChildren } from "preact";
import type { Chart } from "../model/chart";
import { keyFigures } from "../model/figures";
import { acceptQueue, jvm, memory, processors, socketMemory, sockets } from "../model/host_charts";
import { hostTable, tcpTable } from "../model/host_tables";
import { heatMap, latencyByConnections, latencyOverTime, percentileCurve } from "../model/latency_charts";
import { connections, faults, populations, rates } from "../model/load_charts";
import type { Run } from "../model/run";
import { costTable, faultTable, populationTable, rigTable, statusTable, stepTable, thresholdTable, timeTable, type Table } from "../model/table";
import { Banner, Figures } from "./banner";
import { Figure } from "./figure";
import { Grid } from "./grid";
import { Plan } from "./plan";

/** Everything about one run: the report, and the live page with what there is so far. */
export function RunPage({ run }: { run: Run }) {
  const latency = [latencyOverTime(run), latencyByConnections(run), percentileCurve(run), heatMap(run)];
  const hosts = [processors(run), memory(run), jvm(run), sockets(run), socketMemory(run), acceptQueue(run)];
  return (
    <>
      <Banner run={run} />
      <Figures id="figures" figures={keyFigures(run)} />
      <Grid table={thresholdTable(run)} />
      <Section title="Load" charts={[connections(run), rates(run)]} />
      <Section title="Latency" charts={latency} tables={[timeTable(run)]} />
      <Section title="Answers and faults" charts={[faults(run)]} tables={[faultTable(run), statusTable(run)]} />
      <Section title="Populations" charts={populations(run)} tables={[populationTable(run), stepTable(run)]} small />
      <Section title="Cost and hosts" charts={hosts} tables={[costTable(run), rigTable(run), hostTable(run), tcpTable(run)]} />
      <Plan run={run} />
    </>
  );
}

const isDrawn = ({ lines, cells }: Chart) => lines.length > 0 || (cells ?? []).length > 0;

interface SectionProps {
  title: string;
  charts: Chart[];
  tables?: Table[];
  small?: boolean;
  children?: ComponentChildren;
}

/** Charts and tables under a heading; nothing where none of them has anything. */
export function Section({ title, charts, tables = [], small = false, children }: SectionProps) {
  const [seen, filled] = [charts.filter(isDrawn), tables.filter(({ rows }) => rows.length > 0)];
  if (seen.length === 0 && filled.length === 0 && !children) return null;
  return (
    <section class="part" aria-label={title}>
      <h2>{title}</h2>
      <div class={small ? "charts small" : "charts"}>
        {seen.map((chart) => <Figure key={chart.id} chart={chart} height={small ? 150 : 230} />)}
      </div>
      <div class="tables">{filled.map((table) => <Grid key={table.id} table={table} />)}</div>
      {children}
    </section>
  );
}
