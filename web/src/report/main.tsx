import { render } from "preact";
import type { Lenient } from "../model/lenient";
import type { Report } from "../model/report";
import { runOf, type Run } from "../model/run";
import { ComparePage } from "../view/compare_page";
import { Head } from "../view/head";
import { dateText } from "../view/plan";
import { RunPage } from "../view/run_page";

function ReportPage({ report }: { report: Lenient<Report> }) {
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
      <Head what="report" about={targetOf(run)}>
        <p class="about">{[run.id, run.record.began_ms ? dateText(run.record.began_ms) : ""].filter(Boolean).join(" · ")}</p>
      </Head>
      <RunPage run={run} />
    </>
  );
}

const targetOf = (run: Run) => run.record.header?.target || run.summary?.target || "a run";

const page = document.getElementById("page")!;
try {
  const report = JSON.parse(document.getElementById("data")!.textContent ?? "") as Lenient<Report>;
  document.title = [report.runs?.[0]?.id, "throng report"].filter(Boolean).join(" · ");
  render(<ReportPage report={report} />, page);
} catch (error) {
  page.textContent = `This report cannot be read: ${error instanceof Error ? error.message : error}`;
}
