import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart } from "../model/chart";
import { drawn } from "./drawing";
import { savePng, saveSvg } from "./export";
import { axisOf, focus, useBegan, useFocus } from "./focus";
import { later, notLater } from "./later";
import { Legend } from "./legend";
import { Overlay, type Scales } from "./overlay";
import { inWords, nearest, readings } from "./readings";

/** A chart with its title, its legend, and what can be done with it. */
export function ChartFrame({ chart, height = 230 }: { chart: Chart; height?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const near = useNearness(box);
  const { isClock } = useFocus("view");
  const began = useBegan();
  const [hidden, toggle] = useHidden(chart);
  const axis = axisOf(chart);
  const range = focus.range(axis);
  const scales = useRef<Scales | null>(null);
  const last = useRef<unknown[]>([]);
  useEffect(() => {
    const inputs = [chart, width, height, range, isClock, began, hidden];
    if (width === 0 || !box.current || inputs.every((input, i) => input === last.current[i])) return;
    const isFirst = last.current.length === 0;
    const draw = () => {
      last.current = inputs;
      const look = { range, clock: isClock ? began : null, hidden };
      const { svg, ...measures } = drawn(chart, width, height, look);
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", `${chart.title}: ${chart.says}`);
      box.current?.replaceChildren(svg);
      scales.current = measures;
    };
    // In sight at once. Out of sight it follows when there is time: whoever scrolls, prints or photographs it finds the present.
    if (near || isFirst) {
      notLater(box);
      draw();
    } else later(box, draw);
  }, [chart, width, near, height, range, isClock, began, hidden]);
  useEffect(() => () => notLater(box), []);
  const save = (how: (chart: Chart, svg: SVGSVGElement) => void) => {
    const svg = box.current?.querySelector("svg");
    if (svg) how({ ...chart, lines: chart.lines.map((line) => ({ ...line, off: hidden.has(line.name) })) }, svg);
  };
  return (
    <figure class="chart" id={chart.id} aria-labelledby={`${chart.id}-title`}>
      <figcaption>
        <h3 id={`${chart.id}-title`}>{chart.title} <span class="axis">{chart.y.label}</span></h3>
        <span class="save">
          {range && <button type="button" class="reset" aria-label={`Reset the zoom of “${chart.title}”`} title="Reset zoom" onClick={() => focus.reset(axis)}>↺</button>}
          <button type="button" aria-label={`Save “${chart.title}” as SVG`} onClick={() => save(saveSvg)}>SVG</button>
          <button type="button" aria-label={`Save “${chart.title}” as PNG`} onClick={() => save(savePng)}>PNG</button>
        </span>
        <Says chart={chart} near={near} />
        <Legend chart={chart} hidden={hidden} toggle={toggle} />
      </figcaption>
      <Readable chart={chart}>
        <div class="canvas" style={{ minHeight: `${height}px` }}>
          <div ref={box} />
          <Overlay chart={chart} scales={scales} />
        </div>
      </Readable>
    </figure>
  );
}

/** What is to be seen; while the charts are read, the values there. */
function Says({ chart, near }: { chart: Chart; near: boolean }) {
  const { reading } = useFocus("reading");
  const began = useBegan();
  const at = near && reading && reading.axis === axisOf(chart) && reading.chart !== chart.id ? nearest(readings(chart, began), reading.x) : null;
  const text = at?.values.map(({ name, text }) => `${name} ${text}`).join(" · ");
  return <p class={text ? "says read" : "says"} title={chart.says}>{text || chart.says}</p>;
}

/** Names of the lines that are not shown. With `alone`, only that line is shown, or all again. */
function useHidden(chart: Chart): [ReadonlySet<string>, (name: string, alone: boolean) => void] {
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map());
  const names = chart.lines.filter((line) => changed.get(line.name) ?? line.off ?? false).map(({ name }) => name).join("\n");
  // The same set as long as it has the same names: a chart is drawn again when it changes.
  const hidden: ReadonlySet<string> = useMemo(() => new Set(names.split("\n").filter(Boolean)), [names]);
  const toggle = (name: string, alone: boolean) => {
    const others = chart.lines.filter((line) => line.name !== name);
    const isAlone = !hidden.has(name) && others.every((line) => hidden.has(line.name));
    const changes: [string, boolean][] = alone ? [[name, false], ...others.map((line): [string, boolean] => [line.name, !isAlone])] : [[name, !hidden.has(name)]];
    setChanged(new Map([...changed, ...changes]));
  };
  return [hidden, toggle];
}

/** Arrow keys go along the chart's readings, which are told as text, and move the crosshair of all charts with its axis. */
function Readable({ chart, children }: { chart: Chart; children: preact.ComponentChildren }) {
  const [place, setPlace] = useState<number | null>(null);
  const began = useBegan();
  const axis = axisOf(chart);
  const shown = () => {
    const range = focus.range(axis);
    return readings(chart, began).filter(({ x }) => !range || (x >= range[0] && x <= range[1]));
  };
  const move = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const all = shown();
    const to = Math.max(0, Math.min(all.length - 1, (place ?? (by > 0 ? -1 : all.length)) + by));
    setPlace(to);
    if (all[to]) focus.read({ axis, x: all[to].x, chart: chart.id });
  };
  const leave = () => {
    setPlace(null);
    if (focus.reading?.chart === chart.id) focus.read(null);
  };
  const all = place === null ? [] : shown();
  const at = place === null ? undefined : all[Math.min(place, all.length - 1)];
  return (
    <div class="readable" tabIndex={0} role="group" aria-label={`${chart.title}: arrow keys read the values`} onKeyDown={move} onBlur={leave}>
      {children}
      <output class="reading" aria-live="polite">{at ? inWords(at) : ""}</output>
    </div>
  );
}

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current!;
    const watch = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    watch.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => watch.disconnect();
  }, []);
  return width;
}

/** Whether it is in sight or nearly so. All are to be printed. */
function useNearness(box: { current: HTMLElement | null }): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => setNear(seen.at(-1)!.isIntersecting), { rootMargin: "300px" });
    const print = () => setNear(true);
    watch.observe(box.current!);
    addEventListener("beforeprint", print);
    return () => {
      watch.disconnect();
      removeEventListener("beforeprint", print);
    };
  }, []);
  return near;
}
