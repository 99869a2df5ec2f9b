//! Connections that had no response while the others had many: those of a server that serves only some at a time, such as one with a
//! thread for each connection, and keeps to these as long as they send.

use std::fmt;

use plan::{Act, Activity, Plan, Population, Reconnect, Then};
use samples::{AgentState, Fault, Kind, Latency, Stage, Tick};
use units::{Count, Nanos};

use record::{PopulationRecord, Record, tolerances::FEW};

/// A smaller share of all may be chance: a target that loses a few first requests serves all at a time.
const SHARE: u64 = 100;
/// A response that takes long is no pattern: they waited for a second or longer, and as long as this many responses to each of the
/// others took, which had as many or more.
const MANY: u64 = 10;
const LEAST: Nanos = Nanos::from_secs(1);

/// Those of a population.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starved {
    /// The populations that are judged together, where there are several.
    pub(crate) names: Vec<String>,
    pub(crate) count: u64,
    /// The others, and the responses that they had at full load.
    pub(crate) served: u64,
    pub(crate) responses: u64,
    /// Not all of those others were served at a time: some may have been closed for the rest.
    pub(crate) in_turns: bool,
}

/// Of each population that has any; of several at the same destinations together, where their requests can be compared.
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
    // Connections of a later stage may have nothing to send yet, unless each sends at once.
    let is_judged = |population: &Population| {
        goes_on(population) && (population.is_closed_loop() || plan.stages.len() == 1)
    };
    let judged = plan.populations.iter().zip(&r.populations).filter(|(population, _)| is_judged(population));
    let mut rest: Vec<Share> =
        judged.filter_map(|(own, measured)| Share::of(own, measured, last, r.losses.before)).collect();
    let mut found: Vec<Starved> = Vec::new();
    while let Some(first) = rest.first() {
        let destinations = &first.population.target.destinations;
        let (there, elsewhere): (Vec<Share>, Vec<Share>) =
            rest.into_iter().partition(|own| own.population.target.destinations == *destinations);
        rest = elsewhere;
        match Starved::of(&comparable(&there)) {
            Some(together) => found.push(together),
            None => found.extend(there.iter().filter_map(|own| Starved::of(&[own]))),
        }
    }
    if is_alone {
        found.iter_mut().for_each(|own| own.names.clear());
    }
    found
}

/// As reasons of a verdict.
pub(super) fn reasons(starved: &[Starved]) -> Vec<String> {
    let reason = |own: &Starved| match own.names.is_empty() {
        false => format!("{}: {own}", own.names.join(" and ")),
        true => own.to_string(),
    };
    starved.iter().map(reason).collect()
}

/// What a population has in it.
struct Share<'a> {
    population: &'a Population,
    /// Connections that had no response, those that had, and their responses at full load.
    count: u64,
    served: u64,
    responses: u64,
    /// Requests under way on a connection.
    streams: u64,
    /// How long those without a response have waited at least, and the seconds that one took.
    waited: Nanos,
    took_s: f64,
    /// Requests and handshakes that had no response, and those whose response took long.
    lost: u64,
    slow: u64,
    /// Of those that had none, as many as connections without a response may have had at most.
    own_lost: u64,
    is_paced: bool,
    /// Responses to what was due before full load, or came after it.
    beside: u64,
    in_turns: bool,
}

impl<'a> Share<'a> {
    /// `last`: how long the last stage lasts, for which those that it opened have waited; `before`: connections that the steps of a
    /// search before this one have left. None where they cannot be told apart.
    fn of(
        population: &'a Population,
        measured: &PopulationRecord,
        last: Nanos,
        before: u64,
    ) -> Option<Share<'a>> {
        let (totals, counts) = (&measured.totals, &measured.totals.counts);
        let served = totals.served + before.saturating_sub(counts.finished);
        let responses = counts.answered_at_load;
        // Of those that were there before, some may have been closed with an announcement and dialled again.
        let is_unsure = before > 0 && counts.closed > 0;
        if is_unsure || hangs_at_one(totals) {
            return None;
        }
        let dials_again = matches!(population.reconnect, Reconnect::Backoff(_));
        let (count, lost) = silent(totals, dials_again);
        let streams = population.streams.map_or(1, u64::from);
        let is_paced = population.load.is_paced();
        // The first message of each is due within one interval.
        let begins_within = match &population.activity {
            Activity::Ping { every, .. } if !is_paced => *every,
            _ => Nanos::ZERO,
        };
        let waited = measured.at_load.min(last).since(begins_within).min(population.timeout);
        let took_s = match is_paced || population.is_closed_loop() {
            true => measured.at_load.secs_f64() * (served * streams) as f64 / responses.max(1) as f64,
            // They pause between two requests.
            false => totals.latency.quantile(0.5).secs_f64(),
        };
        // Each waits for the timeout, and then again on the connection that is dialled instead.
        let rounds = match dials_again {
            true => 1 + (measured.ramp.0 + measured.at_load.0) / population.timeout.0.max(1),
            false => 1,
        };
        Some(Share {
            population,
            count,
            served,
            responses,
            streams,
            waited,
            took_s,
            lost,
            slow: slow(totals, waited, is_paced),
            own_lost: count * streams * rounds,
            is_paced,
            beside: counts.answered.saturating_sub(responses),
            // A thread whose number of requests is sent makes room for the connections of those that have not begun.
            in_turns: population.requests.is_some() && measured.threads > 1,
        })
    }

    /// Whether those that were served show how long what this population sends first takes.
    fn shows(&self, other: &Share) -> bool {
        let is_served = self.served > 0 && self.responses >= MANY * self.served * self.streams;
        is_served && begins_alike(&self.population.activity, &other.population.activity)
    }
}

