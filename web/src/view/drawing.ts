import * as Plot from "@observablehq/plot";
import type { Axis, Chart, Line, Mark, Point } from "../model/chart";
import { grouped } from "../model/quantity";

/** How lines are told apart: by colour, and by their dashes where there is none (the sheet has the colours). */
export const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4"];
export const colour = (place: number) => `var(--line-${(place % 6) + 1})`;
export const dash = (place: number) => DASHES[place % DASHES.length] || undefined;

const MARGIN = { marginLeft: 64, marginRight: 20, marginTop: 20, marginBottom: 38 };

/** A chart as SVG of a width and height in pixels; with what the mouse reads where it is there. */
export function drawn(chart: Chart, width: number, height: number, mouse = false): SVGSVGElement {
  const { x, y } = chart;
  const [columns, rows] = [domain(chart, "x"), domain(chart, "y")];
  const figure = Plot.plot({
    ...MARGIN,
    width,
    height,
    style: { fontFamily: "inherit", fontSize: "11px", background: "none", overflow: "visible" },
    x: { type: x.log ? "log" : "linear", domain: columns, label: null },
    y: { type: y.log ? "log" : "linear", domain: rows, label: null },
    opacity: { type: "identity" },
    marks: [
      ...bands(chart, rows, width),
      Plot.gridY(ticks(y, rows, height / 45), { stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisY(ticks(y, rows, height / 45), { text: named(y), tickSize: 0, label: null }),
      Plot.axisX(ticks(x, columns, width / 90), { text: named(x), tickSize: 4, label: x.label, labelAnchor: "center", labelArrow: "none" }),
      ...(chart.cells ? cells(chart) : chart.stacked ? stack(chart) : lines(chart)),
      ...rules(chart, rows, (columns[1] - columns[0]) / (width - MARGIN.marginLeft - MARGIN.marginRight), height - MARGIN.marginTop - MARGIN.marginBottom),
      ...(mouse ? hover(chart) : []),
    ],
  });
  return figure as SVGSVGElement;
}

const finite = (points: Point[]) => points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));

/** From where to where an axis reaches. */
function domain(chart: Chart, side: "x" | "y"): [number, number] {
  const axis = chart[side];
  const corners = (chart.cells ?? []).flatMap(({ from, to }) => [from[side], to[side]]);
  const onLines = side === "y" && chart.stacked ? sums(chart.lines) : chart.lines.flatMap((line) => finite(line.points).map((point) => point[side]));
  const times = side === "x" ? (chart.bands ?? []).flatMap(({ from, to }) => [from, to]) : [];
  const all = [...corners, ...onLines, ...times].filter((value) => !axis.log || value > 0);
  const least = all.reduce((least, value) => Math.min(least, value), Infinity);
  const most = all.reduce((most, value) => Math.max(most, value), -Infinity);
  if (!Number.isFinite(least)) return axis.log ? [1, 10] : [0, 1];
  if (axis.log) return [least * 0.9, Math.max(most * 1.1, least * 2)];
  const end = Math.max(most, 0);
  return [Math.min(least, 0), side === "y" ? end * 1.06 || 1 : end || 1];
}

/** What lines that stand on one another come to at each place. */
function sums(all: Line[]): number[] {
  const sums = new Map<number, number>();
  for (const line of all) for (const { x, y } of finite(line.points)) sums.set(x, (sums.get(x) ?? 0) + y);
  return [...sums.values()];
}

const ROUND = [1, 2, 5, 10];

/** Where an axis has its marks: about so many. */
export function ticks(axis: Axis, [from, to]: [number, number], about: number): number[] {
  if (axis.ticks) return roomy(axis.ticks.map(({ at }) => at).filter((at) => at >= from && at <= to), from, to, about);
  if (axis.log) return logTicks(from, to, about);
  const unit = axis.quantity.unit(to);
  const step = (to - from) / unit / Math.max(2, about);
  const power = 10 ** Math.floor(Math.log10(step));
  const round = ROUND.find((n) => n * power >= step * 0.999) ?? 10;
  const width = round * power * unit;
  const first = Math.ceil(from / width - 1e-9);
  const last = Math.floor(to / width + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * width);
}

