//! What a summary says in words: an error of throng, lost agents, a limit with its fix. The headline itself is composed by `judge`.

use units::{Count, Failure};

use crate::{
    cause::Cause,
    summary::{AgentState, AgentSummary, Certainty, Limit, Summary, Verdict},
};

/// Prefix of messages about an error in throng.
pub const FAILED: &str = "throng failed";

impl Summary {
    /// Marks the run as invalid because throng itself failed. The figures are kept, but nothing is judged by them.
    pub fn fail(&mut self, why: &str) {
        if self.failure.is_some() {
            return;
        }
        (self.verdict, self.failure) = (Verdict::Invalid, Some(why.to_owned()));
        (self.limit, self.suspect) = (None, None);
        self.reasons.retain(|reason| !reason.starts_with("interrupted by "));
        self.reasons.insert(0, format!("{FAILED}: {why}"));
        self.headline = format!(
            "invalid: {FAILED}: {why}; report it with this line, throng {}, --seed {} and the command",
            env!("CARGO_PKG_VERSION"),
            self.seed
        );
    }

    /// The same, if an error in throng has ended one of its threads.
    pub fn note_failure(&mut self) {
        if let Some(failure) = Failure::first() {
            self.fail(&failure.to_string());
        }
    }

    /// Connections that throng closed as planned, without those of agents whose lease had expired.
    pub fn closed_as_planned(&self) -> u64 {
        self.connections.finished.saturating_sub(self.closed_by_lease())
    }

    /// Connections that agents closed because their lease had expired.
    pub fn closed_by_lease(&self) -> u64 {
        self.agents.iter().map(|agent| agent.closed_by_lease).sum()
    }

    /// The agents that were lost with their part; `None` if there are none.
    pub fn lost_agents(&self) -> Option<String> {
        let is_lost =
            |agent: &&AgentSummary| agent.state == AgentState::Lost && agent.taken_over_by.is_empty();
        let lost: Vec<&str> = self.agents.iter().filter(is_lost).map(|agent| agent.id.as_str()).collect();
        let (c, all) = (&self.connections, self.agents.len());
        let left: Vec<&AgentSummary> =
            self.agents.iter().filter(|agent| agent.state != AgentState::Lost).collect();
        // If the load was lowered before an agent was lost, the run's number includes what that agent held at the maximum.
        let by_others = left.iter().map(|agent| agent.held).sum::<u64>().min(c.held);
        let held = match left.is_empty() {
            // Arriving connections are never held.
            false if c.all_arrive() => {
                format!(
                    "; the others opened {} of {} connections",
                    Count(c.opened.min(c.wanted)),
                    Count(c.wanted)
                )
            }
            false => format!("; the others held {} of {} connections", Count(by_others), Count(c.wanted)),
            true => String::new(),
        };
        match lost[..] {
            [] => None,
            [id] => Some(format!("agent {id} was lost{held}")),
            _ if lost.len() == all => Some(format!("all {all} agents were lost")),
            _ => Some(format!("{} of {all} agents were lost{held}", lost.len())),
        }
    }

    /// What is missing from an agent's report; without it all figures of the run are incomplete. `None` if nothing is missing.
    pub fn incomplete(&self) -> Option<String> {
        self.agents.iter().find_map(|AgentSummary { id, state, missing_ticks, sealed, .. }| match state {
            _ if *missing_ticks == 1 => Some(format!("1 tick of agent {id} did not arrive")),
            _ if *missing_ticks > 0 => {
                Some(format!("{} ticks of agent {id} did not arrive", Count(*missing_ticks)))
            }
            AgentState::Done if !sealed => Some(format!("agent {id}'s counts do not match its totals")),
            AgentState::Ready => Some(format!("the end of agent {id}'s report did not arrive")),
            AgentState::Done | AgentState::Lost | AgentState::Refused => None,
        })
    }
}

impl Limit {
    /// The limit with its fix, worded according to its certainty: `the target ran out of open files: 1,024 of 1,024 used; raise …`,
    /// `probably …`, `perhaps …; to find out: …`.
    pub fn sentence_with_fix(&self) -> String {
        let surely = match (self.certainty, self.cause) {
            // An unknown cause is not qualified.
            (Certainty::Seen, _) | (_, Cause::Unknown) => "",
            // The timeout is certain; its reason is not.
            (Certainty::Guess, Cause::Timeout) => "",
            (Certainty::Inferred, _) => "probably ",
            (Certainty::Guess, _) => "perhaps ",
        };
        let how = match (self.certainty, self.cause) {
            (Certainty::Guess, Cause::Timeout) => "to find out why: ",
            (Certainty::Guess, _) => "to find out: ",
            _ => "",
        };
        // Earlier versions stored no sentence.
        let what = if self.sentence.is_empty() { &self.detail } else { &self.sentence };
        // A leading number was counted: only the reason after it may be a guess.
        let is_counted = what.starts_with(|c: char| c.is_ascii_digit());
        let what = match what.split_once(": ") {
            Some((counted, why)) if is_counted => format!("{counted}: {surely}{why}"),
            _ if is_counted => what.clone(),
            _ => format!("{surely}{what}"),
        };
        format!("{what}; {how}{}", self.fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_not_supposed() {
        let check = |certainty, sentence: &str, expected: &str| {
            let (sentence, fix) = (sentence.to_owned(), "look".to_owned());
            let limit = Limit { cause: Cause::NoSynAck, certainty, sentence, fix, ..Limit::default() };
            assert_eq!(limit.sentence_with_fix(), expected);
        };
        let dials = "3 dials got no reply: the path drops packets, or no host has that address";
        let supposed =
            "3 dials got no reply: probably the path drops packets, or no host has that address; look";
        check(Certainty::Inferred, dials, supposed);
        check(Certainty::Seen, dials, &format!("{dials}; look"));
        let rejected = "9 dials were rejected on the path";
        check(Certainty::Inferred, rejected, &format!("{rejected}; look"));
    }

    #[test]
    fn an_error_of_throng_is_all_that_is_said() {
        let mut s = Summary { verdict: Verdict::Interrupted, seed: 42, ..Summary::default() };
        s.reasons = vec!["interrupted by a lost worker".to_owned(), "7 of 9 connections held".to_owned()];
        s.limit = Some(Limit { sentence: "the target is slow".to_owned(), ..Limit::default() });
        s.fail("no place (crates/a.rs:1:2, thread run-0)");
        s.fail("another one");
        let failed = "throng failed: no place (crates/a.rs:1:2, thread run-0)";
        assert_eq!(s.reasons, [failed, "7 of 9 connections held"]);
        assert!(s.verdict == Verdict::Invalid && s.limit.is_none());
        let report = format!(
            "report it with this line, throng {}, --seed 42 and the command",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(s.headline, format!("invalid: {failed}; {report}"));
    }
}