/// Requests and handshakes whose response took about as long as others have waited for theirs. Where there are any, some connections begin
/// with such a response, and none is kept waiting; or the target is busy with what all of them sent first.
fn slow(totals: &Tick, waited: Nanos, is_paced: bool) -> u64 {
    let count_slow = |times: &Latency| times.count_within(Nanos(waited.0 / 2), Nanos::NEVER);
    let handshakes = [&totals.tls, &totals.tls_resumed, &totals.handshake];
    let exchanges = [&totals.latency, &totals.ramp_latency];
    // By a rate latency includes the wait for a free connection; but then more is under way at the end.
    match is_paced {
        true => handshakes.into_iter().map(count_slow).sum(),
        false => handshakes.into_iter().chain(exchanges).map(count_slow).sum(),
    }
}

/// Those of one server among which some have no response: what a population sends may take long by nature, unless the same is
/// seen to be fast on other connections, whichever population these are of.
fn comparable<'a>(there: &'a [Share<'a>]) -> Vec<&'a Share<'a>> {
    let is_shown = |own: &Share| there.iter().any(|other| other.shows(own));
    let is_part = |own: &Share| {
        there.iter().any(|other| {
            other.count > 0 && begins_alike(&own.population.activity, &other.population.activity)
        })
    };
    there.iter().filter(|own| own.count + own.served > 0 && is_shown(own) && is_part(own)).collect()
}

/// Whether connections send the same first.
fn begins_alike(one: &Activity, other: &Activity) -> bool {
    match (one, other) {
        (Activity::Ping { text: one, .. }, Activity::Ping { text: other, .. }) => one == other,
        (Activity::Steps { steps: one, .. }, Activity::Steps { steps: other, .. }) => {
            match (one.first().map(|step| &step.act), other.first().map(|step| &step.act)) {
                (Some(Act::Request { request: one, .. }), Some(Act::Request { request: other, .. })) => {
                    one == other
                }
                (one, other) => one == other,
            }
        }
        _ => false,
    }
}

impl Starved {
    /// Whether a backend or a worker that does not respond, one of several, may have them all: it has no more than the others together.
    pub(crate) fn may_be_of_one(&self) -> bool {
        self.count <= self.served
    }

    /// ` of population users`, where there are several.
    pub(crate) fn of_population(&self) -> String {
        let names = self.names.join(" and ");
        if names.is_empty() { String::new() } else { format!(" of population {names}") }
    }

    pub(crate) fn at_most(&self) -> &'static str {
        if self.in_turns { "at most " } else { "" }
    }

    /// `the target serves 4 connections at a time`
    pub(crate) fn serves(&self) -> String {
        let served = Count(self.served).of("connection");
        format!("the target serves {}{served}{} at a time", self.at_most(), self.of_population())
    }

    /// The same where this many of the others wait in the accept queue.
    pub(crate) fn of_which_queued(&self, queued: u64) -> String {
        match queued.min(self.count) {
            queued if queued >= self.count => format!(
                "{}: {} {} in its accept queue",
                self.serves(),
                Count(self.count),
                Count(self.count).one_or("other waits", "others wait")
            ),
            queued => format!(
                "{}: {} had no response by the end of the load, {} of them in its accept queue",
                self.serves(),
                Count(self.count).of("other"),
                Count(queued)
            ),
        }
    }

    /// All of these together, if they are.
    fn of(shares: &[&Share]) -> Option<Starved> {
        let sum = |of: fn(&Share) -> u64| shares.iter().map(|own| of(own)).sum::<u64>();
        let (count, served) = (sum(|own| own.count), sum(|own| own.served));
        let responses = sum(|own| own.responses);
        if served == 0 || responses == 0 {
            return None;
        }
        let (theirs, others) = (sum(|own| own.count * own.streams), sum(|own| own.served * own.streams));
        let silent = || shares.iter().filter(|own| own.count > 0);
        let waited = silent().map(|own| own.waited).min()?;
        let took_s = shares.iter().filter(|own| own.served > 0).map(|own| own.took_s).fold(0.0, f64::max);
        let is_long = waited >= LEAST && waited.secs_f64() >= MANY as f64 * took_s;
        let more = sum(|own| (own.lost + own.slow).saturating_sub(own.own_lost));
        let are_under_way = silent().any(|own| own.is_paced && own.lost + own.beside > 2 * own.own_lost);
        let are_theirs = more <= (theirs / 10).min(others / 10 + FEW) && !are_under_way;
        let are_many = count >= FEW && count * SHARE >= count + served && responses >= MANY * others;
        let found = Starved {
            names: shares.iter().map(|own| own.population.name.clone()).collect(),
            count,
            served,
            responses,
            in_turns: shares.iter().any(|own| own.in_turns),
        };
        (are_many && are_theirs && is_long).then_some(found)
    }
}

/// Connections opened that had no response, or no handshake before it, and requests and handshakes that had none. Of those that are dialled
/// again (`dials_again`) the ones that had none on any of their dials; without those whose handshakes failed, which were never open.
fn silent(totals: &Tick, dials_again: bool) -> (u64, u64) {
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
    let shaking = if dials_again { 0 } else { shaking.min(counts.failed) };
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
    // One that is dialled when it is needed is not held.
    let is_held = !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::OnDemand { .. });
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
mod tests;
