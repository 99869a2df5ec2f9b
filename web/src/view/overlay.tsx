import { useRef, useState } from "preact/hooks";
import type { Chart } from "../model/chart";
import { colourOf } from "./drawing";
import { axisOf, focus, useBegan, useFocus, type Range } from "./focus";
import { cellText, nearest, readings, type At } from "./readings";

/** What a drawn chart measures with: pixels of values, and back. */
export interface Scales {
  x: { apply: (value: number) => number; invert: (pixels: number) => number };
  y: { apply: (value: number) => number; invert: (pixels: number) => number };
  /** Where the chart's lines are, pixels. */
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** A shorter drag is a click. */
const DRAG = 6;

interface OverlayProps {
  chart: Chart;
  scales: { current: Scales | null };
}

/** Over a chart: the crosshair, which all charts with the same axis share, the values there, and a range that is being chosen. */
export function Overlay({ chart, scales }: OverlayProps) {
  const { reading } = useFocus("reading");
  const began = useBegan();
  const [drag, setDrag] = useState<Range | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const scale = scales.current;
  const axis = axisOf(chart);

  const at = (event: PointerEvent): [number, number] => {
    const { left, top } = box.current!.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const held = ([x]: [number, number]) => Math.max(scale?.left ?? 0, Math.min(scale?.right ?? 0, x));
  const onMove = (event: PointerEvent) => {
    if (!scale) return;
    const [x, y] = at(event);
    if (drag) setDrag([drag[0], held([x, y])]);
    const place = scale.x.invert(held([x, y]));
    const snapped = nearest(readings(chart, began), place)?.x ?? place;
    focus.read({ axis, x: chart.cells ? place : snapped, y: scale.y.invert(y), chart: chart.id });
  };
  const onUp = (event: PointerEvent) => {
    const ended = drag && ([drag[0], held(at(event))].sort((a, b) => a - b) as Range);
    setDrag(null);
    if (scale && ended && ended[1] - ended[0] > DRAG) focus.zoom(axis, [scale.x.invert(ended[0]), scale.x.invert(ended[1])]);
  };
  const isRead = reading?.axis === axis && scale !== null && reading.x >= scale.x.invert(scale.left) - 1e-9 && reading.x <= scale.x.invert(scale.right) + 1e-9;
  const line = isRead ? scale.x.apply(reading.x) : null;
  return (
    <div
      class="overlay"
      ref={box}
      onPointerMove={onMove}
      onPointerDown={(event) => {
        if (event.button !== 0 || !scale) return;
        box.current!.setPointerCapture(event.pointerId);
        setDrag([held(at(event)), held(at(event))]);
      }}
      onPointerUp={onUp}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => !drag && focus.read(null)}
      onDblClick={() => focus.reset(axis)}
    >
      {line !== null && <div class="cross" style={{ left: `${line}px`, top: `${scale!.top}px`, height: `${scale!.bottom - scale!.top}px` }} />}
      {drag && scale && Math.abs(drag[1] - drag[0]) > DRAG && (
        <div class="range" style={{ left: `${Math.min(...drag)}px`, width: `${Math.abs(drag[1] - drag[0])}px`, top: `${scale.top}px`, height: `${scale.bottom - scale.top}px` }} />
      )}
      {line !== null && reading!.chart === chart.id && !drag && <Tip chart={chart} x={reading!.x} y={reading!.y} line={line} width={scale!.right} began={began} />}
    </div>
  );
}

interface TipProps {
  chart: Chart;
  x: number;
  y: number | undefined;
  line: number;
  width: number;
  began: number | null;
}

/** The values at the crosshair, on the side where there is more room. */
function Tip({ chart, x, y, line, width, began }: TipProps) {
  const found = nearest(readings(chart, began), x);
  if (!found) return null;
  const cell = chart.cells && y !== undefined ? cellText(chart, x, y) : [];
  const side = line > width / 2 ? { right: `calc(100% - ${line - 10}px)` } : { left: `${line + 10}px` };
  return (
    <div class="tip" style={side}>
      <Values at={{ ...found, values: [...cell, ...found.values] }} chart={chart} />
    </div>
  );
}

function Values({ at: { head, values, notes }, chart }: { at: At; chart: Chart }) {
  return (
    <>
      <p class="when">{head.join(" · ")}</p>
      <table>
        <tbody>
          {values.map(({ place, name, text }) => (
            <tr key={name}>
              <td>{place >= 0 && <span class="dot" style={{ background: colourOf(chart.lines[place]!, place) }} />}{name}</td>
              <td class="number">{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {notes.map((note) => <p key={note} class="note">{note}</p>)}
    </>
  );
}
