//! Connections that had no response while the others had many: those of a server that serves only some at a time, such as one with a
//! thread for each connection, and keeps to these as long as they send.

use std::fmt;

use plan::{Act, Activity, Plan, Population, Reconnect, Then};
use samples::{AgentState, Fault, Kind, Latency, Stage, Tick};
use units::{Count, Nanos};

use crate::record::{PopulationRecord, Record};

/// Fewer may be chance, as may a smaller share of all: a target that loses a few first requests serves all at a time.
const FEW: u64 = 3;
const SHARE: u64 = 100;
/// A response that takes long is no pattern: they waited for a second or longer, and as long as this many responses to each of the
/// others took, which had as many or more.
const MANY: u64 = 10;
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
    /// Not all of those others were served at a time: some may have been closed for the rest.
    pub(crate) in_turns: bool,
}

/// Of each population that has any.
pub(super) fn starved(plan: &Plan, r: &Record) -> Vec<Starved> {
    // How long each waited is not known where the user changed the load, or an agent was lost; nor whose the connections are that the
    // steps before have left, where there are several populations.
    let is_lost = r.agents.iter().any(|agent| agent.state == AgentState::Lost);
    // An interrupted run may have ended in the ramp of a later stage, where those that had just opened had sent nothing.
    let is_cut = r.interrupted.is_some() && plan.stages.len() > 1;
    let is_alone = plan.populations.len() == 1;
    if !r.commands.is_empty() || is_lost || is_cut || r.losses.before > 0 && !is_alone {
        return Vec::new();
    }
    let last = plan.stages.last().map_or(Nanos::NEVER, |stage| stage.hold.time());
    let of = |(population, measured): (&Population, &PopulationRecord)| {
        // Connections of a later stage may have nothing to send yet, unless each sends at once.
        let is_judged = goes_on(population) && (population.is_closed_loop() || plan.stages.len() == 1);
        let found = Starved::of(population, measured, last, r.losses.before).filter(|_| is_judged)?;
        Some(Starved { name: (!is_alone).then(|| population.name.clone()), ..found })
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
    /// `last`: how long the last stage lasts, for which those that it opened have waited; `before`: connections that the steps of a
    /// search before this one have left.
    fn of(population: &Population, measured: &PopulationRecord, last: Nanos, before: u64) -> Option<Starved> {
        let (totals, counts) = (&measured.totals, &measured.totals.counts);
        let served = totals.served + before.saturating_sub(counts.finished);
        let responses = counts.answered_at_load;
        // Of those that were there before, some may have been closed with an announcement and dialled again.
        let is_unsure = before > 0 && counts.closed > 0;
        if served == 0 || responses == 0 || is_unsure || hangs_at_one(totals) {
            return None;
        }
        let (count, lost) = silent(totals);
        let streams = population.streams.map_or(1, u64::from);
        let (theirs, others) = (count * streams, served * streams);
        let is_by_rate = population.load.is_paced();
        // The first message of each is due within one interval.
        let begins_within = match &population.activity {
            Activity::Ping { every, .. } if !is_by_rate => *every,
            _ => Nanos::ZERO,
        };
        let waited = measured.at_load.min(last).since(begins_within).min(population.timeout);
        let took_s = match is_by_rate || population.is_closed_loop() {
            true => measured.at_load.secs_f64() * others as f64 / responses as f64,
            // They pause between two requests.
            false => totals.latency.quantile(0.5).secs_f64(),
        };
        let is_long = waited >= LEAST && waited.secs_f64() >= MANY as f64 * took_s;
        // Where responses to the others take that long too, some connections begin with such a response, and none is kept waiting; or the
        // target is busy with what all of them sent first.
        let count_slow = |times: &Latency| times.count_within(Nanos(waited.0 / 2), Nanos::NEVER);
        let handshakes = [&totals.tls, &totals.tls_resumed, &totals.handshake];
        let exchanges = [&totals.latency, &totals.ramp_latency];
        // By a rate latency includes the wait for a free connection; but then more is under way at the end.
        let slow: u64 = match is_by_rate {
            true => handshakes.into_iter().map(count_slow).sum(),
            false => handshakes.into_iter().chain(exchanges).map(count_slow).sum(),
        };
        let are_under_way = is_by_rate && lost + counts.answered.saturating_sub(responses) > 2 * theirs;
        let more = (lost + slow).saturating_sub(theirs);
        let are_theirs = more <= (theirs / 10).min(others / 10 + FEW) && !are_under_way;
        let are_many = count >= FEW && count * SHARE >= count + served && responses >= MANY * others;
        // A thread whose number of requests is sent makes room for the connections of those that have not begun.
        let in_turns = population.requests.is_some() && measured.threads > 1;
        let found = Starved { name: None, count, served, responses, in_turns };
        (are_many && are_theirs && is_long).then_some(found)
    }
}

/// Connections opened that had no response, or no handshake before it, and requests and handshakes that had none.
fn silent(totals: &Tick) -> (u64, u64) {
    let counts = &totals.counts;
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
    let refused = before.saturating_sub(counts.failed);
    let shaking =
        sum(|fault| matches!(fault.stage, Stage::Tls | Stage::Handshake) && fault.kind == Kind::Timeout);
    let shaking = shaking.min(counts.failed);
    let count = (counts.opened + shaking).saturating_sub(totals.served + ended + refused);
    let timed_out = sum(|fault| (fault.stage, fault.kind) == (Stage::Exchange, Kind::Timeout));
    (count, timed_out + counts.unanswered + shaking)
}

/// Whether all connections to one destination of several have no response.
fn hangs_at_one(totals: &Tick) -> bool {
    totals.destinations.iter().any(|own| own.sent > 0 && own.answered == 0)
}

/// Whether each connection that is held begins with the same request, and repeats it as long as the load lasts.
fn goes_on(population: &Population) -> bool {
    // One that is lost and dialled again may be served then; and one that is dialled when it is needed is not held.
    let is_held = !population.comes_and_goes()
        && !matches!(population.reconnect, Reconnect::Backoff(_) | Reconnect::OnDemand { .. });
    let repeats = match &population.activity {
        Activity::Idle => false,
        Activity::Ping { .. } => true,
        // A request that is not repeated, or is one of several, may be slow by nature, as a login or a long poll is.
        Activity::Steps { steps, then: Then::Again(0) } => steps.first().is_some_and(|step| {
            let is_request = matches!(
                step.act,
                Act::Request { .. } | Act::Upgrade { .. } | Act::Send { expected: Some(_), .. }
            );
            is_request && step.weight.is_none()
        }),
        Activity::Steps { .. } => false,
    };
    is_held && repeats
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
    use plan::{Load, Text, Think};
    use samples::{Destination, UserCommand};
    use units::Rate;

    use super::*;
    use crate::fixture::{plan, record};

    const SAID: &str = "92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";

    /// For ten seconds, 8 of 100 connections had a response each millisecond, and the others none, but for `change`.
    fn check(change: impl FnOnce(&mut Plan, &mut Record), expected: &[&str]) {
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
        check(|_, _| {}, &[SAID]);
        // They ran into their timeouts.
        check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 92), &[SAID]);
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
        check(
            |_, r| {
                r.populations[0].totals.counts.failed = 50;
                lose(r, Fault::target(Stage::Dial, Kind::Refused), 50);
            },
            &[SAID],
        );
    }

    /// A second after each response.
    fn pause(plan: &mut Plan) {
        let Act::Request { think, .. } = &mut steps(plan).0[0].act else { panic!("no request") };
        *think = Think { min: Nanos::from_secs(1), max: Nanos::from_secs(1) };
    }

    #[test]
    fn threads_that_have_sent_their_number_make_room_for_others() {
        let in_turns = |requests, threads| {
            let (mut plan, mut r) = (plan(&[]), record());
            plan.populations[0].requests = requests;
            let measured = &mut r.populations[0];
            (measured.at_load, measured.threads) = (Nanos::from_secs(10), threads);
            let totals = &mut measured.totals;
            (totals.served, totals.counts.opened, totals.counts.answered_at_load) = (8, 100, 80_000);
            starved(&plan, &r).first().map(|found| found.in_turns)
        };
        let number = Some(80_000);
        assert_eq!(
            [in_turns(number, 2), in_turns(number, 1), in_turns(None, 2)],
            [true, false, false].map(Some)
        );
    }

    fn go_by_rate(plan: &mut Plan) {
        plan.populations[0].load = Load::Rate { connections: 100, rate: Rate::per_s(10_000) };
    }

    /// A message in each `every`.
    fn ping(plan: &mut Plan, every: Nanos) {
        plan.populations[0].activity = Activity::Ping { every, text: Text::default() };
    }

    #[test]
    fn those_that_pause_have_as_many_and_wait_as_long() {
        check(|plan, _| pause(plan), &[SAID]);
        let said = "92 of 100 connections had no response by the end of the load, while the other 8 had 80 at full load";
        let few = |r: &mut Record, each: u64| {
            let totals = &mut r.populations[0].totals;
            totals.counts.answered_at_load = 8 * each;
            totals.latency.record_n(Nanos::from_millis(40), 8 * each);
        };
        check(
            |plan, r| {
                pause(plan);
                few(r, 10);
            },
            &[said],
        );
        check(
            |plan, r| {
                pause(plan);
                few(r, 9);
            },
            &[],
        );
        check(|_, r| few(r, 9), &[]);
        check(
            |plan, r| {
                ping(plan, Nanos::from_secs(1));
                few(r, 10);
            },
            &[said],
        );
        // Hardly more than the interval in which the first message of each is due.
        check(
            |plan, r| {
                ping(plan, Nanos::from_millis(9_500));
                few(r, 10);
            },
            &[],
        );
        // Responses of a second each.
        check(
            |plan, r| {
                pause(plan);
                r.populations[0].totals.latency.record_n(Nanos::from_millis(1_100), 80_000);
            },
            &[],
        );
        // Those that a later stage adds may not have sent.
        check(
            |plan, _| {
                pause(plan);
                let later = plan.stages[0].clone();
                plan.stages.push(later);
            },
            &[],
        );
    }

    #[test]
    fn a_target_that_is_busy_with_the_first_of_all_serves_all() {
        check(
            |plan, r| {
                pause(plan);
                let totals = &mut r.populations[0].totals;
                (totals.served, totals.counts.opened) = (1_000, 10_000);
                totals.ramp_latency.record_n(Nanos::from_secs(6), 500);
                lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 9_000);
            },
            &[],
        );
    }

    #[test]
    fn by_a_rate_the_others_wait_for_no_connection() {
        let silent = |r: &mut Record, answered: u64| {
            let totals = &mut r.populations[0].totals;
            (totals.counts.answered, totals.counts.unanswered) = (answered, 92);
            totals.latency.record_n(Nanos::from_secs(6), 40_000);
        };
        check(
            |plan, r| {
                go_by_rate(plan);
                silent(r, 80_008);
            },
            &[SAID],
        );
        // As many as can be had from a response that takes long now and then.
        check(
            |plan, r| {
                go_by_rate(plan);
                silent(r, 80_100);
            },
            &[],
        );
        check(
            |plan, r| {
                go_by_rate(plan);
                plan.populations[0].reconnect = Reconnect::OnDemand { idle: 2 };
                lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 92);
            },
            &[],
        );
    }

    #[test]
    fn a_handshake_that_none_comes_to_is_no_response() {
        let shake = |r: &mut Record, kind| {
            let counts = &mut r.populations[0].totals.counts;
            (counts.opened, counts.failed) = (8, 92);
            lose(r, Fault::target(Stage::Handshake, kind), 92);
        };
        check(|_, r| shake(r, Kind::Timeout), &[SAID]);
        check(|_, r| shake(r, Kind::Reset), &[]);
        check(
            |_, r| {
                shake(r, Kind::Timeout);
                r.populations[0].totals.handshake.record_n(Nanos::from_secs(6), 4);
            },
            &[],
        );
    }

    #[test]
    fn a_destination_that_hangs_is_another_thing() {
        let at = |answered: u64| Destination { sent: 100, answered, ..Destination::default() };
        check(|_, r| r.populations[0].totals.destinations = vec![at(900), at(1)], &[SAID]);
        check(|_, r| r.populations[0].totals.destinations = vec![at(900), at(0)], &[]);
    }

    #[test]
    fn a_step_counts_what_the_steps_before_have_left() {
        let step = |r: &mut Record| {
            let totals = &mut r.populations[0].totals;
            (totals.served, totals.counts.opened, totals.counts.finished) = (3, 95, 15);
            r.losses.before = 20;
        };
        check(|_, r| step(r), &[SAID]);
        check(
            |_, r| {
                step(r);
                r.populations[0].totals.counts.closed = 1;
            },
            &[],
        );
        check(
            |plan, r| {
                step(r);
                let other = plan.populations[0].clone();
                plan.populations.push(other);
                r.populations.push(PopulationRecord::default());
            },
            &[],
        );
    }
}
