import { trendChart, pathOf, type Trend } from "../model/listing";
import { ChartFrame } from "../view/chart_frame";
import { Head } from "../view/head";
import { useFetched } from "./api";
import { Back, State } from "./state";

/** The figures of a tag's runs, one after the other. */
export function TrendPage({ tag }: { tag: string }) {
  const fetched = useFetched<Trend>(`/api${pathOf("trend", tag)}`);
  const trend = fetched.is === "there" ? fetched.value : null;
  const left = trend?.unfinished ? `, ${trend.unfinished} unfinished left out` : "";
  return (
    <>
      <Back />
      <Head what="trend" about={`Runs with the tag ${tag}`}>
        {trend && <p class="about" id="about">{trend.runs.length} runs{left}, oldest first; a trend is stated where p &lt; 0.05 (Mann-Kendall)</p>}
      </Head>
      <State fetched={fetched} />
      {trend && (
        <>
          <div class="charts">{trend.figures.map((figure) => <ChartFrame key={figure.figure} chart={trendChart(figure)} />)}</div>
          <ol class="members" aria-label="the runs">
            {trend.runs.map((run) => <li key={run.id}><a href={pathOf("run", run.id)}>{run.id}</a> {run.verdict} · throng {run.version}</li>)}
          </ol>
        </>
      )}
    </>
  );
}
