import { render } from "preact";
import type { Lenient } from "../model/lenient";
import { pathOf, placeOf, type Place } from "../model/listing";
import type { Report } from "../model/report";
import { runOf } from "../model/run";
import { ComparePage } from "../view/compare_page";
import { Head } from "../view/head";
import { dateText } from "../view/plan";
import { RunPage } from "../view/run_page";
import { useFetched } from "./api";
import { ListPage } from "./list";
import { Back, State } from "./state";
import { TrendPage } from "./trend";

/** One that is in progress is read again after so long. */
const RUNNING_MS = 5000;

/** The report of a run, as far as it is stored. */
function OneRun({ id }: { id: string }) {
  const fetched = useFetched<Lenient<Report>>(`/api${pathOf("runs", id)}`, (report) => (isOpen(report) ? RUNNING_MS : null));
  const stored = fetched.is === "there" ? fetched.value.runs?.[0] : undefined;
  const run = stored && runOf(stored);
  const began = run?.record.began_ms;
  return (
    <>
      <Back />
      <Head what="report" about={run?.record.header?.target ?? `Run ${id}`}>
        {run && <p class="about">{[run.id, began ? dateText(began) : ""].filter(Boolean).join(" · ")}</p>}
      </Head>
      <State fetched={fetched} />
      {run && <RunPage run={run} />}
    </>
  );
}

/** Whether it may go on: it has no summary, and began within a day. */
function isOpen({ runs }: Lenient<Report>): boolean {
  const run = runs?.[0];
  return !run?.summary && Date.now() - (run?.run?.began_ms ?? 0) < 86_400_000;
}

function Compared({ base, other }: { base: string; other: string }) {
  const fetched = useFetched<Lenient<Report>>(`/api${pathOf("compare", base, other)}`);
  const report = fetched.is === "there" ? fetched.value : null;
  return (
    <>
      <Back />
      <Head what="comparison" about={`${other} against ${base}`} />
      <State fetched={fetched} />
      {report && <ComparePage runs={(report.runs ?? []).map((stored) => runOf(stored))} comparison={report.comparison} />}
    </>
  );
}

function Ui({ place }: { place: Place }) {
  switch (place.what) {
    case "run":
      return <OneRun id={place.run} />;
    case "compare":
      return <Compared base={place.base} other={place.other} />;
    case "trend":
      return <TrendPage tag={place.tag} />;
    default:
      return <ListPage />;
  }
}

const place = placeOf(location.pathname);
const NAMES = { list: "runs", run: "run", compare: "comparison", trend: "trend" };
document.title = `throng · ${place.what === "run" ? `run ${place.run}` : NAMES[place.what]}`;
render(<Ui place={place} />, document.getElementById("page")!);
