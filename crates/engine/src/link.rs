//! What goes between a shard and the run that it belongs to: ticks out, used ticks and orders back.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use samples::Tick;
use units::{Nanos, Rate};

/// An order to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Full load begins at this time: what is due from then on counts for it.
    Hold(Nanos),
    /// Hold this many connections from now on, of those that the shard's part has at most: dial more, or close some as
    /// they fall idle. What was lost before is made up for. Not for connections that arrive and go.
    SetLoad(u32),
    /// Open loop: so many requests a second in all from this time on, never zero. What the schedule before it could not
    /// send is missed.
    SetRate(Rate, Nanos),
    /// Full load ends: send nothing new, let answers come.
    Drain,
    /// Hand over what was counted since the last tick and end.
    Stop,
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

/// A pair for each of `shards`, and where all their ticks arrive, with the shard's number. Each shard has two
/// ticks that go back and forth: a slow reader costs resolution, not counts, for the shard adds to the one it has.
pub fn links(shards: u32) -> (Vec<(Link, Remote)>, Arrivals) {
    let (ticks, arrive) = sync_channel(2 * shards as usize);
    let pair = |shard| {
        let (used_out, used_in) = sync_channel(2);
        let (control_out, control_in) = sync_channel(16);
        used_out.try_send(Box::default()).expect("the channel is empty");
        let link = Link { shard, ticks: ticks.clone(), used: used_in, control: control_in };
        (link, Remote { used: used_out, control: control_out })
    };
    ((0..shards).map(pair).collect(), arrive)
}
