//! A run in one sentence.

use units::Count;

use crate::{
    cause::Cause,
    fault::Side,
    summary::{AgentState, AgentSummary, Certainty, Limit, Summary, Verdict},
};

/// Silence of the target that is mentioned, seconds.
const QUIET_S: f64 = 3.0;

impl Summary {
    /// Verdict and limit: side, cause, number of connections, fix. Derived from the rest of the summary.
    pub fn sentence(&self) -> String {
        let (c, verdict) = (&self.connections, self.verdict.name());
        let met = self.thresholds.iter().filter(|t| t.pass).count();
        let judged = match self.thresholds.len() {
            0 => String::new(),
            all => format!("{met} of {all} thresholds met"),
        };
        // What a run that passed met on its way did not limit it.
        let limit = self.limit.as_ref().filter(|_| self.verdict != Verdict::Pass);
        let lost = self.incomplete().or_else(|| self.lost_agents());
        // What is missing with an agent has no other cause, as long as none is known.
        match (limit.filter(|limit| lost.is_none() || limit.cause != Cause::Unknown), self.verdict) {
            (Some(limit), _) => {
                let judged = if judged.is_empty() { judged } else { judged + "; " };
                format!("{verdict}: {judged}{}", limited(limit))
            }
            (None, _) if let Some(lost) = lost => {
                let judged = if judged.is_empty() { judged } else { judged + "; " };
                format!("{verdict}: {judged}{lost}")
            }
            (None, _) if !judged.is_empty() => format!("{verdict}: {judged}"),
            // Of those that are held, fewer may have been wanted for a while.
            (None, Verdict::Pass) if c.finished > c.held => {
                format!("pass: {} connections completed, {}", Count(c.finished), self.fared())
            }
            (None, Verdict::Pass) if c.closed > 0 => format!(
                "pass: {}; the server announced the close of {} connections, {} were open at the end",
                self.fared(),
                Count(c.closed),
                Count(c.held),
            ),
            (None, Verdict::Pass)
                if self.requests.sent + self.requests.told + self.requests.messages == 0 && c.opened > 0 =>
            {
                format!("pass: {}", self.unasked())
            }
            (None, Verdict::Pass) => {
                format!("pass: all {} connections held, {}", Count(c.held), self.fared())
            }
            (None, _) => verdict.to_owned(),
        }
    }

    /// Agents of a fleet that were lost with their part, if any were.
    fn lost_agents(&self) -> Option<String> {
        let is_lost =
            |agent: &&AgentSummary| agent.state == AgentState::Lost && agent.taken_over_by.is_empty();
        let lost: Vec<&str> = self.agents.iter().filter(is_lost).map(|agent| agent.id.as_str()).collect();
        let (c, all) = (&self.connections, self.agents.len());
        let held = format!("the others held {} of {} connections", Count(c.held), Count(c.wanted));
        match lost[..] {
            [] => None,
            [id] => Some(format!("agent {id} was lost; {held}")),
            _ => Some(format!("{} of {all} agents were lost; {held}", lost.len())),
        }
    }

    /// What is missing of an agent that took part to the end: without it no figure of the run is whole.
    pub fn incomplete(&self) -> Option<String> {
        self.agents.iter().find_map(|AgentSummary { id, state, missing_ticks, sealed, .. }| match state {
            _ if *missing_ticks == 1 => Some(format!("1 tick of agent {id} did not arrive")),
            _ if *missing_ticks > 0 => {
                Some(format!("{} ticks of agent {id} did not arrive", Count(*missing_ticks)))
            }
            AgentState::Done if !sealed => {
                Some(format!("what agent {id} reported does not add up to its sums"))
            }
            AgentState::Ready => Some(format!("the end of agent {id}'s report did not arrive")),
            _ => None,
        })
    }

    /// How the requests fared, in a run that passed: only what happened.
    fn fared(&self) -> &'static str {
        match (self.requests.sent, self.requests.answered) {
            (0, _) if self.requests.messages > 0 => "no faults, all calls open to the end",
            (0, _) => "no faults, no requests sent",
            (sent, answered) if sent == answered => "no faults, all responses correct",
            _ => "no faults",
        }
    }

    /// What is known of connections on which nothing was sent.
    fn unasked(&self) -> String {
        let c = &self.connections;
        let accepted = match c.unaccepted {
            Some(_) => format!("all {} connections held", Count(c.held)),
            // The kernel of the target's host opens connections; whether its process takes them is seen only there.
            None => format!(
                "all {} connections open (whether the target's process accepted them is not known)",
                Count(c.held)
            ),
        };
        let quiet = c.quiet_s.filter(|s| *s >= QUIET_S);
        let quiet =
            quiet.map_or(String::new(), |s| format!(", nothing received on any of them for {s:.0} s"));
        format!("{accepted}, {}{quiet}", self.fared())
    }
}

impl Limit {
    /// What it is, as sure as it is: `limited by the target's open files`, `probably limited by …`, `perhaps limited by …`.
    pub fn named(&self) -> String {
        let surely = match (self.certainty, self.cause) {
            // Of what is not known nothing is supposed.
            (Certainty::Seen, _) | (_, Cause::Unknown) => "",
            (Certainty::Inferred, _) => "probably ",
            (Certainty::Guess, _) => "perhaps ",
        };
        let what = match (self.side, self.cause) {
            (Side::Path, Cause::Unacknowledged) => Some("the path (data is not acknowledged)"),
            (Side::Path, Cause::NoSynAck) => Some("the path (no SYN is answered)"),
            (Side::Path, Cause::Unreachable) => Some("the path (dials are rejected)"),
            (Side::Target, Cause::Tls) => Some("TLS, which cannot be set up with the target"),
            (Side::Host, Cause::Denied) => Some("this machine, which blocks outgoing dials"),
            _ => None,
        };
        if let Some(what) = what {
            return format!("{surely}limited by {what}");
        }
        let whose = match self.side {
            Side::Target => "the target's ",
            Side::Host => "this machine's ",
            Side::Path => "the path's ",
            Side::Unknown => "something ",
        };
        format!("{surely}limited by {whose}{}", self.cause.name().replace('-', " "))
    }

