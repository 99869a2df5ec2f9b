import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Phase } from "../model/records";
import { shown } from "./token";

type Ask = "pause" | "resume" | "up" | "down" | "drain" | "stop";

interface Control {
  ask: Ask;
  name: string;
  keys: string[];
  /** What cannot be taken back is asked for twice. */
  twice?: boolean;
}

/** How long a second press is waited for. */
const PATIENCE_MS = 4000;

const controls = (paused: boolean): Control[] => [
  paused ? { ask: "resume", name: "Resume", keys: ["p"] } : { ask: "pause", name: "Pause", keys: ["p"] },
  { ask: "up", name: "Load up", keys: ["+", "="] },
  { ask: "down", name: "Load down", keys: ["-", "−"] },
  { ask: "drain", name: "Drain", keys: ["d"], twice: true },
  { ask: "stop", name: "Stop", keys: ["q"], twice: true },
];

/** What may be done to a run by hand, by button and by key. */
export function Controls({ phase }: { phase: Phase | undefined }) {
  const [sure, setSure] = useState<Ask | null>(null);
  const [answer, setAnswer] = useState("");
  const patience = useRef(0);
  const all = controls(phase === "pause");
  const press = (control: Control) => {
    clearTimeout(patience.current);
    if (control.twice && sure !== control.ask) {
      setSure(control.ask);
      patience.current = window.setTimeout(() => setSure(null), PATIENCE_MS);
      return;
    }
    setSure(null);
    void post(control.ask).then((trouble) => setAnswer(trouble ? `${control.name.toLowerCase()}: ${trouble}` : ""));
  };
  // Before anybody sees the new state: a key means what is shown.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      const control = all.find(({ keys }) => keys.includes(event.key));
      if (control) {
        event.preventDefault();
        press(control);
      } else if (event.key === "Escape") setSure(null);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return (
    <div class="controls" role="group" aria-label="Controls">
      {all.map((control) => (
        <button key={control.name} type="button" class={sure === control.ask ? "sure" : ""} aria-keyshortcuts={control.keys[0]} onClick={() => press(control)}>
          {sure === control.ask ? `${control.name}? Press again` : control.name} <kbd>{control.keys[0]}</kbd>
        </button>
      ))}
      <output aria-live="assertive">{answer}</output>
    </div>
  );
}

/** Asks; what went wrong, if anything did. */
async function post(ask: Ask): Promise<string | null> {
  try {
    const answer = await fetch("control", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Throng": "1", ...shown() },
      body: JSON.stringify({ ask }),
    });
    if (answer.ok) return null;
    return (await answer.text()).trim() || `refused (${answer.status})`;
  } catch {
    return "no connection to throng";
  }
}
