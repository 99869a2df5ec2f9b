import { useRef, useState } from "preact/hooks";
import { cellsOf, COLUMNS, FILTERS, filterOf, lineOf, pathOf, queryOf, VERDICTS, withEarlier, type Filter, type ListedRun, type Listing } from "../model/listing";
import { placesIn, type Order } from "../model/order";
import { Head } from "../view/head";
import { Heads } from "../view/heads";
import { ask, useFetched } from "./api";
import { State } from "./state";

/** A list with a run in progress is read again after so long. */
const RUNNING_MS = 3000;

/** All runs that the filter lets through, the latest first or sorted by a column; two of them may be chosen to be compared. */
export function ListPage() {
  const [filter, setFilter] = useState(filterOf(location.search));
  const [order, sort] = useState<Order | null>(null);
  const path = `/api/runs${queryOf(filter)}`;
  const fetched = useFetched<Listing>(path, ({ runs }) => (runs.some((run) => run.is_under_way) ? RUNNING_MS : null));
  const change = (next: Filter) => {
    history.replaceState(null, "", `/${queryOf(next)}`);
    setFilter(next);
  };
  return (
    <>
      <Head what="runs" about="Stored runs" />
      {fetched.is === "there" ? (
        <>
          <State fetched={fetched} />
          <Runs key={path} listing={fetched.value} filter={filter} change={change} order={order} sort={sort} />
        </>
      ) : (
        <>
          <Filters filter={filter} change={change} tags={[]} />
          <State fetched={fetched} />
        </>
      )}
    </>
  );
}

interface Changing {
  filter: Filter;
  change: (next: Filter) => void;
}

function Filters({ filter, change, tags }: Changing & { tags: string[] }) {
  const options = { verdict: VERDICTS, tag: filter.tag && !tags.includes(filter.tag) ? [filter.tag, ...tags] : tags };
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <label>
        target contains
        <input type="search" id="filter-target" value={filter.target} onChange={(event) => change({ ...filter, target: event.currentTarget.value })} />
      </label>
      {(["verdict", "tag"] as const).map((name) => (
        <label key={name}>
          {name}
          <select id={`filter-${name}`} value={filter[name]} onChange={(event) => change({ ...filter, [name]: event.currentTarget.value })}>
            <option value="">any</option>
            {options[name].map((value) => <option key={value} value={value} selected={value === filter[name]}>{value}</option>)}
          </select>
        </label>
      ))}
      {FILTERS.some((name) => filter[name]) && (
        <button type="button" id="clear" onClick={() => change({ target: "", verdict: "", tag: "" })}>Clear</button>
      )}
      {filter.tag && <a class="button" id="to-trend" href={pathOf("trend", filter.tag)}>Trend of {filter.tag}</a>}
    </form>
  );
}

interface RunsProps extends Changing {
  listing: Listing;
  order: Order | null;
  sort: (order: Order | null) => void;
}

