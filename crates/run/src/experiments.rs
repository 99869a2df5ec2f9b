//! Experiments after the load: a few additional connections that distinguish causes with the same symptoms. Which experiments are made,
//! and what their results mean, is in [`judge::experiments`]. Each is a short run, so that it uses the same protocol as the load.

use std::{net::IpAddr, net::SocketAddr, thread, time::Duration};

use host::Root;
use judge::experiments::{Ask, MOST, PAUSE, asks, asks_for_tls};
use observe::listeners;
use plan::{Alone, IoChoice, Plan, Sources};
use record::Record;
use record::answers::{Answer, Answers, Experiment, Outcome};
use samples::{Fault, FaultCount, Kind, Side, Stage, Tick};
use units::Nanos;

use crate::{
    Interrupt,
    conductor::Conductor,
    prepare,
    workers::{Threads, Workers, stop},
};

/// Polling interval for an interrupt during a wait.
const LOOKS: Duration = Duration::from_millis(50);
/// Time allowed for the target to notice closed connections.
const NOTICES: Nanos = Nanos::from_millis(300);
/// A connection on which no response is expected counts as served after being open for this long.
const OPEN: Nanos = Nanos::from_millis(500);
/// Alternative source addresses for loopback targets; the first one that is not the target is used.
const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 3))];

/// The environment of the experiments: the finished run, and its connections.
pub(crate) struct Lab<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) root: &'a Root,
    pub(crate) workers: &'a mut dyn Workers,
    pub(crate) interrupt: &'a Interrupt,
    /// Connections of the load that are still open. `None` if they are closed: then the only experiment is the TLS check.
    pub(crate) open: Option<u64>,
}

