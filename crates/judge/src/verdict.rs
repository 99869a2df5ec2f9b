//! The verdict of a run (pass, fail, invalid, interrupted) and the reasons for it.
//!
//! `own_part` determines which deviations throng itself caused. These make a run invalid rather than failed, because the target cannot be
//! judged by them.

use plan::{Population, Threshold};
use samples::{AgentState, AgentSummary, Summary, Verdict};
use units::Count;

use super::{
    evidence::Facts,
    honesty,
    own_part::{OwnPart, own_part},
    sent, starved,
};
use crate::{
    case::{Case, Scope},
    queue, seen,
};
use record::{LOST_WORKER, PopulationRecord};

/// Sets the verdict, its reasons, and which thresholds cannot be judged because throng was late.
pub(super) fn pronounce(facts: &Facts, s: &mut Summary) {
    let own = own_part(facts, s);
    s.unreliable = own.why.clone();
    for (result, is_unreliable) in s.thresholds.iter_mut().zip(&own.thresholds) {
        result.unreliable = *is_unreliable;
    }
    (s.verdict, s.reasons) = verdict(facts, s, &own);
}

/// The verdict and its reasons, the most important first; warnings last.
fn verdict(facts: &Facts, s: &Summary, own: &OwnPart) -> (Verdict, Vec<String>) {
    let mut reasons = failed_thresholds(s);
    let c = &s.connections;
    let few = sent::too_few(facts);
    let (unsent, ends_early) = sent::sent(facts, s);
    let unserved = [facts.evidence.stranded.clone(), starved::reasons(&facts.evidence.starved)].concat();
    let outrun = queue::outrun(facts.evidence, c.held);
    let (is_unserved, is_outrun) = (!unserved.is_empty(), outrun.is_some());
    let is_short = !few.is_empty() || ends_early;
    reasons.extend(few.into_iter().chain(unsent).chain(unserved));
    reasons.extend(outrun.map(|why| why.sentence()));
    reasons.extend(sent::missed(facts, s));
    let silent = silence(facts, s);
    reasons.extend(silent.clone());
    reasons.extend(faults(facts, s));
    let probe_failed = probes_failed(facts, s);
    if let Some(probe) = s.probe.as_ref().filter(|_| probe_failed > 0) {
        reasons.push(format!("probe: {} failed{}", Count(probe_failed).of("request"), probe.failed_by()));
    }
    // If the server closes connections by announcement, some change between the two counts.
    let is_held = c.closed == 0 && c.finished == 0;
    let gone =
        c.dropped_in_drain + facts.populations.iter().map(|own| own.totals.counts.ended_after).sum::<u64>();
    let both_sides = facts.evidence.both_sides.filter(|_| is_held || facts.evidence.missing.is_some());
    let disagree = honesty::half_open(both_sides, facts.evidence.missing, gone);
    reasons.extend(disagree.clone());
    if let [measured] = facts.populations
        && honesty::is_closed_loop(facts.plan)
        // Starved connections explain a deviation from Little's law: their requests are outstanding and have no latency.
        && facts.evidence.starved.is_empty()
    {
        reasons.extend(honesty::littles_law(s, measured.under_way()));
    }
    let lost = || s.agents.iter().filter(|agent| agent.state == AgentState::Lost);
    let has_lost = lost().any(|agent| agent.taken_over_by.is_empty());
    reasons.splice(0..0, lost().map(lost_agent));
    let interrupted = facts.interrupted.map(|whom| interruption(whom, lost().next()));
    let voids = [
        (Verdict::Invalid, unbalanced(facts)),
        (Verdict::Interrupted, interrupted),
        (Verdict::Invalid, s.incomplete().map(|why| format!("incomplete: {why}"))),
    ];
    if let Some((verdict, why)) = voids.into_iter().find_map(|(verdict, why)| Some((verdict, why?))) {
        reasons.insert(0, why);
        return (verdict, reasons);
    }
    let failed = match s.thresholds.is_empty() {
        true => {
            let is_less = is_short && own.requests == 0 || are_missing(s, own);
            let has_faults = s.faults.iter().any(|fault| !own.explains(fault));
            is_less || has_faults || !own.is_slow && (is_unserved || probe_failed > 0 || silent.is_some())
        }
        false => fails_otherwise(facts, s, own, is_unserved),
    };
    let fails = failed || has_lost || is_outrun && own.why.is_none() || disagree.is_some();
    let suffice = if own.why.is_some() { "" } else { "; the others suffice" };
    let late = honesty::late_agents(s, facts.plan.max_lag);
    reasons.extend(late.iter().map(|late| format!("note: {late}{suffice}")));
    match &own.why {
        None => {
            reasons.extend(honesty::late(s, &[], facts.plan.max_lag).map(|why| format!("warning: {why}")))
        }
        // A fault of the target is one, however late throng was.
        Some(why) if fails => reasons.push(format!("times are not reliable: {why}")),
        Some(why) => {
            reasons.insert(0, why.clone());
            return (Verdict::Invalid, reasons);
        }
    }
    (if fails { Verdict::Fail } else { Verdict::Pass }, reasons)
}

