import { isOf, pressed, type Order } from "../model/order";
import type { Column } from "../model/table";

interface HeadsProps {
  columns: readonly Column[];
  order: Order | null;
  /** None of a table that is not to be sorted. */
  sort?: (order: Order | null) => void;
}

export const classOf = (column: Column | undefined) => (column?.numeric ? "number" : column?.code ? "code" : "");

/** Names of columns, each a button that sorts by it. */
export function Heads({ columns, order, sort }: HeadsProps) {
  return columns.map((column, at) => {
    const sorted = isOf(order, column.name, at) ? (order.falls ? "descending" : "ascending") : undefined;
    return (
      <th key={at} scope="col" class={classOf(column)} aria-sort={sorted}>
        {sort ? (
          <button type="button" onClick={() => sort(pressed(order, column, at))}>
            {column.name}
            {sorted && <span class="way" aria-hidden="true">{sorted === "descending" ? "▼" : "▲"}</span>}
          </button>
        ) : column.name}
      </th>
    );
  });
}
