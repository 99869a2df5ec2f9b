//! Connections of a closed loop that had no response while the others had many: those of a server that serves only some at a time,
//! such as one with a thread for each connection, and keeps to these as long as they send.

use std::fmt;

use plan::{Activity, Plan, Population, Reconnect, Then};
use samples::{AgentState, Fault, Kind, Latency, Stage};
use units::{Count, Nanos};

use crate::record::{PopulationRecord, Record};

/// Fewer may be chance, as may a smaller share of all: a target that loses a few first requests serves all at a time.
const FEW: u64 = 3;
const SHARE: u64 = 100;
/// A response that takes long is no pattern: they waited for a second or longer, and in that time each of the others had this many.
const MANY: f64 = 10.0;
const LEAST: Nanos = Nanos::from_secs(1);

/// Those of a population.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starved {
    /// The population's, where there are several.
    pub(crate) name: Option<String>,
    pub(crate) count: u64,
    /// The others, and the responses that they had at full load.
    pub(crate) served: u64,
    pub(crate) responses: u64,
}

/// Of each population that has any.
pub(super) fn starved(plan: &Plan, r: &Record) -> Vec<Starved> {
    // How long each waited is not known where the user changed the load, or an agent was lost; nor who was served in the steps before.
    let is_lost = r.agents.iter().any(|agent| agent.state == AgentState::Lost);
    // An interrupted run may have ended in the ramp of a later stage, where those that had just opened had sent nothing.
    let is_cut = r.interrupted.is_some() && plan.stages.len() > 1;
    if !r.commands.is_empty() || is_lost || is_cut || r.losses.before > 0 {
        return Vec::new();
    }
    let is_alone = plan.populations.len() == 1;
    let last = plan.stages.last().map_or(Nanos::NEVER, |stage| stage.hold.time());
    let of = |(population, measured): (&Population, &PopulationRecord)| {
        let name = (!is_alone).then(|| population.name.clone());
        Some(Starved { name, ..Starved::of(population, measured, last)? })
    };
    plan.populations.iter().zip(&r.populations).filter_map(of).collect()
}

/// As reasons of a verdict.
pub(super) fn reasons(starved: &[Starved]) -> Vec<String> {
    let reason = |own: &Starved| match &own.name {
        Some(name) => format!("{name}: {own}"),
        None => own.to_string(),
    };
    starved.iter().map(reason).collect()
}

impl Starved {
    /// `last`: how long the last stage lasts, for which those that it opened have waited.
    fn of(population: &Population, measured: &PopulationRecord, last: Nanos) -> Option<Starved> {
        let totals = &measured.totals;
        let (served, responses) = (totals.served, totals.counts.answered_at_load);
        // One that is lost and dialled again may be served then.
        let is_judged = population.is_closed_loop() && !matches!(population.reconnect, Reconnect::Backoff(_));
        if !is_judged || begins_apart(population) || served == 0 || responses == 0 {
            return None;
        }
        let sum = |is_one: fn(Fault) -> bool| -> u64 {
            totals.faults.iter().filter(|(fault, _)| is_one(*fault)).map(|(_, n)| n).sum()
        };
        // What was closed or reset before its first response is another thing.
        let ended = sum(|fault| {
            matches!(fault.stage, Stage::Exchange | Stage::Hold)
                && fault.kind != Kind::Timeout
                && !fault.kind.is_wrong_response()
        });
        // A server of TLS 1.3 refuses a client after its handshake: such a connection was open, unlike those that failed.
        let before = sum(|fault| matches!(fault.stage, Stage::Dial | Stage::Tls | Stage::Handshake));
        let refused = before.saturating_sub(totals.counts.failed);
        let count = totals.counts.opened.saturating_sub(served + ended + refused);
        // Requests that had no response are theirs: a target that loses some of all is another thing, too.
        let timed_out = sum(|fault| (fault.stage, fault.kind) == (Stage::Exchange, Kind::Timeout));
        let lost = timed_out + totals.counts.unanswered;
        let streams = population.streams.map_or(1.0, f64::from);
        let each_s = measured.at_load.secs_f64() * served as f64 * streams / responses as f64;
        let waited = measured.at_load.min(last).min(population.timeout);
        let is_long = waited >= LEAST && waited.secs_f64() >= MANY * each_s;
        // Where responses to the others take that long too, some connections begin with such a response, and none is kept waiting.
        let count_slow = |times: &Latency| times.count_within(Nanos(waited.0 / 2), Nanos::NEVER);
        let slow = count_slow(&totals.latency) + count_slow(&totals.ramp_latency);
        let are_theirs = lost + slow <= (count + count / 10) * population.streams.map_or(1, u64::from);
        let are_many = count >= FEW && count * SHARE >= count + served;
        (are_many && are_theirs && is_long).then_some(Starved { name: None, count, served, responses })
    }
}

