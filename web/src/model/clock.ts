import { span } from "./quantity";

/** Steps between marks on an axis of time, seconds: those of a clock. */
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY = 86_400;

/** The step that gives about so many marks at most. */
function stepOf(from: number, to: number, about: number): number {
  const least = (to - from) / Math.max(1, about);
  return STEPS.find((step) => step >= least * 0.999) ?? Math.ceil(least / DAY) * DAY;
}

/** Where an axis of seconds has its marks: where `began_s` (seconds since 1970, or 0) and they make a round time. */
export function timeTicks([from, to]: [number, number], about: number, began_s = 0): number[] {
  const step = stepOf(from, to, about);
  const first = Math.ceil((from + began_s) / step - 1e-9);
  const last = Math.floor((to + began_s) / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step - began_s).toFixed(3)));
}

/** `20:45:31`, in UTC: the same wherever it is read. As a clock shows it, not rounded; with tenths where they tell marks apart. */
export function clockText(seconds: number, began_ms: number, tenths = false): string {
  return new Date(Math.round(began_ms + seconds * 1e3)).toISOString().slice(11, tenths ? 21 : 19);
}

/** `0 s`, `45 s`, `1m30s`. */
export const sinceText = (seconds: number): string => (seconds < 0 ? `−${span(-seconds)}` : span(seconds));
