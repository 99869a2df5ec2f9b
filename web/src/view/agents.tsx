import { useRef, useState } from "preact/hooks";
import { agentCharts } from "../model/agent_charts";
import { agentLine, agentMap, MEASURES, shownFirst, type AgentCell, type AgentMap, type Measure } from "../model/agent_map";
import { agentTable } from "../model/agent_table";
import { agentsOf } from "../model/agents";
import { SECONDS } from "../model/chart";
import { grouped } from "../model/quantity";
import type { Run } from "../model/run";
import { Section } from "./section";

/** The agents of a fleet: a map of all in one second, and charts of one agent compared with all. Nothing for a run on one machine. */
export function Agents({ run }: { run: Run }) {
  const [measure, setMeasure] = useState<Measure>(MEASURES[0]!);
  const [selected, select] = useState<number | null>(null);
  // Null until the slider is moved: the present second, or the last of full load.
  const [moved, move] = useState<number | null>(null);
  const first = shownFirst(run);
  const agents = agentsOf(run);
  const entry = run.entries[Math.min(moved ?? first, run.entries.length - 1)];
  if (agents.length === 0 || !entry) return null;
  const map = agentMap(run, entry, measure);
  const seconds = SECONDS.quantity.text(entry.period.until_s);
  return (
    <Section title="Agents" charts={agentCharts(run, selected)} tables={[agentTable(run, entry)]} kind="small">
      <div class="agents" id="agents">
        <div class="choice" role="group" aria-label="Colour of an agent">
          {MEASURES.map((one) => (
            <button key={one.id} type="button" aria-pressed={one === measure} onClick={() => setMeasure(one)}>{one.name}</button>
          ))}
        </div>
        <p class="counts" id="agent-counts">{countsText(map)}</p>
        <Cells map={map} selected={selected} select={select} />
        <Key map={map} measure={measure} />
        <label class="moment">
          <span>{`after ${seconds}${moved === null && run.running ? ", now" : ""}`}</span>
          <input
            type="range"
            min={0}
            max={Math.max(0, run.entries.length - 1)}
            value={Math.min(moved ?? first, run.entries.length - 1)}
            aria-valuetext={`after ${seconds}`}
            aria-label="Second that the map shows"
            onInput={(event) => {
              const at = Number(event.currentTarget.value);
              move(run.running && at >= run.entries.length - 1 ? null : at);
            }}
          />
        </label>
        <p class="selected" id="agent-selected" role="status">
          {selected === null || !agents[selected] ? "Select an agent, by click or arrow keys, to see it beside the others." : <><b>{agents[selected].id}</b> {agentLine(run, entry, selected)}</>}
        </p>
      </div>
    </Section>
  );
}

function countsText({ cells, counts }: AgentMap): string {
  const lost = cells.filter(({ state }) => state === "lost").map(({ name }) => name);
  const parts = [
    `${grouped(counts.reports)} of ${grouped(cells.length)} agents report`,
    lost.length > 0 && `${grouped(lost.length)} lost: ${lost.slice(0, NAMED).join(", ")}${lost.length > NAMED ? ", …" : ""}`,
    counts.silent > 0 && `${grouped(counts.silent)} without a report`,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** The most lost agents that are listed by name. */
const NAMED = 5;

/** The most agents with a name and a figure in each cell, and the most with cells of medium size. */
const NAMES = 30;
const SMALL = 300;

interface CellsProps {
  map: AgentMap;
  selected: number | null;
  select: (place: number | null) => void;
}

/** One tab stop; arrow keys select the next agent. */
function Cells({ map: { cells }, selected, select }: CellsProps) {
  const box = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") return select(null);
    const columns = box.current ? getComputedStyle(box.current).gridTemplateColumns.split(" ").length : 1;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(cells.length - 1, selected === null ? (by === Infinity ? cells.length - 1 : 0) : selected + by));
    select(place);
    box.current?.children[place]?.scrollIntoView({ block: "nearest" });
  };
  const size = cells.length <= NAMES ? "named" : cells.length <= SMALL ? "small" : "smaller";
  return (
    <div
      class={`cells ${size}`}
      ref={box}
      role="listbox"
      tabIndex={0}
      aria-label="Agents"
      aria-activedescendant={selected === null ? undefined : `agent-cell-${selected}`}
      onKeyDown={onKey}
      onClick={(event) => {
        const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-place]");
        const place = cell ? Number(cell.dataset.place) : null;
        if (place !== null) select(place === selected ? null : place);
      }}
    >
      {cells.map((cell, place) => <Cell key={place} cell={cell} place={place} selected={place === selected} named={size === "named"} />)}
    </div>
  );
}

interface CellProps {
  cell: AgentCell;
  place: number;
  selected: boolean;
  named: boolean;
}

function Cell({ cell: { name, label, state, shade, text }, place, selected, named }: CellProps) {
  const says = `${name}: ${text}`;
  return (
    <div id={`agent-cell-${place}`} class={`cell ${state}`} role="option" aria-selected={selected} aria-label={says} title={says} data-place={place} style={{ "--shade": shade.toFixed(3) }}>
      {named && <><span class="name">{label}</span><span class="value">{text}</span></>}
    </div>
  );
}

/** The legend of the map. */
function Key({ map: { full }, measure }: { map: AgentMap; measure: Measure }) {
  return (
    <ul class="legend key">
      <li>{measure.name} 0 <span class="scale" aria-hidden="true" /> {full}</li>
      <li><span class="cell sample lost" aria-hidden="true" /> lost</li>
      <li><span class="cell sample silent" aria-hidden="true" /> no report in this second</li>
    </ul>
  );
}
