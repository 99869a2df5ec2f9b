import type { Entry } from "./fold";
import { length_s, type Period } from "./period";
import * as quantity from "./quantity";
import type { Quantity } from "./quantity";
import type { Run } from "./run";

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
  bands?: Band[];
  marks?: Mark[];
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
  what: string;
}

export const SECONDS: Axis = {
  label: "seconds since the start",
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

/** What was done by hand. */
export function asks(run: Run): Mark[] {
  return (run.summary?.asks ?? []).map(({ at_s, what }) => ({ x: at_s ?? 0, what: what ?? "" }));
}
