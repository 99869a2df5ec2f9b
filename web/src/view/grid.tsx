import type { Table } from "../model/table";

/** A table of more columns has the page's width. */
const NARROW = 6;

/** A table; nothing where it has no rows. It scrolls by itself where it is too wide. */
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

function Rows({ table: { id, columns, rows, bad = [] } }: { table: Table }) {
  const classOf = (place: number) => (columns[place]?.numeric ? "number" : columns[place]?.code ? "code" : "");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby={`${id}-title`}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name }, i) => <th key={name} scope="col" class={classOf(i)}>{name}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n} class={bad.includes(n) ? "wrong" : ""}>
              {row.map((text, i) => <td key={i} class={classOf(i)}>{text}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
