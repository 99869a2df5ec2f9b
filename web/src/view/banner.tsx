import type { Run } from "../model/run";
import { standing, type Judgement } from "../model/verdict";

const SIGNS = { good: "✓", bad: "✗", doubt: "!", none: "…" };

/** The verdict of a run. */
export const Banner = ({ run }: { run: Run }) => <Standing {...standing(run)} />;

/** A verdict: in a word, a colour, a sign and one sentence. */
export function Standing({ word, tone, sentence, seen }: Judgement) {
  return (
    <section class={`verdict ${tone}`} id="verdict" aria-label="verdict">
      <span class="sign" aria-hidden="true">{SIGNS[tone]}</span>
      <div>
        <p class="word"><strong>{word}</strong>{sentence && `: ${sentence}`}</p>
        {seen.length > 0 && <ul>{seen.map((line) => <li key={line}>{line}</li>)}</ul>}
      </div>
    </section>
  );
}
