import { clockText, sinceText } from "../model/clock";
import type { Chart, Point } from "../model/chart";
import { SECONDS } from "../model/chart";
import { grouped } from "../model/quantity";

/** What a chart says at one place. */
export interface At {
  x: number;
  /** `10 s · 20:45:41 UTC`, `hold` */
  head: string[];
  /** Places of lines, and their values. */
  values: { place: number; name: string; text: string }[];
  /** What happened there. */
  notes: string[];
}

export const finite = (points: Point[]) => points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));

/** The name of a place on the x axis. */
export function placeText(chart: Chart, x: number, began: number | null): string {
  if (chart.x !== SECONDS) return chart.x.quantity.text(x);
  const since = sinceText(Math.round(x * 10) / 10);
  return began === null ? since : `${since} · ${clockText(x, began)} UTC`;
}

const found = new WeakMap<Chart, At[]>();

/** One for each place that any line has, ascending; of a heat map one for each column. */
export function readings(chart: Chart, began: number | null): At[] {
  let all = found.get(chart);
  if (!all) found.set(chart, (all = chart.cells ? columns(chart, began) : places(chart, began)));
  return all;
}

function places(chart: Chart, began: number | null): At[] {
  const at = new Map<number, At["values"]>();
  chart.lines.forEach((line, place) => {
    for (const { x, y } of finite(line.points)) {
      if (!at.has(x)) at.set(x, []);
      at.get(x)!.push({ place, name: line.name, text: chart.y.quantity.text(y) });
    }
  });
  return [...at].sort(([a], [b]) => a - b).map(([x, values], n, all) => ({ x, head: headOf(chart, x, began), values, notes: notesOf(chart, x, all[n - 1]?.[0]) }));
}

function headOf(chart: Chart, x: number, began: number | null): string[] {
  const phase = chart.bands?.find(({ from, to }) => x > from && x <= to)?.name;
  return [placeText(chart, x, began), ...(phase ? [phase] : [])];
}

/** Marks since the place before. */
const notesOf = (chart: Chart, x: number, before = -Infinity) => (chart.marks ?? []).filter((mark) => mark.x <= x && mark.x > before).map(({ what }) => what);

function columns(chart: Chart, began: number | null): At[] {
  const at = new Map<number, { count: number; y: number; most: number }>();
  for (const { to, from, count } of chart.cells ?? []) {
    const column = at.get(to.x);
    if (!column) at.set(to.x, { count, y: from.y, most: count });
    else {
      if (count > column.most) [column.most, column.y] = [count, from.y];
      column.count += count;
    }
  }
  return [...at].sort(([a], [b]) => a - b).map(([x, { count, y }], n, all) => ({
    x,
    head: headOf(chart, x, began),
    values: [
      { place: -1, name: "responses", text: grouped(count) },
      { place: -1, name: "most near", text: chart.y.quantity.text(y) },
    ],
    notes: notesOf(chart, x, all[n - 1]?.[0]),
  }));
}

/** The reading nearest to a place; none where there is none. */
export function nearest(all: At[], x: number): At | null {
  let [low, high] = [0, all.length - 1];
  if (high < 0) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (all[middle]!.x < x) low = middle;
    else high = middle;
  }
  return Math.abs(all[low]!.x - x) <= Math.abs(all[high]!.x - x) ? all[low]! : all[high]!;
}

/** What a heat map has at a point. */
export function cellText(chart: Chart, x: number, y: number): At["values"] {
  const cell = chart.cells?.find(({ from, to }) => x >= from.x && x <= to.x && y >= from.y && y <= to.y);
  if (!cell) return [];
  const { text } = chart.y.quantity;
  return [{ place: -1, name: `${text(cell.from.y)} to ${text(cell.to.y)}`, text: grouped(cell.count) }];
}

/** In one line, for those who listen. */
export const inWords = ({ head, values, notes }: At): string =>
  [head.join(", "), ...values.map(({ name, text }) => `${name} ${text}`), ...notes].join(" · ");