impl Lab<'_> {
    /// Makes the experiments that the record calls for, within [`MOST`] in all. An interrupt ends them.
    pub(crate) fn ask(&mut self, record: &Record) -> Answers {
        if !self.plan.experiments || self.open.is_none() && !asks_for_tls(record) {
            return Answers::default();
        }
        let all = asks(self.plan, record, &judge::judge(self.plan, record));
        if !all.is_empty() {
            let most = MOST.brief();
            self.interrupt
                .tell(&format!("asking the target what it was, for at most {most} (--no-experiments)"));
        }
        let (mut answers, ends) = (Answers::default(), self.workers.now() + MOST);
        for ask in all {
            let begun = self.workers.now();
            let is_too_long = begun + ask.longest() > ends;
            if self.interrupt.is_set() || is_too_long || answers.have_decided(ask.experiment) {
                continue;
            }
            if let Some(outcome) = self.make(&ask) {
                let took = self.workers.now().since(begun);
                let (experiment, why) = (ask.experiment, ask.why());
                answers.0.push(Answer {
                    experiment,
                    why,
                    outcome,
                    open: self.open.unwrap_or(0),
                    at: begun,
                    took,
                });
            }
        }
        answers
    }

    /// Makes one experiment; `None` if this machine cannot, or after an interrupt.
    fn make(&mut self, ask: &Ask) -> Option<Outcome> {
        let user = |does: Alone| self.plan.alone(ask.population, does, ask.time);
        let at = self.plan.populations[usize::from(ask.population)].target.destinations[0];
        let user = match ask.experiment {
            Experiment::Tls => return host::remote::speaks_tls(at).map(Outcome::Tls),
            Experiment::Alone => user(Alone::Awaited),
            Experiment::Silent => user(Alone::Silent),
            Experiment::Busy => user(Alone::Busy(ask.every())),
            Experiment::OtherSource => user(Alone::Served).dialled_from(other_source(self.plan, at)?),
            Experiment::OtherAddress => user(Alone::Served).dialled_to(self.other_address(ask.population)?),
            Experiment::Pause => {
                self.wait(PAUSE);
                user(Alone::Served)
            }
            Experiment::SmallSegments => {
                let is_tun = self.plan.io == IoChoice::Tun;
                (!is_tun).then(|| user(Alone::Served).in_small_segments())?
            }
            Experiment::Half => {
                // The closed half must be large enough for these users.
                self.open.filter(|open| open / 2 >= Alone::Served.users().into())?;
                let user = user(Alone::Served);
                self.workers.close_half();
                self.open = self.open.map(|open| open / 2);
                self.wait(NOTICES);
                user
            }
        };
        let is_watched = matches!(ask.experiment, Experiment::Silent | Experiment::Busy);
        let outcome = self.follow(&user, ask.time, is_watched);
        outcome.filter(|_| !self.interrupt.is_set())
    }

    fn wait(&self, time: Nanos) {
        let until = self.workers.now() + time;
        while self.workers.now() < until && !self.interrupt.is_set() {
            thread::sleep(LOOKS);
        }
    }

    /// Another address of the target with a listener, if the load goes to a single one: an address of the other family for the same name,
    /// or on loopback, another address with its own listener.
    fn other_address(&self, population: u16) -> Option<SocketAddr> {
        let target = &self.plan.populations[usize::from(population)].target;
        let [at] = target.destinations[..] else { return None };
        let own = || {
            let is_other = |ip: &IpAddr| ip.is_loopback() && ip.is_ipv4() == at.is_ipv4() && *ip != at.ip();
            let all = if at.ip().is_loopback() { listeners(self.root) } else { Vec::new() };
            let other =
                all.into_iter().filter(|own| own.port == at.port()).map(|own| own.address).find(is_other);
            other.map(|ip| SocketAddr::new(ip, at.port()))
        };
        target.others.first().copied().or_else(own)
    }

    /// Runs the user's plan to its end, or for at most `time`. `is_watched`: what matters is how long the connection stays open.
    fn follow(&self, user: &Plan, time: Nanos, is_watched: bool) -> Option<Outcome> {
        let prepared = prepare(user, self.root).ok()?;
        let mut workers = Threads::start(user, &prepared).ok()?;
        let begun = workers.now();
        let mut conductor = Conductor::new(user, &workers, workers.ground().start, begun);
        conductor.give_orders(&mut workers);
        let mut lasted = None;
        let has_replies = user.populations[0].has_replies();
        let users = u64::from(user.places());
        loop {
            let has_ended = conductor.gather(&mut workers).is_none();
            let now = workers.now().since(begun);
            let is_gone = conductor.sum(ended) >= users;
            let is_open = !has_replies && now > OPEN && conductor.open() > 0 && !is_watched;
            if is_gone || is_open || now >= time || self.interrupt.is_set() {
                lasted.get_or_insert(now);
                conductor.end_early();
            }
            conductor.give_orders(&mut workers);
            conductor.poll_line(workers.now());
            let step = conductor.step(workers.now());
            conductor.give_orders(&mut workers);
            // Outstanding responses are not waited for: the time is up.
            if has_ended || step.is_over || step.has_ended {
                break;
            }
        }
        stop(&mut workers, |update| conductor.handle(update));
        workers.join();
        let (_, record) = conductor.finish();
        outcome(&record.totals, users, lasted.filter(|_| is_watched))
    }
}

/// Connections that were lost, closed as announced, or could not be opened.
fn ended(tick: &Tick) -> u64 {
    let counts = &tick.counts;
    counts.dropped + counts.closed + counts.failed
}

