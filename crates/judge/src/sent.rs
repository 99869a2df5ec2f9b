//! Whether everything that was due took place: connections, requests at a rate, and planned numbers of either.

use plan::Population;
use samples::{AgentState, Summary};
use units::Count;

use super::{evidence::Facts, honesty};
use crate::By;
use record::PopulationRecord;

/// Populations that sent another number of requests, or had another number of arrivals, than planned; and whether that is a failure. It is
/// none if the plan also limits the time, which may end first.
pub(super) fn sent(facts: &Facts, s: &Summary) -> (Vec<String>, bool) {
    let is_alone = facts.populations.len() == 1;
    // Requests that an agent sent after its last report are sent again by those that take over its part.
    let may_repeat = s.agents.iter().any(|agent| agent.state == AgentState::Lost);
    let of = |(population, measured): (&Population, &PopulationRecord)| {
        let name = if is_alone { String::new() } else { format!("{}: ", population.name) };
        let came = due(facts, population, measured);
        if came < measured.wanted {
            return Some((false, format!("{name}{}", ended(measured, came, measured.wanted, "connection"))));
        }
        let counts = &measured.totals.counts;
        let sent = counts.sent();
        let wanted = population.requests.filter(|wanted| sent < *wanted || may_repeat && sent > *wanted)?;
        let (count, all) = (Count(sent), Count(wanted));
        let more = "what lost agents had not reported was sent again";
        let all_of_them = all.of("request");
        let reason = match sent < wanted {
            true if facts.plan.hold().is_some() => {
                format!("{name}{}", ended(measured, sent, wanted, "request"))
            }
            true => format!("{name}{count} of {all_of_them} sent"),
            false => format!("note: {name}{} sent instead of {all}: {more}", count.of("request")),
        };
        Some((sent < wanted, reason))
    };
    let (short, reasons): (Vec<bool>, Vec<String>) =
        facts.plan.populations.iter().zip(facts.populations).filter_map(of).unzip();
    let ends_early = short.contains(&true) && facts.plan.hold().is_none();
    (reasons, ends_early)
}

/// The reason if the time ended before the number was reached.
fn ended(measured: &PopulationRecord, came: u64, wanted: u64, what: &str) -> String {
    let at_load = measured.at_load.secs_f64();
    format!("ended after {at_load:.1} s with {} of {}", Count(came), Count(wanted).of(what))
}

/// Populations with too few connections.
pub(super) fn too_few(facts: &Facts) -> Vec<String> {
    let is_alone = facts.populations.len() == 1;
    let is_burst = facts.evidence.search == Some(By::Burst);
    let has_end = facts.plan.hold().is_some();
    let unattributed = Some(facts.evidence.unattributed).filter(|n| *n > 0).map(|n| {
        let were = Count(n).were("connection");
        format!("{were} in the target's accept queue, and not held; it is not known which population they belong to")
    });
    let reasons =
        facts.plan.populations.iter().zip(facts.populations).filter_map(|(population, measured)| {
            let counts = &measured.totals.counts;
            // The number of arrivals without an end is not known in advance.
            population.load.wanted()?;
            let (there, excused, done) = match population.comes_and_goes() {
                // Arrivals that still had calls to make at the end of the time only had to make those due by then.
                true if has_end => {
                    let ended = counts.finished + counts.dropped + counts.closed;
                    let opened = counts.opened + counts.redialled;
                    (counts.finished, opened.saturating_sub(ended), "completed all their calls")
                }
                true => (counts.finished, 0, "completed all their calls"),
                // Connections of a burst that were not opened could not be held.
                false if is_burst && counts.opened < measured.wanted => (counts.opened, 0, "opened"),
                // Closes by announcement are the server's policy, and those after a number of calls the plan's: these are no losses.
                false => (measured.held, measured.disconnected + counts.done, "held"),
            };
            let name = if is_alone { String::new() } else { format!("{}: ", population.name) };
            let wanted = due(facts, population, measured);
            let missed = there + excused < wanted;
            let wanted = Count(wanted).of("connection");
            missed.then(|| format!("{name}{} of {wanted} {done}", Count(there)))
        });
    reasons.chain(unattributed).collect()
}

