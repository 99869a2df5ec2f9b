import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart } from "../model/chart";
import { colour, dash, drawn, readings } from "./drawing";
import { savePng, saveSvg } from "./export";

/** A chart with its title, its legend, and what can be done with it. */
export function ChartFrame({ chart, height = 230 }: { chart: Chart; height?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const near = useNearness(box);
  // Where the mouse came in: what it reads is a third of the work of drawing, and most charts are never read.
  const [mouse, setMouse] = useState<PointerEvent | null>(null);
  const drawnAs = useRef("");
  useEffect(() => {
    if (width === 0 || !box.current) return;
    // Drawn once in any case, at any new width, and for the mouse; kept up to date in sight only, and not while the mouse reads it.
    const as = `${width} ${mouse !== null}`;
    if ((!near || mouse) && drawnAs.current === as) return;
    drawnAs.current = as;
    const svg = drawn(chart, width, height, mouse !== null);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${chart.title}: ${chart.says}`);
    box.current.replaceChildren(svg);
    if (mouse) svg.dispatchEvent(new PointerEvent("pointermove", mouse));
  }, [chart, width, near, height, mouse]);
  const save = (how: (chart: Chart, svg: SVGSVGElement) => void) => {
    const svg = box.current?.querySelector("svg");
    if (svg) how(chart, svg);
  };
  return (
    <figure class="chart" id={chart.id} aria-labelledby={`${chart.id}-title`}>
      <figcaption>
        <h3 id={`${chart.id}-title`}>{chart.title}</h3>
        <span class="save">
          <button type="button" aria-label={`Save “${chart.title}” as SVG`} onClick={() => save(saveSvg)}>SVG</button>
          <button type="button" aria-label={`Save “${chart.title}” as PNG`} onClick={() => save(savePng)}>PNG</button>
        </span>
        <p>{chart.says}</p>
        <Legend chart={chart} />
      </figcaption>
      <Readable chart={chart}>
        <div class="canvas" ref={box} style={{ minHeight: `${height}px` }} onPointerEnter={setMouse} onPointerLeave={() => setMouse(null)} />
      </Readable>
    </figure>
  );
}

function Legend({ chart }: { chart: Chart }) {
  return (
    <ul class="legend">
      {chart.lines.map((line, place) => (
        <li key={line.name}>
          <svg width="26" height="10" aria-hidden="true">
            {line.dots ? (
              <circle cx="13" cy="5" r="3" fill="none" stroke={colour(place)} stroke-width="1.5" />
            ) : (
              <line x1="1" x2="25" y1="5" y2="5" stroke={line.limit ? "var(--mark)" : colour(place)} stroke-width="2" stroke-dasharray={line.limit ? "3 3" : dash(place)} />
            )}
          </svg>
          {line.name}
        </li>
      ))}
      <li class="axis">{chart.y.label}</li>
    </ul>
  );
}

/** Arrow keys go along the chart's readings, which are told as text: what the mouse sees in the tip. */
function Readable({ chart, children }: { chart: Chart; children: preact.ComponentChildren }) {
  const [place, setPlace] = useState<number | null>(null);
  const all = useMemo(() => (place === null ? [] : readings(chart)), [chart, place]);
  const move = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const last = readings(chart).length - 1;
    setPlace(Math.max(0, Math.min(last, (place ?? (by > 0 ? -1 : last + 1)) + by)));
  };
  const text = place === null ? "" : (all[Math.min(place, all.length - 1)]?.title ?? "");
  return (
    <div class="readable" tabIndex={0} role="group" aria-label={`${chart.title}: arrow keys read the values`} onKeyDown={move} onBlur={() => setPlace(null)}>
      {children}
      <output class="reading" aria-live="polite">{text.replaceAll("\n", " · ")}</output>
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
