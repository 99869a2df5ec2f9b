//! The case to explain: a run that was limited by something, or only the part of it (population, step) whose thresholds failed.

use std::cmp::Reverse;

use plan::Threshold;
use samples::{
    Detail, Fault, FaultCount, Kind, LogKind, LogLine, PopulationSummary, Quantiles, Requests, Side,
    SlowPart, Stage, StepSummary, Summary, ThresholdResult, Verdict,
};
use units::Count;

use crate::{
    evidence::{Evidence, Stall},
    say::nth,
    starved::Starved,
    trouble::{Trouble, is_response, trouble_of},
    words::Words,
};
use record::{
    signs::Sign,
    tolerances::{FEW, FEW_RESPONSES},
};

/// The part of a run that is judged. Faults outside it cannot explain why its thresholds failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope<'a> {
    /// The population that all failed thresholds refer to; `None` if they refer to several or to the whole run.
    pub(crate) population: Option<&'a str>,
    /// The step that all failed thresholds refer to, within that population.
    pub(crate) step: Option<&'a str>,
    /// Whether all failed thresholds are upper bounds on times.
    pub(crate) is_latency: bool,
}

impl Scope<'_> {
    /// The part of the run that all failed thresholds share; the whole run if none failed or they share no part.
    pub(crate) fn of<'a>(thresholds: &'a [Threshold], s: &Summary) -> Scope<'a> {
        let results = &s.thresholds;
        // Thresholds that are open only because throng was late count if no other one failed.
        let has_failed = results.iter().any(|result| result.fails());
        let counts = |result: &ThresholdResult| !result.pass && (!has_failed || !result.unreliable);
        let failed = thresholds.iter().zip(results).filter(|(_, result)| counts(result));
        let each = failed.map(|(threshold, _)| {
            let figure = &threshold.figure;
            Scope { population: figure.population(), step: figure.step(), is_latency: figure.is_latency() }
        });
        let scope = each.reduce(|all, own| {
            let population = all.population.filter(|_| all.population == own.population);
            let step = all.step.filter(|_| population.is_some() && all.step == own.step);
            Scope { population, step, is_latency: all.is_latency && own.is_latency }
        });
        let scope = scope.unwrap_or_default();
        // Requests of other populations were left unanswered, so the run fails for them, too.
        let is_of_others = scope.population.is_some_and(|name| {
            s.populations.get(name).is_none_or(|own| s.requests.unanswered > own.requests.unanswered)
        });
        if is_of_others { Scope::default() } else { scope }
    }
}

/// A run that was limited by something, with its most frequent kind of trouble.
pub(crate) struct Case<'a> {
    pub(crate) summary: &'a Summary,
    pub(crate) evidence: &'a Evidence,
    pub(crate) scope: Scope<'a>,
    /// Faults within the scope.
    pub(crate) faults: Vec<FaultCount>,
    pub(crate) trouble: Trouble,
    /// Number of faults of this kind of trouble. For lost connections at most the number of connections lost, as each may have had several
    /// requests.
    pub(crate) count: u64,
    /// The most frequent kind of fault among them.
    pub(crate) kind: Option<Kind>,
    pub(crate) stage: Option<Stage>,
    /// The kernel's error that came with it.
    pub(crate) detail: Detail,
}

impl<'a> Case<'a> {
    pub(crate) fn of(summary: &'a Summary, evidence: &'a Evidence, scope: Scope<'a>) -> Case<'a> {
        let mut case = Case {
            summary,
            evidence,
            scope,
            faults: Vec::new(),
            trouble: Trouble::None,
            count: 0,
            kind: None,
            stage: None,
            detail: Detail::NONE,
        };
        case.faults = case.faults_of_scope();
        // Requests that are still unanswered at the end count as timeouts, unless the run ended before their timeout.
        let is_cut_short = summary.verdict == Verdict::Interrupted || evidence.is_cut_short;
        let waiting = if is_cut_short { 0 } else { case.requests().unanswered };
        let unanswered = FaultCount::new(Fault::target(Stage::Exchange, Kind::Timeout), waiting);
        let faults: Vec<FaultCount> =
            case.faults.iter().chain([&unanswered]).filter(|f| f.count > 0).cloned().collect();
        let of = |trouble: Trouble| faults.iter().filter(move |f| trouble_of(f) == trouble);
        let count = |trouble: Trouble| of(trouble).map(|f| f.count).sum::<u64>();
        let most = faults.iter().map(trouble_of).max_by_key(|trouble| (count(*trouble), Reverse(*trouble)));
        let trouble = most.unwrap_or(Trouble::None);
        // A wrong response ranks before the loss of the connection that follows from it.
        let rank = |f: &&FaultCount| (!f.fault().follows_response(), f.count, f.kind.is_wrong_response());
        let worst = of(trouble).max_by_key(rank);
        let at_most = match summary.connections.dropped + summary.connections.failed {
            lost if trouble == Trouble::Lost && lost > 0 => lost,
            _ => u64::MAX,
        };
        Case {
            trouble,
            count: count(trouble).min(at_most),
            kind: worst.map(|f| f.kind),
            stage: worst.map(|f| f.stage),
            detail: worst.map_or(Detail::NONE, |f| f.detail),
            ..case
        }
    }

    /// The scope's population; `None` if the scope is the whole run.
    fn own(&self) -> Option<&'a PopulationSummary> {
        self.scope.population.and_then(|name| self.summary.populations.get(name))
    }

