import type { Figure } from "../model/figures";

/** The most important figures, each with a word on it. */
export function Figures({ figures, id }: { figures: Figure[]; id: string }) {
  return (
    <dl class="figures" id={id}>
      {figures.map(({ name, value, note }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="value">{value}</dd>
          {note && <dd class="note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}
