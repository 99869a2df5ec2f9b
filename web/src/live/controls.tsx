import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { examples, readLoad } from "../model/load";
import { refusal } from "../model/refusal";
import type { Run } from "../model/run";
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
const PATIENCE_MS = 3000;
/** The key that leads to the field for a load. */
const LOAD_KEY = "l";

const controls = (paused: boolean): Control[] => [
  paused ? { ask: "resume", name: "Resume", keys: ["p"] } : { ask: "pause", name: "Pause", keys: ["p"] },
  { ask: "up", name: "Load up", keys: ["+", "="] },
  { ask: "down", name: "Load down", keys: ["-", "−"] },
  { ask: "drain", name: "Drain", keys: ["d"], twice: true },
  { ask: "stop", name: "Stop", keys: ["q"], twice: true },
];

/** What may be done to a run by hand, by button and by key. */
export function Controls({ run }: { run: Run }) {
  const [sure, setSure] = useState<Ask | null>(null);
  const [answer, setAnswer] = useState("");
  const patience = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  const paused = run.entries.at(-1)?.period.phase === "pause";
  const all = controls(paused);
  const ask = (name: string, request: object) => {
    setSure(null);
    return post(request).then((trouble) => {
      setAnswer(trouble ? `${name}: ${trouble}` : "");
      return trouble === null;
    });
  };
  const press = (control: Control) => {
    clearTimeout(patience.current);
    if (control.twice && sure !== control.ask) {
      setSure(control.ask);
      patience.current = window.setTimeout(() => setSure(null), PATIENCE_MS);
      return;
    }
    void ask(control.name.toLowerCase(), { ask: control.ask });
  };
  // Before anybody sees the new state: a key means what is shown.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // What is typed into the field is no command.
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target === field.current) return;
      const control = all.find(({ keys }) => keys.includes(event.key));
      if (control) {
        event.preventDefault();
        press(control);
      } else if (event.key === LOAD_KEY) {
        event.preventDefault();
        field.current?.focus();
      } else if (event.key === "Escape") setSure(null);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return (
    <div class="controls" role="group" aria-label="Controls">
      {all.map((control) => [
        control.ask === "drain" && <LoadField key="load" run={run} field={field} say={setAnswer} ask={(request) => ask("load", request)} />,
        <button key={control.name} type="button" class={sure === control.ask ? "sure" : ""} aria-keyshortcuts={control.keys[0]} onClick={() => press(control)}>
          {sure === control.ask ? `${control.name}? Press again` : control.name} <kbd>{control.keys[0]}</kbd>
        </button>,
      ])}
      <output id="trouble" aria-live="assertive">{answer}</output>
    </div>
  );
}

interface LoadFieldProps {
  run: Run;
  field: { current: HTMLInputElement | null };
  say: (trouble: string) => void;
  /** Whether it was taken. */
  ask: (request: object) => Promise<boolean>;
}

/** A field for a load of the user's choice. After Enter or Esc, keys are commands again. */
function LoadField({ run: { record }, field, say, ask }: LoadFieldProps) {
  const [isWrong, setWrong] = useState(false);
  const planned = record.header?.connections ?? 0;
  const quit = () => {
    field.current!.value = "";
    field.current!.blur();
    setWrong(false);
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const text = field.current!.value;
    if (text.trim() === "") return field.current!.focus();
    const read = readLoad(text, planned);
    setWrong("trouble" in read);
    if ("trouble" in read) return say(`load: ${read.trouble}`);
    if (await ask(read.request)) quit();
  };
  const onInput = () => {
    if (isWrong) say("");
    setWrong(false);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    // It does not reset the zoom of the charts, too.
    event.stopPropagation();
    say("");
    quit();
  };
  return (
    <form class="load" onSubmit={submit}>
      <label>
        Load <kbd>{LOAD_KEY}</kbd>
        <input ref={field} type="text" size={12} autocomplete="off" spellcheck={false} enterkeyhint="go" placeholder={examples(planned).join(" or ")}
          aria-keyshortcuts={LOAD_KEY} aria-invalid={isWrong} aria-describedby={isWrong ? "trouble" : undefined} onInput={onInput} onKeyDown={onKey} />
      </label>
      <button type="submit">Set</button>
    </form>
  );
}

/** Asks; what went wrong, if anything did. */
async function post(request: object): Promise<string | null> {
  try {
    const answer = await fetch("control", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Throng": "1", ...shown() },
      body: JSON.stringify(request),
    });
    return answer.ok ? null : refusal(await answer.text(), answer.status);
  } catch {
    return "no connection to throng";
  }
}
