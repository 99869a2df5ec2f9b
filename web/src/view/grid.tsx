import { useState } from "preact/hooks";
import { placesIn, type Order } from "../model/order";
import type { Table } from "../model/table";
import { classOf, Heads } from "./heads";

/** A table of more columns has the page's width. */
const NARROW = 6;

/** A table; nothing where it has no rows. It scrolls by itself where it is too wide, and is sorted by the column that is chosen. */
export function Grid({ table }: { table: Table }) {
  const { id, title, says, columns, rows, folded } = table;
  if (rows.length === 0) return null;
  const kind = columns.length > NARROW || columns.some(({ code }) => code) ? "grid wide" : "grid";
  if (folded) {
    return (
      <details class={kind} id={id}>
        <summary id={`${id}-title`}>{title} <span>({rows.length})</span></summary>
        <Rows table={table} />
      </details>
    );
  }
  return (
    <section class={kind} id={id} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>{title}</h3>
      {says && <p>{says}</p>}
      <Rows table={table} />
    </section>
  );
}

function Rows({ table: { id, columns, rows, most, bad = [] } }: { table: Table }) {
  const [order, sort] = useState<Order | null>(null);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby={`${id}-title`}>
      <table>
        <thead>
          <tr>
            <Heads columns={columns} order={order} sort={rows.length > 1 ? sort : undefined} />
          </tr>
        </thead>
        <tbody>
          {placesIn(order, columns, rows).slice(0, most).map((place, n) => (
            <tr key={n} class={bad.includes(place) ? "wrong" : ""}>
              {rows[place]!.map((text, i) => <td key={i} class={classOf(columns[i])}>{text}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
