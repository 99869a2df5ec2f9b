import type { Entry } from "./fold";
import { length_s, type Period } from "./period";
import * as quantity from "./quantity";
import type { Quantity } from "./quantity";

/** Something to be drawn, as data: what it shows does not depend on how. */
export interface Chart {
  id: string;
  title: string;
  /** One line: what is to be seen. */
  says: string;
  x: Axis;
  y: Axis;
  lines: Line[];
  /** Lines stand on one another. */
  stacked?: boolean;
  /** A heat map in the place of lines. */
  cells?: Cell[];
  /** The most that a cell has: what its strongest colour stands for. */
  most?: number;
  bands?: Band[];
  marks?: Mark[];
  bounds?: Bound[];
}

export interface Axis {
  label: string;
  quantity: Quantity;
  log?: boolean;
  /** Where it has its marks, and how they are named, if not at round figures. */
  ticks?: { at: number; name: string }[];
}

export interface Line {
  name: string;
  points: Point[];
  /** Drawn as points: what was measured by itself. */
  dots?: boolean;
  /** What it must not go beyond. */
  limit?: boolean;
  /** Drawn over the others. */
  front?: boolean;
  /** Of what should not be. */
  bad?: boolean;
  /** One of several kinds of fault. */
  fault?: boolean;
  /** Shown only once its name is pressed. */
  off?: boolean;
}

/** `y` is NaN where nothing was seen. */
export interface Point {
  x: number;
  y: number;
}

export interface Cell {
  from: Point;
  to: Point;
  count: number;
  /** 0..=1 */
  shade: number;
}

/** A stretch of time with a name. */
export interface Band {
  name: string;
  from: number;
  to: number;
}

/** A moment with a name. */
export interface Mark {
  x: number;
  /** All of it; in a chart, `label` stands for it. */
  what: string;
  label?: string;
  /** `end`: of the target, or of what it could do. */
  kind?: "stage" | "command" | "experiment" | "fault" | "end";
}

/** What a threshold demands of a figure. */
export interface Bound {
  name: string;
  y: number;
  /** Not met, as far as is known. */
  failed: boolean;
}

/** The one axis of all charts over time: they are zoomed and read together. */
export const SECONDS: Axis = {
  label: "time since the start",
  quantity: { text: (s) => `${quantity.grouped(s)} s`, unit: () => 1 },
};

/** A line over time: a figure of each entry, and none where it is not known. */
export function overTime(
  entries: readonly Entry[],
  name: string,
  of: (entry: Entry, before: Entry | undefined) => number | null | undefined,
): Line {
  const points = entries.map((entry, i) => ({ x: entry.period.until_s, y: of(entry, entries[i - 1]) ?? NaN }));
  return { name, points };
}

/** How often a second something happened in a period. */
export const perSecond = (period: Period, n: number) => n / length_s(period);

/** By how much a counter grew a second since the entry before; not known of the first. */
export function growth(
  entry: Entry,
  before: Entry | undefined,
  of: (entry: Entry) => number | null | undefined,
): number | null {
  const [now, then] = [of(entry), before && of(before)];
  if (!before || now == null || then == null || now < then) return null;
  return (now - then) / Math.max(1e-9, entry.period.until_s - before.period.until_s);
}

/** Whether there is anything to see; a line of nothing but zeros counts where `zeros` is set. */
export const isSeen = (line: Line, zeros = true) =>
  line.points.some(({ y }) => Number.isFinite(y) && (zeros || y !== 0));

/** The phases of a run as stretches of time. */
export function phases(entries: readonly Entry[]): Band[] {
  const bands: Band[] = [];
  for (const { period } of entries) {
    const last = bands.at(-1);
    if (last?.name === period.phase) last.to = period.until_s;
    else bands.push({ name: period.phase, from: last ? last.to : Math.min(period.from_s, period.until_s), to: period.until_s });
  }
  return bands;
}
