//! The search for the largest load that a target sustains. [`search::Search`] proposes one load after another; each becomes a short run
//! (a step), which is judged as passed or failed. This module translates between the two, and turns the steps into a summary with the
//! limiting factor.

use host::Root;
use plan::Plan;
use samples::{
    Baseline, Cause, FindOutcome, FindSummary, Limit, Point, Quantiles, Side, Summary, ThresholdResult,
    Verdict,
};
use search::{Answer, Outcome, Proposal, Purpose, Search, SeenLimit};
use units::{Count, Nanos, caught};

use crate::{
    Interrupt, Refusal,
    prepare::{fitting, refused_here},
};

pub use criteria::reasons;
use criteria::{
    HOLDS_NONE, all_wrong, baseline, closes, holds_none, is_confirmed, is_here, is_ours, none_held,
    none_secured, probe_p99_us, seen, slow_probe, unloaded, unmeasured,
};
pub use source::with_some_room;
use steps::Steps;

mod by;
mod criteria;
mod load;
mod source;
mod steps;

pub use by::{By, Number, Variant};
pub use source::{Here, WorkerSource};

/// A rate beyond any machine.
const MAX_PER_S: u64 = 1_000_000;
/// Part of the search's time that is reserved for the end of the last step and of its workers.
const MARGIN: Nanos = Nanos::from_secs(2);

/// Parameters of a search.
#[derive(Clone, Copy, Debug)]
pub struct Find {
    /// The quantity to increase.
    pub by: By,
    /// The largest load to try.
    pub most: u64,
    /// Time at full load for each step.
    pub dwell: Nanos,
    /// Maximum duration of the search.
    pub max_time: Nanos,
    /// The think time is a default, and may be shortened if the server closes connections that are idle for that long.
    pub may_think_less: bool,
}

/// The largest load to try if the user gives none: all that this machine can hold, or a rate beyond any machine.
///
/// # Errors
/// There is no route to the target.
pub fn most(by: By, plan: &Plan, root: &Root) -> Result<u64, Refusal> {
    if let Some(most) = most_per_s(by) {
        return Ok(most);
    }
    let all = by.plan(plan, u32::MAX.into(), Nanos::ZERO);
    Ok(with_some_room(&all, fitting(&all, root)?))
}

/// A rate beyond any machine; `None` if the load is a number of concurrent connections.
pub fn most_per_s(by: By) -> Option<u64> {
    matches!(by, By::Arrival | By::Rate).then_some(MAX_PER_S)
}

/// The next step of a search, and the results so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The load of the next step.
    pub load: u64,
    /// The largest load that passed.
    pub passed: Option<u64>,
    /// The smallest load that failed.
    pub failed: Option<u64>,
    /// Maximum remaining time of the search.
    pub left: Nanos,
}

/// Progress of a search.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// A step begins.
    Next(Next),
    /// A step has ended.
    Step(&'a Point),
}

