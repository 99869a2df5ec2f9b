/** Charts out of sight are drawn when the browser has time, one after another, each once however often it has changed. */
const waiting = new Map<object, () => void>();
let isBusy = false;

/** In so many milliseconds at the latest. */
const PATIENCE_MS = 2000;

export function later(key: object, draw: () => void): void {
  waiting.set(key, draw);
  if (isBusy) return;
  isBusy = true;
  requestIdleCallback(step, { timeout: PATIENCE_MS });
}

/** What is drawn at once, or not at all, waits no longer. */
export const notLater = (key: object): void => void waiting.delete(key);

function step(): void {
  const [first] = waiting;
  if (first) {
    waiting.delete(first[0]);
    first[1]();
  }
  isBusy = waiting.size > 0;
  if (isBusy) requestIdleCallback(step, { timeout: PATIENCE_MS });
}
