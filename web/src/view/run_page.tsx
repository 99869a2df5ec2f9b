import type { ComponentChildren } from "preact";
import { commonTables } from "../model/common_table";
import { errorTable, exampleTable, eventTable } from "../model/error_table";
import { keyFigures } from "../model/figures";
import { acceptQueue, jvm, memory, processors, socketMemory, sockets } from "../model/host_charts";
import { hostTable, settingsTable, tcpTable } from "../model/host_tables";
import { heatMap, latencyByConnections, latencyOverTime, noResponseOverTime, percentileCurve } from "../model/latency_charts";
import { connections, faults, populations, rates } from "../model/load_charts";
import { marksOf } from "../model/marks";
import { messageCharts } from "../model/message_charts";
import type { Run } from "../model/run";
import { stepRates, stepsOverTime } from "../model/step_charts";
import { costTable, faultTable, populationTable, rigTable, statusTable, stepTable, timeTable } from "../model/table";
import { Agents } from "./agents";
import { Banner } from "./banner";
import { Figures } from "./figures";
import { Began } from "./focus";
import { Plan } from "./plan";
import { Section } from "./section";
import { Thresholds } from "./thresholds";
import { Tools } from "./tools";

/** Everything about one run: the report, and the live page with what there is so far; `now` is what happens right now. */
export function RunPage({ run, now }: { run: Run; now?: ComponentChildren }) {
  const latency = [noResponseOverTime(run), latencyByConnections(run), percentileCurve(run), heatMap(run), stepsOverTime(run), stepRates(run), ...messageCharts(run)];
  const hosts = [processors(run), memory(run), jvm(run), sockets(run), socketMemory(run), acceptQueue(run)];
  const figures = <Figures id="figures" figures={keyFigures(run)} />;
  return (
    <Began.Provider value={run.record.began_ms ?? null}>
      <Banner run={run} />
      <Thresholds run={run} />
      {now ?? figures}
      <Tools />
      <Section title="Overview" charts={[connections(run), rates(run), latencyOverTime(run)]} kind="overview" />
      {now && figures}
      <Section title="Responses, errors and events" charts={[faults(run)]} beside={[eventTable(run, marksOf(run)), statusTable(run)]} tables={[...commonTables(run), exampleTable(run), errorTable(run), faultTable(run)]} />
      <Agents run={run} />
      <Section title="Latency" charts={latency} tables={[timeTable(run), stepTable(run)]} />
      <Section title="Populations" charts={populations(run)} tables={[populationTable(run)]} kind="small" />
      <Section title="Cost and hosts" charts={hosts} tables={[costTable(run), rigTable(run), tcpTable(run), hostTable(run), settingsTable(run)]} />
      <Plan run={run} />
    </Began.Provider>
  );
}
