//! What goes by a schedule of the whole run rather than of each connection.

use crate::{Plan, Ramp};
use units::{Nanos, Rate};

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Each connection goes by its own think time, or its own message interval.
    Each,
    /// Open loop: so many requests a second in all, never zero, over the connections held, once all are there.
    Rate(Rate),
    /// Open loop of connections: new ones come by the plan's ramp, which is a rate, and each is closed by throng
    /// after so many answers (at least 1).
    Visits(u32),
}

/// Connections that the probe lane keeps.
pub const PROBES_KEPT: u32 = 2;
/// Fresh connections that the probe lane has under way at most, however slow the target is.
const MOST_PROBES: u32 = 1_024;

impl Plan {
    /// The most connections of the load that are open or being dialled at one time.
    pub fn most_open(&self) -> u32 {
        let (Load::Visits(calls), Ramp::Rate(rate)) = (self.load, self.ramp) else { return self.connections };
        // Each dial and each answer is given up after the timeout; timers are up to a millisecond late.
        let calls = u64::from(calls);
        let waits = (self.timeout.0 + Nanos::from_millis(1).0).saturating_mul(calls.saturating_add(1));
        let stay = waits.saturating_add(self.think.max.0.saturating_mul(calls - 1));
        u32::try_from(rate.due(Nanos(stay)).saturating_add(1)).unwrap_or(u32::MAX).min(self.connections)
    }

    /// The most connections that the probe lane has at one time; 0 without one.
    pub fn probe_places(&self) -> u32 {
        let Some(rate) = self.probe else { return 0 };
        // Half of them are on fresh connections, and each lasts for a dial and an answer at most.
        let fresh = rate.due(Nanos(self.timeout.0.saturating_mul(2))).min(u64::from(MOST_PROBES)) as u32;
        PROBES_KEPT + fresh.max(1)
    }

    /// The most connections at one time, the probe lane's among them.
    pub fn places(&self) -> u32 {
        self.most_open().saturating_add(self.probe_places())
    }

    /// Connections between the same two hosts that a run of this plan may leave in TIME_WAIT, or have open, at once:
    /// how many pairs of address and port it needs.
    pub fn pairs_needed(&self) -> u64 {
        let (Load::Visits(_), Ramp::Rate(rate)) = (self.load, self.ramp) else { return self.places().into() };
        // TIME_WAIT lasts 60 s (linux/include/net/tcp.h, TCP_TIMEWAIT_LEN).
        let waiting = rate.due(Nanos::from_secs(60)).saturating_add(u64::from(self.most_open()));
        waiting.min(u64::from(self.connections)) + u64::from(self.probe_places())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Surroundings, from_flags};

    fn plan(words: &[(&str, &str)]) -> Plan {
        let mut flags = Flags { target: Some("http://127.0.0.1:1/".to_owned()), ..Flags::default() };
        for (name, value) in words {
            let slot = match *name {
                "-c" => &mut flags.connections,
                "--arrive" => &mut flags.arrive,
                "--total" => &mut flags.total,
                "--calls" => &mut flags.calls,
                "--probe" => &mut flags.probe,
                "--timeout" => &mut flags.timeout,
                "--think" => &mut flags.think,
                _ => panic!("no flag {name}"),
            };
            *slot = Some((*value).to_owned());
        }
        let resolve = |_: &str| unreachable!("the target is an address");
        from_flags(&flags, &Surroundings { cores: 2, seed: 1, resolve: &resolve }).unwrap()
    }

    #[test]
    fn places_are_for_all_that_may_be_there_at_once() {
        let held = plan(&[("-c", "100k")]);
        assert_eq!((held.most_open(), held.probe_places(), held.pairs_needed()), (100_000, 0, 100_000));
        let probed = plan(&[("-c", "100"), ("--probe", "10/s"), ("--timeout", "3s")]);
        assert_eq!((probed.most_open(), probed.probe_places(), probed.places()), (100, 2 + 60, 162));
        assert_eq!(plan(&[("--probe", "0.001/s")]).probe_places(), 3);
        assert_eq!(plan(&[("--probe", "10k/s")]).probe_places(), 2 + 1_024);

        // A dial and two answers of a second each, and half a second between those.
        let visits = [("--arrive", "100/s"), ("--total", "1m"), ("--calls", "2"), ("--timeout", "1s")];
        let visits = plan(&[&visits[..], &[("--think", "500ms")]].concat());
        assert_eq!(visits.most_open(), 351);
        assert_eq!(visits.pairs_needed(), 6_000 + 351);
        let few = plan(&[("--arrive", "100/s"), ("--total", "7")]);
        assert_eq!((few.most_open(), few.pairs_needed()), (7, 7));
    }

    #[test]
    fn the_probe_lane_is_the_first_shards() {
        let parts = plan(&[("-c", "101"), ("--probe", "10/s"), ("--timeout", "1s")]).parts(2);
        let sizes: Vec<_> = parts.iter().map(|part| (part.connections, part.places)).collect();
        assert_eq!(sizes, [(51, 51 + 22), (50, 50)]);
    }
}
