//! The headline: verdict and limit of a run in one sentence, derived from the rest of the summary.

use samples::{AgentState, AgentSummary, Cause, Side, Summary, ThresholdResult, Verdict};
use units::Count;

/// Minimum silence of the target that is mentioned, in seconds.
const QUIET_S: f64 = 3.0;

/// The verdict in one sentence: side, cause, number of connections and fix of the limit, and what cannot be relied on.
pub(crate) fn headline(s: &Summary) -> String {
    if s.failure.is_some() {
        return s.headline.clone();
    }
    match s.unreliable.as_ref().filter(|_| s.verdict == Verdict::Fail) {
        Some(why) => format!("{}; besides, times are not reliable: {why}", outcome(s)),
        None => outcome(s),
    }
}

/// Verdict and limit.
fn outcome(s: &Summary) -> String {
    let (c, verdict) = (&s.connections, s.verdict.name());
    let judged = judged(s);
    // A limit of a run that passed did not prevent its load.
    let limit = s.limit.as_ref().filter(|_| s.verdict != Verdict::Pass);
    let lost = s.incomplete().or_else(|| s.lost_agents());
    // A lost agent explains what is missing, unless another cause is known.
    match (limit.filter(|limit| lost.is_none() || limit.cause != Cause::Unknown), s.verdict) {
        (Some(limit), _) => {
            let judged = if judged.is_empty() { judged } else { judged + "; " };
            // A stop of throng explains why it was late; it is not an additional problem.
            let is_why = (limit.side, limit.cause) == (Side::Host, Cause::Stall);
            let besides = if is_why { "" } else { "besides, " };
            match why_invalid(s).filter(|why| !limit.sentence.contains(*why)) {
                Some(why) => format!("{verdict}: {why}; {besides}{judged}{}", limit.sentence_with_fix()),
                None => format!("{verdict}: {judged}{}", limit.sentence_with_fix()),
            }
        }
        (None, _) if let Some(lost) = lost => {
            let judged = if judged.is_empty() { judged } else { judged + "; " };
            format!("{verdict}: {judged}{lost}")
        }
        (None, _) if !judged.is_empty() => format!("{verdict}: {judged}"),
        (None, Verdict::Fail) if let Some(lost) = taken_over(s) => format!("{verdict}: {lost}"),
        // Connections closed as planned: their calls were done, their time was over, or fewer were wanted. The load of held connections
        // may have been lowered several times.
        (None, Verdict::Pass) if c.all_arrive() && c.dialled() < c.wanted => format!(
            "pass: {} of {} connections opened and closed before the time was over, {}",
            Count(s.closed_as_planned()),
            Count(c.wanted),
            fared(s)
        ),
        (None, Verdict::Pass) if s.closed_as_planned() > c.held && c.held < c.wanted => format!(
            "pass: {} connections opened and closed as planned, {}",
            Count(s.closed_as_planned()),
            fared(s)
        ),
        (None, Verdict::Pass) if c.closed > 0 => format!(
            "pass: {}; the server announced the close of {} connections, {} were open at the end",
            fared(s),
            Count(c.closed),
            Count(c.held),
        ),
        (None, Verdict::Pass)
            if s.requests.sent + s.requests.told + s.requests.messages == 0 && c.opened > 0 =>
        {
            format!("pass: {}", unasked(s))
        }
        (None, Verdict::Pass) => {
            format!("pass: {} held, {}", all(c.held), fared(s))
        }
        (None, _) => verdict.to_owned(),
    }
}

/// Why the figures do not describe the target: the first reason of an invalid run.
fn why_invalid(s: &Summary) -> Option<&str> {
    s.reasons.first().filter(|_| s.verdict == Verdict::Invalid).map(String::as_str)
}

/// The result of the thresholds: those that failed by their value.
fn judged(s: &Summary) -> String {
    let failed: Vec<&ThresholdResult> = s.thresholds.iter().filter(|t| t.fails()).collect();
    let met = s.thresholds.iter().filter(|t| t.pass && !t.unreliable).count();
    let all = s.thresholds.len();
    match failed[..] {
        [] if met == 0 => String::new(),
        [] => format!("{met} of {all} thresholds met"),
        [one] => format!("threshold {} failed: {}", one.expr, one.measured()),
        [first, ..] => format!(
            "{} of {all} thresholds failed, the first {}: {}",
            failed.len(),
            first.expr,
            first.measured()
        ),
    }
}

