import type { RunRecord, Summary, TickRecord } from "./records";
import type { StoredSearch } from "./search";

/** A report: the data embedded in report.html, and what `throng report --format json` prints. */
export interface Report {
  schema: "throng.report/1";
  /** One; several in a comparison; none in the report of a search. */
  runs: StoredRun[];
  /** A search: `throng find --report`. */
  search?: StoredSearch;
  /** Several runs against each other: `throng compare`. */
  comparison?: Comparison | null;
}

/** All as text. */
export interface Comparison {
  /** What is compared: a name, and what it stands for. */
  facts: string[][];
  /** One for each group of runs but the first. */
  tables: { head: string[]; rows: string[][] }[];
  remarks: string[];
}

export interface StoredRun {
  /** Empty while it is not known. */
  id: string;
  run: RunRecord;
  /** Ticks of a second merged in each of `ticks`, a power of two; the last may hold fewer. */
  width: number;
  /** Ticks of a second in all of `ticks`: says how many the last holds. */
  count?: number;
  ticks: TickRecord[];
  /** None: the run did not come to its end, or has not yet. */
  summary: Summary | null;
}