/// Connections that were due: fewer than planned for arrivals, if the time ended before their number.
fn due(facts: &Facts, population: &Population, measured: &PopulationRecord) -> u64 {
    match population.comes_and_goes() && facts.plan.hold().is_some() {
        true => measured.wanted.min(measured.arrivals_due()),
        false => measured.wanted,
    }
}

/// The reason if arrivals were due and not dialled when the load ended, because throng was late: then the target is not judged.
pub(super) fn undialled(facts: &Facts) -> Option<String> {
    let n = arrivals_missed(facts);
    let were = Count(n).were("connection");
    (n > 0).then(|| format!("{were} due but not dialled before the load ended: throng was late"))
}

/// Number of arrivals that were due and not dialled.
pub(super) fn arrivals_missed(facts: &Facts) -> u64 {
    let all = facts.plan.populations.iter().zip(facts.populations);
    all.filter(|(own, _)| own.comes_and_goes()).map(|(_, measured)| measured.totals.counts.undialled).sum()
}

/// The reason if requests at a rate were due and not sent.
pub(super) fn missed(facts: &Facts, s: &Summary) -> Option<String> {
    let n = s.requests.missed.saturating_sub(arrivals_missed(facts));
    let were = Count(n).were("request");
    let is_late = honesty::late(s, &[], facts.plan.max_lag).is_some();
    let why = match (s.planned_s, is_late) {
        // The loss of all connections ended the run.
        (Some(_), _) => "no connection was left",
        (None, true) => "throng was late, or no connection became free in time",
        (None, false) => "no connection became free in time",
    };
    (n > 0).then(|| format!("{were} due but not sent: {why}"))
}

#[cfg(test)]
mod tests {
    use plan::Hold;
    use samples::AgentSummary;
    use units::Nanos;

    use super::*;
    use crate::evidence::Evidence;
    use record::fixture::plan;

    fn check(sent: u64, withdrawn: u64, lost: bool, expected: &[&str]) {
        check_until(Hold::Forever, (sent, withdrawn), lost, (expected, sent < withdrawn + 1_000));
    }

    /// With 12.34 seconds at full load.
    fn check_until(
        hold: Hold,
        (sent, withdrawn): (u64, u64),
        lost: bool,
        (expected, fails): (&[&str], bool),
    ) {
        let mut plan = plan(&[]);
        plan.populations[0].requests = Some(1_000);
        plan.stages[0].hold = hold;
        let at_load = Nanos::from_millis(12_340);
        let mut measured = PopulationRecord { at_load, ..PopulationRecord::default() };
        (measured.totals.counts.sent, measured.totals.counts.withdrawn) = (sent, withdrawn);
        let evidence = Evidence::default();
        let facts = Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
        let state = if lost { AgentState::Lost } else { AgentState::Done };
        let agents = vec![AgentSummary { state, ..AgentSummary::default() }];
        let (reasons, ends_early) = super::sent(&facts, &Summary { agents, ..Summary::default() });
        assert_eq!(reasons, expected);
        assert_eq!(ends_early, fails, "{reasons:?}");
    }

    #[test]
    fn another_number_than_wanted_is_said() {
        check(1_000, 0, true, &[]);
        check(1_003, 3, true, &[]);
        check(1_002, 3, false, &["999 of 1,000 requests sent"]);
        let note =
            "note: 1,003 requests sent instead of 1,000: what lost agents had not reported was sent again";
        check(1_003, 0, true, &[note]);
        // Messages that are only received do not count as requests.
        check(1_003, 0, false, &[]);
    }

