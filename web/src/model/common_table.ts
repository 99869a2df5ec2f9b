import { grouped, percent } from "./quantity";
import type { Run } from "./run";
import type { Table } from "./table";

/** What a bucket of a dimension is called at the head of its column. */
const DIMENSIONS: Record<string, string> = {
  number: "request on its connection",
  open: "connections open",
  size: "size of the response",
  source: "local address",
  part: "part of the response",
};

/** What the slow, the wrong and the missing have in common: a table for each of them. */
export function commonTables(run: Run): Table[] {
  return (run.summary?.in_common ?? []).map((one) => {
    const of = one.of ?? "slow";
    const dimension = one.dimension ?? "";
    const buckets = (one.rows ?? []).map((row) => ({ name: row.name ?? "", bad: row.bad ?? 0, others: row.others ?? 0 }));
    return {
      id: `common-${of}`,
      title: `What the ${of} ones have in common`,
      says: one.sentence ?? "",
      columns: [{ name: DIMENSIONS[dimension] ?? dimension }, ...[of, "others", "share"].map((name) => ({ name, numeric: true }))],
      rows: buckets.map(({ name, bad, others }) => [name, grouped(bad), grouped(others), percent(bad / Math.max(bad + others, 1))]),
      bad: buckets.flatMap(({ bad, others }, place) => (bad > others ? [place] : [])),
    };
  });
}
