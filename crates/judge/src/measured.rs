//! The stored form of a run for the judge: plan and record. It lets a later version judge the run by its rules.

use std::{collections::BTreeMap, net::IpAddr};

use plan::{Environment, Flags, Plan, Population, Probe, Source, TableHead, scenario};
use samples::{Samples, Summary};
use serde::{Deserialize, Serialize};
use units::Rate;

use crate::{gather::gather, judged, subject::Subject};
use record::Record;

/// A run that has ended.
#[derive(Deserialize, Serialize)]
struct Measured<R> {
    /// The target as the user named it.
    target: String,
    /// The plan as a scenario file, without secrets.
    plan: String,
    /// Rate of a probe that a scenario file cannot express, because it upgrades to WebSocket as the load does.
    probe: Option<Rate>,
    /// The subject of the plan, because its files and secrets are not stored; `None` in the oldest records, whose plans have neither.
    subject: Option<Subject>,
    /// Addresses of the host names in the plan.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Columns of the tables that the plan reads.
    tables: BTreeMap<String, TableHead>,
    /// The last samples; the record's observation contains only sums and extremes.
    latest: Samples,
    record: R,
}

/// Serialises an ended run as JSON for [`rejudge`].
///
/// # Errors
/// The reason; only for a bug in throng.
pub fn stored(plan: &Plan, record: &Record) -> Result<String, String> {
    let targets = plan.populations.iter().chain(plan.probe.iter().flat_map(|probe| &probe.populations));
    let address = |own: &Population| {
        let target = &own.target;
        (target.host.clone(), target.destinations.iter().map(|destination| destination.ip()).collect())
    };
    let is_of_scenario = |probe: &Probe| probe.target().scheme.has_requests();
    let probe = plan.probe.clone().filter(is_of_scenario);
    let measured = Measured {
        target: plan.text.clone(),
        probe: plan.probe.as_ref().filter(|_| probe.is_none()).map(|probe| probe.rate),
        plan: scenario::without_secrets(&Plan { probe, ..plan.clone() }.to_string()),
        subject: Some(Subject::of(plan)),
        addresses: targets.map(address).collect(),
        tables: plan.tables.iter().map(|table| (table.file.clone(), table.head())).collect(),
        latest: record.observed.latest(),
        record,
    };
    serde_json::to_string(&measured).map_err(|e| e.to_string())
}

/// Judges a stored run by the rules of this version.
///
/// # Errors
/// The text is no stored run, or its version did not store enough; with the reason.
pub fn rejudge(measured: &str) -> Result<Summary, String> {
    let Measured { target, plan, probe, subject, addresses, tables, latest, mut record }: Measured<Record> =
        serde_json::from_str(measured).map_err(|e| e.to_string())?;
    let resolve = |name: &str| addresses.get(name).cloned().ok_or_else(|| "not an address".to_owned());
    let open = |file: &str| {
        tables.get(file).map(|head| Source::Head(head.clone())).ok_or_else(|| "not stored".to_owned())
    };
    let around = Environment { cores: 1, seed: 0, resolve: &resolve };
    let read = scenario::read("plan", &plan, &Flags::default(), &around, &open);
    let plan = read.map_err(|mistakes| mistakes.first().map(ToString::to_string).unwrap_or_default())?;
    let like_the_load = probe.map(|rate| Probe::new(rate, plan.populations[0].clone()));
    let plan = Plan { text: target, probe: plan.probe.clone().or(like_the_load), ..plan };
    record.observed.seen.set_latest(latest);
    let subject = subject.unwrap_or_else(|| Subject::of(&plan));
    Ok(judged(&plan, &record, gather(&plan, &record, subject)))
}

/// The first figure that differs between two summaries, as text.
pub fn difference(one: &Summary, other: &Summary) -> Option<String> {
    let [one, other] = [one, other].map(|summary| serde_json::to_value(summary).unwrap_or_default());
    let keys = one.as_object()?.iter();
    let mut differ = keys.filter(|(key, value)| other.get(key) != Some(value));
    differ.next().map(|(key, value)| format!("{key}: {value}, not {}", other[key]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use plan::{Flag, flag};
    use record::fixture::record;

    #[test]
    fn a_stored_run_of_any_plan_is_judged_as_it_was() {
        let check = |target: &str, flags: &[(&'static Flag, &str)]| {
            let typed = flags.iter().fold(Flags::new(target), |all, (flag, value)| all.with(flag, value));
            let resolve = |_: &str| Ok(vec![[127, 0, 0, 7].into()]);
            let around = Environment { cores: 2, seed: 7, resolve: &resolve };
            let plan = plan::from_flags(&typed, &around).unwrap_or_else(|e| panic!("{target}: {e:?}"));
            let mut record = record();
            record.populations[0].totals.counts.opened = 3;
            let (live, stored) = (judge(&plan, &record), stored(&plan, &record).unwrap());
            assert!(!stored.contains("s3cr3t"), "{stored}");
            let again = rejudge(&stored).unwrap_or_else(|e| panic!("{target}: {e}: {stored}"));
            assert_eq!(difference(&again, &live), None, "{target}");
        };
        check("http://localhost:1/", &[(&flag::HEADER, "X-Key: s3cr3t"), (&flag::PROBE, "5/s")]);
        check("https://h/a?b={rand 1 9}", &[(&flag::THRESHOLD, "held >= 99%"), (&flag::RATE, "9/s")]);
        check("ws://127.0.0.1:1/", &[(&flag::RATE, "9/s"), (&flag::MESSAGE, "hello"), (&flag::PROBE, "5/s")]);
        check("tcp://127.0.0.1:1", &[(&flag::MESSAGE, "hello"), (&flag::PING, "2s")]);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        for text in ["", "{}", "[]", "{\"target\":\"h\",\"plan\":\"x\"}"] {
            assert!(rejudge(text).is_err(), "{text}");
        }
    }
}
