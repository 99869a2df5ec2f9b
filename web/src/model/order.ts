import { magnitude } from "./quantity";
import type { Column } from "./table";

/** By which column rows are sorted. */
export interface Order {
  /** Its place, and its name: the columns of a table may change. */
  at: number;
  name: string;
  falls: boolean;
}

const WORDS = new Intl.Collator("en", { numeric: true });

/** What it leads to that a column's name is pressed: numbers fall at first and words rise, then the other way, then as they came. */
export function pressed(order: Order | null, { name, numeric = false }: Column, at: number): Order | null {
  if (!isOf(order, name, at)) return { at, name, falls: numeric };
  return order.falls === numeric ? { at, name, falls: !numeric } : null;
}

/** Whether it is by this column. */
export const isOf = (order: Order | null, name: string | undefined, at: number): order is Order => order?.at === at && order.name === name;

/** Places of rows in this order: those without a value last, equal ones as they came. */
export function placesIn(order: Order | null, columns: readonly Column[], rows: readonly (readonly string[])[]): number[] {
  const places = rows.map((_, place) => place);
  const column = order ? columns[order.at] : undefined;
  if (!order || !column || !isOf(order, column.name, order.at)) return places;
  const texts = rows.map((row) => row[order.at] ?? "");
  const numbers = column.numeric ? texts.map(magnitude) : [];
  const isNone = (place: number) => (column.numeric ? Number.isNaN(numbers[place]) : texts[place] === "" || texts[place] === "–");
  const compared = (a: number, b: number) => (column.numeric ? numbers[a]! - numbers[b]! : WORDS.compare(texts[a]!, texts[b]!));
  return places.sort((a, b) => {
    if (isNone(a) || isNone(b)) return Number(isNone(a)) - Number(isNone(b));
    return order.falls ? compared(b, a) : compared(a, b);
  });
}