/// The first agent that was lost and whose part others took over; `None` if there is none.
fn taken_over(s: &Summary) -> Option<String> {
    let lost = s.agents.iter().find(|agent| agent.state == AgentState::Lost)?;
    let AgentSummary { id, taken_over_by, .. } = lost;
    Some(format!("agent {id} was lost, and {} took over its part", taken_over_by.join(", ")))
}

/// How the requests went, in a run that passed.
fn fared(s: &Summary) -> &'static str {
    match (s.requests.sent, s.requests.answered) {
        (0, _) if s.requests.messages > 0 && s.target.starts_with("grpc") => {
            "no faults, all calls open to the end"
        }
        (0, _) if s.requests.messages > 0 => "no faults, all connections open to the end",
        (0, _) => "no faults, no requests sent",
        (sent, answered) if sent == answered => "no faults, all responses correct",
        _ => "no faults",
    }
}

/// What is known of connections on which nothing was sent.
fn unasked(s: &Summary) -> String {
    let c = &s.connections;
    let accepted = match c.unaccepted {
        Some(_) => format!("{} held", all(c.held)),
        // The kernel of the target's host opens connections; whether its process accepts them is visible only there.
        None => format!(
            "{} open (whether the target's process accepted {} is not known)",
            all(c.held),
            if c.held == 1 { "it" } else { "them" }
        ),
    };
    let quiet = c.quiet_s.filter(|quiet| *quiet >= QUIET_S);
    let quiet =
        quiet.map_or(String::new(), |quiet| format!(", nothing received on any of them for {quiet:.0} s"));
    format!("{accepted}, {}{quiet}", fared(s))
}

