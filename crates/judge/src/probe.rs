//! The probe's requests as evidence: those on new connections, and those on connections that it keeps.

use samples::{Kind, ProbeSummary};

use crate::case::Case;

/// Minimum number of probe requests; fewer may be chance. `EXCEPT`: one exception in this many is allowed.
const FEW: u64 = 5;
const EXCEPT: u64 = 10;

pub(crate) const MORE_WORKERS: &str =
    "raise its number of workers or threads (check that none of them hangs)";

/// Whether the target serves the probe's connections beside the load, and not only when the load's are closed.
pub(crate) fn is_served(probe: &ProbeSummary) -> bool {
    [&probe.kept_us, &probe.fresh_us].into_iter().any(|times| times.count > times.censored_count())
}

/// New connections of the probe without a correct response, and responses on its kept connections, if the kept ones are served and the new
/// ones, although open, are not.
pub(crate) fn shut_out(probe: &ProbeSummary) -> Option<(u64, u64)> {
    let (served, new) = (probe.kept_us.count, probe.fresh_us.censored_count());
    // Some of them may have been opened in the step before.
    let are_open = 2 * probe.connect_us.count >= new;
    let is_shut = new >= FEW && probe.fresh_us.count * EXCEPT <= new && are_open;
    (is_kept(probe) && is_shut).then_some((new, served))
}

/// New connections of the probe, most of which the target closed or reset, while nearly all requests on kept connections are served. The
/// rest may have been opened before the load.
pub(crate) fn turned_away(probe: &ProbeSummary) -> Option<u64> {
    let new = probe.fresh_us.censored_count();
    let is_shut = new >= FEW && 2 * probe.fresh_us.count <= new;
    (is_shut && is_kept(probe) && turns_away(probe, new)).then_some(new)
}

/// Whether nearly all requests on kept connections are served.
fn is_kept(probe: &ProbeSummary) -> bool {
    probe.kept_us.count >= FEW && probe.kept_us.censored_count() * EXCEPT <= probe.kept_us.count
}

/// Whether the target closed or reset most of these `new` connections, instead of letting them wait.
fn turns_away(probe: &ProbeSummary, new: u64) -> bool {
    let ends = [Kind::Closed, Kind::Reset].map(Kind::name);
    let failures = probe.failures.iter().filter(|failure| ends.iter().any(|end| failure.what.ends_with(end)));
    2 * failures.map(|failure| failure.count).sum::<u64>() > new
}

/// The status of the responses to most of these `new` connections, if the target did not let them wait.
pub(crate) fn status_of(probe: &ProbeSummary, new: u64) -> Option<String> {
    let is_status = |what: &str| what.starts_with("status ") || what == "unexpected status";
    let most = probe.failures.iter().find(|failure| is_status(&failure.what) && 2 * failure.count > new)?;
    Some(if most.what.starts_with("status ") { most.what.clone() } else { format!("an {}", most.what) })
}

/// A fix, with a caveat if this is a search.
pub(crate) fn with_its_places(case: &Case, fix: String) -> String {
    match case.evidence.search {
        Some(_) => format!("{fix}; the result does not count the places that the probe's connections take"),
        None => fix,
    }
}