/// Whether connections may begin with another request than they go on with: it may be slow by nature, as a long poll or a login is.
fn begins_apart(population: &Population) -> bool {
    let Activity::Steps { steps, then } = &population.activity else { return false };
    steps.first().is_some_and(|step| step.weight.is_some()) || matches!(then, Then::Again(1..))
}

impl fmt::Display for Starved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, all) = (Count(self.count), Count(self.count + self.served).of("connection"));
        let (served, responses) = (Count(self.served), Count(self.responses));
        write!(
            f,
            "{count} of {all} had no response by the end of the load, while the other {served} had {responses} at full load"
        )
    }
}

#[cfg(test)]
mod tests {
    use samples::UserCommand;

    use super::*;
    use crate::fixture::{plan, record};

    /// For ten seconds, 8 of 100 connections had a response each millisecond, and the others none, but for `change`.
    fn check(change: fn(&mut Plan, &mut Record), expected: &[&str]) {
        let (mut plan, mut r) = (plan(&[]), record());
        let measured = &mut r.populations[0];
        measured.at_load = Nanos::from_secs(10);
        measured.totals.served = 8;
        (measured.totals.counts.opened, measured.totals.counts.answered_at_load) = (100, 80_000);
        change(&mut plan, &mut r);
        assert_eq!(reasons(&starved(&plan, &r)), expected);
    }

    fn steps(plan: &mut Plan) -> (&mut Vec<plan::Step>, &mut Then) {
        let Activity::Steps { steps, then } = &mut plan.populations[0].activity else { panic!("no steps") };
        (steps, then)
    }

    fn lose(r: &mut Record, fault: Fault, count: u64) {
        (0..count).for_each(|_| r.populations[0].totals.faults.count(fault));
    }

    #[test]
    fn those_without_a_response_are_counted_beside_those_with_many() {
        let said = "92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";
        check(|_, _| {}, &[said]);
        // They ran into their timeouts.
        check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 92), &[said]);
        let named = "users: 92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";
        check(
            |plan, r| {
                let other = plan.populations[0].clone();
                plan.populations[0].name = "users".to_owned();
                plan.populations.push(other);
                r.populations.push(PopulationRecord::default());
            },
            &[named],
        );
    }

    #[test]
    fn slow_responses_and_losses_are_other_things() {
        check(|_, r| r.populations[0].totals.served = 98, &[]);
        check(|_, r| r.populations[0].totals.served = 0, &[]);
        // Eight responses each in ten seconds.
        check(|_, r| r.populations[0].totals.counts.answered_at_load = 64, &[]);
        check(|_, r| r.populations[0].at_load = Nanos::from_millis(900), &[]);
        check(|plan, _| plan.populations[0].timeout = Nanos::from_millis(300), &[]);
        check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Reset), 90), &[]);
        check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 102), &[]);
        check(|_, r| lose(r, Fault::target(Stage::Tls, Kind::Closed), 90), &[]);
        // Some of those that are served wait as long.
        check(|_, r| r.populations[0].totals.latency.record_n(Nanos::from_secs(6), 102), &[]);
        check(|plan, _| plan.stages[0].hold = plan::Hold::For(Nanos::from_millis(500)), &[]);
        check(|plan, _| steps(plan).0[0].weight = Some(1), &[]);
        check(|plan, _| *steps(plan).1 = Then::Again(1), &[]);
        // Three of 803.
        let few = |_: &mut Plan, r: &mut Record| {
            let totals = &mut r.populations[0].totals;
            (totals.served, totals.counts.opened, totals.counts.answered_at_load) = (800, 803, 8_000_000);
        };
        check(few, &[]);
        check(|_, r| r.commands.push(UserCommand::default()), &[]);
        check(
            |plan, r| {
                let later = plan.stages[0].clone();
                plan.stages.push(later);
                r.interrupted = Some("SIGINT");
            },
            &[],
        );
    }

    #[test]
    fn dials_that_failed_were_never_open() {
        let said = "92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";
        check(
            |_, r| {
                r.populations[0].totals.counts.failed = 50;
                lose(r, Fault::target(Stage::Dial, Kind::Refused), 50);
            },
            &[said],
        );
    }
}
