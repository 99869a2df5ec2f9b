import type { Axis, Chart, Line, Mark } from "./chart";
import { LATENCY } from "./latency_charts";
import type { Lenient } from "./lenient";
import { count, grouped, percent, time } from "./quantity";
import type { FindSummary, Point } from "./records";
import type { Table } from "./table";
import type { Judgement } from "./verdict";

/** A search as a report has it. */
export interface StoredSearch {
  /** Milliseconds since 1970. */
  began_ms: number;
  /** The result in one sentence. */
  sentence: string;
  found: FindSummary;
}

type Step = Lenient<Point>;

const SHARE: Axis = { label: "share of what was attempted", quantity: { text: percent, unit: () => 0.01 } };
const CORES: Axis = { label: "processors", quantity: { text: (n) => String(Number(n.toPrecision(2))), unit: () => 1 } };

/** The axis of loads is logarithmic if the largest is more than this many times the smallest: a search climbs by factors. */
const WIDE = 20;

/** Latency, errors and the target's processors, each against load, with the result and what bounds it. */
export function searchCharts(found: Lenient<FindSummary>): Chart[] {
  const steps = lastOfEachLoad(found);
  const loads = steps.map(loadOf);
  const [least, most] = [Math.min(...loads), Math.max(...loads)];
  const x: Axis = { label: unitOf(found), quantity: count, log: least > 0 && most / least > WIDE };
  const marks = marksOf(found);
  const line = (name: string, value: (step: Step) => number | null | undefined, about: Partial<Line> = {}): Line => ({
    name,
    points: steps.map((step) => ({ x: loadOf(step), y: value(step) ?? NaN })),
    ...about,
  });
  const chart = (id: string, title: string, says: string, y: Axis, lines: Line[]): Chart => ({
    id, title, says, x, y, marks, lines: lines.filter(({ points }) => points.some(({ y }) => Number.isFinite(y))),
  });
  return [
    chart("search-latency", "Latency", "At full load, from when a request was due; the last step of each load", LATENCY, [
      line("p50", (step) => step.latency_p50_us),
      line("p99", (step) => step.latency_p99_us),
      line("probe p99", (step) => step.probe_p99_us),
      line("connect p99", (step) => step.connect_p99_us, { off: true }),
    ]),
    chart("search-errors", "Errors", "Share of the requests, or dials, that failed", SHARE, [line("errors", (step) => step.errors, { bad: true })]),
    chart("search-cpu", "Processors of the target", "The most that its processes used between two samples at full load", CORES, [
      line("used", (step) => step.target_cores),
      line("busiest thread", (step) => step.target_thread),
      line("may use", (step) => step.target_cores_limit, { limit: true }),
    ]),
  ];
}

const loadOf = (step: Step) => step.load ?? 0;
const unitOf = (found: Lenient<FindSummary>) => found.unit || found.by || "load";
const stepsOf = (found: Lenient<FindSummary>): Step[] => [...(found.curve ?? [])].sort((a, b) => (a.step ?? 0) - (b.step ?? 0));

function lastOfEachLoad(found: Lenient<FindSummary>): Step[] {
  const last = new Map(stepsOf(found).map((step) => [loadOf(step), step]));
  return [...last.values()].sort((a, b) => loadOf(a) - loadOf(b));
}

/** The knee: the largest load that passed, and the smallest above it that did not. */
function marksOf({ outcome, max, failed }: Lenient<FindSummary>): Mark[] {
  const isKnown = outcome === "found" && !!max;
  return [
    ...(isKnown ? [{ x: max, what: `max ${grouped(max)}`, label: `max ${grouped(max)}`, kind: "command" as const }] : []),
    ...(failed ? [{ x: failed, what: `${grouped(failed)} did not pass`, label: isKnown ? undefined : `${grouped(failed)} failed`, kind: "end" as const }] : []),
  ];
}

/** Each step, in the order of time. */
export function stepsTable(found: Lenient<FindSummary>): Table {
  const steps = stepsOf(found);
  const timeOf = (us: number | null | undefined) => (us == null ? "–" : time.text(us));
  const cpuOf = ({ target_cores, target_cores_limit: limit }: Step) => (target_cores == null ? "–" : `${target_cores.toFixed(2)}${limit ? ` of ${limit}` : ""}`);
  const resultOf = ({ pass, invalid }: Step) => (pass ? "pass" : invalid ? "invalid" : "fail");
  const numbers = ["step", unitOf(found), "p50", "p99", "probe p99", "connect p99", "errors", "target CPU"].map((name) => ({ name, numeric: true }));
  return {
    id: "search-steps",
    title: "Steps",
    columns: [...numbers, { name: "result" }, { name: "why" }],
    rows: steps.map((step) => [
      grouped(step.step ?? 0), grouped(loadOf(step)), timeOf(step.latency_p50_us), timeOf(step.latency_p99_us), timeOf(step.probe_p99_us),
      timeOf(step.connect_p99_us), step.errors == null ? "–" : percent(step.errors), cpuOf(step), resultOf(step), (step.reasons ?? []).join("; "),
    ]),
    bad: steps.flatMap((step, place) => (step.pass ? [] : [place])),
  };
}

const TONES: Record<string, Judgement["tone"]> = { found: "good", "not-reached": "good", unsettled: "doubt", impossible: "bad" };

/** How it ended, in a word and one sentence. */
export function outcomeOf({ found, sentence }: Lenient<StoredSearch>): Judgement {
  const isDoubtful = found?.interrupted || found?.invalid;
  const word = found?.interrupted ? "interrupted" : (found?.outcome ?? "unfinished");
  return { word, tone: isDoubtful ? "doubt" : (TONES[word] ?? "none"), sentence: (sentence ?? "").replace(/^(unsettled|impossible|interrupted|limit not reached): /, ""), seen: [] };
}