/// Whether a threshold is not met, or something went wrong that no threshold covers.
fn fails_otherwise(facts: &Facts, s: &Summary, own: &OwnPart, is_unserved: bool) -> bool {
    let missed = s.thresholds.iter().any(|result| result.fails());
    let unanswered = s.requests.unanswered + s.probe.as_ref().map_or(0, |probe| probe.unanswered);
    let is_unserved = is_unserved && !judges(facts, &LOSSES, None);
    let is_lacking = unanswered > 0 || is_unserved || is_silent(facts, own);
    missed || !own.is_slow && is_lacking || is_deserted(facts, own)
}

/// Whether something that was due did not happen, except for what throng caused. As the books balance, everything else was answered, has a
/// fault, or was lost with an agent.
fn are_missing(s: &Summary, own: &OwnPart) -> bool {
    s.requests.missed > own.missed || s.connections.given_up > 0
}

/// The reason why no count is reliable, which is a bug in throng; `None` if all books balance.
fn unbalanced(facts: &Facts) -> Option<String> {
    let all = facts.populations.iter().find(|measured| !measured.totals.imbalance.is_none())?;
    let accounts =
        all.totals.imbalance.accounts().into_iter().map(|(account, by)| format!("{account} by {by}"));
    let accounts = accounts.collect::<Vec<_>>().join(", ");
    let seed = facts.plan.seed;
    Some(format!(
        "throng's books do not balance: {accounts}; please report this, with the command and --seed {seed}"
    ))
}

fn interruption(whom: &str, lost: Option<&AgentSummary>) -> String {
    match lost.filter(|_| whom == LOST_WORKER) {
        Some(agent) => format!("interrupted by the loss of agent {}", agent.id),
        None => format!("interrupted by {whom}"),
    }
}

/// The reasons for all faults, without duplicates: several faults may be counted together.
fn faults(facts: &Facts, s: &Summary) -> Vec<String> {
    let mut reasons = Vec::new();
    let case = Case::of(s, facts.evidence, Scope::default());
    for reason in s.faults.iter().map(|fault| seen::reason(fault, &case)) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// Failed requests of the probe. In a search only those due at this step's full load: requests left over from the step before fail in this
/// one.
fn probes_failed(facts: &Facts, s: &Summary) -> u64 {
    let Some(probe) = &s.probe else { return 0 };
    match facts.evidence.search {
        None => probe.failed + probe.unanswered,
        Some(_) => probe.held_us.censored_count(),
    }
}

/// The message for a lost agent, whose share is missing from the figures.
fn lost_agent(agent: &AgentSummary) -> String {
    let AgentSummary { id, wanted, lost_with, why, taken_over_by, .. } = agent;
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let (had, wanted) = (Count(*lost_with), Count(*wanted).of("connection"));
    match taken_over_by.as_slice() {
        [] => format!("agent {id} was lost with {had} of its {wanted}{why}"),
        others => {
            let others = others.join(", ");
            format!(
                "note: agent {id} was lost with {had} of its {wanted}, and {others} took over its part{why}"
            )
        }
    }
}

/// Figures whose thresholds limit how many connections may be lost. The numbers of opened connections and of the peak do not.
const LOSSES: [&str; 5] =
    ["faults", "errors.count", "connections.held", "connections.dropped", "connections.closed"];
/// The same for populations without any opened connection.
const FAILURES: [&str; 4] = ["faults", "errors.count", "connections.held", "connections.failed"];

/// The thresholds on this population or on the whole run; `of`: `None` for all thresholds.
fn thresholds_of<'a>(
    facts: &'a Facts,
    of: Option<&'a Population>,
) -> impl Iterator<Item = &'a Threshold> + use<'a> {
    let is_of = move |threshold: &&Threshold| {
        of.is_none_or(|own| threshold.figure.population().is_none_or(|name| name == own.name))
    };
    facts.plan.thresholds.iter().filter(is_of)
}

