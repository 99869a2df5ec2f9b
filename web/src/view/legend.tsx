import type { Chart, Line } from "../model/chart";
import { grouped } from "../model/quantity";
import { colourOf, dash, isBeyond, isLeftOut, symbolOutline } from "./drawing";

interface LegendProps {
  chart: Chart;
  hidden: ReadonlySet<string>;
  toggle: (name: string, alone: boolean) => void;
}

/** Names of the lines that are seen, each a button that hides or shows its line; then what thresholds demand, and the key of a heat map. */
export function Legend({ chart, hidden, toggle }: LegendProps) {
  return (
    <ul class="legend">
      {chart.lines.map((line, place) => isLeftOut(chart, line, hidden) ? null : (
        <li key={line.name}>
          <button
            type="button"
            aria-pressed={!hidden.has(line.name)}
            title={`${hidden.has(line.name) ? "Show" : "Hide"} “${line.name}”; with Shift, show only this one`}
            onClick={(event) => toggle(line.name, event.shiftKey)}
          >
            <Sample line={line} place={place} />
            {line.name}
          </button>
        </li>
      ))}
      {(chart.bounds ?? []).map((bound) => (
        <li key={bound.name} class={bound.failed ? "bound failed" : "bound"}>
          <svg width="22" height="10" aria-hidden="true"><line x1="0" x2="22" y1="5" y2="5" stroke="currentColor" stroke-width="1.5" stroke-dasharray="5 3" /></svg>
          {bound.name}{bound.failed && " ✗"}{isBeyond(chart, bound.y) && <span class="beyond"> beyond the chart</span>}
        </li>
      ))}
      {chart.most !== undefined && (
        <li class="heat-key"><span>1</span><span class="scale" aria-hidden="true" /><span>{grouped(chart.most)} responses in a cell (log scale)</span></li>
      )}
    </ul>
  );
}

function Sample({ line, place }: { line: Line; place: number }) {
  const stroke = colourOf(line, place);
  if (line.dots) return <svg width="10" height="10" aria-hidden="true"><path d={symbolOutline(place)} transform="translate(5 5)" fill="none" stroke={stroke} stroke-width="1.6" /></svg>;
  return <svg width="22" height="10" aria-hidden="true"><line x1="0" x2="22" y1="5" y2="5" stroke={stroke} stroke-width="2" stroke-dasharray={line.limit ? "3 3" : dash(place)} /></svg>;
}
