//! Starved connections: they had no response while others had many. Typical for a server that serves a fixed number of connections at a
//! time, such as one with a thread per connection, and stays with these as long as they send.

use std::fmt;

use plan::{Act, Activity, Plan, Population, Reconnect, Then};
use samples::{AgentState, Fault, Kind, Latency, Stage, Tick};
use units::{Count, Nanos};

use record::{PopulationRecord, Record, tolerances::FEW};

/// Minimum share of starved connections, as 1/n: less may be chance, if a target loses a few first requests.
const SHARE: u64 = 100;
/// A single slow response is no pattern: starved connections waited for at least `LEAST`, and at least as long as `MANY` responses took on
/// the other connections, each of which had at least as many responses.
const MANY: u64 = 10;
const LEAST: Nanos = Nanos::from_secs(1);

/// The starved connections of one or more populations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starved {
    /// The populations that were judged together; empty if the run has only one.
    pub(crate) names: Vec<String>,
    pub(crate) count: u64,
    /// Connections that were served, and their responses at full load.
    pub(crate) served: u64,
    pub(crate) responses: u64,
    /// The served connections were possibly not served at the same time: some may have been closed to make room.
    pub(crate) in_turns: bool,
}

/// The starved connections of each population. Populations with the same destinations are judged together if their requests are comparable.
pub(super) fn starved(plan: &Plan, r: &Record) -> Vec<Starved> {
    // Unknown cases: if the user changed the load or an agent was lost, the waiting times are unknown; if a search has several populations,
    // it is unknown which of them the connections of earlier steps belong to.
    let is_lost = r.agents.iter().any(|agent| agent.state == AgentState::Lost);
    // An interrupted run may have ended in the ramp of a later stage, before new connections sent anything.
    let is_cut = r.interrupted.is_some() && plan.stages.len() > 1;
    let is_alone = plan.populations.len() == 1;
    if !r.commands.is_empty() || is_lost || is_cut || r.losses.before > 0 && !is_alone {
        return Vec::new();
    }
    let last = plan.stages.last().map_or(Nanos::NEVER, |stage| stage.hold.time());
    // Connections of a later stage may have nothing to send yet, unless each sends immediately.
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

/// The reasons for the verdict.
pub(super) fn reasons(starved: &[Starved]) -> Vec<String> {
    let reason = |own: &Starved| match own.names.is_empty() {
        false => format!("{}: {own}", own.names.join(" and ")),
        true => own.to_string(),
    };
    starved.iter().map(reason).collect()
}

/// One population's contribution to the judgement.
struct Share<'a> {
    population: &'a Population,
    /// Connections that had no response, connections that had one, and responses at full load.
    count: u64,
    served: u64,
    responses: u64,
    /// Requests outstanding on each connection.
    streams: u64,
    /// Minimum time that connections without a response have waited, and the time per response in seconds.
    waited: Nanos,
    took_s: f64,
    /// Requests and handshakes without a response, and those whose response took long.
    lost: u64,
    slow: u64,
    /// Maximum number of lost requests that connections without a response can account for.
    own_lost: u64,
    is_paced: bool,
    /// Responses to requests due before full load, or received after it.
    beside: u64,
    in_turns: bool,
}

impl<'a> Share<'a> {
    /// `last`: duration of the last stage, for which the connections it opened have waited; `before`: connections left by earlier steps of
    /// a search. `None` if the two groups cannot be distinguished.
    fn of(
        population: &'a Population,
        measured: &PopulationRecord,
        last: Nanos,
        before: u64,
    ) -> Option<Share<'a>> {
        let (totals, counts) = (&measured.totals, &measured.totals.counts);
        let served = totals.served + before.saturating_sub(counts.finished);
        let responses = counts.answered_at_load;
        // Connections of earlier steps may have been closed by announcement and redialled.
        let is_unsure = before > 0 && counts.closed > 0;
        if is_unsure || hangs_at_one(totals) {
            return None;
        }
        let dials_again = matches!(population.reconnect, Reconnect::Backoff(_));
        let (count, lost) = silent(totals, dials_again);
        let streams = population.streams.map_or(1, u64::from);
        let is_paced = population.load.is_paced();
        // The first message of each connection is due within one interval.
        let begins_within = match &population.activity {
            Activity::Ping { every, .. } if !is_paced => *every,
            Activity::Idle | Activity::Ping { .. } | Activity::Steps { .. } => Nanos::ZERO,
        };
        let waited = measured.at_load.min(last).since(begins_within).min(population.timeout);
        let took_s = match is_paced || population.is_closed_loop() {
            true => measured.at_load.secs_f64() * (served * streams) as f64 / responses.max(1) as f64,
            // Connections pause between two requests.
            false => totals.latency.quantile(0.5).secs_f64(),
        };
        // Each starved connection waits for the timeout, and then again on the connection that replaces it.
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
            // A thread that has sent its number of requests makes room for connections that have not begun.
            in_turns: population.requests.is_some() && measured.threads > 1,
        })
    }

    /// Whether this population's served connections show how long the other population's first request takes.
    fn shows(&self, other: &Share) -> bool {
        let is_served = self.served > 0 && self.responses >= MANY * self.served * self.streams;
        is_served && begins_alike(&self.population.activity, &other.population.activity)
    }
}