/// Whether one of these thresholds is on one of these figures.
fn judges(facts: &Facts, figures: &[&str], of: Option<&Population>) -> bool {
    thresholds_of(facts, of).any(|threshold| threshold.figure.is_any(figures))
}

/// Whether a population lost all of its connections, or never opened one, and no threshold allows it: then the figures describe another
/// load than the planned one.
fn is_deserted(facts: &Facts, own: &OwnPart) -> bool {
    let is_lost = |(population, measured): (&Population, &PopulationRecord)| {
        let counts = &measured.totals.counts;
        let has_none = match population.comes_and_goes() {
            true => counts.opened == 0,
            false => measured.wanted > measured.disconnected + counts.done && measured.held == 0,
        };
        let figures = if counts.opened == 0 { &FAILURES[..] } else { &LOSSES };
        has_none
            && counts.dropped + counts.failed > own.connections
            && !judges(facts, figures, Some(population))
    };
    facts.plan.populations.iter().zip(facts.populations).any(is_lost)
}

/// Whether the requests of a population had no response at all, and no threshold allows it. All thresholds may be met (connections held, no
/// wrong response), but nothing shows that there is a server.
fn is_silent(facts: &Facts, own: &OwnPart) -> bool {
    let is_it = |(population, measured): (&Population, &PopulationRecord)| {
        let counts = &measured.totals.counts;
        // In a step of a search, some requests may still be under way.
        counts.without_response() > own.requests
            && counts.answered + counts.messages == 0
            && !thresholds_of(facts, Some(population))
                .any(|threshold| asks_for_failure(threshold, counts.opened))
    };
    facts.plan.populations.iter().zip(facts.populations).any(is_it)
}

/// Whether a threshold is on outcomes, and only met if there are none: `errors > 99%`, `answered == 0`; if no connection was opened, also
/// `opened == 0`.
fn asks_for_failure(threshold: &Threshold, opened: u64) -> bool {
    const WRONG: [&str; 7] = [
        "faults",
        "errors.count",
        "requests.failed",
        "requests.unanswered",
        "requests.missed",
        "connections.failed",
        "connections.dropped",
    ];
    let right: &[&str] =
        if opened == 0 { &["requests.answered", "connections.opened"] } else { &["requests.answered"] };
    let is_of = |figures: &[&str]| threshold.figure.is_any(figures);
    match threshold.is_met_by(0.0) {
        true => is_of(right),
        false => is_of(&WRONG),
    }
}

/// The reason for requests without an outcome.
fn silence(facts: &Facts, s: &Summary) -> Option<String> {
    if s.requests.unanswered > 0 {
        let (unanswered, sent) = (Count(s.requests.unanswered), Count(s.requests.sent).of("request"));
        return Some(format!("{unanswered} of {sent} had no response when the run ended"));
    }
    // Requests that met an announced close count as not sent.
    let sent: u64 = facts.populations.iter().map(|measured| measured.totals.counts.sent).sum();
    let sent = if s.requests.sent > 0 { s.requests.sent } else { sent };
    let is_silent = sent > 0 && s.requests.answered == 0 && s.requests.messages == 0;
    is_silent.then(|| format!("none of {} had a response", Count(sent).of("request")))
}

/// Failed thresholds, followed by those that were not met and cannot be judged.
fn failed_thresholds(s: &Summary) -> Vec<String> {
    let not_met = |unreliable: bool| {
        s.thresholds.iter().filter(move |result| !result.pass && result.unreliable == unreliable)
    };
    let failed = not_met(false).map(|result| match (&*result.expr, &*result.shown) {
        (expr, "") => format!("threshold {expr} cannot be judged: nothing was measured"),
        (expr, shown) => format!("threshold {expr} failed: {shown}"),
    });
    let open =
        not_met(true).map(|result| format!("threshold {} not judged: {}", result.expr, result.measured()));
    failed.chain(open).collect()
}

#[cfg(test)]
mod tests;
