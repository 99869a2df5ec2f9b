import * as Plot from "@observablehq/plot";
import { SECONDS, type Axis, type Chart, type Line, type Point } from "../model/chart";
import { clockText, sinceText, timeTicks } from "../model/clock";
import type { Scales } from "./overlay";
import { finite } from "./readings";
import { rules, topOf } from "./moments";

/** How lines are told apart: by colour, and by their dashes where there is none (the sheet has the colours). */
export const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4"];
const COLOURS = 6;
export const colour = (place: number) => `var(--line-${(place % COLOURS) + 1})`;
/** From the seventh line on another dash for the same colour. */
export const dash = (place: number) => DASHES[(place + Math.floor(place / COLOURS)) % DASHES.length] || undefined;
export const colourOf = (line: Line, place: number) =>
  line.limit ? "var(--mark)" : line.bad ? "var(--bad)" : line.fault ? `var(--fault-${(place % COLOURS) + 1})` : colour(place);

/** What of a chart is shown, and how. */
export interface Look {
  /** The part of the x axis. */
  range: readonly [number, number] | null;
  /** When the run began, milliseconds since 1970, where times are shown by the clock. */
  clock: number | null;
  /** Names of lines that are not shown. */
  hidden: ReadonlySet<string>;
}

const WHOLE: Look = { range: null, clock: null, hidden: new Set() };

const MARGIN = { marginLeft: 58, marginRight: 16 };
/** Below a chart: the names of its marks, and of its axis where those do not say what it is. */
const BELOW = 22;
const LABEL = 15;

