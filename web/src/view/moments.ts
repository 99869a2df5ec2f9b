import * as Plot from "@observablehq/plot";
import type { Chart, Mark } from "../model/chart";

/** Room above a chart for the names of phases, and above those for the names of moments. */
const PHASES = 20;
const MOMENTS = 14;

/** How much is left above the lines of a chart. */
export const topOf = ({ marks = [] }: Chart): number => PHASES + (marks.some(({ label }) => label) ? MOMENTS : 0);

/** The width of a bold letter in a wide font (DejaVu Sans), pixels, and the room beside a name. */
const LETTER = 7.8;
const GAP = 8;

/** The longest name above a chart: the list of what happened has all of it. */
const LONGEST = 26;

/** Which names are shown where there is not room for all: of the target's end first. */
const ORDER = { end: 0, command: 1, fault: 2, experiment: 3, stage: 4 } as const;
const COLOURS = { end: "var(--bad)", fault: "var(--bad)", command: "var(--mark)", experiment: "var(--mark)", stage: "var(--faint)" } as const;
const kindOf = ({ kind = "command" }: Mark) => kind;

interface Name {
  mark: Mark;
  text: string;
  /** Whether it ends at its moment, instead of beginning there. */
  before: boolean;
  from: number;
  to: number;
}

/** Moments: a rule each, with its name above the chart where there is room. */
export function rules({ marks = [], x: axis }: Chart, [first, last]: readonly [number, number], [from, to]: [number, number], width: number): Plot.Markish[] {
  const seen = marks.filter(({ x }) => x >= first && x <= last);
  const share = (x: number) => (axis.log ? Math.log(x / first) / Math.log(last / first) : (x - first) / Math.max(1e-9, last - first));
  const names = placed(seen, (x) => share(x) * width, width);
  return [
    Plot.ruleX(seen, {
      x: "x", y1: from, y2: to, stroke: (mark: Mark) => COLOURS[kindOf(mark)], strokeOpacity: (mark: Mark) => (kindOf(mark) === "end" ? 1 : 0.7),
      strokeWidth: (mark: Mark) => (kindOf(mark) === "end" ? 1.6 : 1), strokeDasharray: "2 3",
    }),
    ...[false, true].map((side) =>
      Plot.text(names.filter(({ before }) => before === side), {
        x: ({ mark }: Name) => mark.x, frameAnchor: "top", lineAnchor: "top", dy: -PHASES - MOMENTS + 2, text: "text",
        textAnchor: side ? "end" : "start", fill: ({ mark }: Name) => COLOURS[kindOf(mark)], fontWeight: 600,
      }),
    ),
  ];
}

/** Names that do not lie over one another, the more important first. */
export function placed(marks: Mark[], at: (x: number) => number, width: number): Name[] {
  const names: Name[] = [];
  const important = marks.filter(({ label }) => label).sort((a, b) => ORDER[kindOf(a)] - ORDER[kindOf(b)]);
  for (const mark of important) {
    const text = mark.label!.length > LONGEST ? `…${mark.label!.slice(1 - LONGEST)}` : mark.label!;
    const [x, long] = [at(mark.x), text.length * LETTER];
    const sides = [{ before: false, from: x, to: x + long }, { before: true, from: x - long, to: x }];
    const free = sides.find(({ from, to }) => from >= -GAP && to <= width + GAP && names.every((name) => to + GAP < name.from || from - GAP > name.to));
    if (free) names.push({ mark, text, ...free });
  }
  return names;
}
