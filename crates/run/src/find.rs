//! The largest load that a target sustains: one step after the other, as [`Search`] determines.

use host::Root;
use plan::Plan;
use samples::{
    Baseline, Cause, FindOutcome, FindSummary, Limit, Point, Quantiles, Side, Summary, ThresholdResult,
    Verdict,
};
use units::{Nanos, caught};

use crate::{
    Interrupt, Refusal,
    by::By,
    fitting, judge,
    search::{Outcome, Search, Step, StepResult},
};

pub use criteria::reasons;
use criteria::{
    HOLDS_NONE, all_wrong, baseline, holds_none, is_certain, is_confirmed, is_late, is_ours, may_be_chance,
    none_held, none_secured, probe_p99_us, slow_probe, unmeasured,
};
use steps::Steps;
pub use steps::with_some_room;

mod criteria;
mod load;
mod source;
mod steps;

pub use source::{Here, WorkerSource};

/// Precision of the result, as a share of it.
const TOLERANCE: f64 = 0.02;
/// The first load: small enough for any server, so that it shows what an unloaded one is like.
const FIRST_CONNECTIONS: u64 = 500;
const FIRST_PER_S: u64 = 100;
const MAX_PER_S: u64 = 1_000_000;
/// A step that confirms the result takes this many times as long, and each one after a confirmation that failed.
const CONFIRM: u64 = 2;
/// Lags that differ by this factor at most are much the same.
const ALIKE: f64 = 1.25;
/// A step beside which the target is idle lasts no longer: it has enough requests of the probe by then.
const MAX_IDLE: Nanos = Nanos::from_secs(5);

impl By {
    fn first(self) -> u64 {
        match self {
            By::Connections | By::Burst => FIRST_CONNECTIONS,
            By::Arrival | By::Rate => FIRST_PER_S,
        }
    }

    /// A load beside which the target is as good as idle, of those from `least` to `most`.
    fn idle(self, least: u64, most: u64) -> u64 {
        let first = self.first().min(most);
        match self {
            // Of fewer requests, one that is answered after the step is a shortfall.
            By::Rate => least + first / 10,
            // A step has as many arrivals as come in its time: with one of them it has no time for the probe.
            By::Arrival => (first / 10).max(least),
            By::Connections | By::Burst => (first / 100).max(least),
        }
    }

    /// The search from `least` to `most`. Where the probe is compared with a baseline, it begins with that.
    fn search(self, plan: &Plan, least: u64, most: u64) -> Search {
        let search = Search::new(least, self.first().max(least), most, TOLERANCE);
        match plan.probe.is_some() && plan.thresholds.is_empty() {
            true => search.beginning_with(self.idle(least, most)),
            false => search,
        }
    }
}

/// A search: what, how far, and each step's time at full load.
#[derive(Clone, Copy, Debug)]
pub struct Find {
    /// What is made larger.
    pub by: By,
    /// Not beyond this load.
    pub most: u64,
    /// Each step is held, and judged, for this long.
    pub dwell: Nanos,
}

/// The largest load to search up to where the user names none: all that this machine can hold, or more in a second than any
/// machine takes.
///
/// # Errors
/// There is no way to the target.
pub fn most(by: By, plan: &Plan, root: &Root) -> Result<u64, Refusal> {
    if let Some(most) = most_per_s(by) {
        return Ok(most);
    }
    let all = by.plan(plan, u32::MAX.into(), Nanos::ZERO);
    Ok(with_some_room(&all, fitting(&all, root)?))
}

/// More in a second than any machine takes; none where the load is connections at one time.
pub fn most_per_s(by: By) -> Option<u64> {
    matches!(by, By::Arrival | By::Rate).then_some(MAX_PER_S)
}

