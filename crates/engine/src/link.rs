//! The channels between a shard and its run: ticks go out, used ticks and orders come back.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use samples::Tick;
use units::{Nanos, Rate};

use crate::pace::RateProfile;

/// An order to a shard.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Control {
    /// Hold this many connections from now on, at most those of the shard's part: dial more, or close some as they become idle.
    /// Earlier losses are replaced. For arrivals: the total.
    Load {
        /// Number of connections of this shard.
        connections: u32,
        /// Rate of dials, of all shards together; `None`: as fast as the target accepts them.
        profile: Option<RateProfile>,
        /// When the first dial is due.
        from: Nanos,
    },
    /// The rate of requests in an open loop, or of arrivals, of all shards together, from this time on. What the previous
    /// schedule could not send is missed.
    RateProfile(RateProfile, Nanos),
    /// The maximum rate of first dials without a profile, of all shards together, from now on. It reflects what all shards have
    /// learnt of the target; each shard also adapts by itself.
    DialAtMost(Rate),
    /// Full load begins at this time: what is due from then on belongs to it. Never: it ends.
    Hold(Nanos),
    /// Full load ends at this time, but connections stay open.
    HoldUntil(Nanos),
    /// Nothing is due from this time on: a scheduled [`Control::Drain`]; never: cancel that. Scheduled in advance because an
    /// order at that time would reach each shard a little later.
    Until(Nanos),
    /// True: begin nothing new, neither dials nor requests, until false follows; what was due meanwhile is due later. An open
    /// loop is paused by a [`Control::RateProfile`] of zero instead.
    Pause(bool),
    /// Full load ends: send nothing new, wait for responses.
    Drain,
    /// After a drain: close each connection as soon as nothing is under way on it. A server that serves only some connections at
    /// a time can then serve the waiting ones.
    Release,
    /// Hand over what was counted since the last tick, and end.
    Stop,
}

impl Control {
    /// The order with its times converted to another clock by `to`.
    #[must_use]
    pub fn translated(self, to: impl Fn(Nanos) -> Nanos) -> Control {
        let later = |at: Nanos| if at == Nanos::NEVER { at } else { to(at) };
        match self {
            Control::Load { connections, profile, from } => {
                Control::Load { connections, profile, from: later(from) }
            }
            Control::RateProfile(profile, from) => Control::RateProfile(profile, later(from)),
            Control::Hold(from) => Control::Hold(later(from)),
            Control::HoldUntil(until) => Control::HoldUntil(later(until)),
            Control::Until(until) => Control::Until(later(until)),
            Control::DialAtMost(_)
            | Control::Pause(_)
            | Control::Drain
            | Control::Release
            | Control::Stop => self,
        }
    }
}

/// The shard's end of the channels.
pub struct Link {
    pub(crate) shard: u32,
    pub(crate) ticks: SyncSender<(u32, Box<Tick>)>,
    pub(crate) used: Receiver<Box<Tick>>,
    pub(crate) control: Receiver<Control>,
}

/// The run's end, for one shard.
pub struct Remote {
    /// Ticks that were read go back here for reuse.
    pub used: SyncSender<Box<Tick>>,
    /// Orders.
    pub control: SyncSender<Control>,
}

/// Receives the ticks of all shards, with the shard's number.
pub type Arrivals = Receiver<(u32, Box<Tick>)>;

/// Number of ticks per shard in circulation besides the one being filled. Three can end almost together: that of the period, of
/// the load, and of the last response.
pub(crate) const SPARE: usize = 3;

/// Both ends for each of `shards`, and the receiver of all their ticks. A slow reader costs resolution, not counts: a shard
/// without a spare tick keeps adding to its current one.
pub fn links(shards: u32) -> (Vec<(Link, Remote)>, Arrivals) {
    let (ticks, arrive) = sync_channel((1 + SPARE) * shards as usize);
    let pair = |shard| {
        let (used_out, used_in) = sync_channel(1 + SPARE);
        let (control_out, control_in) = sync_channel(16);
        let link = Link { shard, ticks: ticks.clone(), used: used_in, control: control_in };
        (link, Remote { used: used_out, control: control_out })
    };
    ((0..shards).map(pair).collect(), arrive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rate;

    #[test]
    fn a_control_by_another_clock_has_all_its_times_changed() {
        let (at, later) = (Nanos::from_secs(3), Nanos::from_secs(5));
        let profile = RateProfile::Steady(Rate::per_s(7));
        let controls = |at| {
            [
                Control::Load { connections: 1, profile: Some(profile), from: at },
                Control::RateProfile(profile, at),
                Control::DialAtMost(Rate::per_s(7)),
                Control::Hold(at),
                Control::HoldUntil(at),
                Control::Until(at),
                Control::Pause(true),
                Control::Drain,
                Control::Release,
                Control::Stop,
            ]
        };
        assert_eq!(
            controls(at).map(|control| control.translated(|at| at + Nanos::from_secs(2))),
            controls(later)
        );
        assert_eq!(controls(Nanos::NEVER).map(|control| control.translated(|_| at)), controls(Nanos::NEVER));
    }
}