    /// The fix; for a guess, first how to find out.
    pub fn advice(&self) -> String {
        match self.certainty {
            Certainty::Guess => format!("; to find out: {}", self.cure),
            _ => format!(": {}", self.cure),
        }
    }
}

/// `limited by the target's open files at 65,536: raise LimitNOFILE`; `5 TLS handshakes failed: the target's certificate has expired;
/// renew it`
fn limited(limit: &Limit) -> String {
    if limit.cause == Cause::Tls {
        // There is no number of connections to it: what is wrong says more.
        return format!("{}; {}", limit.detail, limit.cure);
    }
    format!("{} at {}{}", limit.named(), Count(limit.at_connections), limit.advice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_was_lost_is_the_reason_where_no_other_is_known() {
        let agent = |id: &str, state| AgentSummary {
            id: id.to_owned(),
            state,
            sealed: true,
            ..AgentSummary::default()
        };
        let unknown = Limit {
            side: Side::Unknown,
            cause: Cause::Unknown,
            at_connections: 200,
            certainty: Certainty::Guess,
            first_seen_s: None,
            detail: String::new(),
            cure: "look".to_owned(),
        };
        let mut s = Summary { verdict: Verdict::Fail, limit: Some(unknown), ..Summary::default() };
        (s.connections.held, s.connections.wanted) = (200, 600);
        s.agents =
            vec![agent("a1", AgentState::Lost), agent("a2", AgentState::Done), agent("a3", AgentState::Done)];
        assert_eq!(s.sentence(), "fail: agent a1 was lost; the others held 200 of 600 connections");
        s.agents[2].state = AgentState::Lost;
        assert_eq!(s.sentence(), "fail: 2 of 3 agents were lost; the others held 200 of 600 connections");
        s.agents.iter_mut().for_each(|agent| agent.taken_over_by = vec!["a4".to_owned()]);
        assert!(s.sentence().starts_with("fail: limited by something unknown at 200"), "{}", s.sentence());
        s.agents[1].state = AgentState::Ready;
        (s.verdict, s.limit) = (Verdict::Invalid, None);
        assert_eq!(s.sentence(), "invalid: the end of agent a2's report did not arrive");
        s.agents[0].missing_ticks = 1;
        assert_eq!(s.sentence(), "invalid: 1 tick of agent a1 did not arrive");
    }

    #[test]
    fn a_limit_is_one_sentence() {
        let check = |side, cause, certainty, expected: &str| {
            let cure = "raise LimitNOFILE".to_owned();
            let limit = Limit {
                side,
                cause,
                at_connections: 65_536,
                certainty,
                first_seen_s: None,
                detail: String::new(),
                cure,
            };
            assert_eq!(limited(&limit), expected);
        };
        use Certainty::{Guess, Inferred, Seen};
        check(Side::Target, Cause::Tls, Seen, "; raise LimitNOFILE");
        let files = "limited by the target's open files at 65,536";
        check(Side::Target, Cause::OpenFiles, Seen, &format!("{files}: raise LimitNOFILE"));
        check(Side::Target, Cause::OpenFiles, Inferred, &format!("probably {files}: raise LimitNOFILE"));
        check(
            Side::Target,
            Cause::OpenFiles,
            Guess,
            &format!("perhaps {files}; to find out: raise LimitNOFILE"),
        );
        check(Side::Host, Cause::Ports, Seen, "limited by this machine's ports at 65,536: raise LimitNOFILE");
        let dark = "probably limited by the path (data is not acknowledged) at 65,536: raise LimitNOFILE";
        check(Side::Path, Cause::Unacknowledged, Inferred, dark);
        let unknown = "limited by something unknown at 65,536; to find out: raise LimitNOFILE";
        check(Side::Unknown, Cause::Unknown, Guess, unknown);
    }

    #[test]
    fn connections_without_requests_are_only_reported_as_open() {
        let mut s = Summary::default();
        (s.connections.opened, s.connections.held) = (500, 500);
        let unseen = "(whether the target's process accepted them is not known), no faults, no requests sent";
        assert_eq!(s.sentence(), format!("pass: all 500 connections open {unseen}"));
        (s.connections.unaccepted, s.connections.quiet_s) = (Some(0), Some(28.4));
        let held = "pass: all 500 connections held, no faults, no requests sent, nothing received on any of them for 28 s";
        assert_eq!(s.sentence(), held);
        (s.requests.sent, s.requests.answered) = (1, 1);
        assert_eq!(s.sentence(), "pass: all 500 connections held, no faults, all responses correct");
    }

    #[test]
    fn a_step_down_and_up_is_no_visit() {
        let mut s = Summary::default();
        let c = &mut s.connections;
        (c.held, c.finished) = (1_000, 100);
        assert_eq!(s.sentence(), "pass: all 1,000 connections held, no faults, no requests sent");
        (s.requests.sent, s.requests.answered) = (500, 499);
        assert_eq!(s.sentence(), "pass: all 1,000 connections held, no faults", "not of every answer");
        s.requests.answered = 500;
        assert_eq!(s.sentence(), "pass: all 1,000 connections held, no faults, all responses correct");
        (s.connections.held, s.connections.finished) = (0, 500);
        assert!(s.sentence().starts_with("pass: 500 connections completed"), "{}", s.sentence());
    }
}