/// Searches; calls `show` with each completed step. A signal, or the loss of an agent, ends the search with the result so far.
///
/// # Errors
/// This machine cannot do even the first step, or the largest load is less than the least that there is.
pub fn find<S: WorkerSource>(
    source: &mut S,
    find: Find,
    plan: &Plan,
    root: &Root,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&Point),
) -> Result<FindSummary, Refusal> {
    let least = find.by.least(plan);
    let too_little = |why| Refusal::Failed(format!("the largest load {why}"));
    find.by.check_most(plan, find.most).map_err(too_little)?;
    let mut steps = match Steps::new(source, find, least, plan, root, interrupt, say) {
        Err(why) if interrupt.is_set() => {
            interrupt.tell(&why.to_string());
            return Ok(not_begun(find.by, plan));
        }
        steps => steps?,
    };
    let timeout = plan.probe.as_ref().map(|probe| probe.populations[0].timeout);
    let mut known = Known { search: find.by.search(plan, least, steps.most), timeout, ..Known::default() };
    while let Some(step) = known.search.step() {
        let load = step.load;
        (steps.has_passed, steps.unloaded) = (known.search.passed().is_some(), known.unloaded());
        let dwell = known.dwell(step, find.dwell);
        let summary = caught(|| steps.step(load, dwell)).unwrap_or_else(|| Ok(Summary::default()));
        steps.note_failure();
        match summary {
            _ if steps.lost.is_some() => break,
            Ok(summary) if summary.verdict == Verdict::Interrupted => break,
            Ok(summary) => known.learn(find.by, load, summary, show),
            // Its workers were waited for.
            Err(_) if interrupt.is_set() => break,
            // More than this machine can do: the load stays below that.
            Err(Refusal::Findings(findings)) if known.search.passed().is_some() => {
                let passed = known.search.passed().unwrap_or(0);
                let refused = judge::refused_here(&findings, passed);
                known.limit = refused.map(|limit| (load, limit)).or(known.limit);
                known.search.learn(StepResult::Badly(None));
                known.search.be_sure();
            }
            Err(refusal) => return Err(refusal),
        }
        if known.has_ended() && steps.is_target_gone() {
            known.search.fail_for_good();
        }
        if known.search.step().is_some() {
            steps.settle(load, known.search.passed().unwrap_or(least));
        }
        if steps.lost.is_some() {
            break;
        }
    }
    // A result is one, whatever comes after it.
    known.interrupted = (interrupt.is_set() || steps.lost.is_some()) && known.search.outcome().is_none();
    known.ended = steps.lost.clone().filter(|_| known.interrupted && !interrupt.is_set());
    // Just above the result too few are lost to determine the cause: it is clear at twice the load. Not where throng was late before.
    let is_unknown = known.limit.as_ref().is_none_or(|(_, limit)| judge::weight(limit) == 0);
    let is_unknown = is_unknown && !known.is_ours();
    if let (Some(Outcome::Found { max, .. }), true, false) =
        (known.search.outcome(), is_unknown, interrupt.is_set())
    {
        let load = max.saturating_mul(2).min(steps.most.max(max));
        let twice = steps.step(load, find.dwell).ok();
        let twice = twice.filter(|s| s.verdict != Verdict::Interrupted && steps.lost.is_none());
        let limit = twice.and_then(|summary| summary.limit.or(summary.suspect));
        let explains = limit.filter(|limit| judge::weight(limit) > 0);
        known.limit = explains.map(|limit| (load, limit)).or(known.limit);
    }
    Ok(known.into_summary(find.by, plan, steps.end()))
}

/// The result of a search that a signal ended before its first step.
pub fn not_begun(by: By, plan: &Plan) -> FindSummary {
    Known { interrupted: true, ..Known::default() }.into_summary(by, plan, None)
}

/// What the steps so far have shown.
#[derive(Default)]
struct Known {
    search: Search,
    /// What the probe's p99 is compared with, and the longest that there is of it.
    baseline: Option<Baseline>,
    timeout: Option<Nanos>,
    curve: Vec<Point>,
    /// What stopped the target, and the load that showed it.
    limit: Option<(u64, Limit)>,
    /// Ended by a signal, or because an agent was lost, and that.
    interrupted: bool,
    ended: Option<String>,
    /// The last load at which throng itself was the limit, with its lag at the 99th percentile, microseconds.
    late: Option<(u64, f64)>,
    /// The last step is measured once more.
    is_again: bool,
    /// Of the steps that passed.
    thresholds: Vec<(u64, Vec<ThresholdResult>)>,
}

impl Known {
    /// How long this step lasts, where others last for `dwell`.
    fn dwell(&self, step: Step, dwell: Nanos) -> Nanos {
        match step.confirms || self.search.was_unconfirmed() {
            true => Nanos(dwell.0 * CONFIRM),
            false if self.search.is_below_first() => dwell.min(MAX_IDLE),
            false => dwell,
        }
    }

    fn learn(&mut self, by: By, load: u64, summary: Summary, show: &mut dyn FnMut(&Point)) {
        let slow = slow_probe(by, &summary, self.baseline);
        let mut reasons = reasons(by, load, &summary);
        let holds_none = by == By::Connections && holds_none(load, &summary);
        if holds_none {
            reasons.insert(0, HOLDS_NONE.to_owned());
        }
        let confirms = self.search.step().is_some_and(|step| step.confirms);
        let is_confirmed = confirms && is_confirmed(by, load, &summary);
        if is_confirmed {
            reasons.clear();
        }
        let may_be_chance = may_be_chance(by, load, &summary, reasons.is_empty() && slow.is_some());
        reasons.extend(slow);
        let pass = reasons.is_empty();
        let mut point = Point { invalid: !pass && is_ours(by, &summary), ..point(load, &summary, reasons) };
        if pass {
            self.baseline = baseline(self.baseline, load, &summary, self.timeout);
            point.reasons.extend(self.failed_before(load));
        }
        show(&point);
        self.curve.push(point);
        if !pass {
            return self.fail(by, load, summary, [confirms, holds_none, may_be_chance]);
        }
        self.is_again = false;
        // What stopped it when it was measured before does not.
        self.limit = self.limit.take().filter(|(of, _)| *of > load);
        if !is_confirmed {
            self.thresholds.push((load, summary.thresholds));
        }
        self.search.learn(StepResult::Well);
    }

