import { isSeen, overTime, perSecond, phases, SECONDS, type Chart } from "./chart";
import { figureLines, figuresOver, LATENCY } from "./latency_charts";
import { RATE } from "./load_charts";
import { marksOf } from "./marks";
import type { Period } from "./period";
import type { Run } from "./run";
import { boundsOf } from "./thresholds";

interface Kind {
  times: "ping_rtt" | "gap" | "delay";
  title: string;
  says: string;
}

const KINDS: readonly Kind[] = [
  { times: "ping_rtt", title: "Round trip of PINGs over time", says: "From when a PING was sent beside requests to its acknowledgement" },
  { times: "gap", title: "Gap between messages over time", says: "From one message of a server to the next" },
  { times: "delay", title: "Delay of messages over time", says: "From the time in a message to its receipt; across two clocks only differences are meaningful" },
];

const CHARTS = KINDS.map((kind) => ({ ...kind, figures: figuresOver((period: Period) => period[kind.times]) }));

/** Messages that servers send without a request for each, and times of what is not a request; without lines where there was none of it. */
export function messageCharts(run: Run): Chart[] {
  return [messages(run), ...timesOverTime(run)];
}

function messages(run: Run): Chart {
  const { entries } = run;
  return {
    id: "messages",
    title: "Messages of servers",
    says: "Messages without their own request: streaming responses and pushed messages",
    x: SECONDS,
    y: RATE,
    lines: [overTime(entries, "messages", ({ period }) => perSecond(period, period.counts.messages))].filter((line) => isSeen(line, false)),
    bands: phases(entries),
    marks: marksOf(run),
    bounds: boundsOf(run, /^pushes\.per_s$/),
  };
}

function timesOverTime(run: Run): Chart[] {
  const { entries, total } = run;
  return CHARTS.map(({ times, title, says, figures }) => ({
    id: times.replace("_", "-"),
    title,
    says,
    x: SECONDS,
    y: LATENCY,
    lines: total[times].count > 0 ? figureLines(run, figures).filter((line) => isSeen(line, false)) : [],
    bands: phases(entries),
    marks: marksOf(run),
    bounds: boundsOf(run, new RegExp(`^(populations\\.[^.]+\\.)?${times}_us\\.(p\\d+|max|mean)$`)),
  }));
}
