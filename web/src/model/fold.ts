import { amendedColumns, columnsOf, extendedColumns, type Columns } from "./agents";
import type { Lenient } from "./lenient";
import { amended, ends, isOf, joined, periodOf, settle, type Period } from "./period";
import type { Samples, TickRecord } from "./records";
import type { StoredRun } from "./report";

/** A stored tick, or several merged: what happened, and what was seen last of hosts and processes. */
export interface Entry {
  period: Period;
  /** The agents of a fleet, each by itself. */
  agents: Columns | null;
  looks: Lenient<Samples>;
}

export function entryOf(record: Lenient<TickRecord>): Entry {
  return { period: periodOf(record.tick), agents: columnsOf(record.tick?.agents), looks: record.looks ?? {} };
}

function extended(entry: Entry, later: Entry): Entry {
  const agents = extendedColumns(entry.agents, later.agents);
  return { ...later, agents, period: settle(joined([entry.period, later.period])) };
}

/** A second, the length of a stored tick. */
const TICK_S = 1;

/**
 * A history that never grows beyond its limit: entry i holds the ticks whose position n has floor(n / width) = i, and where
 * one more entry would be needed, the width doubles. So what it holds depends on the ticks alone, and not on when a page
 * began to look.
 */
export class Thin {
  width = 1;
  /** Ticks taken so far. */
  count = 0;
  entries: Entry[] = [];

  constructor(readonly limit = 600) {}

  /** Goes on from a history that was thinned elsewhere. */
  static of(run: Lenient<StoredRun>, limit = 600): Thin {
    const thin = new Thin(limit);
    thin.width = run.width ?? 1;
    thin.entries = (run.ticks ?? []).map(entryOf);
    const before = Math.max(0, thin.entries.length - 1) * thin.width;
    thin.count = run.count ?? before + ticksIn(thin.entries.at(-1), thin.width);
    return thin;
  }

  add(record: Lenient<TickRecord>): void {
    this.#add(entryOf(record));
  }

  #add(entry: Entry): void {
    const at = Math.floor(this.count / this.width);
    if (at >= this.limit) {
      this.#halve();
      return this.#add(entry);
    }
    const there = this.entries[at];
    this.entries[at] = there ? extended(there, entry) : entry;
    this.count++;
  }

  /** What came late of a tick that was added: it belongs to the entry of its time, or to the last. */
  amend(record: Lenient<TickRecord>): void {
    const late = entryOf(record);
    const found = this.entries.findIndex(({ period }) => isOf(late.period, period.until_s));
    const at = found < 0 ? this.entries.length - 1 : found;
    const entry = this.entries[at];
    if (!entry) return;
    const agents = amendedColumns(entry.agents, late.agents, ends(entry.period, late.period));
    this.entries[at] = { ...entry, agents, period: settle(amended(entry.period, late.period)) };
  }

  #halve(): void {
    const halves: Entry[] = [];
    for (let i = 0; i < this.entries.length; i += 2) {
      const [one, next] = [this.entries[i]!, this.entries[i + 1]];
      halves.push(next ? extended(one, next) : one);
    }
    this.entries = halves;
    this.width *= 2;
  }
}

/** How many ticks an entry holds, by the time it took: for a record that does not tell. */
function ticksIn(entry: Entry | undefined, width: number): number {
  if (!entry) return 0;
  const { from_s, until_s } = entry.period;
  return Math.min(width, Math.max(1, Math.round((until_s - from_s) / TICK_S)));
}

/** Everything that happened. */
export const total = (entries: readonly Entry[]): Period =>
  entries.length > 0 ? joined(entries.map((entry) => entry.period)) : periodOf(null);

/** An entry never changes: what was found out about it once is kept beside it. */
export function remembered<T>(of: (entry: Entry) => T): (entry: Entry) => T {
  const found = new WeakMap<Entry, { value: T }>();
  return (entry) => {
    let known = found.get(entry);
    if (!known) found.set(entry, (known = { value: of(entry) }));
    return known.value;
  };
}
