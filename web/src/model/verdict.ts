import type { Lenient } from "./lenient";
import { faultsSeen, faultTotal } from "./figures";
import { faultName } from "./period";
import { grouped } from "./quantity";
import type { Summary } from "./records";
import type { Run } from "./run";
import { standings } from "./thresholds";

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
    // Of throng's own limits a reason, and the headline, say the same.
    seen: [...new Set(detail ? [...reasons, detail] : reasons)].filter((seen) => !summary.headline?.includes(seen)),
  };
}

/** The same of a run under way, by all so far: thresholds alone judge where there are some, else load and faults, as at the end. */
export function standing(run: Run): Judgement {
  const stored = judgement(run.summary, run.running);
  const last = run.entries.at(-1)?.period;
  if (run.summary || !run.running || !last) return stored;
  const all = standings(run);
  const failed = all.filter(({ state }) => state === "failed");
  const [fault] = faultsSeen(run.total.faults);
  const total = faultTotal(run.total.faults);
  const faults = fault ? `${grouped(total)} fault${total === 1 ? "" : "s"}, most of them ${faultName(fault)}` : "no fault";
  const held = `${grouped(last.open)} of ${grouped(last.wanted)} connections open`;
  const say = (tone: Judgement["tone"], sentence: string): Judgement => ({ ...stored, tone, sentence });
  if (failed.length > 0) {
    const [first] = failed;
    return say("bad", `${failed.length} of ${all.length} thresholds not met so far: ${first!.expr}: ${first!.shown}; ${held}, ${faults}`);
  }
  if (all.some(({ state }) => state === "waits")) return say("none", `${held}, ${faults} so far`);
  if (all.length > 0) return say("good", `${all.length} of ${all.length} thresholds met so far; ${held}, ${faults}`);
  const isShort = last.phase === "hold" && last.open < last.wanted;
  return say(fault || isShort ? "bad" : last.phase === "hold" ? "good" : "none", `${held}, ${faults} so far`);
}