function Runs({ listing, filter, change, order, sort }: RunsProps) {
  const known = useRef<ListedRun[]>([]);
  // None until earlier runs were asked for: the list itself says whether there are some.
  const [asked, setAsked] = useState<{ more: boolean } | null>(null);
  const [trouble, setTrouble] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const runs = (known.current = withEarlier(listing, known.current));
  const more = (asked ?? listing).more;
  const load = async () => {
    const fetched = await ask<Listing>(`/api/runs${queryOf(filter, runs.at(-1)?.id)}`);
    if (fetched.is === "refused") return setTrouble(fetched.why);
    if (fetched.is !== "there") return;
    known.current = withEarlier({ runs: known.current, more: true }, fetched.value.runs);
    setAsked(fetched.value);
    setTrouble("");
  };
  // The latest two: a third takes the place of the one that was chosen first.
  const choose = (id: string) => setChosen(chosen.includes(id) ? chosen.filter((own) => own !== id) : [...chosen, id].slice(-2));
  return (
    <>
      <Filters filter={filter} change={change} tags={listing.tags.map(({ tag }) => tag)} />
      <Choice chosen={chosen} tags={listing.tags.map(({ tag }) => tag)} />
      {runs.length === 0 ? (
        <p class="about" id="nothing">No stored run matches.</p>
      ) : (
        <div class="grid wide">
          <div class="scroll" tabIndex={0} role="region" aria-label="stored runs">
            <table class="runs" id="runs">
              <thead>
                <tr>
                  <th scope="col"><span class="unseen">compare</span></th>
                  <Heads columns={COLUMNS} order={order} sort={runs.length > 1 ? sort : undefined} />
                </tr>
              </thead>
              <tbody>
                {placesIn(order, COLUMNS, runs.map(cellsOf)).map((place) => runs[place]!).map((run) => (
                  <Row key={run.id} run={run} filter={filter} change={change} chosen={chosen.includes(run.id)} choose={choose} />
                ))}
              </tbody>
            </table>
          </div>
        </div>
      )}
      {more && <button type="button" class="button" id="more" onClick={() => void load()}>Earlier runs</button>}
      {more && order && <p class="about" id="sorted">Only the {runs.length} runs shown are sorted.</p>}
      {trouble && <p class="link lost" role="alert">{trouble}</p>}
    </>
  );
}

interface RowProps extends Changing {
  run: ListedRun;
  chosen: boolean;
  choose: (id: string) => void;
}

function Row({ run, filter, change, chosen, choose }: RowProps) {
  const line = lineOf(run);
  return (
    <tr id={`run-${run.id}`} aria-selected={chosen}>
      <td><input type="checkbox" aria-label={`compare run ${run.id}`} checked={chosen} onChange={() => choose(run.id)} /></td>
      <td><a href={pathOf("run", run.id)}>{run.id}</a></td>
      <td title={run.headline ?? ""}><span class={`badge ${line.tone}`}>{line.verdict}</span></td>
      <td class="still">{line.began}</td>
      <td class="target" title={run.headline ?? ""}>{run.target}</td>
      <td>
        {run.tags.map((tag) => (
          <button key={tag} type="button" class="tag" aria-label={`only runs with the tag ${tag}`} onClick={() => change({ ...filter, tag })}>{tag}</button>
        ))}
      </td>
      {[line.time, line.held, line.requests, line.p99, line.errors].map((text, n) => <td key={n} class="number">{text}</td>)}
    </tr>
  );
}

/** What may be done with the runs that are chosen: the earlier one is the base. Or with two tags. */
function Choice({ chosen, tags }: { chosen: string[]; tags: string[] }) {
  const [base, other] = [...chosen].sort();
  const [tag, setTag] = useState(["", ""]);
  return (
    <div class="choices">
      {base && other ? (
        <a class="button strong" id="compare" href={pathOf("compare", base, other)}>Compare {base} with {other}</a>
      ) : (
        <span class="about" id="choose">{base ? `Choose another run to compare with ${base}` : "Choose two runs to compare them"}</span>
      )}
      {tags.length > 1 && (
        <span class="tags">
          or all runs of
          {[0, 1].map((n) => [
            n === 1 && "with those of",
            <select key={n} id={`tag-${n}`} aria-label={n ? "compared with the tag" : "the tag of the base"} value={tag[n]} onChange={(event) => setTag(n ? [tag[0]!, event.currentTarget.value] : [event.currentTarget.value, tag[1]!])}>
              <option value="">a tag</option>
              {tags.map((own) => <option key={own} value={own}>{own}</option>)}
            </select>,
          ])}
          {tag[0] && tag[1] && tag[0] !== tag[1] && (
            <a class="button strong" id="compare-tags" href={pathOf("compare", `tag:${tag[0]}`, `tag:${tag[1]}`)}>Compare</a>
          )}
        </span>
      )}
    </div>
  );
}
