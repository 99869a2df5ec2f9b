import { commandLine, type Run } from "../model/run";

/** What to do to have the same run again. */
export function Plan({ run, name }: { run: Run; name?: string }) {
  const { record } = run;
  const title = name ? `The plan of ${name}` : "The plan";
  const { header, version, began_ms, tags, scenario } = record;
  return (
    <section class="part plan" aria-label={title}>
      <h2>{title}</h2>
      {name && record.words && <pre class="command" tabIndex={0} aria-label="command line">{commandLine(record)}</pre>}
      <dl class="facts">
        {run.id && <Fact name="run" value={run.id} />}
        {began_ms ? <Fact name="began" value={dateText(began_ms)} /> : null}
        <Fact name="target" value={header?.target} />
        <Fact name="seed" value={header?.seed?.toString()} />
        <Fact name="I/O backend" value={header?.io && `${header.io}, ${header.threads ?? 1} threads`} />
        <Fact name="throng" value={version} />
        <Fact name="tags" value={tags?.join(" ")} />
      </dl>
      {scenario && (
        <details open={!name}>
          <summary>The scenario file</summary>
          <pre class="scenario" tabIndex={0} aria-label="scenario file">{scenario}</pre>
        </details>
      )}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string | undefined | null }) {
  return value ? <div><dt>{name}</dt><dd>{value}</dd></div> : null;
}

/** In UTC: the same wherever it is read. */
export const dateText = (ms: number) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;
