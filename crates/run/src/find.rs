//! The largest load that a target sustains: one step after the other, as [`search::Search`] determines.

use host::Root;
use plan::Plan;
use samples::{
    Baseline, Cause, FindOutcome, FindSummary, Limit, Point, Quantiles, Side, Summary, ThresholdResult,
    Verdict,
};
use search::{Answer, Outcome, Proposal, Purpose, Range, Search, SeenLimit};
use units::{Nanos, caught};

use crate::{By, Interrupt, Refusal, fitting, refusal::refused_here};

pub use criteria::reasons;
use criteria::{
    HOLDS_NONE, all_wrong, baseline, closes, holds_none, is_confirmed, is_here, is_ours, none_held,
    none_secured, probe_p99_us, seen, slow_probe, unloaded, unmeasured,
};
use steps::Steps;
pub use steps::with_some_room;

mod criteria;
mod idle;
mod load;
mod prospects;
mod refused;
mod source;
mod steps;

pub use source::{Here, WorkerSource};

/// Precision of the result, as a share of it.
const TOLERANCE: f64 = 0.02;
/// The first load: small enough for any server, so that it shows what an unloaded one is like.
const FIRST_CONNECTIONS: u64 = 500;
const FIRST_PER_S: u64 = 100;
const MAX_PER_S: u64 = 1_000_000;
/// Growth from one step to the next while all pass: what is held grows beyond the limit at no great cost; of a rate, what exceeds the
/// capacity queues.
const GROWTH: u64 = 4;
const GROWTH_PER_S: u64 = 2;
/// See [`By::patience`].
const QUEUES: u64 = 2;
/// For the end of the last step and of its workers, of the time that a search has.
const MARGIN: Nanos = Nanos::from_secs(2);

impl By {
    fn first(self) -> u64 {
        match self {
            By::Connections | By::Burst => FIRST_CONNECTIONS,
            By::Arrival | By::Rate => FIRST_PER_S,
            By::Number(number) => number.map_or(1, |number| number.value.max(1)),
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
            By::Connections | By::Burst | By::Number(_) => (first / 100).max(least),
        }
    }

    /// How many times as long a step lasts for this: what comes faster than it is served queues, and a short step is over before the queue
    /// shows. On the way up that does no harm.
    fn patience(self, purpose: Purpose) -> u64 {
        let decides = matches!(purpose, Purpose::Narrow | Purpose::Confirm);
        if decides && matches!(self, By::Rate | By::Arrival) { QUEUES } else { 1 }
    }

