import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { SECONDS, type Chart } from "../model/chart";

/** What is read: a place on an axis, and the chart in which it was chosen. */
export interface Reading {
  axis: string;
  x: number;
  /** Where the mouse is, for a heat map. */
  y?: number;
  chart: string;
}

export type Range = [number, number];

/** Charts with the same axis are zoomed and read together: all of those over time, and each other one by itself. */
export const axisOf = (chart: Chart): string => (chart.x === SECONDS ? "time" : chart.id);

/** What the charts of a page have in common: which part of an axis they show, where they are read, and which time they name. */
class Focus {
  reading: Reading | null = null;
  isClock = false;
  #ranges = new Map<string, Range>();
  #watchers = { view: new Set<() => void>(), reading: new Set<() => void>() };

  range(axis: string): Range | null {
    return this.#ranges.get(axis) ?? null;
  }

  get isZoomed(): boolean {
    return this.#ranges.size > 0;
  }

  zoom(axis: string, range: Range): void {
    this.#ranges.set(axis, range);
    this.#tell("view");
  }

  /** Of all axes, where none is named. */
  reset(axis?: string): void {
    if (axis === undefined) this.#ranges.clear();
    else this.#ranges.delete(axis);
    this.#tell("view");
  }

  showClock(isClock: boolean): void {
    this.isClock = isClock;
    this.#tell("view");
  }

  read(reading: Reading | null): void {
    if (reading === this.reading) return;
    this.reading = reading;
    this.#tell("reading");
  }

  watch(what: "view" | "reading", watcher: () => void): () => void {
    this.#watchers[what].add(watcher);
    return () => void this.#watchers[what].delete(watcher);
  }

  #tell(what: "view" | "reading"): void {
    this.#watchers[what].forEach((watcher) => watcher());
  }
}

export const focus = new Focus();

/** Draws the component again when that changes. */
export function useFocus(what: "view" | "reading"): Focus {
  const [, again] = useState(0);
  useEffect(() => focus.watch(what, () => again((n) => n + 1)), [what]);
  return focus;
}

/** When the run began, milliseconds since 1970; none where that is not known, or where several runs are shown. */
export const Began = createContext<number | null>(null);
export const useBegan = () => useContext(Began);
