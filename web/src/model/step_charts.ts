import { overTime, phases, SECONDS, type Chart, isSeen, type Line } from "./chart";
import type { Distribution } from "./distribution";
import { LATENCY } from "./latency_charts";
import { marksOf } from "./marks";
import { boundsOf } from "./thresholds";
import type { Run } from "./run";

/** More steps than these are not told apart: those with the most responses are shown. */
const STEPS = 6;

const us = (times: Distribution | undefined, q: number) => (times && times.count > 0 ? times.quantile(q) / 1e3 : null);

/** Latency of each step over time, of populations that have several. */
export function stepsOverTime(run: Run): Chart {
  const { entries, total, record } = run;
  const counts = total.steps.map((times, place) => ({ place, count: times.count }));
  const shown = counts.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count).slice(0, STEPS).sort((a, b) => a.place - b.place);
  const of = (q: number, name: string, off: boolean): Line[] =>
    shown.map(({ place }) => {
      const step = record.header?.steps?.[place] ?? `step ${place + 1}`;
      return { ...overTime(entries, `${step} ${name}`, ({ period }) => us(period.steps[place], q)), off };
    });
  const others = counts.filter(({ count }) => count > 0).length - shown.length;
  return {
    id: "step-latency",
    title: "Latency by step",
    says: `From when a request was due to its response, at full load${others > 0 ? `; the ${STEPS} most frequent of ${shown.length + others} steps` : ""}`,
    x: SECONDS,
    y: LATENCY,
    lines: shown.length > 0 ? [...of(0.99, "p99", false), ...of(0.5, "p50", true)].filter((line) => isSeen(line)) : [],
    bands: phases(entries),
    marks: marksOf(run),
    bounds: shown.length > 0 ? boundsOf(run, /\.steps\..*\.latency_us\./) : [],
  };
}
