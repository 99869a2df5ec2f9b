import { isSeen, overTime, perSecond, phases, SECONDS, type Axis, type Chart, type Line } from "./chart";
import type { Entry } from "./fold";
import { CONNECTIONS } from "./latency_charts";
import { marksOf } from "./marks";
import { connects, faultName, faultsOf } from "./period";
import * as quantity from "./quantity";
import type { Run } from "./run";
import { boundsOf } from "./thresholds";

export const RATE: Axis = { label: "a second", quantity: quantity.rate };

export const openOverTime = (run: Run, name: string): Line => overTime(run.entries, name, ({ period }) => period.open);

export function connections(run: Run): Chart {
  const { entries } = run;
  return {
    id: "connections",
    title: "Connections",
    says: "Open connections; planned; counted by the target",
    x: SECONDS,
    y: CONNECTIONS,
    lines: [
      openOverTime(run, "open"),
      overTime(entries, "wanted by the plan", ({ period }) => period.wanted),
      ownCount(entries),
    ].filter((line) => isSeen(line)),
    bands: phases(entries),
    marks: marksOf(run),
    bounds: boundsOf(run, /^connections\.(held|opened)$/, (bound, share) => (share ? (bound / 100) * (run.record.header?.connections ?? NaN) : bound)),
  };
}

/** The count of the target's kernel, where it can be seen; else its open files, of which each connection is one. */
function ownCount(entries: readonly Entry[]): Line {
  const counted = overTime(entries, "on the target's side", ({ looks }) => looks.connections);
  const differs = ({ looks, period }: Entry) => looks.connections != null && Math.abs(looks.connections - period.open) > Math.max(10, period.open / 5);
  const hasFiles = entries.some(({ looks }) => looks.target?.open_files != null);
  // The kernel counts all sockets of its host: where others come and go, the target's files say more. A sample or two of a ramp or a
  // drain may be of another moment than the count beside it.
  const strays = entries.filter(differs).length;
  return isSeen(counted) && !(hasFiles && strays * 4 > entries.length) ? counted : overTime(entries, "open files of the target", ({ looks }) => looks.target?.open_files);
}

export const answeredOverTime = (run: Run, name: string): Line =>
  overTime(run.entries, name, ({ period }) => perSecond(period, period.counts.answered));

export function rates(run: Run): Chart {
  const { entries } = run;
  const told = overTime(entries, "fire-and-forget messages", ({ period }) => perSecond(period, period.counts.told));
  const lost = {
    ...overTime(entries, "lost or closed", ({ period: { counts }, period }) => perSecond(period, counts.dropped + counts.closed)),
    bad: true,
  };
  return {
    id: "rates",
    title: "Connects and requests",
    says: "Responses, and connects, repeated ones included",
    x: SECONDS,
    y: RATE,
    lines: [
      answeredOverTime(run, "responses"),
      overTime(entries, "connects", ({ period }) => perSecond(period, connects(period))),
      told,
      lost,
    ].filter((line) => isSeen(line, false)),
    bands: phases(entries),
    marks: marksOf(run),
    bounds: boundsOf(run, /^(requests\.per_s|connections\.open_per_s)$/),
  };
}

/** Faults of which more than this many kinds occurred are shown as one. */
const KINDS = 6;

export function faults(run: Run): Chart {
  const { entries, total } = run;
  const kinds = [...faultsOf(total.faults)].sort((a, b) => b.count - a.count).map(faultName);
  const [shown, others] = [kinds.slice(0, KINDS), new Set(kinds.slice(KINDS))];
  const lineOf = (name: string, isOne: (kind: string) => boolean) =>
    overTime(entries, name, ({ period }) => {
      const ours = period.faults.filter((fault) => isOne(faultName(fault)));
      return perSecond(period, ours.reduce((sum, { count }) => sum + count, 0));
    });
  const lines = shown.map((name) => lineOf(name, (kind) => kind === name));
  if (others.size > 0) lines.push(lineOf(`${others.size} others`, (kind) => others.has(kind)));
  return {
    id: "faults",
    title: "Faults",
    says: "Faults per second, by side, stage and kind",
    x: SECONDS,
    y: RATE,
    lines: lines.filter((line) => isSeen(line, false)).map((line) => ({ ...line, fault: true })),
    stacked: true,
    bands: phases(entries),
    marks: marksOf(run),
  };
}

/** One small chart for each population of a plan that has several. */
export function populations(run: Run): Chart[] {
  const { entries, total } = run;
  return total.populations.map((_, place) => {
    const name = run.record.header?.populations?.[place] ?? `population ${place + 1}`;
    return {
      id: `population-${place}`,
      title: `Population ${name}`,
      says: "Connections open, and wanted by the plan",
      x: SECONDS,
      y: CONNECTIONS,
      lines: [
        overTime(entries, "open", ({ period }) => period.populations[place]?.open),
        overTime(entries, "wanted by the plan", ({ period }) => period.populations[place]?.wanted),
      ].filter((line) => isSeen(line)),
      bands: phases(entries),
      marks: marksOf(run),
    };
  });
}