/// Requests and handshakes whose response took about as long as starved connections have waited. If there are any, connections may simply
/// begin with a slow response, or the target is busy with the first requests of all of them.
fn slow(totals: &Tick, waited: Nanos, is_paced: bool) -> u64 {
    let count_slow = |times: &Latency| times.count_within(Nanos(waited.0 / 2), Nanos::NEVER);
    let handshakes = [&totals.tls, &totals.tls_resumed, &totals.handshake];
    let exchanges = [&totals.latency, &totals.ramp_latency];
    // At a rate, latency includes the wait for a free connection; in that case more requests are outstanding at the end.
    match is_paced {
        true => handshakes.into_iter().map(count_slow).sum(),
        false => handshakes.into_iter().chain(exchanges).map(count_slow).sum(),
    }
}

/// The populations of one server that can be judged together. A request may be slow by nature, so the same first request must have been
/// fast on other connections, of any population.
fn comparable<'a>(there: &'a [Share<'a>]) -> Vec<&'a Share<'a>> {
    let is_shown = |own: &Share| there.iter().any(|other| other.shows(own));
    let is_part = |own: &Share| {
        there.iter().any(|other| {
            other.count > 0 && begins_alike(&own.population.activity, &other.population.activity)
        })
    };
    there.iter().filter(|own| own.count + own.served > 0 && is_shown(own) && is_part(own)).collect()
}

/// Whether connections send the same first request or message.
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
    /// Whether one unresponsive backend or worker of several may have all of them: they are not more than the others together.
    pub(crate) fn may_be_of_one(&self) -> bool {
        self.count <= self.served
    }

    /// ` of population users`, if there are several populations.
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

    /// The same sentence if this many of the starved connections wait in the accept queue.
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

    /// The starved connections of these populations together; `None` if the evidence is insufficient.
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

/// Connections without any response (including those whose handshake timed out), and requests and handshakes without a response. If
/// connections are redialled (`dials_again`), only those without a response on any of their dials count, and failed handshakes do not,
/// because such connections were never open.
fn silent(totals: &Tick, dials_again: bool) -> (u64, u64) {
    let counts = &totals.counts;
    let sum = |is_one: fn(Fault) -> bool| -> u64 {
        totals.faults.iter().filter(|(fault, _)| is_one(*fault)).map(|(_, n)| n).sum()
    };
    // Connections closed or reset before the first response have another cause.
    let ended = sum(|fault| {
        matches!(fault.stage, Stage::Exchange | Stage::Hold)
            && fault.kind != Kind::Timeout
            && !fault.kind.is_wrong_response()
    });
    // A TLS 1.3 server rejects a client after the client's handshake is complete: such a connection was open, unlike failed ones.
    let before = sum(|fault| matches!(fault.stage, Stage::Dial | Stage::Tls | Stage::Handshake));
    let refused = before.saturating_sub(counts.failed);
    let shaking =
        sum(|fault| matches!(fault.stage, Stage::Tls | Stage::Handshake) && fault.kind == Kind::Timeout);
    let shaking = if dials_again { 0 } else { shaking.min(counts.failed) };
    let count = (counts.opened + shaking).saturating_sub(totals.served + ended + refused);
    let timed_out = sum(|fault| (fault.stage, fault.kind) == (Stage::Exchange, Kind::Timeout));
    (count, timed_out + counts.unanswered + shaking)
}

/// Whether all connections to one of several destinations have no response.
fn hangs_at_one(totals: &Tick) -> bool {
    totals.destinations.iter().any(|own| own.sent > 0 && own.answered == 0)
}

/// Whether each held connection begins with the same request, and repeats it during the whole load.
fn goes_on(population: &Population) -> bool {
    // Connections that are dialled on demand are not held.
    let is_held = !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::OnDemand { .. });
    let repeats = match &population.activity {
        Activity::Idle => false,
        Activity::Ping { .. } => true,
        // A request that is not repeated, or is one of several, may be slow by nature, such as a login or a long poll.
        Activity::Steps { steps, then: Then::Again(0) } => steps.first().is_some_and(|step| {
            let is_request = matches!(
                step.act,
                Act::Request { .. } | Act::Upgrade { .. } | Act::Send { expected: Some(_), .. }
            );
            is_request && step.weight.is_none() && !step.may_be_skipped()
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
