//! Plans of one or a few connections that act like those of a population. After a load they are used as experiments on the target.

use units::Nanos;

use crate::{
    Activity, Hold, IoChoice, Load, Network, Plan, Population, Ramp, Reconnect, Share, Sources, Stage, Step,
    Then, Think,
};

/// Requests per user. More than one, because the first on a connection may be slow for that reason alone.
const REQUESTS: u64 = 3;
/// Users where it matters whether the target serves them. If it serves users at random, the probability that all four of one experiment are
/// served and all four of another are not is at most 1/4⁴, about 1 in 250.
const USERS: u32 = 4;
/// The segment size that every host accepts (RFC 9293, section 3.7.1).
const SMALL_SEGMENT: u16 = 536;

/// What a connection does in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// Sends its first requests back to back; without requests, just stays open. A few connections do this at once.
    Served,
    /// Like [`Alone::Served`] with one connection, but waits for a response as long as the whole experiment may take: the target may still
    /// be busy with requests that the load gave up.
    Awaited,
    /// Runs its steps once, then stays silent.
    Silent,
    /// Sends a request or message at this interval.
    Busy(Nanos),
}

impl Alone {
    /// Number of connections.
    pub const fn users(self) -> u32 {
        match self {
            Alone::Served => USERS,
            Alone::Awaited | Alone::Silent | Alone::Busy(_) => 1,
        }
    }
}

impl Plan {
    /// A plan of a few connections of this population, for at most `time`, which also bounds the wait for a dial or response. No connection
    /// is dialled again, and no threshold is judged.
    pub fn alone(&self, population: u16, does: Alone, time: Nanos) -> Plan {
        let own = self.populations[usize::from(population)].alone(does, time);
        let stage = Stage {
            name: "alone".to_owned(),
            of: vec![0],
            to: Share::ALL,
            ramp: Ramp::Within(Nanos::ZERO),
            hold: Hold::For(time),
        };
        Plan {
            text: self.text.clone(),
            populations: vec![own],
            stages: vec![stage],
            probe: None,
            tables: self.tables.clone(),
            sources: self.sources.clone(),
            threads: 1,
            seed: self.seed,
            io: self.io,
            thresholds: Vec::new(),
            max_lag: self.max_lag,
            experiments: false,
            target_gc: false,
            max_segment: None,
            observe: None,
        }
    }

    /// The same plan with small segments in both directions. Only epoll implements that.
    #[must_use]
    pub fn in_small_segments(self) -> Plan {
        Plan { max_segment: Some(SMALL_SEGMENT), io: IoChoice::Epoll, ..self }
    }

    /// The same plan, dialled from this address.
    #[must_use]
    pub fn dialled_from(self, source: std::net::IpAddr) -> Plan {
        Plan { sources: Sources::Listed(vec![Network::from(source)]), ..self }
    }

    /// The same plan, dialled to this address.
    #[must_use]
    pub fn dialled_to(mut self, at: std::net::SocketAddr) -> Plan {
        self.populations.iter_mut().for_each(|own| own.target.destinations = vec![at]);
        self
    }
}

impl Population {
    /// Whether its connections await a response or reply to anything they send.
    pub fn has_replies(&self) -> bool {
        match &self.activity {
            Activity::Idle => false,
            Activity::Ping { .. } => true,
            Activity::Steps { steps, .. } => steps.iter().any(|step| step.act.is_request()),
        }
    }

