//! What the judge reads of a run, as the store has it: the plan, and what was measured. With it, any later version gives its own verdict.

use std::{collections::BTreeMap, net::IpAddr};

use plan::{Environment, Flags, Plan, Population, Source, TableHead, scenario};
use samples::{Samples, Summary};
use serde::{Deserialize, Serialize};

use crate::{judge, record::Record};

/// A run that has ended.
#[derive(Deserialize, Serialize)]
struct Measured<R> {
    /// What the user named.
    target: String,
    /// As a scenario file, without its secrets.
    plan: String,
    /// Addresses of the names in it.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Columns of the tables that it reads.
    tables: BTreeMap<String, TableHead>,
    /// The last samples, which the observation in the record has only as sums and extremes.
    latest: Samples,
    record: R,
}

/// A run that has ended, to be stored: JSON, which [`rejudge`] reads.
///
/// # Errors
/// The reason; a mistake of throng's.
pub fn stored(plan: &Plan, record: &Record) -> Result<String, String> {
    let targets = plan.populations.iter().chain(plan.probe.iter().flat_map(|probe| &probe.populations));
    let address = |own: &Population| {
        let target = &own.target;
        (target.host.clone(), target.destinations.iter().map(|destination| destination.ip()).collect())
    };
    let measured = Measured {
        target: plan.text.clone(),
        plan: scenario::without_secrets(&plan.to_string()),
        addresses: targets.map(address).collect(),
        tables: plan.tables.iter().map(|table| (table.file.clone(), table.head())).collect(),
        latest: record.observed.latest(),
        record,
    };
    serde_json::to_string(&measured).map_err(|e| e.to_string())
}

/// The summary of a stored run, by the rules of this version.
///
/// # Errors
/// The text was not stored by a version that stored all that is needed; with the reason.
pub fn rejudge(measured: &str) -> Result<Summary, String> {
    let Measured { target, plan, addresses, tables, latest, mut record }: Measured<Record> =
        serde_json::from_str(measured).map_err(|e| e.to_string())?;
    let resolve = |name: &str| addresses.get(name).cloned().ok_or_else(|| "not an address".to_owned());
    let open = |file: &str| {
        tables.get(file).map(|head| Source::Head(head.clone())).ok_or_else(|| "not stored".to_owned())
    };
    let around = Environment { cores: 1, seed: 0, resolve: &resolve };
    let read = scenario::read("plan", &plan, &Flags::default(), &around, &open);
    let plan = read.map_err(|mistakes| mistakes.first().map(ToString::to_string).unwrap_or_default())?;
    let plan = Plan { text: target, ..plan };
    record.observed.seen.set_latest(latest);
    Ok(judge(&plan, &record))
}

/// The first figure of two summaries that is not the same.
pub fn difference(one: &Summary, other: &Summary) -> Option<String> {
    let [one, other] = [one, other].map(|summary| serde_json::to_value(summary).unwrap_or_default());
    let keys = one.as_object()?.iter();
    let mut differ = keys.filter(|(key, value)| other.get(key) != Some(value));
    differ.next().map(|(key, value)| format!("{key}: {value}, not {}", other[key]))
}
