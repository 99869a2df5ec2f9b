import { keyFigures } from "../model/figures";
import { acceptQueue, jvm, memory, processors, socketMemory, sockets } from "../model/host_charts";
import { hostTable, tcpTable } from "../model/host_tables";
import { heatMap, latencyByConnections, latencyOverTime, noResponseOverTime, percentileCurve } from "../model/latency_charts";
import { connections, faults, populations, rates } from "../model/load_charts";
import type { Run } from "../model/run";
import { costTable, faultTable, populationTable, rigTable, statusTable, stepTable, thresholdTable, timeTable } from "../model/table";
import { Agents } from "./agents";
import { Banner } from "./banner";
import { Figures } from "./figures";
import { Grid } from "./grid";
import { Plan } from "./plan";
import { Section } from "./section";

/** Everything about one run: the report, and the live page with what there is so far. */
export function RunPage({ run }: { run: Run }) {
  const latency = [latencyOverTime(run), noResponseOverTime(run), latencyByConnections(run), percentileCurve(run), heatMap(run)];
  const hosts = [processors(run), memory(run), jvm(run), sockets(run), socketMemory(run), acceptQueue(run)];
  return (
    <>
      <Banner run={run} />
      <Figures id="figures" figures={keyFigures(run)} />
      <Grid table={thresholdTable(run)} />
      <Section title="Load" charts={[connections(run), rates(run)]} />
      <Agents run={run} />
      <Section title="Latency" charts={latency} tables={[timeTable(run)]} />
      <Section title="Responses and faults" charts={[faults(run)]} tables={[faultTable(run), statusTable(run)]} />
      <Section title="Populations" charts={populations(run)} tables={[populationTable(run), stepTable(run)]} small />
      <Section title="Cost and hosts" charts={hosts} tables={[costTable(run), rigTable(run), hostTable(run), tcpTable(run)]} />
      <Plan run={run} />
    </>
  );
}
