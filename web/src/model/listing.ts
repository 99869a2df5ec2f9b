import type { Chart, Line, Point } from "./chart";
import type { Lenient } from "./lenient";
import { bytes, count, grouped, percent, rate, span, time, type Quantity } from "./quantity";
import type { Column } from "./table";

/** A line of the list of runs: `throng.runs/1`, one of `throng runs --json` and figures of its summary. */
export interface ListedRun {
  id: string;
  began_ms: number;
  target: string;
  /** None: it did not come to its end, or has not yet. */
  verdict: string | null;
  is_under_way: boolean;
  wanted: number;
  held: number;
  elapsed_s: number;
  tags: string[];
  requests_per_s: number | null;
  latency_p99_us: number | null;
  errors: number | null;
  headline: string | null;
}

/** `throng.runs/1`. */
export interface Listing {
  runs: ListedRun[];
  /** Whether there are earlier ones. */
  more: boolean;
  tags: { tag: string; runs: number }[];
}

/** `throng.trend/1`: figures of the runs of a tag, the oldest first. */
export interface Trend {
  tag: string;
  runs: { id: string; began_ms: number; verdict: string; version: string; target: string }[];
  /** Runs that did not come to their end, which are left out. */
  unfinished: number;
  figures: TrendFigure[];
}

export interface TrendFigure {
  figure: string;
  name: string;
  unit: string;
  /** As `runs`; none where it was not measured. */
  values: (number | null)[];
  slope_per_run: number | null;
  p: number | null;
  /** In a sentence. */
  trend: string;
}

/** How a list is narrowed down; what is empty is no condition. */
export interface Filter {
  target: string;
  verdict: string;
  tag: string;
}

export const FILTERS = ["target", "verdict", "tag"] as const;
export const VERDICTS = ["pass", "fail", "invalid", "interrupted", "unfinished"];

/** The query of an address; empty without conditions. */
export function queryOf(filter: Filter, before?: string): string {
  const query = new URLSearchParams();
  for (const name of FILTERS) if (filter[name]) query.set(name, filter[name]);
  if (before) query.set("before", before);
  return query.size > 0 ? `?${query}` : "";
}

export function filterOf(query: string): Filter {
  const given = new URLSearchParams(query);
  return { target: given.get("target") ?? "", verdict: given.get("verdict") ?? "", tag: given.get("tag") ?? "" };
}

/** What the address of a page asks for. */
export type Place =
  | { what: "list" }
  | { what: "run"; run: string }
  | { what: "compare"; base: string; other: string }
  | { what: "trend"; tag: string };

export function placeOf(path: string): Place {
  const [what = "", one = "", other = ""] = path.split("/").slice(1).map(decoded);
  if (what === "run" && one) return { what, run: one };
  if (what === "compare" && one && other) return { what, base: one, other };
  if (what === "trend" && one) return { what, tag: one };
  return { what: "list" };
}

/** A part of a path; one that is not encoded properly names nothing. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export const pathOf = (...parts: string[]): string => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

/** What a line of the list says. */
export interface RunLine {
  verdict: string;
  tone: "good" | "bad" | "doubt" | "none";
  began: string;
  /** Two texts: how long it took, and what it held of what was wanted. */
  time: string;
  held: string;
  requests: string;
  p99: string;
  errors: string;
}

const TONES: Record<string, RunLine["tone"]> = { pass: "good", fail: "bad", invalid: "doubt", interrupted: "doubt" };
const NONE = "–";

export function lineOf(run: Lenient<ListedRun>): RunLine {
  const verdict = run.verdict ?? (run.is_under_way ? "running" : "unfinished");
  return {
    verdict,
    tone: TONES[verdict] ?? "none",
    began: run.began_ms ? new Date(run.began_ms).toISOString().replace("T", " ").slice(0, 16) : NONE,
    time: span(Math.round(run.elapsed_s ?? 0)),
    held: `${grouped(run.held ?? 0)} of ${grouped(run.wanted ?? 0)}`,
    requests: run.requests_per_s ? rate.text(run.requests_per_s) : NONE,
    p99: run.latency_p99_us == null ? NONE : time.text(run.latency_p99_us),
    errors: run.errors == null ? NONE : grouped(run.errors),
  };
}

/** Columns of the list; `cellsOf` has their texts. */
export const COLUMNS: readonly Column[] = [
  ...["run", "verdict", "began, UTC", "target", "tags"].map((name) => ({ name })),
  ...["time", "held", "requests", "p99", "errors"].map((name) => ({ name, numeric: true })),
];

export function cellsOf(run: Lenient<ListedRun>): string[] {
  const { verdict, began, time, held, requests, p99, errors } = lineOf(run);
  return [run.id ?? "", verdict, began, run.target ?? "", (run.tags ?? []).join(" "), time, held, requests, p99, errors];
}

/** The latest runs, and of those known before the earlier ones, which a listing with newer ones has no more room for. */
export function withEarlier<R extends { id: string }>(listing: { runs: R[]; more: boolean }, known: readonly R[]): R[] {
  const last = listing.runs.at(-1);
  // Ids are in chronological order.
  return last && listing.more ? [...listing.runs, ...known.filter(({ id }) => id < last.id)] : listing.runs;
}

const SHARE: Quantity = { text: (share) => percent(share), unit: () => 0.01 };
const UNITS: Record<string, Quantity> = { us: time, bytes, per_s: rate, share: SHARE };

/** A figure over the runs of a tag: a point for each run that has it. */
export function trendChart(figure: Lenient<TrendFigure>): Chart {
  const points: Point[] = (figure.values ?? []).map((y, n) => ({ x: n + 1, y: y ?? NaN }));
  const measured: Line = { name: figure.name ?? "", points };
  const id = (figure.figure ?? "").replaceAll(/[^a-z0-9_]/g, "-");
  return {
    id: `trend-${id}`,
    title: figure.name ?? "",
    says: figure.trend ?? "",
    x: {
      label: "runs, oldest first",
      // As in the list of them below; an id would be wider than its place.
      quantity: { text: (n) => (n > 0 ? String(n) : ""), unit: () => 1 },
    },
    y: { label: "", quantity: UNITS[figure.unit ?? ""] ?? count },
    lines: [measured, { ...measured, name: "each run", dots: true }],
  };
}
