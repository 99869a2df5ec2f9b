import type { Table } from "../model/table";

/** A table of more columns has the page's width. */
const NARROW = 6;

/** A table; nothing where it has no rows. It scrolls by itself where it is too wide. */
export function Grid({ table }: { table: Table }) {
  const { id, title, says, columns, rows } = table;
  if (rows.length === 0) return null;
  return (
    <section class={columns.length > NARROW ? "grid wide" : "grid"} id={id} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>{title}</h3>
      {says && <p>{says}</p>}
      <div class="scroll" tabIndex={0} role="region" aria-labelledby={`${id}-title`}>
        <table>
          <thead>
            <tr>
              {columns.map(({ name, numeric }) => (
                <th key={name} scope="col" class={numeric ? "number" : ""}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, n) => (
              <tr key={n}>
                {row.map((text, i) => (
                  <td key={i} class={columns[i]?.numeric ? "number" : ""}>{text}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