    /// The search from `least` to `most`. Where the probe is compared with a baseline, it begins with that.
    fn search(self, plan: &Plan, least: u64, most: u64) -> Search {
        let growth = if matches!(self, By::Connections | By::Burst) { GROWTH } else { GROWTH_PER_S };
        let search = Search::new(Range { least, most }, TOLERANCE).climbing_from(self.first(), growth);
        let search = if self == By::Connections { search.that_holds() } else { search };
        match plan.probe.is_some() && plan.thresholds.is_empty() {
            true => search.with_baseline(self.idle(least, most)),
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
    /// The search takes no longer.
    pub max_time: Nanos,
    /// The think time is a default: it becomes shorter where the server closes connections that are idle for less.
    pub may_think_less: bool,
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

/// What a search does next, and what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The load of the next step.
    pub load: u64,
    /// The largest load that passed.
    pub passed: Option<u64>,
    /// The smallest load that failed.
    pub failed: Option<u64>,
    /// The search ends within this time.
    pub left: Nanos,
}

/// Of a search in progress, as it goes.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// A step begins.
    Next(Next),
    /// It is over.
    Step(&'a Point),
}

/// Searches; calls `show` before and after each step. A signal, or the loss of an agent, ends the search with the result so far.
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
    show: &mut dyn FnMut(Shown<'_>),
) -> Result<FindSummary, Refusal> {
    let least = find.by.least(plan);
    let too_little = |why| Refusal::Failed(format!("the largest load {why}"));
    find.by.check_most(plan, find.most).map_err(too_little)?;
    let timed = interrupt.after(find.max_time.since(MARGIN));
    let mut steps = match Steps::new(source, find, least, plan, root, &timed, say) {
        Err(why) if interrupt.is_set() => {
            interrupt.tell(&why.to_string());
            return Ok(not_begun(find.by, plan));
        }
        steps => steps?,
    };
    let mut known = Known::new(find.by.search(plan, least, steps.most), plan);
    while let Some(step) = known.propose(find.by) {
        if steps.lost.is_some() || timed.is_set() {
            break;
        }
        steps.settle(step.settle.unwrap_or(step.load));
        (steps.has_passed, steps.unloaded) = (known.has_passed(), known.unloaded);
        steps.is_gentle = find.by == By::Connections && known.is_in_doubt(step.purpose);
        show(Shown::Next(known.next(step.load, timed.left())));
        let dwell = Nanos(find.dwell.0 * find.by.patience(step.purpose));
        let summary = caught(|| steps.step(step.load, dwell)).unwrap_or_else(|| Ok(Summary::default()));
        steps.note_failure();
        match summary {
            _ if steps.lost.is_some() => break,
            Ok(summary) if summary.verdict == Verdict::Interrupted => break,
            // What it showed is how long connections may be idle; of an idle target that is all that changes.
            Ok(summary) if steps.thinks_less()? => {
                if step.purpose == Purpose::Baseline && summary.verdict == Verdict::Pass {
                    known.learn(find.by, step, summary, show);
                }
            }
            Ok(summary) => known.learn(find.by, step, summary, show),
            // Its workers were waited for.
            Err(_) if timed.is_set() => break,
            // More than this machine can do: the load stays below that.
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
    // A result is one, whatever comes after it.
    let is_open = known.search.propose().is_some();
    known.is_late = is_open && timed.is_late() && !interrupt.is_set();
    known.interrupted = is_open && (interrupt.is_set() || steps.lost.is_some());
    known.ended = steps.lost.clone().filter(|_| known.interrupted && !interrupt.is_set());
    // Just above the result too few are lost to determine the cause: it is clear at twice the load. Not where throng was late before.
    let is_unknown = known.limit.as_ref().is_none_or(|(_, limit)| judge::weight(limit) == 0);
    let is_unknown = is_unknown && !known.is_ours();
    if let (Answer::Found { max, .. }, true, false) = (known.search.answer(), is_unknown, timed.is_set()) {
        let load = max.saturating_mul(2).min(steps.most.max(max));
        let twice = steps.step(load, find.dwell).ok();
        let twice = twice.filter(|s| s.verdict != Verdict::Interrupted && steps.lost.is_none());
        let limit = twice.and_then(|summary| summary.limit.or(summary.suspect));
        let explains = limit.filter(|limit| judge::weight(limit) > 0);
        known.limit = explains.map(|limit| (load, limit)).or(known.limit);
    }
    let idle = steps.idle;
    Ok(FindSummary { idle, ..known.into_summary(find.by, plan, steps.end()) })
}

/// The result of a search that a signal ended before its first step.
pub fn not_begun(by: By, plan: &Plan) -> FindSummary {
    let least = by.least(plan);
    let known = Known::new(by.search(plan, least, least), plan);
    Known { interrupted: true, ..known }.into_summary(by, plan, None)
}

/// What the steps so far have shown.
struct Known {
    search: Search,
    /// What the probe's p99 is compared with, and the longest that there is of it.
    baseline: Option<Baseline>,
    timeout: Option<Nanos>,
    /// The lowest median latency of the loads that passed.
    unloaded: Option<Nanos>,
    /// The most announced closes for each response, of the loads that passed.
    usual_closes: Option<f64>,
    curve: Vec<Point>,
    /// What stopped the target, and the load that showed it.
    limit: Option<(u64, Limit)>,
    /// Ended by a signal, or because an agent was lost, and that; or its time was over.
    interrupted: bool,
    ended: Option<String>,
    is_late: bool,
    /// The smallest load that was refused, and why.
    refused: Option<String>,
    /// Of the steps that passed.
    thresholds: Vec<(u64, Vec<ThresholdResult>)>,
}

impl Known {
    /// Nothing yet.
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

    fn learn(&mut self, by: By, step: Proposal, summary: Summary, show: &mut dyn FnMut(Shown<'_>)) {
        let load = step.load;
        let slow = slow_probe(by, &summary, self.baseline);
        let mut reasons = reasons(by, load, &summary, self.usual_closes);
        let holds_none = by == By::Connections && holds_none(load, &summary);
        if holds_none {
            reasons.insert(0, HOLDS_NONE.to_owned());
        }
        // Its connections were there before: what they did when they were opened was judged then.
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
        // What stopped it when it was measured before does not.
        self.limit = self.limit.take().filter(|(of, _)| *of > load);
        self.usual_closes = closes(&summary).into_iter().chain(self.usual_closes).reduce(f64::max);
        self.unloaded = unloaded(&summary).into_iter().chain(self.unloaded).min();
        if !is_confirmed {
            self.thresholds.push((load, summary.thresholds));
        }
        self.search.learn(load, Outcome::Passed);
    }

    /// The load did not pass. `holds_none`: the target closes all connections.
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
        // A request that gets a wrong status from an idle target gets it with any load, as a certificate is wrong with any. What a load
        // does not measure, a smaller one does not either.
        // If throng was the limit before any load passed, smaller loads show nothing about the target.
        let shows_nothing = is_here && is_none && step.purpose != Purpose::Baseline;
        let is_certain = is_gone || holds_none || is_unmeasured || is_wrong && is_none || shows_nothing;
        self.explain(load, limit);
        if is_certain {
            return self.give_up(load);
        }
        let failed = Outcome::Failed { sustained, limit: seen, is_certain };
        self.search.learn(load, if is_here { Outcome::Invalid } else { failed });
    }

    /// No further step shows more.
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

    /// Whether a step for this decides where a limit is that was not seen.
    fn is_in_doubt(&self, purpose: Purpose) -> bool {
        let is_seen = self.limit.as_ref().is_some_and(|(_, limit)| seen(limit) == SeenLimit::Fixed);
        matches!(purpose, Purpose::Narrow | Purpose::Confirm) && !is_seen
    }

    /// The smallest load above the result that failed.
    fn failed(&self) -> Option<u64> {
        let max = self.search.answer().max();
        let failed = self.curve.iter().filter(|point| !point.pass);
        failed.map(|point| point.load).filter(|load| *load > max).min()
    }

    /// What a load that passes failed by when it was measured before, if it did.
    fn failed_before(&self, load: u64) -> Option<String> {
        let before = self.curve.iter().rfind(|point| point.load == load).filter(|point| !point.pass)?;
        Some(format!("it did not pass before: {}", before.reasons.first()?))
    }

    /// Keeps what explains most: of equals the latest, which is the closest to the result.
    fn explain(&mut self, load: u64, limit: Option<Limit>) {
        let before = self.limit.as_ref().map_or(0, |(_, limit)| judge::weight(limit));
        let Some(new) = limit.filter(|new| judge::weight(new) >= before) else { return };
        // Responses that are wrong with every load are why none passes, and not what became of their connections later.
        let is_wrong = self.limit.as_ref().is_some_and(|(_, limit)| limit.cause == Cause::WrongAnswer);
        if is_wrong && matches!(new.cause, Cause::Closed | Cause::Timeout) && !self.has_passed() {
            return;
        }
        let was_there = self.limit.is_some() || self.has_passed();
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

    /// Whether the smallest load above the result that failed did so by throng itself.
    fn is_ours(&self) -> bool {
        let last = |failed: u64| self.curve.iter().rfind(|point| point.load == failed);
        self.failed().and_then(last).is_some_and(|point| point.invalid)
    }

    /// `refused`: why this machine cannot reach the requested load, and that.
    fn into_summary(mut self, by: By, plan: &Plan, refused: Option<(u64, Limit)>) -> FindSummary {
        let (failed, is_ours) = (self.failed(), self.is_ours());
        self.curve.sort_by_key(|point| point.load);
        let (outcome, max, error) = match self.search.answer() {
            // What throng could not do is no bound of what the target can.
            Answer::Found { max, .. } if is_ours => (FindOutcome::NotReached, max, 0),
            Answer::Found { max, interval } => (FindOutcome::Found, max, interval.error(max)),
            // This is a result too: that of this machine.
            Answer::NotReached { most } if refused.is_some() && !is_ours => (FindOutcome::Found, most, 0),
            Answer::NotReached { most } => (FindOutcome::NotReached, most, 0),
            Answer::Impossible { .. } => (FindOutcome::Impossible, 0, 0),
            Answer::Unsettled { failed: None, .. } if is_ours && !self.has_passed() => {
                (FindOutcome::Impossible, 0, 0)
            }
            // Its time was over: there may be more, of which nothing is known.
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
