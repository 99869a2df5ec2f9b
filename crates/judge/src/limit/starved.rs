//! A target that serves some connections, and never comes to the others as long as these send.

use samples::{Cause, Certainty::Inferred, Kind, Limit, ProbeSummary, Side};
use units::Count;

use super::{Case, Sentence, accept_queue, closes, faults::is_unended, path::dark, target::FEWER};

const MORE: &str = "raise its number of workers or threads (check that none of them hangs)";
const ONE_OR_MORE: &str = "check that each of its backends and workers responds; if they do, raise their number or that of their threads";

/// Those that had no response were silent when the load ended, or ran into their timeouts. Where they wait in the accept queue, or what they
/// sent does not arrive, that is seen.
pub(super) fn starved(case: &Case) -> Option<Limit> {
    let most =
        accept_queue::most_starved(case.evidence).filter(|_| case.is_waiting() && !is_unended(case))?;
    if accept_queue::accept_queue(case).or_else(|| dark(case)).is_some() {
        return None;
    }
    let has_probe = case.summary.probe.as_ref().is_some_and(is_served);
    let (or, more) = match most.may_be_of_one() {
        true => (", or one of several backends or workers does not respond", ONE_OR_MORE),
        false => ("", MORE),
    };
    let detail = format!("it probably has a worker or a thread for each connection that it serves{or}");
    let (cause, fix) = ((Side::Target, Cause::ConnectionLimit), case.or_less(more, FEWER));
    case.limit(Inferred, cause, most.served, Sentence::Starved { most: most.clone(), has_probe }, detail, fix)
}

/// Whether the target serves connections of the probe beside those of the load, and not only when these are closed.
fn is_served(probe: &ProbeSummary) -> bool {
    [&probe.kept_us, &probe.fresh_us].into_iter().any(|times| times.count > times.censored_count())
}

/// Fewer requests of the probe may be chance; of so many, one may be an exception.
const FEW: u64 = 5;
const EXCEPT: u64 = 10;

/// The same as the probe has it: it is served on connections that it keeps, and not on new ones, which are open, and wait.
pub(super) fn probe(case: &Case) -> Option<Limit> {
    let probe = case.summary.probe.as_ref().filter(|_| case.is_waiting())?;
    let (new, served) = shut_out(probe).filter(|(new, _)| !turns_away(probe, *new))?;
    if let Some(status) = turned_away_with(probe, new) {
        let at = case.left();
        let detail = format!(
            "{} of the probe had {status}, beyond {at} open ones and those that it keeps",
            Count(new).of("new connection")
        );
        let fix = with_probes_places(case, closes::RAISE.to_owned());
        let sentence = Sentence::TurnsAwayWith { beyond: at, status };
        return case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), at, sentence, detail, fix);
    }
    // Requests of the load that wait are on connections that it does not serve either.
    let at = case.left().saturating_sub(case.count);
    let detail =
        format!("it serves the connections that it has as long as these are open, {at} and the probe's");
    let fix = with_probes_places(case, case.or_less(MORE, FEWER));
    let sentence = Sentence::StarvedProbe { new, served };
    case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), at, sentence, detail, fix)
}

/// New connections of the probe without a correct response, and responses on those that it keeps, where these are served and the new ones,
/// which were open, are not.
pub(super) fn shut_out(probe: &ProbeSummary) -> Option<(u64, u64)> {
    let (served, new) = (probe.kept_us.count, probe.fresh_us.censored_count());
    let is_kept = served >= FEW && probe.kept_us.censored_count() * EXCEPT <= served;
    // Some of them may have been opened in the step before.
    let are_open = 2 * probe.connect_us.count >= new;
    let is_shut = new >= FEW && probe.fresh_us.count * EXCEPT <= new && are_open;
    (is_kept && is_shut).then_some((new, served))
}

/// Whether the target closed or reset most of these `new` connections, instead of letting them wait.
pub(super) fn turns_away(probe: &ProbeSummary, new: u64) -> bool {
    let ends = [Kind::Closed, Kind::Reset].map(Kind::name);
    let failures = probe.failures.iter().filter(|failure| ends.iter().any(|end| failure.what.ends_with(end)));
    2 * failures.map(|failure| failure.count).sum::<u64>() > new
}

/// The status that the target responded with to most of these `new` connections, instead of letting them wait.
fn turned_away_with(probe: &ProbeSummary, new: u64) -> Option<String> {
    let is_status = |what: &str| what.starts_with("status ") || what == "unexpected status";
    let most = probe.failures.iter().find(|failure| is_status(&failure.what) && 2 * failure.count > new)?;
    Some(if most.what.starts_with("status ") { most.what.clone() } else { format!("an {}", most.what) })
}

/// A fix, with what it leaves to be known in a search.
pub(super) fn with_probes_places(case: &Case, fix: String) -> String {
    match case.evidence.search {
        Some(_) => format!("{fix}; the result does not count the places that the probe's connections take"),
        None => fix,
    }
}
