//! Whether all was sent that was due, and all of a number of requests.

use plan::Population;
use samples::{AgentState, Summary};
use units::Count;

use super::{honesty, verdict::Facts};
use crate::record::PopulationRecord;

/// Populations that have sent another number of requests than theirs; and whether that is a failure: where the time is limited too, it may
/// end before the requests do.
pub(super) fn sent(facts: &Facts, s: &Summary) -> (Vec<String>, bool) {
    let is_alone = facts.populations.len() == 1;
    // What an agent sends after its last report is sent by those that take over its part, too.
    let may_repeat = s.agents.iter().any(|agent| agent.state == AgentState::Lost);
    let of = |(population, measured): (&Population, &PopulationRecord)| {
        let counts = &measured.totals.counts;
        let sent = counts.sent.saturating_sub(counts.withdrawn);
        let wanted = population.requests.filter(|wanted| sent < *wanted || may_repeat && sent > *wanted)?;
        let name = if is_alone { String::new() } else { format!("{}: ", population.name) };
        let (count, all) = (Count(sent), Count(wanted));
        let more = "what lost agents had not reported was sent again";
        let all_of_them = all.of("request");
        let reason = match sent < wanted {
            true if facts.plan.hold().is_some() => {
                let at_load = measured.at_load.secs_f64();
                format!("{name}ended after {at_load:.1} s with {count} of {all_of_them}")
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

/// Arrivals that were due and not dialled when the load ended, because throng came to them too late: then the target is not judged.
pub(super) fn undialled(facts: &Facts) -> Option<String> {
    let n = arrivals_missed(facts);
    let were = Count(n).were("connection");
    (n > 0).then(|| format!("{were} due but not dialled before the load ended: throng was late"))
}

fn arrivals_missed(facts: &Facts) -> u64 {
    let all = facts.plan.populations.iter().zip(facts.populations);
    all.filter(|(own, _)| own.comes_and_goes()).map(|(_, measured)| measured.totals.counts.missed).sum()
}

/// Requests that were due by a rate and not sent.
pub(super) fn missed(facts: &Facts, s: &Summary) -> Option<String> {
    let n = s.requests.missed.saturating_sub(arrivals_missed(facts));
    let were = Count(n).were("request");
    let is_late = honesty::late(s, &[], facts.plan.max_lag).is_some();
    let or = if is_late { "throng was late, or " } else { "" };
    (n > 0).then(|| format!("{were} due but not sent: {or}no connection became free in time"))
}

#[cfg(test)]
mod tests {
    use plan::Hold;
    use samples::AgentSummary;
    use units::Nanos;

    use super::*;
    use crate::{fixture::plan, judge::evidence::Evidence};

    fn check(sent: u64, withdrawn: u64, lost: bool, expected: &[&str]) {
        check_until(Hold::Forever, (sent, withdrawn), lost, (expected, sent < withdrawn + 1_000));
    }

    /// After 12.34 seconds at full load.
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
        // Messages that are only listened for are no requests of the number.
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
    fn arrivals_that_were_not_dialled_are_throngs_doing() {
        let mut plan = plan(&[]);
        let check = |plan: &plan::Plan, lag_us, expected: [Option<&str>; 2]| {
            let mut measured = PopulationRecord::default();
            measured.totals.counts.missed = 72;
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
        plan.populations[0].load = plan::Load::Arrivals { rate: units::Rate::per_s(2_000), total: None };
        let arrivals = "72 connections were due but not dialled before the load ended: throng was late";
        check(&plan, 300e3, [Some(arrivals), None]);
    }
}