    /// The load did not pass. `confirms`: it did before; `holds_none`: the target closes all connections; `may_be_chance`: what failed may
    /// pass.
    fn fail(
        &mut self,
        by: By,
        load: u64,
        summary: Summary,
        [confirms, holds_none, may_be_chance]: [bool; 3],
    ) {
        let sustained = Some(by.sustained(&summary) as u64).filter(|n| *n > 0);
        // The closer to the result, the better; but just above it too few are lost to determine the cause.
        let (is_wrong, is_none) =
            (all_wrong(&summary) || none_secured(&summary), self.search.passed().is_none());
        let is_late = is_late(&summary);
        let unmeasured = unmeasured(&summary).filter(|_| is_none);
        let is_unmeasured = unmeasured.is_some();
        let limit =
            if holds_none { Some(none_held()) } else { unmeasured.or(summary.limit).or(summary.suspect) };
        let is_gone = limit.as_ref().is_some_and(judge::is_nobody);
        // A request that gets a wrong status from an idle target gets it with any load, as a certificate is wrong with any. What a load
        // does not measure, a smaller one does not either.
        let is_over = is_gone || holds_none || is_unmeasured || is_wrong && is_none;
        let is_certain = is_over || limit.as_ref().is_some_and(is_certain);
        // The first that fails ends the growth, and all that follows is below it.
        let is_first = self.search.failed().is_none() && !self.search.is_below_first();
        let was_again = self.is_again;
        self.is_again = !was_again && (may_be_chance || is_first && !is_certain);
        if self.is_again {
            return;
        }
        self.explain(load, limit);
        // If throng was the limit before any load passed, smaller loads show nothing about the target.
        let shows_nothing = summary.verdict == Verdict::Invalid && is_none;
        // What passed has passed, though throng could not repeat it; and where the load makes no difference to how late it is, it was the
        // limit for another reason, which has not gone.
        let is_unrepeated = is_late && (confirms || self.is_as_late_elsewhere(load, summary.lag_us.p99));
        if is_over || shows_nothing || is_unrepeated {
            return self.search.fail_for_good();
        }
        self.search.learn(StepResult::Badly(sustained));
        if was_again || is_certain {
            self.search.be_sure();
        }
    }

    /// The lowest median latency of the loads that passed.
    fn unloaded(&self) -> Option<Nanos> {
        let passed = self.curve.iter().filter(|point| point.pass);
        let lowest = passed.filter_map(|point| point.latency_p50_us).min_by(f64::total_cmp);
        lowest.map(|us| Nanos((us * 1e3) as u64))
    }

    /// What a load that passes failed by when it was measured before, if it did.
    fn failed_before(&self, load: u64) -> Option<String> {
        let before = self.curve.iter().rfind(|point| point.load == load).filter(|point| !point.pass)?;
        Some(format!("it did not pass before: {}", before.reasons.first()?))
    }

    /// Whether throng was much as late at another load.
    fn is_as_late_elsewhere(&mut self, load: u64, lag_us: f64) -> bool {
        let is_alike = |before: f64| lag_us > 0.0 && lag_us.max(before) <= ALIKE * lag_us.min(before);
        let before = self.late.replace((load, lag_us));
        before.is_some_and(|(other, before)| other != load && is_alike(before))
    }

    /// Keeps what explains most: of equals the latest, which is the closest to the result.
    fn explain(&mut self, load: u64, limit: Option<Limit>) {
        let before = self.limit.as_ref().map_or(0, |(_, limit)| judge::weight(limit));
        let Some(new) = limit.filter(|new| judge::weight(new) >= before) else { return };
        // Responses that are wrong with every load are why none passes, and not what became of their connections later.
        let is_wrong = self.limit.as_ref().is_some_and(|(_, limit)| limit.cause == Cause::WrongAnswer);
        if is_wrong && matches!(new.cause, Cause::Closed | Cause::Timeout) && self.search.passed().is_none() {
            return;
        }
        let was_there = self.limit.is_some() || self.search.passed().is_some();
        self.limit = match self.limit.take() {
            _ if !(judge::is_nobody(&new) && was_there) => Some((load, new)),
            // The load before shows why the target is gone; this one, that it is.
            Some((of, shown)) if before > 0 => Some((of, shown)),
            _ => Some((load, judge::gone(new))),
        };
    }

