import { readFileSync } from "node:fs";
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
  /** The records, one after another, in a history of at most `limit` entries. */
  thinned: { limit: number; width: number; open: number[]; latency_p99_us: number[]; no_response: number[] };
}

// Tests run where package.json is.
export const fixture = () => JSON.parse(readFileSync("test/records.json", "utf8")) as Fixture;
