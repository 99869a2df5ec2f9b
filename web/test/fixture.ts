import { readFileSync } from "node:fs";
import type { Columns } from "../src/model/agents";
import type { Counts, FaultCount, Quantiles, TickRecord } from "../src/model/records";

/** Ticks as the store has them, and the figures that Rust makes of them. */
export interface Fixture {
  records: TickRecord[];
  folded: {
    counts: Counts;
    faults: FaultCount[];
    status: Record<string, number>;
    latency_us: Quantiles;
    ramp_latency_us: Quantiles;
    connect_us: Quantiles;
    lag_us: Quantiles;
    populations: { counts: Counts; latency_us: Quantiles }[];
    steps: Quantiles[];
  };
  /** The records, one after another, in a history of at most `limit` entries; then with what came late. */
  limit: number;
  width: number;
  thinned: Entries;
  late: TickRecord[];
  amended: Entries;
}

/** Figures of each entry of a history. */
export interface Entries {
  open: number[];
  answered: number[];
  population_open: number[];
  latency_p99_us: number[];
  no_response: number[];
  agents: Columns[];
}

// Tests run where package.json is.
export const fixture = () => JSON.parse(readFileSync("test/records.json", "utf8")) as Fixture;
