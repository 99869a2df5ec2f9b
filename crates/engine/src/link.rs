//! What goes between a shard and the run that it belongs to: ticks out, used ticks and orders back.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use samples::Tick;
use units::{Nanos, Rate};

use crate::pace::RateProfile;

/// An order to a shard.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Control {
    /// Hold this many connections from now on, at most those of the shard's part: dial more, or close some as they become
    /// idle. Earlier losses are replaced. For arrivals: the total.
    Load {
        /// This shard's.
        connections: u32,
        /// How fast to dial, of all shards together; none is as fast as the target takes them.
        profile: Option<RateProfile>,
        /// When the first dial is due.
        from: Nanos,
    },
    /// Requests of an open loop, or connections that come and go, of all shards together, from this time on. What the
    /// schedule before it could not send is missed.
    RateProfile(RateProfile, Nanos),
    /// First dials without a profile: at most this rate, of all shards together, from now on. It is what all have learnt of the
    /// target; each has its own experience besides.
    DialAtMost(Rate),
    /// Full load begins at this time: what is due from then on counts for it; never ends it.
    Hold(Nanos),
    /// Full load ends at this time, while the connections stay.
    HoldUntil(Nanos),
    /// Nothing is due from this time on: a scheduled [`Control::Drain`]; never takes that back. An order at that time would reach
    /// each shard a little later.
    Until(Nanos),
    /// True: begin nothing new, neither dials nor requests, until false follows; what was due meanwhile is due later. The
    /// schedule of an open loop is stopped by a [`Control::RateProfile`].
    Pause(bool),
    /// Full load ends: send nothing new, wait for responses.
    Drain,
    /// After that: close each connection on which nothing is under way, now or as soon as it has its response. A server that serves
    /// only some at a time has those next that wait for their turn.
    Release,
    /// Hand over what was counted since the last tick and end.
    Stop,
}

impl Control {
    /// The same by another clock: `to` is what that shows at a time of ours.
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

/// The shard's end.
pub struct Link {
    pub(crate) shard: u32,
    pub(crate) ticks: SyncSender<(u32, Box<Tick>)>,
    pub(crate) used: Receiver<Box<Tick>>,
    pub(crate) control: Receiver<Control>,
}

/// The run's end, for one shard.
pub struct Remote {
    /// Read ticks go back here, to be filled again.
    pub used: SyncSender<Box<Tick>>,
    /// Orders.
    pub control: SyncSender<Control>,
}

/// Where the ticks of all shards arrive, with the shard's number.
pub type Arrivals = Receiver<(u32, Box<Tick>)>;

/// Ticks of a shard that go back and forth beside the one that it fills. Three can end at nearly the same time: that of the period,
/// that of the load, and that of the last response.
pub(crate) const SPARE: usize = 3;

/// A pair for each of `shards`, and where all their ticks arrive, with the shard's number. A slow reader costs resolution, not
/// counts, for a shard without a spare tick adds to the one it has.
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