/** Of marks on a log axis those that are far enough from the one before. */
function roomy(all: number[], from: number, to: number, about: number): number[] {
  const kept: number[] = [];
  for (const at of all) {
    const last = kept.at(-1);
    if (!last || Math.log(at / last) / Math.log(to / from) > ROOM / about) kept.push(at);
  }
  return kept;
}

/** Of the room that a mark has on average, so much is enough. */
const ROOM = 0.9;

function logTicks(from: number, to: number, about: number): number[] {
  const decades = Math.log10(to / from);
  const within = decades * 3 > about * 1.6 ? [1] : [1, 2, 5];
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) all.push(...within.map((n) => n * 10 ** power));
  const every = decades > about ? Math.ceil(decades / about) : 1;
  return all.filter((at) => at >= from && at <= to).filter((_, i) => i % every === 0);
}

function named(axis: Axis): (value: number) => string {
  const names = new Map(axis.ticks?.map(({ at, name }) => [at, name]));
  return (value) => names.get(value) ?? axis.quantity.text(value);
}

/** Phases, each other one shaded, with their names where there is room. */
function bands({ bands = [] }: Chart, [from, to]: [number, number], width: number): Plot.Markish[] {
  const whole = Math.max(1e-9, (bands.at(-1)?.to ?? 0) - (bands[0]?.from ?? 0));
  const roomy = bands.filter((band) => ((band.to - band.from) / whole) * width > 8 * band.name.length + 8);
  return [
    Plot.rect(bands, { x1: "from", x2: "to", y1: from, y2: to, fill: (band) => `var(--phase-${band.name})`, clip: true }),
    Plot.text(roomy, { x: "from", frameAnchor: "top-left", text: "name", dx: 4, dy: -13, fill: "var(--faint)", lineAnchor: "top" }),
  ];
}

/** Moments: a rule each, with its name where the one before leaves room. */
function rules({ marks = [] }: Chart, [from, to]: [number, number], a_pixel: number, height: number): Plot.Markish[] {
  const sorted = [...marks].sort((a, b) => a.x - b.x);
  const named = sorted.filter(({ x }, i) => i === 0 || x - sorted[i - 1]!.x > LINE_HEIGHT * a_pixel);
  return [
    Plot.ruleX(marks, { x: "x", y1: from, y2: to, stroke: "var(--mark)", strokeDasharray: "1 3" }),
    Plot.text(named, { x: "x", frameAnchor: "top", text: ({ what }: Mark) => ending(what, height / LETTER), rotate: -90, textAnchor: "end", dx: -5, dy: 4, fill: "var(--mark)", stroke: "var(--surface)", strokeWidth: 3 }),
  ];
}

/** Of text on its side, pixels. */
const LINE_HEIGHT = 14;

/** The width of a letter of such text, pixels; a wide one. */
const LETTER = 7;

/** The end of a text that is too long for this many letters: names of agents differ there. The tip has all of it. */
export const ending = (text: string, letters: number): string => (text.length > letters ? `…${text.slice(1 - Math.floor(letters))}` : text);

/** From so many points on a line is drawn thin. */
const DENSE = 300;

/** Places of lines in the order in which they are drawn: a later one is over an earlier one. */
export const drawingOrder = (lines: readonly Line[]): number[] =>
  lines.map((_, place) => place).sort((a, b) => Number(lines[a]!.front ?? false) - Number(lines[b]!.front ?? false));