/** A chart as SVG of a width and height in pixels, and its scales. */
export function drawn(chart: Chart, width: number, height: number, look: Look = WHOLE): { svg: SVGSVGElement } & Scales {
  const { x, y } = chart;
  const columns = look.range ?? domainOfX(chart);
  const rows = domainOfY(chart, columns, look.hidden);
  const marginTop = topOf(chart);
  const named = nameOf(x, look, columns);
  const label = labelOf(x, look);
  const marginBottom = BELOW + (label ? LABEL : 0);
  const figure = Plot.plot({
    ...MARGIN,
    marginTop,
    marginBottom,
    width,
    height,
    style: { fontFamily: "inherit", fontSize: "11px", background: "none", overflow: "visible" },
    x: { type: x.log ? "log" : "linear", domain: columns, label: null },
    y: { type: y.log ? "log" : "linear", domain: rows, label: null },
    opacity: { type: "identity" },
    marks: [
      ...bands(chart, columns, rows, width),
      Plot.gridY(ticks(y, rows, height / 45), { stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisY(ticks(y, rows, height / 45), { text: nameOf(y), tickSize: 0, label: null }),
      Plot.axisX(ticksOfX(chart, columns, width / (look.clock ? 80 : 90), look), {
        text: named, tickSize: 4, label, labelAnchor: "center", labelArrow: "none",
      }),
      ...(chart.cells ? cells(chart, look) : chart.stacked ? stack(chart, look) : lines(chart, look)),
      ...bounds(chart, rows),
      ...rules(chart, columns, rows, width - MARGIN.marginLeft - MARGIN.marginRight),
    ],
  }) as SVGSVGElement & Plot.Plot;
  const [across, up] = [figure.scale("x")!, figure.scale("y")!];
  const measures = (scale: Plot.Scale) => ({ apply: scale.apply, invert: scale.invert! });
  return { svg: figure, x: measures(across), y: measures(up), left: MARGIN.marginLeft, right: width - MARGIN.marginRight, top: marginTop, bottom: height - marginBottom };
}

/** Seconds since the start are told by their unit. */
const labelOf = (axis: Axis, { clock }: Look) => (axis !== SECONDS ? axis.label : clock !== null ? "UTC" : null);

/** The marks of an x axis: of time, those of a clock. */
function ticksOfX({ x }: Chart, columns: readonly [number, number], about: number, { clock }: Look): number[] {
  return x === SECONDS ? timeTicks([...columns], about, (clock ?? 0) / 1e3) : ticks(x, [...columns], about);
}

/** From where to where an axis reaches: all that is finite, and above 0 on a log axis. */
function extent(all: number[], log = false): [number, number] | null {
  let [least, most] = [Infinity, -Infinity];
  for (const value of all) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  return most >= least ? [least, most] : null;
}

function domainOfX(chart: Chart): [number, number] {
  const points = chart.lines.flatMap((line) => finite(line.points).map(({ x }) => x));
  const corners = (chart.cells ?? []).flatMap(({ from, to }) => [from.x, to.x]);
  const times = (chart.bands ?? []).flatMap(({ from, to }) => [from, to]);
  const found = extent([...points, ...corners, ...times], chart.x.log);
  if (!found) return chart.x.log ? [1, 10] : [0, 1];
  const [least, most] = found;
  if (chart.x.log) return [least * 0.9, Math.max(most * 1.1, least * 2)];
  return [Math.min(least, 0), Math.max(most, 0) || 1];
}

/** A limit that is further from what is drawn than this, in heights of it, would leave nothing of it: it is only named. */
const NEAR_LIMIT = 1.6;
/** The same on a log axis, as a factor. */
const NEAR_BOUND = 6;

const isNear = (value: number, [least, most]: [number, number], log: boolean | undefined) =>
  log ? value > 0 && value <= most * NEAR_BOUND && value >= least / NEAR_BOUND : value <= most * NEAR_LIMIT;

/** What the y axis has to show in a part of the x axis; limits do not squash it. */
function domainOfY(chart: Chart, [from, to]: readonly [number, number], hidden: ReadonlySet<string>): [number, number] {
  const { log } = chart.y;
  const inside = ({ x }: Point) => x >= from && x <= to;
  const shown = chart.lines.filter((line) => !hidden.has(line.name));
  const valuesOf = (some: Line[]) => some.flatMap((line) => line.points.filter(inside).map(({ y }) => y));
  const stacked = chart.stacked ? sums(shown).filter(inside).map(({ y }) => y) : valuesOf(shown.filter(({ limit }) => !limit));
  const rows = (chart.cells ?? []).filter((cell) => cell.to.x > from && cell.from.x < to).flatMap((cell) => [cell.from.y, cell.to.y]);
  const found = extent([...stacked, ...rows], log) ?? extent(valuesOf(shown), log);
  if (!found) return log ? [1, 10] : [0, 1];
  const limits = [...valuesOf(shown.filter(({ limit }) => limit)), ...(chart.bounds ?? []).map(({ y }) => y)];
  const all = extent([...found, ...limits.filter((limit) => isNear(limit, found, log))], log)!;
  if (log) return [all[0] * 0.9, Math.max(all[1] * 1.1, all[0] * 2)];
  const end = Math.max(all[1], 0);
  return [Math.min(all[0], 0), end * 1.06 || 1];
}

/** Whether a chart as a whole leaves this out because it is too far from all that it draws. */
export function isBeyond(chart: Chart, y: number): boolean {
  const [least, most] = domainOfY(chart, domainOfX(chart), new Set());
  return y > most || y < least;
}

/** Whether this line would not be seen with the others that are shown: a limit that is too far from them, as a backlog of thousands from a
 * queue that stays empty. */
export function isLeftOut(chart: Chart, line: Line, hidden: ReadonlySet<string>): boolean {
  if (!line.limit) return false;
  const others = new Set([...hidden].filter((name) => name !== line.name));
  const [least, most] = domainOfY(chart, domainOfX(chart), others);
  return finite(line.points).every(({ y }) => y > most || y < least);
}

/** What lines that stand on one another come to at each place. */
function sums(all: Line[]): Point[] {
  const sums = new Map<number, number>();
  for (const line of all) for (const { x, y } of finite(line.points)) sums.set(x, (sums.get(x) ?? 0) + y);
  return [...sums].map(([x, y]) => ({ x, y }));
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

function nameOf(axis: Axis, look: Look = WHOLE, [from, to]: readonly [number, number] = [0, 0]): (value: number) => string {
  if (axis === SECONDS) {
    const tenths = to - from < 3;
    return (value) => (look.clock === null ? sinceText(value) : clockText(value, look.clock, tenths));
  }
  const names = new Map(axis.ticks?.map(({ at, name }) => [at, name]));
  return (value) => names.get(value) ?? axis.quantity.text(value);
}

/** Phases, each other one shaded, with their names where there is room. */
function bands({ bands = [] }: Chart, [first, last]: readonly [number, number], [from, to]: [number, number], width: number): Plot.Markish[] {
  const seen = bands.filter((band) => band.to > first && band.from < last).map((band) => ({ ...band, from: Math.max(band.from, first), to: Math.min(band.to, last) }));
  const roomy = seen.filter((band) => ((band.to - band.from) / Math.max(1e-9, last - first)) * width > 8 * band.name.length + 8);
  return [
    Plot.rect(seen, { x1: "from", x2: "to", y1: from, y2: to, fill: (band) => `var(--phase-${band.name})`, clip: true }),
    Plot.text(roomy, { x: "from", frameAnchor: "top-left", text: "name", dx: 4, dy: -13, fill: "var(--faint)", lineAnchor: "top" }),
  ];
}

/** What thresholds demand: a rule each, where it is in the chart. */
function bounds({ bounds = [] }: Chart, [from, to]: [number, number]): Plot.Markish[] {
  const inside = bounds.filter(({ y }) => y >= from && y <= to);
  return [Plot.ruleY(inside, { y: "y", stroke: ({ failed }) => (failed ? "var(--bad)" : "var(--bound)"), strokeWidth: 1.5, strokeDasharray: "5 3" })];
}

/** What points of lines that have no line between them look like, each with its outline around 0, 0 for legends. */
const SYMBOLS = [
  ["circle", "M-3.2,0a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0"],
  ["diamond", "M0,-4.6L2.7,0L0,4.6L-2.7,0Z"],
  ["square", "M-2.8,-2.8H2.8V2.8H-2.8Z"],
  ["triangle", "M0,-4L3.5,2.4H-3.5Z"],
] as const;
const symbolOf = (place: number) => SYMBOLS[place % SYMBOLS.length]![0];
export const symbolOutline = (place: number) => SYMBOLS[place % SYMBOLS.length]![1];

/** From so many points on a line is drawn thin. */
const DENSE = 300;

/** Places of lines in the order in which they are drawn: a later one is over an earlier one. */
export const drawingOrder = (lines: readonly Line[]): number[] =>
  lines.map((_, place) => place).sort((a, b) => Number(lines[a]!.front ?? false) - Number(lines[b]!.front ?? false));

function lines({ lines, y }: Chart, { range, hidden }: Look): Plot.Markish[] {
  const clip = range !== null || lines.some(({ limit }) => limit);
  return drawingOrder(lines).filter((place) => !hidden.has(lines[place]!.name)).map((place) => {
    const line = lines[place]!;
    if (line.dots) {
      return Plot.dot(finite(line.points), { x: "x", y: "y", r: 2.6, symbol: symbolOf(place), stroke: colourOf(line, place), fill: "var(--surface)", clip });
    }
    const [first, second] = finite(line.points);
    // A line of one point would not be seen.
    if (first && !second) return Plot.dot([first], { x: "x", y: "y", r: 2.6, fill: colourOf(line, place) });
    // A log axis has no zero: such points are gaps.
    return Plot.lineY(line.points, {
      x: "x",
      y: (point: Point) => (y.log && point.y <= 0 ? NaN : point.y),
      stroke: colourOf(line, place),
      strokeWidth: line.limit || line.points.length > DENSE ? 1 : 1.6,
      strokeDasharray: line.limit ? "3 3" : dash(place),
      clip,
    });
  });
}

function stack({ lines }: Chart, { range, hidden }: Look): Plot.Markish[] {
  const clip = range !== null;
  const shown = lines.filter((line) => !hidden.has(line.name));
  const rows = shown.flatMap(({ name, points }) => points.map(({ x, y }) => ({ name, x, y: Number.isFinite(y) ? y : 0 })));
  const place = ({ name }: { name: string }) => lines.findIndex((line) => line.name === name);
  const order = shown.map(({ name }) => name);
  const channels = { x: "x", y: "y", z: "name", order } as const;
  return [
    Plot.areaY(rows, Plot.stackY({ ...channels, fill: (row) => colourOf(lines[place(row)]!, place(row)), fillOpacity: 0.4, clip })),
    ...lines.map((_, i) =>
      Plot.lineY(rows, Plot.stackY2({ ...channels, stroke: (row) => (place(row) === i ? colourOf(lines[i]!, i) : "none"), strokeWidth: 1.4, strokeDasharray: dash(i), clip })),
    ),
  ];
}

function cells({ cells = [] }: Chart, { range }: Look): Plot.Markish[] {
  return [
    Plot.rect(cells, {
      clip: range !== null,
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