    fn alone(&self, does: Alone, time: Nanos) -> Population {
        let is_served = matches!(does, Alone::Served | Alone::Awaited);
        let mut own = Population {
            load: Load::Held { connections: does.users() },
            streams: self.streams.map(|_| 1),
            calls: None,
            requests: (is_served && self.has_replies()).then_some(REQUESTS * u64::from(does.users())),
            timeout: if does == Alone::Awaited { time } else { self.timeout.min(time) },
            reconnect: Reconnect::Never,
            ..self.clone()
        };
        own.pushes.receivers = None;
        if does == Alone::Silent {
            (own.keep_alive, own.pushes.heartbeat) = (None, None);
        }
        own.activity = match (own.activity, does) {
            (Activity::Idle, _) | (Activity::Ping { .. }, Alone::Silent) => Activity::Idle,
            (Activity::Ping { text, .. }, Alone::Served | Alone::Awaited) => {
                Activity::Ping { every: Nanos::ZERO, text }
            }
            (Activity::Ping { text, .. }, Alone::Busy(every)) => Activity::Ping { every, text },
            (Activity::Steps { steps, then }, Alone::Served | Alone::Awaited) => {
                Activity::Steps { steps: without_pauses(steps), then }
            }
            (Activity::Steps { steps, .. }, Alone::Silent) => {
                Activity::Steps { steps: without_pauses(steps), then: Then::Stay }
            }
            (Activity::Steps { mut steps, then }, Alone::Busy(every)) => {
                steps.iter_mut().for_each(|step| step.act.set_think(Think::even(every, every)));
                Activity::Steps { steps, then }
            }
        };
        own
    }
}

fn without_pauses(mut steps: Vec<Step>) -> Vec<Step> {
    steps.iter_mut().for_each(|step| step.act.take_think());
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Think, tests::plan};

    const SECOND: Nanos = Nanos::from_secs(1);

    fn pauses(plan: &Plan) -> Vec<Think> {
        let Activity::Steps { steps, .. } = &plan.populations[0].activity else { panic!("it has steps") };
        steps.iter().map(|step| step.act.think()).collect()
    }

    #[test]
    fn one_user_does_what_the_load_does() {
        let load =
            plan(&[("-c", "500"), ("--rate", "9/s"), ("--timeout", "3s"), ("--threshold", "held >= 9")]);
        let one = load.alone(0, Alone::Served, SECOND);
        let own = &one.populations[0];
        assert_eq!((own.load, own.requests, own.timeout), (Load::Held { connections: 4 }, Some(12), SECOND));
        assert_eq!((one.places(), one.hold(), one.experiments), (4, Some(SECOND), false));
        let own = &load.alone(0, Alone::Awaited, SECOND).populations[0];
        assert_eq!((own.load, own.requests), (Load::Held { connections: 1 }, Some(3)));
        assert!(one.thresholds.is_empty() && own.reconnect == Reconnect::Never);
        assert_eq!(own.target, load.populations[0].target);
        // A shorter timeout stays, unless what the load has left is to be waited for.
        let timeout = |does| load.alone(0, does, Nanos::from_secs(7)).populations[0].timeout;
        assert_eq!(timeout(Alone::Served), Nanos::from_secs(3));
        assert_eq!(timeout(Alone::Awaited), Nanos::from_secs(7));
    }

    #[test]
    fn it_sends_at_once_or_nothing_or_regularly() {
        let load = plan(&[("-c", "5"), ("--think", "4s..6s")]);
        assert_eq!(pauses(&load.alone(0, Alone::Served, SECOND)), [Think::default()]);
        let silent = load.alone(0, Alone::Silent, SECOND);
        assert!(matches!(silent.populations[0].activity, Activity::Steps { then: Then::Stay, .. }));
        assert_eq!(silent.populations[0].requests, None);
        let busy = load.alone(0, Alone::Busy(SECOND), Nanos::from_secs(5));
        assert_eq!((pauses(&busy), busy.populations[0].requests), (vec![Think::even(SECOND, SECOND)], None));
    }

    #[test]
    fn it_dials_from_and_to_where_it_is_to() {
        let (from, to) = ([127, 0, 0, 3].into(), "127.0.0.2:9".parse().unwrap());
        let one = plan(&[]).alone(0, Alone::Served, SECOND).dialled_from(from).dialled_to(to);
        assert_eq!(
            (one.sources, &one.populations[0].target.destinations),
            (Sources::Listed(vec![from.into()]), &vec![to])
        );
    }
}
