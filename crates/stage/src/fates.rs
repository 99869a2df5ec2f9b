//! Fates of a process that are not network faults: it ends, is stopped for a while, or is killed.

use engine::Client;
use net::{
    Shard,
    io::sim::{Net, SimIo, Turn},
};
use units::Nanos;

/// A client shard as a thread runs it: it stops running once the shard has finished.
pub struct Thread<'a> {
    shard: &'a mut Shard<SimIo, Client>,
    nobody: u16,
    is_over: bool,
}

impl<'a> Thread<'a> {
    /// A thread that runs this shard.
    pub fn new(net: &Net, shard: &'a mut Shard<SimIo, Client>) -> Thread<'a> {
        Thread { shard, nobody: net.host().host(), is_over: false }
    }
}

impl Turn for Thread<'_> {
    fn wakes_at(&self) -> Nanos {
        if self.is_over { Nanos::NEVER } else { self.shard.wakes_at() }
    }

    fn turn(&mut self) {
        Turn::turn(self.shard);
        self.is_over = self.shard.program().is_finished();
    }

    fn host(&self) -> u16 {
        if self.is_over { self.nobody } else { Turn::host(self.shard) }
    }
}

/// A shard that does not run for a while; what arrives meanwhile waits for it.
pub struct Frozen<'a> {
    shard: &'a mut dyn Turn,
    net: Net,
    spans: &'a [(Nanos, Nanos)],
    /// A host at which nothing ever arrives.
    nobody: u16,
}

impl<'a> Frozen<'a> {
    /// Freezes the shard in each of these intervals (from, until).
    pub fn new(net: &Net, shard: &'a mut dyn Turn, spans: &'a [(Nanos, Nanos)]) -> Frozen<'a> {
        Frozen { shard, net: net.clone(), spans, nobody: net.host().host() }
    }

    /// The end of the current freeze; `None` if not frozen.
    fn until(&self) -> Option<Nanos> {
        let now = self.net.now();
        self.spans.iter().find(|(from, until)| (*from..*until).contains(&now)).map(|(_, until)| *until)
    }
}

impl Turn for Frozen<'_> {
    fn wakes_at(&self) -> Nanos {
        self.until().unwrap_or_else(|| self.shard.wakes_at())
    }

    fn turn(&mut self) {
        self.shard.turn();
    }

    fn host(&self) -> u16 {
        if self.until().is_some() { self.nobody } else { self.shard.host() }
    }
}

/// A shard whose process is killed: its connections are closed, and later dials are refused.
pub struct Killed<'a> {
    shard: &'a mut dyn Turn,
    net: Net,
    at: Nanos,
    is_dead: bool,
    nobody: u16,
}

impl<'a> Killed<'a> {
    /// Kills the shard at this time.
    pub fn new(net: &Net, shard: &'a mut dyn Turn, at: Nanos) -> Killed<'a> {
        Killed { shard, net: net.clone(), at, is_dead: false, nobody: net.host().host() }
    }
}

impl Turn for Killed<'_> {
    fn wakes_at(&self) -> Nanos {
        if self.is_dead { Nanos::NEVER } else { self.shard.wakes_at().min(self.at) }
    }

    fn turn(&mut self) {
        if self.net.now() < self.at {
            self.shard.turn();
        } else if !std::mem::replace(&mut self.is_dead, true) {
            self.net.kill(self.shard.host());
        }
    }

    fn host(&self) -> u16 {
        if self.is_dead { self.nobody } else { self.shard.host() }
    }
}
