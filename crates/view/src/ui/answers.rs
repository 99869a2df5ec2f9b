//! Reads the response to each query from the store, with limits on the number of runs.

use axum::http::StatusCode;
use samples::Figure;
use serde_json::{Value, json};
use stats::{
    Trend,
    compare::{Comparison, Named},
};
use store::{ListedRun, RunFilter, Store, StoredRun};
use units::{Count, Date, Unit};

use super::{Answer, LoadArgs, Refusal};
use crate::{
    report::{Report, report_json},
    runs,
};

/// Maximum number of runs in a list; the next ones are requested with the identifier of the last.
pub(super) const MAX_LISTED: u32 = 100;
/// Maximum number of tags that are listed.
const MAX_TAGS: u32 = 200;
/// Maximum number of runs in a group that is compared, because the latencies at equal load of each have to be summed.
const MAX_COMPARED: u32 = 64;
/// Maximum number of runs whose curves are overlaid.
const MAX_DRAWN: usize = 16;
/// Maximum number of runs in a trend; the latest are used.
const MAX_TREND: u32 = 500;
/// Minimum number of runs for a trend. With fewer, no trend is significant: four runs that each exceed the one before have p = 0.09.
const MIN_TREND: usize = 5;
/// Significance level of a trend.
const SIGNIFICANT: f64 = 0.05;

/// The latest runs, and the existing tags.
pub(super) fn list(store: &Store, filter: &RunFilter, now: Date) -> Answer {
    let mut found = store.latest(filter, MAX_LISTED + 1).map_err(Refusal::store)?;
    let more = found.len() > MAX_LISTED as usize;
    found.truncate(MAX_LISTED as usize);
    let tags = store.tags(MAX_TAGS).map_err(Refusal::store)?;
    let runs: Vec<Value> = found.iter().map(|run| listed(run, now)).collect();
    let tags: Vec<Value> = tags.iter().map(|(tag, runs)| json!({ "tag": tag, "runs": runs })).collect();
    Ok(json!({ "schema": "throng.runs/1", "runs": runs, "more": more, "tags": tags }).to_string())
}

/// A run as in `throng runs --json`, with further figures for the list.
fn listed(run: &ListedRun, now: Date) -> Value {
    let mut json = runs::value(&run.id, &run.record, run.verdict(), run.held, run.elapsed_s);
    let summary = run.summary.as_ref();
    let figure = |path: &str| Figure::of_run(path)?.value(summary?);
    json["began_ms"] = json!(run.record.began_ms);
    json["is_under_way"] = json!(run.is_under_way(now));
    json["requests_per_s"] = json!(figure("requests.per_s"));
    json["latency_p99_us"] = json!(figure("latency_us.p99"));
    json["errors"] = json!(figure("errors.count"));
    json["headline"] = json!(summary.map(|summary| &summary.headline));
    json
}

/// A complete run.
pub(super) fn one(store: &Store, id: &str) -> Answer {
    let run = store.run(id).map_err(Refusal::store)?.ok_or_else(|| unknown(id))?;
    Ok(report_json(&[report(store, &run)?], None))
}

/// The comparison of two groups, each being a run or the runs of a tag.
pub(super) fn compare(store: &Store, names: &[String], load_args: LoadArgs) -> Answer {
    let groups = names.iter().map(|name| group(store, name)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<&StoredRun> = groups.iter().flat_map(|(_, runs)| runs).collect();
    let drawn = if runs.len() > MAX_DRAWN { Vec::new() } else { runs };
    let drawn = drawn.into_iter().map(|run| report(store, run)).collect::<Result<Vec<_>, _>>()?;
    let (groups, load) = store.compared(groups).map_err(Refusal::store)?;
    let comparison = Comparison::new(groups, load, &[], &load_args);
    Ok(report_json(&drawn, Some(&comparison)))
}

fn group(store: &Store, name: &str) -> Result<(String, Vec<StoredRun>), Refusal> {
    if let Some(tag) = name.strip_prefix(store::TAG) {
        let filter = RunFilter { tag: Some(tag.to_owned()), ..RunFilter::default() };
        if store.latest(&filter, MAX_COMPARED + 1).map_err(Refusal::store)?.len() > MAX_COMPARED as usize {
            let why =
                format!("too many runs have the tag {tag}, at most {MAX_COMPARED}; use `throng compare`");
            return Err(Refusal(StatusCode::BAD_REQUEST, why));
        }
    }
    let runs = store.group(name).map_err(Refusal::store)?;
    if runs.is_empty() { Err(unknown(name)) } else { Ok((name.to_owned(), runs)) }
}

fn report(store: &Store, run: &StoredRun) -> Result<Report, Refusal> {
    let mut report = Report::of(run);
    store.replay(run, &mut [&mut report]).map(|_| report).map_err(Refusal::store)
}

fn unknown(name: &str) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, store::missing(name))
}

/// The figures of comparisons for each finished run of a tag, oldest first.
pub(super) fn trend(store: &Store, tag: &str) -> Answer {
    let filter = RunFilter { tag: Some(tag.to_owned()), ..RunFilter::default() };
    let mut runs = store.latest(&filter, MAX_TREND).map_err(Refusal::store)?;
    if runs.is_empty() {
        return Err(unknown(&format!("{}{tag}", store::TAG)));
    }
    let all = runs.len();
    runs.retain(|run| run.summary.is_some());
    runs.reverse();
    let figures: Vec<Value> = Named::usual().iter().filter_map(|own| over_runs(own, &runs)).collect();
    let shown = |run: &ListedRun| {
        json!({
            "id": run.id,
            "began_ms": run.record.began_ms,
            "verdict": run.verdict(),
            "version": run.record.version,
            "target": run.record.header.target,
        })
    };
    let json = json!({
        "schema": "throng.trend/1",
        "tag": tag,
        "runs": runs.iter().map(shown).collect::<Vec<_>>(),
        "unfinished": all - runs.len(),
        "figures": figures,
    });
    Ok(json.to_string())
}

/// The values of a figure in each run; `None` if no run has it.
fn over_runs(named: &Named, runs: &[ListedRun]) -> Option<Value> {
    let values: Vec<Option<f64>> = runs.iter().map(|run| named.of(run.summary.as_ref()?)).collect();
    let points: Vec<(f64, f64)> =
        (1..).zip(&values).filter_map(|(nth, value)| Some((f64::from(nth), (*value)?))).collect();
    if points.is_empty() {
        return None;
    }
    let unit = named.figure.unit;
    let trend = Trend::of(&points).filter(|_| points.len() >= MIN_TREND);
    Some(json!({
        "figure": named.figure.path(),
        "name": named.name,
        "unit": crate::compare::unit(unit),
        "values": values,
        "slope_per_run": trend.map(|trend| trend.slope),
        "p": trend.map(|trend| trend.p),
        "trend": in_words(trend, unit, points.len()),
    }))
}

/// A sentence about the trend: its direction, its slope and its p-value.
fn in_words(trend: Option<Trend>, unit: Unit, runs: usize) -> String {
    let Some(Trend { slope, p }) = trend else {
        let (runs, have) = (Count(runs as u64).of("run"), Count(runs as u64).one_or("has", "have"));
        return format!("trend unknown: {runs} {have} a value, and at least {MIN_TREND} are needed");
    };
    let sure = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
    match slope {
        slope if p < SIGNIFICANT && slope > 0.0 => format!("rises by {} a run ({sure})", unit.brief(slope)),
        slope if p < SIGNIFICANT && slope < 0.0 => format!("falls by {} a run ({sure})", unit.brief(-slope)),
        _ => format!("no trend ({sure})"),
    }
}
