import type { ComponentChildren } from "preact";
import { commandLine, type Run } from "../model/run";
import { dateText } from "./plan";

/** The top of a page: what was run, when, and where. */
export function Head({ what, about, run, children }: { what: string; about: string; run?: Run | null; children?: ComponentChildren }) {
  return (
    <header class="head">
      <div class="titles">
        <p class="brand">throng <span>{what}</span></p>
        <h1>{about}</h1>
        {run && <p class="about">{facts(run).map((fact) => <span key={fact}>{fact}</span>)}</p>}
        {children}
      </div>
      {run?.record.words && <pre class="command" tabIndex={0} aria-label="command line" title="Command that repeats this run">{commandLine(run.record)}</pre>}
    </header>
  );
}

function facts({ id, record }: Run): string[] {
  const { began_ms, tags, version, header } = record;
  const threads = header?.threads ?? 0;
  const all = [
    id,
    began_ms ? dateText(began_ms) : "",
    (tags ?? []).join(" "),
    header?.io ? `${header.io}, ${threads} thread${threads === 1 ? "" : "s"}` : "",
    version ? `throng ${version}` : "",
  ];
  return all.filter((fact): fact is string => !!fact);
}
