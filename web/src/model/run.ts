import { Thin, total, type Entry } from "./fold";
import type { Lenient } from "./lenient";
import type { Period } from "./period";
import type { RunRecord, Summary } from "./records";
import type { StoredRun } from "./report";

/** A run as the page shows it: stored, or as far as it has come. */
export interface Run {
  id: string;
  record: Lenient<RunRecord>;
  entries: Entry[];
  /** All entries as one. */
  total: Period;
  summary: Lenient<Summary> | null;
  running: boolean;
}

export function runOf(stored: Lenient<StoredRun>, thin: Thin = Thin.of(stored), running = false): Run {
  const { id = "", run, summary = null } = stored;
  return { id: id ?? "", record: run ?? {}, entries: thin.entries, total: total(thin.entries), summary, running };
}

/** What tells it from the others of a comparison. */
export function nameOf(run: Run, place: number): string {
  const tags = run.record.tags ?? [];
  const id = run.id || `run ${place + 1}`;
  return tags.length > 0 ? `${id} ${tags.join(" ")}` : id;
}

const PLAIN = /^[\w@%+=:,./-]+$/;
const quoted = (word: string) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** Command that repeats this run, with the seed. */
export function commandLine(record: Lenient<RunRecord>): string {
  const words = record.words ?? [];
  const seed = record.header?.seed;
  const seeded = seed == null || words.some((word) => word === "--seed" || word.startsWith("--seed="));
  return ["throng", ...words, ...(seeded ? [] : ["--seed", String(seed)])].map(quoted).join(" ");
}