/// Runs a search; calls `show` before and after each step. A signal or the loss of an agent ends it with the results so far.
///
/// # Errors
/// This machine cannot carry out the first step, or the largest load is below the smallest possible one.
pub fn find<S: WorkerSource>(
    source: &mut S,
    find: Find,
    plan: &Plan,
    root: &Root,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(Shown<'_>),
) -> Result<FindSummary, Refusal> {
    let least = find.by.least(plan);
    find.by.check_most(plan, find.most).map_err(|why| format!("the largest load {why}"))?;
    let timed = interrupt.after(find.max_time.since(MARGIN));
    let mut steps = match Steps::new(source, find, least, plan, root, &timed, say) {
        Err(why) if interrupt.is_set() => {
            interrupt.tell(&why.to_string());
            return Ok(not_begun(find.by, plan));
        }
        steps => steps?,
    };
    let mut known = Known::new(find.by.search(plan, least, steps.begun.most), plan);
    while let Some(step) = known.propose(find.by) {
        if steps.so_far.lost.is_some() || timed.is_set() {
            break;
        }
        steps.settle(step.settle.unwrap_or(step.load));
        (steps.so_far.has_passed, steps.so_far.unloaded) = (known.has_passed(), known.unloaded);
        steps.so_far.is_gentle = find.by == By::Connections && known.is_in_doubt(step.purpose);
        show(Shown::Next(known.next(step.load, timed.left())));
        let dwell = Nanos(find.dwell.0 * find.by.patience(step.purpose));
        let summary = caught(|| steps.step(step.load, dwell)).unwrap_or_else(|| Ok(Summary::default()));
        steps.note_failure();
        match summary {
            _ if steps.so_far.lost.is_some() => break,
            Ok(summary) if summary.verdict == Verdict::Interrupted => break,
            // The step has shown the server's idle timeout. At the idle load of a baseline nothing else changes with shorter pauses.
            Ok(summary) if steps.thinks_less()? => {
                if step.purpose == Purpose::Baseline && summary.verdict == Verdict::Pass {
                    known.learn(find.by, step, summary, show);
                }
            }
            Ok(summary) => known.learn(find.by, step, summary, show),
            // The time was up while waiting for workers.
            Err(_) if timed.is_set() => break,
            // Beyond the capability of this machine: the search stays below that.
            Err(Refusal::Findings(findings)) if known.has_passed() => {
                let refused = refused_here(&findings, known.passed());
                known.refuse(step, &refused.as_ref().map(Limit::sentence_with_fix).unwrap_or_default());
                known.limit = refused.map(|limit| (step.load, limit)).or(known.limit);
            }
            Err(refusal) => return Err(refusal),
        }
        if known.has_ended() && steps.is_target_gone() {
            known.give_up(step.load);
        }
    }
    // Once there is a result, a later interrupt does not change it.
    let is_open = known.search.propose().is_some();
    known.is_late = is_open && timed.is_late() && !interrupt.is_set();
    known.interrupted = is_open && (interrupt.is_set() || steps.so_far.lost.is_some());
    known.ended = steps.so_far.lost.clone().filter(|_| known.interrupted && !interrupt.is_set());
    // Just above the result too few connections are lost to determine the cause; twice the load shows it. Not if throng itself was the
    // limit.
    let is_unknown = known.limit.as_ref().is_none_or(|(_, limit)| judge::weight(limit) == 0);
    let is_unknown = is_unknown && !known.is_ours();
    if let (Answer::Found { max, .. }, true, false) = (known.search.answer(), is_unknown, timed.is_set()) {
        let load = max.saturating_mul(2).min(steps.begun.most.max(max));
        let twice = steps.step(load, find.dwell).ok();
        let twice = twice.filter(|s| s.verdict != Verdict::Interrupted && steps.so_far.lost.is_none());
        let limit = twice.and_then(|summary| summary.limit.or(summary.suspect));
        let explains = limit.filter(|limit| judge::weight(limit) > 0);
        known.limit = explains.map(|limit| (load, limit)).or(known.limit);
    }
    let idle = steps.so_far.idle;
    Ok(FindSummary { idle, ..known.into_summary(find.by, plan, steps.end()) })
}

/// The summary of a search that a signal ended before its first step.
pub fn not_begun(by: By, plan: &Plan) -> FindSummary {
    let least = by.least(plan);
    let known = Known::new(by.search(plan, least, least), plan);
    Known { interrupted: true, ..known }.into_summary(by, plan, None)
}

/// The results of the steps so far.
struct Known {
    search: Search,
    /// What the probe's p99 is compared with, and the probe's timeout.
    baseline: Option<Baseline>,
    timeout: Option<Nanos>,
    /// The lowest median latency among the loads that passed.
    unloaded: Option<Nanos>,
    /// The highest ratio of announced closes to responses among the loads that passed.
    usual_closes: Option<f64>,
    curve: Vec<Point>,
    /// The limiting factor, and the load that showed it.
    limit: Option<(u64, Limit)>,
    /// Whether a signal or the loss of an agent ended the search, the reason in the latter case, and whether its time was up.
    interrupted: bool,
    ended: Option<String>,
    is_late: bool,
    /// The smallest refused load, and the reason.
    refused: Option<String>,
    /// Threshold results of the steps that passed.
    thresholds: Vec<(u64, Vec<ThresholdResult>)>,
}

impl Known {
    /// No results yet.
    fn new(search: Search, plan: &Plan) -> Known {
        Known {
            search,
            baseline: None,
            timeout: plan.probe.as_ref().map(|probe| probe.populations[0].timeout),
            unloaded: None,
            usual_closes: None,
            curve: Vec::new(),
            limit: None,
            interrupted: false,
            ended: None,
            is_late: false,
            refused: None,
            thresholds: Vec::new(),
        }
    }

    /// The next step that has a valid plan.
    fn propose(&mut self, by: By) -> Option<Proposal> {
        loop {
            let step = self.search.propose()?;
            let Some(Err(why)) = by.variant(step.load) else { return Some(step) };
            self.refuse(step, &why.to_string());
        }
    }

    /// Excludes this load: the search stays below it.
    fn refuse(&mut self, step: Proposal, why: &str) {
        // A refused baseline is no upper bound.
        if step.purpose != Purpose::Baseline {
            self.refused = Some(format!("{} was refused: {why}", Count(step.load)));
        }
        self.search.learn(step.load, Outcome::Invalid);
    }

    fn learn(&mut self, by: By, step: Proposal, summary: Summary, show: &mut dyn FnMut(Shown<'_>)) {
        let load = step.load;
        let slow = slow_probe(by, &summary, self.baseline);
        let mut reasons = reasons(by, load, &summary, self.usual_closes);
        let holds_none = by == By::Connections && holds_none(load, &summary);
        if holds_none {
            reasons.insert(0, HOLDS_NONE.to_owned());
        }
        // This load's connections were opened in an earlier step that passed, which judged their opening.
        let passed_before = self.curve.iter().any(|point| point.pass && point.load >= load);
        let is_confirmed = passed_before && is_confirmed(by, load, &summary, self.usual_closes);
        if is_confirmed {
            reasons.clear();
        }
        reasons.extend(slow);
        let pass = reasons.is_empty();
        let nth = self.curve.len() as u32 + 1;
        let mut point =
            Point { invalid: !pass && is_ours(by, &summary), step: nth, ..point(load, &summary, reasons) };
        if pass {
            self.baseline = baseline(self.baseline, load, &summary, self.timeout);
            point.reasons.extend(self.failed_before(load));
        }
        show(Shown::Step(&point));
        self.curve.push(point);
        if !pass {
            return self.fail(by, step, summary, holds_none);
        }
        // A limit seen earlier at this load or below no longer applies.
        self.limit = self.limit.take().filter(|(of, _)| *of > load);
        self.usual_closes = closes(&summary).into_iter().chain(self.usual_closes).reduce(f64::max);
        self.unloaded = unloaded(&summary).into_iter().chain(self.unloaded).min();
        if !is_confirmed {
            self.thresholds.push((load, summary.thresholds));
        }
        self.search.learn(load, Outcome::Passed);
    }

    /// Records a failed step. `holds_none`: the target closes all connections.
    fn fail(&mut self, by: By, step: Proposal, summary: Summary, holds_none: bool) {
        let load = step.load;
        let sustained = Some(by.sustained(&summary) as u64).filter(|n| *n > 0);
        let is_none = !self.has_passed();
        let is_wrong = all_wrong(&summary) || none_secured(&summary);
        let is_here = is_here(&summary);
        let unmeasured = unmeasured(&summary).filter(|_| is_none);
        let is_unmeasured = unmeasured.is_some();
        let limit =
            if holds_none { Some(none_held()) } else { unmeasured.or(summary.limit).or(summary.suspect) };
        let is_gone = limit.as_ref().is_some_and(judge::is_nobody);
        let seen = limit.as_ref().filter(|_| by == By::Connections).map_or(SeenLimit::None, seen);
        // Failures that a smaller load would have as well: a wrong status or certificate from an idle target, or a threshold on a figure
        // that is not measured. If throng was the limit before any load passed, smaller loads show nothing about the target.
        let shows_nothing = is_here && is_none && step.purpose != Purpose::Baseline;
        let is_certain = is_gone || holds_none || is_unmeasured || is_wrong && is_none || shows_nothing;
        self.explain(load, limit);
        if is_certain {
            return self.give_up(load);
        }
        let failed = Outcome::Failed { sustained, limit: seen, is_certain };
        self.search.learn(load, if is_here { Outcome::Invalid } else { failed });
    }

    /// Ends the search: further steps would show nothing new.
    fn give_up(&mut self, load: u64) {
        self.search
            .learn(load, Outcome::Failed { sustained: None, limit: SeenLimit::None, is_certain: true });
    }

    fn next(&self, load: u64, left: Nanos) -> Next {
        let failed = self.curve.iter().filter(|point| !point.pass).map(|point| point.load).min();
        Next { load, passed: Some(self.passed()).filter(|load| *load > 0), failed, left }
    }

    fn passed(&self) -> u64 {
        self.curve.iter().filter(|point| point.pass).map(|point| point.load).max().unwrap_or(0)
    }

    fn has_passed(&self) -> bool {
        self.passed() > 0
    }

    /// Whether a step of this purpose decides about a limit that was not seen directly.
    fn is_in_doubt(&self, purpose: Purpose) -> bool {
        let is_seen = self.limit.as_ref().is_some_and(|(_, limit)| seen(limit) == SeenLimit::Fixed);
        matches!(purpose, Purpose::Narrow | Purpose::Confirm) && !is_seen
    }

    /// The smallest failed load above the result.
    fn failed(&self) -> Option<u64> {
        let max = self.search.answer().max();
        let failed = self.curve.iter().filter(|point| !point.pass);
        failed.map(|point| point.load).filter(|load| *load > max).min()
    }

    /// Why this load failed in an earlier step, if it did.
    fn failed_before(&self, load: u64) -> Option<String> {
        let before = self.curve.iter().rfind(|point| point.load == load).filter(|point| !point.pass)?;
        Some(format!("it did not pass before: {}", before.reasons.first()?))
    }

    /// Keeps the limit that explains most; among equals the latest one, which is closest to the result.
    fn explain(&mut self, load: u64, limit: Option<Limit>) {
        let before = self.limit.as_ref().map_or(0, |(_, limit)| judge::weight(limit));
        let Some(new) = limit.filter(|new| judge::weight(new) >= before) else { return };
        // If all responses are wrong, that is why no load passes, not what happened to the connections later.
        let is_wrong = self.limit.as_ref().is_some_and(|(_, limit)| limit.cause == Cause::WrongAnswer);
        if is_wrong && matches!(new.cause, Cause::Closed | Cause::Timeout) && !self.has_passed() {
            return;
        }
        let was_there = self.limit.is_some() || self.has_passed();
        self.limit = match self.limit.take() {
            _ if !(judge::is_nobody(&new) && was_there) => Some((load, new)),
            // The earlier load shows why the target is gone, this one only that it is.
            Some((of, shown)) if before > 0 => Some((of, shown)),
            _ => Some((load, judge::gone(new))),
        };
    }

    /// Whether the target's process may have ended in the last step.
    fn has_ended(&self) -> bool {
        let failed = self.curve.last().is_some_and(|point| !point.pass);
        failed && self.limit.as_ref().is_some_and(|(_, limit)| judge::may_have_ended(limit))
    }

    /// Whether the smallest failed load above the result failed because of throng itself.
    fn is_ours(&self) -> bool {
        let last = |failed: u64| self.curve.iter().rfind(|point| point.load == failed);
        self.failed().and_then(last).is_some_and(|point| point.invalid)
    }

    /// `refused`: the requested load that this machine cannot reach, and why.
    fn into_summary(mut self, by: By, plan: &Plan, refused: Option<(u64, Limit)>) -> FindSummary {
        let (failed, is_ours) = (self.failed(), self.is_ours());
        self.curve.sort_by_key(|point| point.load);
        let (outcome, max, error) = match self.search.answer() {
            // What throng could not do is no upper bound for the target.
            Answer::Found { max, .. } if is_ours => (FindOutcome::NotReached, max, 0),
            Answer::Found { max, interval } => (FindOutcome::Found, max, interval.error(max)),
            // This is a result too, but about this machine.
            Answer::NotReached { most } if refused.is_some() && !is_ours => (FindOutcome::Found, most, 0),
            Answer::NotReached { most } => (FindOutcome::NotReached, most, 0),
            Answer::Impossible { .. } => (FindOutcome::Impossible, 0, 0),
            Answer::Unsettled { failed: None, .. } if is_ours && !self.has_passed() => {
                (FindOutcome::Impossible, 0, 0)
            }
            // The time was up: nothing is known about larger loads.
            Answer::Unsettled { failed: None, .. } if self.is_late => {
                (FindOutcome::Unsettled, self.passed(), 0)
            }
            Answer::Unsettled { failed, .. } if is_ours || failed.is_none() => {
                (FindOutcome::NotReached, self.passed(), 0)
            }
            Answer::Unsettled { interval, .. } => {
                let passed = self.passed();
                (FindOutcome::Unsettled, passed, interval.error(passed))
            }
        };
        let invalid = is_ours && outcome != FindOutcome::Found;
        let is_bounded = outcome == FindOutcome::NotReached && !invalid && !self.interrupted;
        let late = self.is_late.then(|| "its time was over (--max-time)".to_owned());
        let ended = self.ended.or(late).or(self.refused.filter(|_| is_bounded));
        let point = self.curve.iter().rfind(|point| !point.pass && Some(point.load) == failed);
        let criterion = point.and_then(|point| point.reasons.first().cloned());
        let explains = |limit: &Limit| match outcome {
            FindOutcome::NotReached => invalid && limit.side == Side::Host,
            FindOutcome::Found | FindOutcome::Impossible | FindOutcome::Unsettled => true,
        };
        let limit = self.limit.or(refused).filter(|(_, limit)| explains(limit));
        let at_max = self.thresholds.into_iter().rev().find(|(load, _)| *load == max);
        FindSummary {
            schema: "throng.find/1".into(),
            by: by.name().into(),
            unit: by.unit().into(),
            target: plan.text.clone(),
            seed: plan.seed,
            max,
            error,
            outcome,
            invalid,
            failed: failed.filter(|_| point.is_some()),
            criterion,
            interrupted: self.interrupted,
            ended,
            limit_load: limit.as_ref().map(|(load, _)| *load),
            limit: limit.map(|(_, limit)| limit),
            baseline: self.baseline,
            probe_per_s: plan.probe.as_ref().map_or(0.0, |probe| probe.rate.per_s_f64()),
            thresholds: at_max.map(|(_, results)| results).unwrap_or_default(),
            idle: None,
            curve: self.curve,
        }
    }
}

fn point(load: u64, s: &Summary, reasons: Vec<String>) -> Point {
    let without = |times: &Quantiles| times.censored.as_ref().map_or(0.0, |censored| censored.share);
    let measured = |times: &Quantiles, us: f64| (times.count > 0).then_some(us);
    let (latency, connect) = (&s.latency_us, &s.connect_us);
    let target = s.observed.target.as_ref().map(|target| &target.process);
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
        errors: s.errors.share(),
        target_cores: target.and_then(|own| own.cores_used_hold).map(|used| used.max),
        target_cores_limit: target.and_then(|own| own.cores),
        target_thread: target.and_then(|own| own.busiest_wanted_hold).map(|used| used.max.min(1.0)),
        step: 0,
        elapsed_s: s.elapsed_s,
        reasons,
    }
}

#[cfg(test)]
mod tests;
