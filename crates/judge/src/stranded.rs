//! Stranded populations: their load stopped by itself, because their connections were closed by announcement and not opened again.

use plan::{Plan, Population, Reconnect};

use record::PopulationRecord;

/// One reason for each stranded population: it had more to send (a closed loop), or its connections are the load, but none was open at the
/// end, and none was redialled. Closes by announcement are no losses, but the figures then do not describe the planned load. `is_early`:
/// that ended the load.
pub(super) fn stranded(plan: &Plan, populations: &[PopulationRecord], is_early: bool) -> Vec<String> {
    let is_alone = populations.len() == 1;
    let of = |(population, measured): (&Population, &PopulationRecord)| {
        let counts = &measured.totals.counts;
        let sent = counts.sent();
        let wants_more = population.requests.is_none_or(|wanted| sent < wanted);
        let is_none_left = measured.held == 0 && measured.disconnected >= measured.wanted.max(1);
        let is_held = population.load.is_closed_loop() && !population.target.scheme.has_requests();
        let is_stranded = (population.is_closed_loop() || is_held)
            && (population.reconnect != Reconnect::Never || is_early)
            && wants_more
            && is_none_left
            && counts.redialled == 0;
        let name = if is_alone { String::new() } else { format!("{}: ", population.name) };
        is_stranded.then(|| format!("{name}no connection was open at the end, and none was opened again"))
    };
    plan.populations.iter().zip(populations).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use samples::{Summary, Verdict};

    use super::*;
    use crate::{
        evidence::{Evidence, Facts},
        thresholds,
        verdict::pronounce,
    };
    use record::fixture::plan;

    /// A hundred connections, all closed by announcement after three responses each, modified by `change`.
    fn check(
        thresholds: &[&str],
        requests: Option<u64>,
        change: fn(&mut PopulationRecord),
        expected: (Verdict, &[&str]),
    ) {
        let mut plan = plan(thresholds);
        plan.populations[0].requests = requests;
        let mut s = Summary::default();
        (s.connections.wanted, s.connections.closed) = (100, 100);
        (s.latency_us.count, s.latency_us.p99) = (300, 5_000.0);
        (s.requests.sent, s.requests.answered) = (300, 300);
        s.thresholds = thresholds::judge(&plan.thresholds, &s);
        let mut measured = PopulationRecord { wanted: 100, disconnected: 100, ..PopulationRecord::default() };
        let counts = &mut measured.totals.counts;
        (counts.opened, counts.closed, counts.sent, counts.answered) = (100, 100, 300, 300);
        change(&mut measured);
        let stranded = stranded(&plan, std::slice::from_ref(&measured), false);
        let evidence = Evidence { stranded, ..Evidence::default() };
        let facts = Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
        let reasons = evidence.stranded.clone();
        assert_eq!(reasons, expected.1, "{thresholds:?} {requests:?}");
        pronounce(&facts, &mut s);
        let Summary { verdict, reasons: all, .. } = s;
        assert_eq!(verdict, expected.0, "{thresholds:?} {requests:?}: {all:?}");
        assert!(reasons.iter().all(|reason| all.contains(reason)), "{all:?}");
    }

    #[test]
    fn a_load_that_has_stopped_by_itself_does_not_pass() {
        let stopped = ["no connection was open at the end, and none was opened again"];
        check(&[], None, |_| {}, (Verdict::Fail, &stopped));
        check(&["latency.p99 < 50ms"], None, |_| {}, (Verdict::Fail, &stopped));
        // A threshold says whether that is allowed.
        check(&["held >= 0%"], None, |_| {}, (Verdict::Pass, &stopped));
        // The planned number of requests has been sent.
        check(&[], Some(300), |_| {}, (Verdict::Pass, &[]));
        check(&[], None, |it| it.totals.counts.withdrawn = 301, (Verdict::Fail, &stopped));
        // A connection for each request: sometimes none is open.
        check(&[], None, |it| it.totals.counts.redialled = 200, (Verdict::Pass, &[]));
        check(&[], None, |it| (it.held, it.disconnected) = (1, 99), (Verdict::Pass, &[]));
        // No connection is wanted.
        check(&[], None, |it| (it.wanted, it.disconnected) = (0, 0), (Verdict::Pass, &[]));
    }
}