    fn own_step(&self) -> Option<&'a StepSummary> {
        self.own()?.steps.get(self.scope.step?)
    }

    fn faults_of_scope(&self) -> Vec<FaultCount> {
        let of_own = self.own().map(|own| &own.faults);
        let faults = self.own_step().map(|own| &own.faults).or(of_own).unwrap_or(&self.summary.faults);
        let responses: u64 = faults.iter().filter(|f| is_response(f)).map(|f| f.count).sum();
        // A few wrong responses do not explain why the others are slow.
        let are_few = FEW_RESPONSES * responses < self.requests().answered;
        let is_other = |f: &FaultCount| is_response(f) || f.fault().follows_response();
        faults.iter().filter(|f| !(self.scope.is_latency && are_few && is_other(f))).cloned().collect()
    }

    /// Request counts of the scope.
    pub(crate) fn requests(&self) -> &'a Requests {
        self.own().map_or(&self.summary.requests, |own| &own.requests)
    }

    /// Latency of the scope: at full load, and in the ramp.
    pub(crate) fn latency_us(&self) -> (&'a Quantiles, &'a Quantiles) {
        match (self.own_step(), self.own()) {
            (Some(own), _) => (&own.latency_us, &own.ramp_latency_us),
            (_, Some(own)) => (&own.latency_us, &own.ramp_latency_us),
            _ => (&self.summary.latency_us, &self.summary.ramp_latency_us),
        }
    }

    /// Responses by status. Statuses are counted per population: for a step that has only some of its population's faults, only 2xx is
    /// certain to include its responses.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> + use<'a> {
        let is_part =
            self.own_step().is_some_and(|step| self.own().is_some_and(|own| own.faults != step.faults));
        let all = self.requests().status.iter().map(|(status, n)| (*status, *n));
        all.filter(move |(status, _)| !is_part || (200..300).contains(status))
    }

    /// The populations within the scope.
    pub(crate) fn populations(&self) -> impl Iterator<Item = (&'a str, &'a PopulationSummary)> + use<'a> {
        let of = self.scope.population;
        let all = self.summary.populations.iter().map(|(name, own)| (name.as_str(), own));
        all.filter(move |(name, _)| of.is_none_or(|of| of == *name))
    }

    /// The part of the scope's responses that is far slower than all others.
    pub(crate) fn slow(&self) -> Option<SlowPart> {
        let Some(population) = self.scope.population else { return self.evidence.slow_part };
        let is_own = |of: &(String, Option<String>)| of.0 == population && of.1.as_deref() == self.scope.step;
        self.evidence.slow_parts.iter().find(|(of, _)| is_own(of)).map(|(_, part)| *part)
    }

    /// Seconds of the run in which slow responses came. Known for all populations together only: empty if the scope is one population.
    pub(crate) fn slow_seconds(&self) -> &'a [u64] {
        if self.scope.population.is_some() { &[] } else { &self.evidence.slow_seconds }
    }

    fn is_of(&self, name: &str) -> bool {
        self.scope.population.is_none_or(|own| own == name)
    }

    /// The longest time without a response, if it concerns the scope.
    pub(crate) fn stall(&self) -> Option<Stall> {
        let is_own = self.evidence.stall_of.as_ref().is_none_or(|name| self.is_of(name));
        self.evidence.stall.filter(|_| is_own)
    }

    /// Connections within the scope that had no response while others had many; of several populations, the one with the most such
    /// connections.
    pub(crate) fn most_starved(&self) -> Option<&'a Starved> {
        let is_own = |own: &&Starved| own.names.is_empty() || own.names.iter().any(|name| self.is_of(name));
        self.evidence.starved.iter().filter(is_own).max_by_key(|own| own.count)
    }

    /// When this trouble first occurred: from and until, in seconds of the run.
    pub(crate) fn failing(&self) -> Option<(f64, f64)> {
        self.evidence.timeline.failing(|fault| trouble_of(fault) == self.trouble)
    }

    /// Whether the target is reached over a network and its host is not observed.
    pub(crate) fn is_far(&self) -> bool {
        self.evidence.there.is_none() && !self.evidence.subject.is_loopback
    }

    /// Number of responses from this second of the run on.
    pub(crate) fn answered_from(&self, second: f64) -> u64 {
        let later = self.evidence.answered.iter().filter(|(from, _)| *from >= second);
        later.map(|(_, answered)| answered).sum()
    }

    /// Whether the only trouble is responses that were slow or missing.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.trouble, Trouble::None | Trouble::Waiting)
    }

    /// Whether nothing went wrong except that the failed thresholds had no value to compare with.
    pub(crate) fn is_unmeasured(&self) -> bool {
        let mut failed = self.summary.thresholds.iter().filter(|t| !t.pass).peekable();
        // Requests that were due and never sent are late, too.
        let is_none = self.trouble == Trouble::None && self.requests().missed == 0;
        is_none && failed.peek().is_some() && failed.all(|t| t.value.is_none())
    }

    /// Whether a sign was present when things began to fail; true if its time is unknown.
    pub(crate) fn explains(&self, sign: Sign) -> bool {
        self.evidence.timeline.first(sign, self.failing()).is_none_or(|(_, explains)| explains)
    }

    /// The first log line of this kind of the target, if it was logged when things began to fail.
    pub(crate) fn logged(&self, kind: LogKind) -> Option<&'a LogLine> {
        let line = self.evidence.log.iter().find(|line| line.kind == kind)?;
        self.explains(kind.into()).then_some(line)
    }

    /// The text that the target sent with the most frequent kind of fault.
    pub(crate) fn words(&self) -> Option<&'a Words> {
        Words::find(&self.evidence.words, self.stage?, self.kind?)
    }

    /// Whether wanted connections are missing, caused by the target or by the network path. If the load has all of its connections, the
    /// probe's new connections may still have found no room.
    pub(crate) fn is_short(&self) -> bool {
        let probes = self.summary.probe.as_ref().and_then(|probe| probe.held_us.censored.as_ref());
        match self.trouble {
            Trouble::Waiting | Trouble::Lost | Trouble::Refused => true,
            Trouble::None => probes.is_some_and(|censored| censored.count > 0),
            Trouble::Ours | Trouble::WrongAnswer | Trouble::Path | Trouble::Other => false,
        }
    }

    pub(crate) fn n(&self) -> Count {
        Count(self.count)
    }

    /// The process id of the target; 0 if it is not seen.
    pub(crate) fn pid(&self) -> u32 {
        self.evidence.target.map_or(0, |target| target.pid)
    }

    /// The fix with a smaller load as the alternative; in a search the fix alone, because the search looks for the largest load itself.
    pub(crate) fn or_less(&self, fix: &str, less: &str) -> String {
        if self.evidence.search.is_some() { fix.to_owned() } else { format!("{fix}, or {less}") }
    }

    /// Connections opened so far; in a search including those left open by earlier steps.
    pub(crate) fn opened(&self) -> u64 {
        self.evidence.losses.before + self.summary.connections.opened
    }

    /// Connections held at the end.
    pub(crate) fn held(&self) -> u64 {
        self.summary.connections.held
    }

    /// Connections left at the end; if none was left, the peak.
    pub(crate) fn left(&self) -> u64 {
        if self.held() > 0 { self.held().min(self.peak()) } else { self.peak() }
    }

    /// The maximum of connections open at once.
    pub(crate) fn peak(&self) -> u64 {
        self.summary.connections.peak
    }

    /// Connections that the target served: those left, without the ones that stood in its accept queue.
    pub(crate) fn served(&self) -> u64 {
        // The probe's new connections stand in the queue, too: the load accounts for at most those without a response.
        let most = if self.summary.probe.is_some() { self.count } else { u64::MAX };
        let served = self.peak().saturating_sub(self.evidence.stood.min(most));
        if served > 0 { self.left().min(served) } else { self.left() }
    }

    /// Number of faults in the scope with this side and kind.
    pub(crate) fn faults_of(&self, side: Side, kind: Kind) -> u64 {
        self.faults.iter().filter(|f| f.side == side && f.kind == kind).map(|f| f.count).sum()
    }

    /// Whether more than one succeeded for every ten that failed, so that the way of asking is not the reason.
    pub(crate) fn others_succeed(&self, succeeded: u64) -> bool {
        succeeded * 10 > self.count
    }

    /// Whether at least half of the missing responses began and did not end. Not known for messages and gRPC, whose first byte is not
    /// measured.
    pub(crate) fn is_unended(&self) -> bool {
        let subject = &self.evidence.subject;
        let is_most = self.evidence.unended * 2 >= self.count.max(1);
        is_most && !subject.has_messages && !subject.is_grpc
    }

    /// Number of faults with the kind and the kernel error of the most frequent fault.
    pub(crate) fn with_detail(&self) -> u64 {
        let is_one = |f: &&FaultCount| Some(f.kind) == self.kind && f.detail == self.detail;
        self.faults.iter().filter(is_one).map(|f| f.count).sum()
    }

    /// `: the 1,001st and all after it`, if every connection from some number on failed; otherwise empty.
    pub(crate) fn since(&self) -> String {
        let opened = self.opened() + self.summary.connections.redialled;
        // Dials that timed out had started earlier: connections opened meanwhile disprove the statement.
        let was_late = (self.stage, self.kind) == (Some(Stage::Dial), Some(Kind::Timeout));
        let is_other = |f: &FaultCount| f.stage == Stage::Dial && f.kind != Kind::Timeout;
        let are_others = was_late && self.evidence.opened_beside > FEW && !self.faults.iter().any(is_other);
        match opened > 0 && opened == self.evidence.losses.opened_by_then && !are_others {
            true => format!(": the {} and all after it", nth(opened + 1)),
            false => String::new(),
        }
    }
}
