import { useEffect, useState } from "preact/hooks";
import { shown } from "../live/token";

/** What was asked for, as far as it is known; `trouble`: why it could not be read again since. */
export type Fetched<T> = { is: "coming" } | { is: "there"; value: T; trouble?: string } | { is: "refused"; why: string };

const TOKEN = "token required: open this address with #token=… and the token from the token file";

export async function ask<T>(path: string): Promise<Fetched<T>> {
  try {
    const answer = await fetch(path, { headers: shown(), cache: "no-store" });
    if (answer.status === 401) return { is: "refused", why: TOKEN };
    const text = await answer.text();
    const value = JSON.parse(text) as T & { error?: string };
    // One that takes long has its status before it is known whether there is a result.
    return answer.ok && !value.error ? { is: "there", value } : { is: "refused", why: value.error ?? text };
  } catch (error) {
    return { is: "refused", why: `throng ui does not respond: ${error instanceof Error ? error.message : error}` };
  }
}

/** Asks, and asks again while `again` says so of what came. What was there stays where that fails. */
export function useFetched<T>(path: string, again?: (value: T) => number | null): Fetched<T> {
  const [state, setState] = useState<Fetched<T>>({ is: "coming" });
  useEffect(() => {
    let timer = 0;
    let over = false;
    let last: { value: T } | null = null;
    const load = async () => {
      const fetched = await ask<T>(path);
      if (over) return;
      if (fetched.is === "there") last = fetched;
      setState(fetched.is === "refused" && last ? { is: "there", value: last.value, trouble: fetched.why } : fetched);
      const wait = last ? again?.(last.value) : null;
      if (wait) timer = window.setTimeout(load, wait);
    };
    setState({ is: "coming" });
    void load();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [path]);
  return state;
}
