import { render } from "preact";
import type { Lenient } from "../model/lenient";
import type { Report } from "../model/report";
import { runOf, type Run } from "../model/run";
import { ComparePage } from "../view/compare_page";
import { Head } from "../view/head";
import { dateText } from "../view/plan";
import { RunPage } from "../view/run_page";
import { SearchPage } from "../view/search_page";

function ReportPage({ report }: { report: Lenient<Report> }) {
  const { search } = report;
  if (search) {
    const facts = [search.began_ms ? dateText(search.began_ms) : "", `by ${search.found?.by ?? "load"}`, `seed ${search.found?.seed ?? 0}`].filter(Boolean);
    return (
      <>
        <Head what="search" about={search.found?.target || "a search"}>
          <p class="about">{facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
        </Head>
        <SearchPage search={search} />
      </>
    );
  }
  const runs = (report.runs ?? []).map((stored) => runOf(stored));
  const [run] = runs;
  if (!run) return <Head what="report" about="No run in this report" />;
  if (runs.length > 1) {
    return (
      <>
        <Head what="comparison" about={`${runs.length} runs`} />
        <ComparePage runs={runs} comparison={report.comparison} />
      </>
    );
  }
  return (
    <>
      <Head what="report" about={targetOf(run)} run={run} />
      <RunPage run={run} />
    </>
  );
}

const targetOf = (run: Run) => run.record.header?.target || run.summary?.target || "a run";

/** What Rust has put into the page: JSON, or gzip of it in base64. */
async function embedded(): Promise<Lenient<Report>> {
  const text = document.getElementById("data")!.textContent ?? "";
  if (text.startsWith("{")) return JSON.parse(text) as Lenient<Report>;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Lenient<Report>;
}

const page = document.getElementById("page")!;

async function show(): Promise<void> {
  const report = await embedded();
  document.title = [report.runs?.[0]?.id, "throng report"].filter(Boolean).join(" · ");
  render(<ReportPage report={report} />, page);
}

show().catch((error: unknown) => {
  page.textContent = `This report cannot be read: ${error instanceof Error ? error.message : error}`;
});