function lines({ lines, y }: Chart): Plot.Markish[] {
  return drawingOrder(lines).map((place) => {
    const line = lines[place]!;
    if (line.dots) {
      return Plot.dot(finite(line.points), { x: "x", y: "y", r: 2.6, symbol: place % 2 ? "diamond" : "circle", stroke: colour(place), fill: "var(--surface)" });
    }
    // A log axis has no zero: such points are gaps.
    return Plot.lineY(line.points, {
      x: "x",
      y: (point: Point) => (y.log && point.y <= 0 ? NaN : point.y),
      stroke: line.limit ? "var(--mark)" : colour(place),
      strokeWidth: line.limit || line.points.length > DENSE ? 1 : 1.6,
      strokeDasharray: line.limit ? "3 3" : dash(place),
    });
  });
}

function stack({ lines }: Chart): Plot.Markish[] {
  const rows = lines.flatMap(({ name, points }) => points.map(({ x, y }) => ({ name, x, y: Number.isFinite(y) ? y : 0 })));
  const place = ({ name }: { name: string }) => lines.findIndex((line) => line.name === name);
  const order = lines.map(({ name }) => name);
  const channels = { x: "x", y: "y", z: "name", order } as const;
  return [
    Plot.areaY(rows, Plot.stackY({ ...channels, fill: (row) => colour(place(row)), fillOpacity: 0.45 })),
    ...lines.map((_, i) =>
      Plot.lineY(rows, Plot.stackY2({ ...channels, stroke: (row) => (place(row) === i ? colour(i) : "none"), strokeWidth: 1.4, strokeDasharray: dash(i) })),
    ),
  ];
}

function cells({ cells = [] }: Chart): Plot.Markish[] {
  return [
    Plot.rect(cells, {
      x1: (cell) => cell.from.x,
      x2: (cell) => cell.to.x,
      y1: (cell) => cell.from.y,
      y2: (cell) => cell.to.y,
      fill: "var(--heat)",
      fillOpacity: (cell) => 0.1 + 0.9 * cell.shade,
      shapeRendering: "crispEdges",
    }),
  ];
}

/** What the tip shows at one place: all lines there. */
interface Reading {
  x: number;
  y: number;
  title: string;
}

/** One reading for each place that any line has. */
export function readings(chart: Chart): Reading[] {
  const { x, y } = chart;
  if (chart.cells) {
    return chart.cells.map(({ from, to, count }) => ({
      x: (from.x + to.x) / 2,
      y: Math.sqrt(from.y * to.y),
      title: `${x.quantity.text(to.x)}\n${y.quantity.text(from.y)} to ${y.quantity.text(to.y)}: ${grouped(count)}`,
    }));
  }
  const at = new Map<number, string[]>();
  const heights = new Map<number, number>();
  for (const line of chart.lines) {
    for (const point of finite(line.points)) {
      at.set(point.x, [...(at.get(point.x) ?? []), `${line.name}  ${y.quantity.text(point.y)}`]);
      heights.set(point.x, Math.max(heights.get(point.x) ?? -Infinity, point.y));
    }
  }
  const phase = (place: number) => chart.bands?.find(({ from, to }) => place > from && place <= to)?.name;
  const marked = (place: number) => (chart.marks ?? []).filter((mark) => mark.x === place).map((mark) => mark.what);
  return [...at]
    .sort(([a], [b]) => a - b)
    .map(([place, names]) => ({
      x: place,
      y: heights.get(place) ?? 0,
      title: [[x.quantity.text(place), phase(place)].filter(Boolean).join(", "), ...names, ...marked(place)].join("\n"),
    }));
}

function hover(chart: Chart): Plot.Markish[] {
  const all = readings(chart).filter(({ y }) => !chart.y.log || y > 0);
  const pointer = chart.cells ? Plot.pointer : Plot.pointerX;
  const rule = Plot.ruleX(all, Plot.pointerX({ x: "x", stroke: "var(--faint)", strokeOpacity: 0.7 }));
  const tip = Plot.tip(all, pointer({ x: "x", y: "y", title: "title", fill: "var(--surface)", stroke: "var(--edge)", fontSize: 11, textPadding: 7 }));
  return chart.cells ? [tip] : [rule, tip];
}
