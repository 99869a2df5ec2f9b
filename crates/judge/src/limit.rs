//! The limit of a run: side, cause, number of connections and fix. Of all causes for which there is evidence the one that explains the
//! others, or else was there first; where there is none, what was seen.

use samples::{Cause as Name, Certainty, Limit, LogKind, Side, Summary, Verdict};

use crate::{
    away,
    case::{Case, Scope},
    cause::{Found, find, finding},
    causes::{CAUSES, shared_processors::SharedProcessors, syn_loss, throng_too_slow::ThrongTooSlow},
    evidence::Evidence,
    honesty, queue, resolve, seen, stall,
    trouble::Trouble,
};

/// The limit of a run with a verdict; none if nothing went wrong.
pub(crate) fn limit(summary: &Summary, evidence: &Evidence, scope: Scope) -> Option<Limit> {
    let is_bad =
        matches!(summary.verdict, Verdict::Fail | Verdict::Invalid) && summary.incomplete().is_none();
    let case = Case::of(summary, evidence, scope);
    if case.trouble == Trouble::None && !is_bad {
        return None;
    }
    // What is missing with an agent needs no other cause: without one, that is what the verdict says. The same goes for a threshold on
    // what the run has none of.
    let is_said = |limit: &Limit| match limit.cause {
        Name::Unknown => summary.lost_agents().is_some() || case.is_unmeasured(),
        Name::Timeout => away::has_only_timeouts_of_the_lost(summary),
        _ => false,
    };
    Some(what_stopped(&case)).filter(|limit| !is_said(limit))
}

fn what_stopped(case: &Case) -> Limit {
    let found = || CAUSES.iter().filter_map(|cause| (cause.find)(case));
    let limit = resolve::first(case, found().collect());
    // Their order decides nothing.
    #[cfg(test)]
    assert_eq!(limit, resolve::first(case, found().rev().collect()), "two causes are equally first");
    let limit = limit.unwrap_or_else(|| seen::seen(case));
    in_its_words(case, in_its_log(case, limit))
}

/// The next limit of a run that passed, for stricter criteria than its verdict's; none if not known.
pub(crate) fn suspect(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let case = Case::of(summary, evidence, Scope::default());
    let saturated =
        || honesty::saturated(evidence).map(|why| Found::seen(ThrongTooSlow { why }, case.left()));
    let ours = find::<SharedProcessors>(&case).or_else(|| Some(finding(saturated()?, &case)));
    let limit = ours.map_or_else(|| what_stopped(&case), |found| found.limit);
    Some(limit).filter(|limit| limit.cause != Name::Unknown)
}

/// Warnings of a run that passed, each with its fix.
pub(crate) fn warnings(summary: &Summary, evidence: &Evidence) -> Vec<String> {
    let overflow = queue::overflow_warning(summary, evidence);
    // An overflow drops SYNs, too.
    let syns = match overflow {
        Some(_) => None,
        None => syn_loss_warning(&Case::of(summary, evidence, Scope::default())),
    };
    let outrun = queue::outrun_warning(evidence);
    let stall = stall::warning(summary, evidence);
    [overflow, syns, outrun, stall].into_iter().flatten().collect()
}

fn syn_loss_warning(case: &Case) -> Option<String> {
    let limit = finding(syn_loss::seen(case)?, case).limit;
    Some(format!("warning: {}", limit.sentence_with_fix()))
}

/// Adds the target's log line for this cause, which makes it certain.
fn in_its_log(case: &Case, mut limit: Limit) -> Limit {
    use Name::{AcceptQueue, Closed, Ended, Refused, Stall, Thread, Timeout};
    let kinds: &[LogKind] = match limit.cause {
        _ if limit.side != Side::Target => &[],
        Name::Heap => &[LogKind::Heap],
        Name::OpenFiles => &[LogKind::OpenFiles],
        Name::Threads => &[LogKind::Threads],
        Name::ConnectionLimit => &[LogKind::Connections],
        Name::Memory => &[LogKind::Memory, LogKind::Heap],
        Name::WrongAnswer => &[LogKind::Connections, LogKind::Error],
        Ended | Thread | Closed | Timeout | Refused | AcceptQueue | Stall => {
            &[LogKind::Heap, LogKind::Error, LogKind::Memory]
        }
        _ => &[],
    };
    let Some(line) = kinds.iter().find_map(|kind| case.logged(*kind)) else { return limit };
    limit.detail += &format!("; its log: {} ({})", line.line, line.file);
    limit.certainty = match line.kind {
        // An error of any kind, at the time: one explanation of several no more.
        LogKind::Error if limit.certainty == Certainty::Guess => Certainty::Inferred,
        LogKind::Error => limit.certainty,
        _ => Certainty::Seen,
    };
    limit
}

/// The limit with what the target said in words before its fix, unless it has them already.
fn in_its_words(case: &Case, mut limit: Limit) -> Limit {
    let words = case.words().filter(|words| limit.side != Side::Host && !limit.fix.contains(&words.text));
    if let Some(sentence) = words.and_then(|words| words.sentence(case.detail)) {
        limit.fix = format!("{sentence}; {}", limit.fix);
    }
    limit
}

/// How much a limit explains; of several runs against a target, the one that explains most is what stopped them. Most, that
/// the target is gone; least, that nothing is known. What follows from the kind of fault alone, and what a busy moment of
/// this machine may do, gives way to what was seen. What is used up explains why a processor is busy, and why none accepts.
pub fn weight(limit: &Limit) -> u8 {
    use Name::{
        Closed, ConnectionLimit, Cpu, Denied, Ended, Memory, OpenFiles, Refused, Saturated, Timeout, Unknown,
        Unreachable, WrongAnswer,
    };
    match (limit.side, limit.cause) {
        (_, Ended) | (Side::Target, Memory) => 4,
        (_, cause) if limit.certainty == Certainty::Guess => u8::from(cause != Unknown),
        (_, Unknown) => 0,
        (Side::Target, OpenFiles | ConnectionLimit) if limit.certainty == Certainty::Seen => 3,
        (_, Refused | WrongAnswer | Timeout | Closed | Unreachable | Denied | Saturated)
        | (Side::Host, Cpu) => 1,
        _ => 2,
    }
}

/// Whether nothing is listening: if another run was served before, the target is gone.
pub fn is_nobody(limit: &Limit) -> bool {
    (limit.cause, limit.at_connections) == (Name::Refused, 0)
}

/// The limit of a search whose target served loads before it [was not there](is_nobody).
pub fn gone(limit: Limit) -> Limit {
    // Where a listener was seen, others refuse the dials.
    let fix = match limit.certainty {
        Certainty::Seen => {
            "it served smaller loads before: check whether it has ended, and its log".to_owned()
        }
        _ => limit.fix,
    };
    Limit { fix, ..limit }
}

/// Whether the target's process may have ended.
pub fn may_have_ended(limit: &Limit) -> bool {
    limit.side == Side::Target && matches!(limit.cause, Name::Ended | Name::Memory)
}

#[cfg(test)]
mod tests;
