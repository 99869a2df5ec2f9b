import { overTime, perSecond, phases, SECONDS, type Chart, isSeen, type Line } from "./chart";
import type { Distribution } from "./distribution";
import { LATENCY } from "./latency_charts";
import { RATE } from "./load_charts";
import { marksOf } from "./marks";
import type { Period } from "./period";
import { boundsOf } from "./thresholds";
import type { Run } from "./run";

/** More steps than these are not told apart: those with the most responses are shown. */
const STEPS = 6;

const us = (times: Distribution | undefined, q: number) => (times && times.count > 0 ? times.quantile(q) / 1e3 : null);

/** The step's responses in a period, whenever their requests were due. */
const responses = ({ steps, ramp_steps }: Period, place: number) => (steps[place]?.count ?? 0) + (ramp_steps[place]?.count ?? 0);

export const stepName = ({ record }: Run, place: number): string => record.header?.steps?.[place] ?? `step ${place + 1}`;

/** Places of all steps. */
export const stepPlaces = ({ steps, ramp_steps }: Period): number[] => Array.from({ length: Math.max(steps.length, ramp_steps.length) }, (_, place) => place);

/** Places of the steps that have the most of something, in the plan's order; and, where those are not all, how they are named. */
function mostOf(run: Run, count: (place: number) => number): { shown: number[]; which: string } {
  const counts = stepPlaces(run.total).map((place) => ({ place, count: count(place) }));
  const seen = counts.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count);
  const shown = seen.slice(0, STEPS).map(({ place }) => place).sort((a, b) => a - b);
  return { shown, which: seen.length > STEPS ? `; the ${STEPS} most frequent of ${seen.length} steps` : "" };
}

/** Latency of each step over time, of populations that have several. */
export function stepsOverTime(run: Run): Chart {
  const { entries, total } = run;
  const { shown, which } = mostOf(run, (place) => total.steps[place]?.count ?? 0);
  const of = (q: number, name: string, off: boolean): Line[] =>
    shown.map((place) => ({ ...overTime(entries, `${stepName(run, place)} ${name}`, ({ period }) => us(period.steps[place], q)), off }));
  return {
    id: "step-latency",
    title: "Latency by step",
    says: `From when a request was due to its response, at full load${which}`,
    x: SECONDS,
    y: LATENCY,
    lines: [...of(0.99, "p99", false), ...of(0.95, "p95", true), ...of(0.5, "p50", true)].filter((line) => isSeen(line)),
    bands: phases(entries),
    marks: marksOf(run),
    bounds: shown.length > 0 ? boundsOf(run, /\.steps\..*\.latency_us\./) : [],
  };
}

/** Responses of each step over time, of populations that have several. */
export function stepRates(run: Run): Chart {
  const { entries, total } = run;
  const { shown, which } = mostOf(run, (place) => responses(total, place));
  return {
    id: "step-rates",
    title: "Requests by step",
    says: `Responses${which}`,
    x: SECONDS,
    y: RATE,
    lines: shown.map((place) => overTime(entries, stepName(run, place), ({ period }) => perSecond(period, responses(period, place)))),
    bands: phases(entries),
    marks: marksOf(run),
  };
}
