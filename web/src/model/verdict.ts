import type { Lenient } from "./lenient";
import type { Summary } from "./records";

/** How a run stands, by itself and in words. */
export interface Judgement {
  word: string;
  tone: "good" | "bad" | "doubt" | "none";
  /** One sentence: what stopped it and what to do, or what went well. */
  sentence: string;
  /** What was seen, a line each. */
  seen: string[];
}

const TONES: Record<string, Judgement["tone"]> = { pass: "good", fail: "bad", invalid: "doubt", interrupted: "doubt" };

/** Of a run that ended, in the words of its headline; of another, how it stands. */
export function judgement(summary: Lenient<Summary> | null | undefined, running: boolean): Judgement {
  if (!summary) {
    const sentence = running ? "results so far" : "incomplete: killed, or still in progress";
    return { word: running ? "running" : "unfinished", tone: "none", sentence, seen: [] };
  }
  const word = summary.verdict ?? "pass";
  const reasons = (summary.reasons ?? []).filter((reason) => !reason.startsWith("threshold "));
  const detail = summary.limit?.detail;
  return {
    word,
    tone: TONES[word] ?? "none",
    // It begins with the verdict's word, which stands beside it.
    sentence: (summary.headline ?? "").replace(/^[a-z]+:? ?/, ""),
    seen: detail ? [...reasons, detail] : reasons,
  };
}