/// The outcome of an experiment with `users` users; `watched`: how long a connection was watched. `None` if this machine failed.
fn outcome(all: &Tick, users: u64, watched: Option<Nanos>) -> Option<Outcome> {
    let fault = all.faults.by_kind().max_by_key(|(_, n)| *n).map(|(fault, _)| FaultCount::new(fault, 1));
    let counts = &all.counts;
    if fault.as_ref().is_some_and(|fault| fault.side == Side::Host) {
        return None;
    }
    let is_late = fault.as_ref().is_some_and(|fault| fault.kind == Kind::Timeout);
    if let Some(time) = watched.filter(|_| counts.opened > 0 && !is_late) {
        let is_closed = counts.dropped + counts.closed > 0;
        return Some(if is_closed { Outcome::Closed(time) } else { Outcome::Stayed(time) });
    }
    let [at_load, before] = [&all.latency, &all.ramp_latency];
    let times = if at_load.is_empty() { before } else { at_load };
    let is_served = counts.answered > counts.wrong && !times.is_empty();
    let is_open = counts.sent == 0 && counts.opened > counts.dropped;
    // A user without a response sends no further request.
    let has_none = counts.sent().saturating_sub(counts.answered);
    let failed = if has_none > 0 { has_none } else { counts.failed + counts.dropped };
    match fault.or_else(|| (is_served && has_none > 0).then(late)) {
        Some(fault) if failed < users && (is_served || is_open) => Some(Outcome::Mixed(fault)),
        Some(fault) => Some(Outcome::Failed(fault)),
        None if is_served => Some(Outcome::Served(times.quantile(0.5))),
        None if counts.opened == 0 => None,
        None if counts.sent > 0 => Some(Outcome::Unanswered),
        None => Some(Outcome::Open),
    }
}

/// The fault of requests without a response at the end of the experiment.
fn late() -> FaultCount {
    FaultCount::new(Fault::target(Stage::Exchange, Kind::Timeout), 1)
}

/// A source address that the load did not use: one of 127.0.0.0/8, for loopback targets, if the sources are chosen automatically. The
/// load already uses all addresses of `--sources`.
fn other_source(plan: &Plan, at: SocketAddr) -> Option<IpAddr> {
    let is_free = plan.sources == Sources::Automatic && at.is_ipv4() && at.ip().is_loopback();
    LOOPBACK.into_iter().find(|ip| is_free && *ip != at.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome for four users, given the numbers of requests sent, answered and answered wrongly, and the faults.
    fn of(sent: u64, answered: u64, wrong: u64, faults: &[(Fault, u64)]) -> Option<Outcome> {
        let mut all = Tick::default();
        (all.counts.opened, all.counts.sent) = (4, sent);
        (all.counts.answered, all.counts.wrong) = (answered, wrong);
        (0..answered).for_each(|_| all.latency.record(Nanos::from_millis(2)));
        for (fault, n) in faults {
            (0..*n).for_each(|_| all.faults.count(*fault));
        }
        outcome(&all, 4, None)
    }

    #[test]
    fn users_are_served_or_not_or_some_of_them_are() {
        let late_one = Fault::target(Stage::Exchange, Kind::Timeout);
        let wrong = Fault::target(Stage::Exchange, Kind::WrongStatus);
        let first = |fault: Fault| FaultCount::new(fault, 1);
        assert!(matches!(of(12, 12, 0, &[]), Some(Outcome::Served(_))));
        assert_eq!(of(4, 0, 0, &[]), Some(Outcome::Unanswered));
        assert_eq!(of(0, 0, 0, &[]), Some(Outcome::Open));
        // The third request of each user has no response, or only that of one user.
        assert_eq!(of(12, 8, 0, &[(late_one, 4)]), Some(Outcome::Failed(first(late_one))));
        assert_eq!(of(12, 8, 0, &[]), Some(Outcome::Failed(first(late_one))), "ended before it timed out");
        assert_eq!(of(12, 11, 0, &[(late_one, 1)]), Some(Outcome::Mixed(first(late_one))));
        assert_eq!(of(12, 12, 12, &[(wrong, 12)]), Some(Outcome::Failed(first(wrong))));
        assert_eq!(of(12, 12, 3, &[(wrong, 3)]), Some(Outcome::Mixed(first(wrong))));
        assert_eq!(of(12, 11, 0, &[(Fault::host(Stage::Dial, Kind::OpenFiles), 1)]), None, "this machine's");
    }
}
