import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { nowFigures } from "../model/figures";
import { span } from "../model/quantity";
import type { Run } from "../model/run";
import { Figures } from "../view/figures";
import { Head } from "../view/head";
import { RunPage } from "../view/run_page";
import { Controls } from "./controls";
import { Follower, type Link } from "./follower";

/** A page is not drawn more often than this. */
const PERIOD_MS = 1000;

const LINKS: Record<Link, string> = {
  connecting: "connecting to throng …",
  following: "following",
  lost: "connection lost, reconnecting …",
  refused: "token required: open this address with #token=… and the token from the token file",
  gone: "this run is gone: it was removed from the server's list",
  over: "the run has ended",
};

/** Nothing more comes. */
const isOver = (link: Link) => link === "over" || link === "gone";

function LivePage() {
  const { run, link } = useFollower("events");
  const target = run?.record.header?.target ?? "";
  useEffect(() => void (document.title = target ? `throng · ${target}` : "throng"), [target]);
  return (
    <>
      <Head what="live" about={target || "a run"} run={run}>
        <p class={`link ${link}`} id="link" role="status">{LINKS[link]}</p>
      </Head>
      {run && !isOver(link) && (
        <div class="bar">
          {!run.summary && <Controls run={run} />}
          <Progress run={run} />
        </div>
      )}
      {run && <RunPage run={run} now={isOver(link) ? undefined : <Figures id="now" figures={nowFigures(run)} />} />}
    </>
  );
}

function Progress({ run }: { run: Run }) {
  const last = run.entries.at(-1)?.period;
  if (!last) return null;
  const ramped = last.wanted > 0 ? Math.min(1, last.open / last.wanted) : 1;
  const all = run.record.header?.hold_s;
  const held = run.entries.filter(({ period }) => period.phase === "hold").reduce((sum, { period }) => sum + period.until_s - period.from_s, 0);
  const holds = last.phase === "hold" && all;
  const left = holds ? `, ${span(Math.max(0, Math.round(all - held)))} left` : "";
  return (
    <p class="progress" id="progress">
      <span>{last.phase}, {span(Math.round(last.until_s))} since the start{left}</span>
      <progress value={holds ? Math.min(1, held / all) : ramped} aria-label={holds ? "time at full load" : "connections open of those wanted"} />
    </p>
  );
}

/** The state of the run, at most once in a period; at once where the connection changed. */
function useFollower(address: string): { run: Run | null; link: Link } {
  const [state, setState] = useState<{ run: Run | null; link: Link }>({ run: null, link: "connecting" });
  useEffect(() => {
    let timer = 0;
    let [drawn, shown]: [number, Link] = [-Infinity, "connecting"];
    const draw = () => {
      timer = 0;
      drawn = performance.now();
      shown = follower.link;
      setState({ run: follower.run(), link: follower.link });
      // Figures are drawn in effects, which are through when the next task begins.
      setTimeout(() => {
        performance.clearMeasures("update");
        performance.measure("update", { start: drawn });
      });
    };
    const follower = new Follower(() => {
      const wait = follower.link === shown ? drawn + PERIOD_MS - performance.now() : 0;
      if (wait <= 0) {
        clearTimeout(timer);
        draw();
      } else if (!timer) timer = window.setTimeout(draw, wait);
    });
    follower.follow(address);
    return () => follower.close();
  }, [address]);
  return state;
}

render(<LivePage />, document.getElementById("page")!);
