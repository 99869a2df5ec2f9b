//! Closer looks, where something seems wrong: at a silence, at connections that wait, at those that nobody accepted.

use std::{net::SocketAddr, sync::mpsc::channel, thread, time::Duration};

use plan::{Plan, Whose};
use units::Nanos;

use super::Conductor;
use crate::judge::BothSides;

/// The kernel tells of so many connections in some hundred milliseconds.
const MOST_TOLD: u64 = 200_000;

/// The run waits so long for the target's own count.
const PATIENCE: Duration = Duration::from_millis(500);

/// What `throng serve` counts, if it says so soon: the conductor has more to do.
fn counted_there(address: SocketAddr) -> Option<u64> {
    let (tell, told) = channel();
    let ask = move || tell.send(host::remote::open_connections(address));
    thread::Builder::new().name("count".to_owned()).spawn(ask).ok()?;
    told.recv_timeout(PATIENCE).ok()?.ok()
}

impl Conductor<'_> {
    /// While a population's target is silent, everything is looked at more often.
    pub(super) fn mind_silence(&mut self) {
        let is_silent = self.record.crowds.iter().any(|crowd| crowd.silences.lasting().is_some());
        self.observer.set_silent(is_silent);
    }

    /// Once a second: where some wait and none receives anything, or something failed, TCP is asked what it knows of it.
    pub(super) fn look_closer(&mut self) {
        let waiting: u64 = self.shards.iter().map(|s| s.waiting).sum();
        let resolved: u64 = self.shards.iter().map(|s| s.resolved).sum();
        let (counts, wanted) = (&self.line.counts, self.record.crowds.iter().map(|crowd| crowd.wanted).sum());
        let nothing_comes = waiting > 0 && counts.answered == 0;
        let nobody_opens = resolved < wanted && counts.opened == 0;
        if nothing_comes || nobody_opens || self.line.faults.total() > 0 {
            self.observer.look_at_segments();
        }
    }

    /// For how long nothing has come from the target on any connection.
    pub(super) fn quiet(&mut self) -> Option<Nanos> {
        let quiet = self.observer.look_at_segments()?.quiet?;
        Some(Nanos(quiet.as_nanos() as u64))
    }

    /// Connections that only the kernel has accepted are not held.
    pub(super) fn leave_out_unaccepted(&mut self, plan: &Plan) {
        let (open, dropped) = (self.open(), self.record.totals.counts.dropped + self.line.counts.dropped);
        let Some(seen) = self.observer.unaccepted(&plan.ports(), open, dropped) else { return };
        // The probe's fresh connections wait there too, and were never to be held.
        let probes = self.shards.iter().filter(|shard| shard.whose == Whose::Probe);
        let all = seen.saturating_sub(probes.map(|shard| shard.waiting).sum());
        let mut left = all;
        for (crowd, population) in self.record.crowds.iter_mut().zip(&plan.populations) {
            // Who comes and goes is in the queue now and then.
            if !population.comes_and_goes() {
                let own = left.min(crowd.held);
                (crowd.held, left) = (crowd.held - own, left - own);
                crowd.unaccepted = own;
            }
        }
        self.record.unaccepted = Some(all - left);
    }

    /// Those of a population whose requests were all answered by now were accepted, only late: they were held.
    pub(super) fn take_back_accepted(&mut self) {
        for crowd in &mut self.record.crowds {
            let counts = &crowd.totals.counts;
            if counts.sent > 0 && counts.answered + counts.withdrawn == counts.sent {
                let accepted = std::mem::take(&mut crowd.unaccepted);
                crowd.held += accepted;
                self.record.unaccepted = self.record.unaccepted.map(|all| all - accepted);
            }
        }
    }

    /// A target that closes connections without a byte in reply may expect TLS: it is asked once, when the load has ended.
    pub(super) fn ask_for_tls(&mut self, plan: &Plan) {
        if self.record.is_mute() && self.record.interrupted.is_none() {
            self.record.speaks_tls = host::remote::speaks_tls(plan.destinations()[0]);
        }
    }

    /// How many connections the target's side counts: the kernel, where it is on this host and they are not too many to be
    /// told; else the target itself, where it is `throng serve`. Nothing is sent to another one for it.
    pub(super) fn both_sides(&self, plan: &Plan) -> Option<BothSides> {
        let here = self.open();
        if here == 0 {
            return None;
        }
        let is_cheap = self.record.both_ends_here && here <= MOST_TOLD;
        let by_kernel = if is_cheap { self.sources.ends_there(&plan.destinations()) } else { None };
        let there = by_kernel.or_else(|| {
            let is_ours = self.observer.target_is_ours() && plan.ports().len() == 1;
            if is_ours { counted_there(plan.destinations()[0]) } else { None }
        });
        there.map(|there| BothSides { here, there })
    }
}