/// The words for this many connections, none of which is missing.
fn all(connections: u64) -> String {
    match connections {
        1 => "the connection".to_owned(),
        n => format!("all {} connections", Count(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{Certainty, Limit};

    #[test]
    fn an_agent_that_was_lost_is_the_reason_where_no_other_is_known() {
        let agent = |id: &str, state| AgentSummary {
            id: id.to_owned(),
            state,
            held: 150,
            sealed: true,
            ..AgentSummary::default()
        };
        let unknown = Limit {
            side: Side::Unknown,
            cause: Cause::Unknown,
            at_connections: 200,
            certainty: Certainty::Guess,
            first_seen_s: None,
            sentence: "no cause was found".to_owned(),
            detail: String::new(),
            fix: "look".to_owned(),
        };
        let mut s = Summary { verdict: Verdict::Fail, limit: Some(unknown), ..Summary::default() };
        (s.connections.held, s.connections.wanted) = (300, 600);
        s.agents =
            vec![agent("a1", AgentState::Lost), agent("a2", AgentState::Done), agent("a3", AgentState::Done)];
        assert_eq!(headline(&s), "fail: agent a1 was lost; the others held 300 of 600 connections");
        // Arriving connections are never held.
        let mut come = s.clone();
        (come.connections.arriving, come.connections.opened) = (600, 400);
        assert_eq!(headline(&come), "fail: agent a1 was lost; the others opened 400 of 600 connections");
        // The agent was lost after the load had been lowered: the run held these connections before.
        s.connections.held = 450;
        assert_eq!(headline(&s), "fail: agent a1 was lost; the others held 300 of 600 connections");
        s.agents[2].state = AgentState::Lost;
        assert_eq!(headline(&s), "fail: 2 of 3 agents were lost; the others held 150 of 600 connections");
        s.agents[1].state = AgentState::Lost;
        assert_eq!(headline(&s), "fail: all 3 agents were lost");
        s.agents[1].state = AgentState::Done;
        s.agents.iter_mut().for_each(|agent| agent.taken_over_by = vec!["a4".to_owned()]);
        assert_eq!(headline(&s), "fail: no cause was found; to find out: look");
        let limit = s.limit.take();
        assert_eq!(headline(&s), "fail: agent a1 was lost, and a4 took over its part");
        s.limit = limit;
        s.agents[1].state = AgentState::Ready;
        (s.verdict, s.limit) = (Verdict::Invalid, None);
        assert_eq!(headline(&s), "invalid: the end of agent a2's report did not arrive");
        s.agents[0].missing_ticks = 1;
        assert_eq!(headline(&s), "invalid: 1 tick of agent a1 did not arrive");
    }

    #[test]
    fn a_limit_is_one_sentence_with_its_fix() {
        let check = |certainty, cause, expected: &str| {
            let (sentence, fix) =
                ("the target ran out of open files".to_owned(), "raise LimitNOFILE".to_owned());
            let limit = Limit { cause, certainty, sentence, fix, ..Limit::default() };
            let s = Summary { verdict: Verdict::Fail, limit: Some(limit), ..Summary::default() };
            assert_eq!(headline(&s), expected);
        };
        let files = "the target ran out of open files";
        check(Certainty::Seen, Cause::OpenFiles, &format!("fail: {files}; raise LimitNOFILE"));
        check(Certainty::Inferred, Cause::OpenFiles, &format!("fail: probably {files}; raise LimitNOFILE"));
        check(
            Certainty::Guess,
            Cause::OpenFiles,
            &format!("fail: perhaps {files}; to find out: raise LimitNOFILE"),
        );
        check(Certainty::Guess, Cause::Unknown, &format!("fail: {files}; to find out: raise LimitNOFILE"));
        // What happened is certain; the reason is not.
        check(
            Certainty::Guess,
            Cause::Timeout,
            &format!("fail: {files}; to find out why: raise LimitNOFILE"),
        );
    }

    #[test]
    fn connections_that_only_receive_are_no_calls() {
        let sentence = |target: &str| {
            let mut s = Summary::default();
            s.figures.target = target.to_owned();
            (s.connections.opened, s.connections.held, s.requests.messages) = (5, 5, 40);
            headline(&s)
        };
        let held = "pass: all 5 connections held, no faults";
        assert_eq!(sentence("ws://h/events"), format!("{held}, all connections open to the end"));
        assert_eq!(sentence("grpc://h/a.B/C"), format!("{held}, all calls open to the end"));
    }

    #[test]
    fn an_invalid_run_says_first_why_it_is() {
        let late = "throng was late: lag p99 14.0 ms > 10.0 ms (--max-lag)";
        let check = |side, sentence: &str, expected: &str| {
            let limit = Limit {
                side,
                cause: Cause::Stall,
                certainty: Certainty::Seen,
                sentence: sentence.to_owned(),
                fix: "fix it".to_owned(),
                ..Limit::default()
            };
            let reasons = vec![late.to_owned(), "9 of 10 connections held".to_owned()];
            let s = Summary { verdict: Verdict::Invalid, reasons, limit: Some(limit), ..Summary::default() };
            assert_eq!(headline(&s), expected);
        };
        let besides = format!("invalid: {late}; besides, the target stalled; fix it");
        check(Side::Target, "the target stalled", &besides);
        check(Side::Target, late, &format!("invalid: {late}; fix it"));
        check(Side::Host, "throng was stopped", &format!("invalid: {late}; throng was stopped; fix it"));
    }

    #[test]
    fn a_failed_run_of_which_throng_was_late_says_both() {
        let threshold = |expr: &str, shown: &str, pass, unreliable| ThresholdResult {
            expr: expr.to_owned(),
            value: Some(1.0),
            shown: shown.to_owned(),
            pass,
            unreliable,
        };
        let errors = threshold("errors < 1%", "4.8 %", false, false);
        let late = "throng was late: lag p99 14.0 ms > 10.0 ms (--max-lag)";
        let mut s =
            Summary { verdict: Verdict::Fail, unreliable: Some(late.to_owned()), ..Summary::default() };
        s.thresholds = vec![threshold("latency.p99 < 5ms", "20.0 ms", false, true), errors];
        let failed = "fail: threshold errors < 1% failed: 4.8 %";
        assert_eq!(headline(&s), format!("{failed}; besides, times are not reliable: {late}"));
        // In an invalid run it is already the first reason.
        (s.verdict, s.reasons) = (Verdict::Invalid, vec![late.to_owned()]);
        s.thresholds.truncate(1);
        let (sentence, fix, certainty) = (late.to_owned(), "fix it".to_owned(), Certainty::Seen);
        s.limit = Some(Limit { sentence, fix, certainty, ..Limit::default() });
        assert_eq!(headline(&s), format!("invalid: {late}; fix it"));
    }

    #[test]
    fn thresholds_that_failed_are_named_with_their_value() {
        let threshold = |expr: &str, shown: &str, pass| ThresholdResult {
            expr: expr.to_owned(),
            value: Some(1.0),
            shown: shown.to_owned(),
            pass,
            unreliable: false,
        };
        let check = |thresholds: Vec<ThresholdResult>, verdict, expected: &str| {
            let s = Summary { verdict, thresholds, ..Summary::default() };
            assert_eq!(headline(&s), expected);
        };
        let (latency, rate) = ("latency.p99 < 10us", "requests.per_s > 1");
        let (slow, fast) = (threshold(latency, "141 µs", false), threshold(rate, "81,227/s", true));
        let failed = "fail: threshold latency.p99 < 10us failed: 141 µs";
        check(vec![slow.clone(), fast.clone()], Verdict::Fail, failed);
        let both = "fail: 2 of 2 thresholds failed, the first latency.p99 < 10us: 141 µs";
        check(vec![slow.clone(), threshold(rate, "0/s", false)], Verdict::Fail, both);
        check(vec![fast], Verdict::Pass, "pass: 1 of 1 thresholds met");
        let silent = "2.3 % had no response in time".to_owned();
        let failed = format!("fail: threshold latency.p99 < 10us failed: {silent}");
        check(vec![ThresholdResult { value: None, shown: silent, ..slow.clone() }], Verdict::Fail, &failed);
        let none = ThresholdResult { value: None, shown: String::new(), ..slow };
        check(vec![none], Verdict::Fail, "fail: threshold latency.p99 < 10us failed: nothing was measured");
    }

    #[test]
    fn connections_without_requests_are_only_reported_as_open() {
        let mut s = Summary::default();
        (s.connections.opened, s.connections.held) = (500, 500);
        let unseen = "(whether the target's process accepted them is not known), no faults, no requests sent";
        assert_eq!(headline(&s), format!("pass: all 500 connections open {unseen}"));
        (s.connections.unaccepted, s.connections.quiet_s) = (Some(0), Some(28.4));
        let held = "pass: all 500 connections held, no faults, no requests sent, nothing received on any of them for 28 s";
        assert_eq!(headline(&s), held);
        (s.requests.sent, s.requests.answered) = (1, 1);
        assert_eq!(headline(&s), "pass: all 500 connections held, no faults, all responses correct");
    }

    #[test]
    fn a_step_down_and_up_is_no_visit() {
        let mut s = Summary::default();
        let c = &mut s.connections;
        (c.wanted, c.held, c.finished) = (1_000, 1_000, 100);
        assert_eq!(headline(&s), "pass: all 1,000 connections held, no faults, no requests sent");
        (s.requests.sent, s.requests.answered) = (500, 499);
        assert_eq!(headline(&s), "pass: all 1,000 connections held, no faults", "not of every answer");
        s.requests.answered = 500;
        assert_eq!(headline(&s), "pass: all 1,000 connections held, no faults, all responses correct");
        // Down and up several times: all connections wanted at the end of the maximum are held.
        s.connections.finished = 4_000;
        assert_eq!(headline(&s), "pass: all 1,000 connections held, no faults, all responses correct");
        (s.connections.wanted, s.connections.held, s.connections.finished) = (500, 0, 500);
        let visits = "pass: 500 connections opened and closed as planned, no faults, all responses correct";
        assert_eq!(headline(&s), visits);
        (s.connections.arriving, s.connections.opened) = (500, 500);
        assert_eq!(headline(&s), visits);
        // The load ended before the others arrived.
        (s.connections.opened, s.connections.finished) = (100, 100);
        let some = "pass: 100 of 500 connections opened and closed before the time was over, no faults, all responses correct";
        assert_eq!(headline(&s), some);
    }
}
