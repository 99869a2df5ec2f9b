import { standings } from "../model/thresholds";
import type { Run } from "../model/run";

const SIGNS = { met: "✓", failed: "✗", waits: "…", void: "–" };
const WORDS = { met: "met", failed: "failed", waits: "not decided yet", void: "not judged" };

/** How each threshold stands: at the end, or by all so far. */
export function Thresholds({ run }: { run: Run }) {
  const all = standings(run);
  if (all.length === 0) return null;
  return (
    <ul class="thresholds" id="thresholds" aria-label="thresholds">
      {all.map(({ expr, shown, state }) => (
        <li key={expr} class={state} title={`${expr}: ${WORDS[state]}`}>
          <span class="sign" aria-hidden="true">{SIGNS[state]}</span>
          <span class="expr">{expr}</span> <b>{shown}</b> <span class="result">{WORDS[state]}</span>
        </li>
      ))}
    </ul>
  );
}
