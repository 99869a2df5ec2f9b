import type { Lenient } from "../model/lenient";
import { outcomeOf, searchCharts, stepsTable, type StoredSearch } from "../model/search";
import { Standing } from "./banner";
import { Section } from "./section";
import { Tools } from "./tools";

/** A search: its result, the curve that it walked, and its steps. */
export function SearchPage({ search }: { search: Lenient<StoredSearch> }) {
  const found = search.found ?? {};
  return (
    <>
      <Standing {...outcomeOf(search)} />
      <Tools />
      <Section title="Curve" charts={searchCharts(found)} tables={[stepsTable(found)]} />
    </>
  );
}
