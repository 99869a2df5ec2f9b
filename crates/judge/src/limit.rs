//! The limit of a run: side, cause, number of connections and fix. All causes in `CAUSES` look for evidence; `resolve` picks the finding
//! that explains the others or began first. Without a finding, `seen` describes what was observed.

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

/// The limit of a judged run; `None` if nothing went wrong.
pub(crate) fn limit(summary: &Summary, evidence: &Evidence, scope: Scope) -> Option<Limit> {
    let is_bad =
        matches!(summary.verdict, Verdict::Fail | Verdict::Invalid) && summary.incomplete().is_none();
    let case = Case::of(summary, evidence, scope);
    if case.trouble == Trouble::None && !is_bad {
        return None;
    }
    // A lost agent explains what is missing, and the verdict names it; the same goes for a threshold on a figure that the run does not
    // have.
    let is_said = |limit: &Limit| {
        limit.cause == Name::Unknown && (summary.lost_agents().is_some() || case.is_unmeasured())
            || limit.cause == Name::Timeout && away::has_only_timeouts_of_the_lost(summary)
    };
    Some(what_stopped(&case)).filter(|limit| !is_said(limit))
}

fn what_stopped(case: &Case) -> Limit {
    let found = || CAUSES.iter().filter_map(|cause| (cause.find)(case));
    let limit = resolve::first(case, found().collect());
    // The order of the table must not decide between two causes.
    #[cfg(test)]
    assert_eq!(limit, resolve::first(case, found().rev().collect()), "two causes are equally first");
    let limit = limit.unwrap_or_else(|| seen::seen(case));
    in_its_words(case, in_its_log(case, limit))
}

/// The probable next limit of a run that passed, in case the criteria become stricter; `None` if unknown.
pub(crate) fn suspect(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let case = Case::of(summary, evidence, Scope::default());
    let saturated =
        || honesty::saturated(evidence).map(|why| Found::seen(ThrongTooSlow { why }, case.left()));
    let ours = find::<SharedProcessors>(&case).or_else(|| Some(finding(saturated()?, &case)));
    let limit = ours.map_or_else(|| what_stopped(&case), |found| found.limit);
    Some(limit).filter(|limit| limit.cause != Name::Unknown)
}

/// Warnings for a run that passed, each with its fix.
pub(crate) fn warnings(summary: &Summary, evidence: &Evidence) -> Vec<String> {
    let overflow = queue::overflow_warning(summary, evidence);
    // An overflow of the queue drops SYNs, too.
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

/// Adds the target's log line that proves this cause.
fn in_its_log(case: &Case, mut limit: Limit) -> Limit {
    let kinds = if limit.side == Side::Target { limit.cause.log_kinds() } else { &[] };
    let Some(line) = kinds.iter().find_map(|kind| case.logged(*kind)) else { return limit };
    limit.detail += &format!("; its log: {} ({})", line.line, line.file);
    // A general error at the right time is one explanation among several.
    let proved = if line.kind == LogKind::Error { Certainty::Inferred } else { Certainty::Seen };
    limit.certainty = limit.certainty.max(proved);
    limit
}

/// Puts the text that the target sent before the fix, unless the fix contains it already.
fn in_its_words(case: &Case, mut limit: Limit) -> Limit {
    let words = case.words().filter(|words| limit.side != Side::Host && !limit.fix.contains(&words.text));
    if let Some(sentence) = words.and_then(|words| words.sentence(case.detail)) {
        limit.fix = format!("{sentence}; {}", limit.fix);
    }
    limit
}

/// How much a limit explains, from 0 to 4. Of several runs against a target, the limit that explains most is reported. A target that has
/// ended explains most, an unknown cause nothing. A cause inferred from the kind of fault alone, or from a busy moment of this machine,
/// ranks below what was observed; an exhausted resource ranks above a busy processor or a slow accept, which follow from it.
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

/// Whether nothing is listening. If another run was served before, the target has ended.
pub fn is_nobody(limit: &Limit) -> bool {
    (limit.cause, limit.at_connections) == (Name::Refused, 0)
}

/// The limit of a search whose target served earlier loads and then [was gone](is_nobody).
pub fn gone(limit: Limit) -> Limit {
    // If a listener was seen, something else refuses the dials.
    let fix = if limit.certainty == Certainty::Seen {
        "it served smaller loads before: check whether it has ended, and its log".to_owned()
    } else {
        limit.fix
    };
    Limit { fix, ..limit }
}

/// Whether the target's process may have ended.
pub fn may_have_ended(limit: &Limit) -> bool {
    limit.side == Side::Target && matches!(limit.cause, Name::Ended | Name::Memory)
}

#[cfg(test)]
mod tests;