    #[test]
    fn where_the_time_ended_it_the_time_is_said_and_it_is_no_failure() {
        let of_time = Hold::For(Nanos::from_secs(12));
        let said = ["ended after 12.3 s with 700 of 1,000 requests"];
        check_until(of_time, (700, 0), false, (&said, false));
        check_until(of_time, (703, 3), true, (&said, false));
        check_until(of_time, (1_000, 0), false, (&[], false));
        check_until(Hold::Forever, (700, 0), false, (&["700 of 1,000 requests sent"], true));
    }

    #[test]
    fn arrivals_are_judged_by_those_that_were_due() {
        let mut plan = plan(&[]);
        plan.populations[0].load = plan::Load::Arrivals { rate: units::Rate::per_s(50), total: Some(200) };
        let mut check = |hold, finished, expected: (&[&str], &[&str], bool)| {
            plan.stages[0].hold = hold;
            let at_load = Nanos::from_millis(2_000);
            let mut measured = PopulationRecord { at_load, wanted: 200, ..PopulationRecord::default() };
            let counts = &mut measured.totals.counts;
            (counts.opened, counts.failed, counts.undialled, counts.finished) = (95, 3, 2, finished);
            let evidence = Evidence::default();
            let facts =
                Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
            assert_eq!(too_few(&facts), expected.0);
            let (reasons, ends_early) = super::sent(&facts, &Summary::default());
            assert_eq!(reasons, expected.1);
            assert_eq!(ends_early, expected.2);
        };
        let ended = "ended after 2.0 s with 100 of 200 connections";
        let of_time = Hold::For(Nanos::from_secs(2));
        check(of_time, 100, (&[], &[ended], false));
        check(of_time, 95, (&["95 of 100 connections completed all their calls"], &[ended], false));
        check(Hold::Forever, 95, (&["95 of 200 connections completed all their calls"], &[], false));
    }

    #[test]
    fn connections_of_unknown_populations_that_are_not_accepted_are_too_few() {
        let plan = plan(&[]);
        let measured = PopulationRecord { wanted: 7, held: 7, ..PopulationRecord::default() };
        let said = |unattributed| {
            let evidence = Evidence { unattributed, ..Evidence::default() };
            let populations = std::slice::from_ref(&measured);
            too_few(&Facts { plan: &plan, evidence: &evidence, populations, interrupted: None })
        };
        assert!(said(0).is_empty());
        let expected = "3 connections were in the target's accept queue, and not held; it is not known which population they belong to";
        assert_eq!(said(3), [expected]);
    }

    #[test]
    fn arrivals_that_were_not_dialled_are_throngs_doing() {
        let mut plan = plan(&[]);
        let check = |plan: &plan::Plan, lag_us, expected: [Option<&str>; 2]| {
            let mut measured = PopulationRecord::default();
            let counts = &mut measured.totals.counts;
            counts.missed = 72;
            counts.undialled = if plan.populations[0].comes_and_goes() { 72 } else { 0 };
            let evidence = Evidence::default();
            let facts = Facts { plan, evidence: &evidence, populations: &[measured], interrupted: None };
            let mut s = Summary::default();
            (s.requests.missed, s.lag_us.p99) = (72, lag_us);
            assert_eq!([undialled(&facts).as_deref(), missed(&facts, &s).as_deref()], expected);
        };
        let slots = "72 requests were due but not sent: no connection became free in time";
        check(&plan, 0.0, [None, Some(slots)]);
        let late = "72 requests were due but not sent: throng was late, or no connection became free in time";
        check(&plan, 300e3, [None, Some(late)]);
        let mut measured = PopulationRecord::default();
        measured.totals.counts.missed = 72;
        let evidence = Evidence::default();
        let facts = Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
        let mut deserted = Summary { planned_s: Some(4.0), ..Summary::default() };
        deserted.requests.missed = 72;
        let left = "72 requests were due but not sent: no connection was left";
        assert_eq!(missed(&facts, &deserted).as_deref(), Some(left));
        plan.populations[0].load = plan::Load::Arrivals { rate: units::Rate::per_s(2_000), total: None };
        let arrivals = "72 connections were due but not dialled before the load ended: throng was late";
        check(&plan, 300e3, [Some(arrivals), None]);
    }
}