    /// Whether the target's process may have ended in the last step.
    fn has_ended(&self) -> bool {
        let failed = self.curve.last().is_some_and(|point| !point.pass);
        failed && self.limit.as_ref().is_some_and(|(_, limit)| judge::may_have_ended(limit))
    }

    /// Whether the smallest load that failed did so by throng itself.
    fn is_ours(&self) -> bool {
        let last = |failed: u64| self.curve.iter().rfind(|point| point.load == failed);
        self.search.failed().and_then(last).is_some_and(|point| point.invalid)
    }

    /// The smallest load above `max` that failed by what the target did, by the last step of each load; of a curve that ascends.
    fn failed_by_target(&self, max: u64) -> Option<u64> {
        let mut last = self.curve.chunk_by(|one, next| one.load == next.load).filter_map(<[Point]>::last);
        last.find(|point| point.load > max && !point.pass && !point.invalid).map(|point| point.load)
    }

    /// `refused`: why this machine cannot reach the requested load, and that.
    fn into_summary(mut self, by: By, plan: &Plan, refused: Option<(u64, Limit)>) -> FindSummary {
        self.curve.sort_by_key(|point| point.load);
        let mut failed = self.search.failed();
        let is_ours = self.is_ours();
        let mut invalid = is_ours && matches!(self.search.outcome(), Some(Outcome::Impossible { .. }));
        let (outcome, max, error) = match (self.search.outcome(), &refused) {
            // What throng could not do is no bound of what the target can.
            (Some(Outcome::Found { max, .. }), _) if is_ours => {
                let by_target = self.failed_by_target(max);
                (failed, invalid) = (by_target.or(failed), by_target.is_none());
                let found = by_target.map(|load| (FindOutcome::Found, max, load - max));
                found.unwrap_or((FindOutcome::NotReached, max, 0))
            }
            (Some(Outcome::Found { max, error }), _) => (FindOutcome::Found, max, error),
            (Some(Outcome::Impossible { .. }), _) => (FindOutcome::Impossible, 0, 0),
            // This is a result too: that of this machine.
            (Some(Outcome::NotReached { most }), Some(_)) => (FindOutcome::Found, most, 0),
            (Some(Outcome::NotReached { most }), None) => (FindOutcome::NotReached, most, 0),
            (None, _) => (FindOutcome::NotReached, self.search.passed().unwrap_or(0), 0),
        };
        let point = self.curve.iter().rfind(|point| !point.pass && Some(point.load) == failed);
        let criterion = point.and_then(|point| point.reasons.first().cloned());
        let is_cut = self.interrupted && point.is_some();
        let explains = |limit: &Limit| match outcome {
            FindOutcome::NotReached => is_cut || invalid && limit.side == Side::Host,
            FindOutcome::Found | FindOutcome::Impossible => true,
        };
        let limit = self.limit.or(refused).filter(|(_, limit)| explains(limit));
        let at_max = self.thresholds.into_iter().rev().find(|(load, _)| *load == max);
        FindSummary {
            schema: "throng.find/1".into(),
            by: by.name().into(),
            target: plan.text.clone(),
            seed: plan.seed,
            max,
            error,
            outcome,
            invalid,
            failed: failed.filter(|_| point.is_some()),
            criterion,
            interrupted: self.interrupted,
            ended: self.ended,
            limit_load: limit.as_ref().map(|(load, _)| *load),
            limit: limit.map(|(_, limit)| limit),
            baseline: self.baseline,
            probe_per_s: plan.probe.as_ref().map_or(0.0, |probe| probe.rate.per_s_f64()),
            thresholds: at_max.map(|(_, results)| results).unwrap_or_default(),
            curve: self.curve,
        }
    }
}

fn point(load: u64, s: &Summary, reasons: Vec<String>) -> Point {
    let without = |times: &Quantiles| times.censored.as_ref().map_or(0.0, |censored| censored.share);
    let measured = |times: &Quantiles, us: f64| (times.count > 0).then_some(us);
    let (latency, connect) = (&s.latency_us, &s.connect_us);
    Point {
        load,
        pass: reasons.is_empty(),
        invalid: false,
        held: s.connections.held,
        requests_per_s: s.requests.per_s,
        latency_p50_us: measured(latency, latency.p50),
        latency_p95_us: measured(latency, latency.p95),
        latency_p99_us: measured(latency, latency.p99),
        no_response: without(latency),
        probe_p99_us: probe_p99_us(s),
        probe_no_response: s.probe.as_ref().map_or(0.0, |probe| without(&probe.held_us)),
        connect_p99_us: measured(connect, connect.p99),
        connect_no_response: without(connect),
        reasons,
    }
}

#[cfg(test)]
mod tests;
