import type { Figure } from "../model/figures";

/** Figures beside each other on a wide screen, at most. */
const ROW = 9;

/** The most important figures, each with a word on it. */
export function Figures({ figures, id }: { figures: Figure[]; id: string }) {
  // Rows of the same length: none ends with a gap, or is much wider than the others.
  const rows = Math.ceil(figures.length / ROW);
  return (
    <dl class="figures" id={id} style={{ "--columns": String(Math.ceil(figures.length / rows)) }}>
      {figures.map(({ name, value, note, bad }) => (
        <div key={name} class={bad ? "wrong" : ""}>
          <dt>{name}</dt>
          <dd class="value">{value}</dd>
          {note && <dd class="note" title={note}>{note}</dd>}
        </div>
      ))}
    </dl>
  );
}
