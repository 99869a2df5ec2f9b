//! Closer looks, where something seems wrong: at a silence, at connections that wait, at those that nobody accepted.

use std::{net::SocketAddr, sync::mpsc::channel, thread, time::Duration};

use plan::{Plan, Whose};
use samples::Tick;
use units::Nanos;

use super::Conductor;
use crate::{judge::BothSides, rejections};

/// The kernel tells of so many connections in some hundred milliseconds.
const MOST_TOLD: u64 = 200_000;

/// The run waits so long for the target's own count.
const PATIENCE: Duration = Duration::from_millis(500);

/// What `throng serve` counts, if it says so soon: the conductor has more to do.
fn counted_there(address: SocketAddr) -> Option<u64> {
    let (tell, told) = channel();
    let ask = move || {
        net::block_signals();
        tell.send(host::remote::open_connections(address))
    };
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
        self.ask_who_rejects();
    }

    /// Where dials are rejected, a dial of its own asks by whom.
    fn ask_who_rejects(&mut self) {
        let messages = self.observer.icmp_unreachable();
        let is_sign = |tick: &Tick| rejections::may_be(&tick.faults, messages);
        if is_sign(&self.record.totals) || is_sign(&self.line) {
            let failed = |at: usize| {
                let failed = |tick: &Tick| tick.destinations.get(at).map_or(0, |own| own.failed);
                failed(&self.record.totals) + failed(&self.line)
            };
            let rows = 0..self.record.totals.destinations.len().max(self.line.destinations.len());
            let worst = rows.rev().max_by_key(|row| failed(*row)).unwrap_or(0);
            if let Some(at) = self.observer.destination(worst) {
                self.rejections.ask(self.sources.towards(at), at);
            }
        }
    }

    /// What is to be seen while all connections that are held are still there.
    pub(super) fn look_at_the_end(&mut self, plan: &Plan) {
        self.look_for_the_other_ends(plan);
        self.record.both_sides = self.both_sides(plan);
        self.leave_out_unaccepted(plan);
        self.record.quiet = self.quiet();
        self.ask_who_rejects();
    }

    /// For how long nothing has come from the target on any connection.
    fn quiet(&mut self) -> Option<Nanos> {
        let quiet = self.observer.look_at_segments()?.quiet?;
        Some(Nanos(quiet.as_nanos() as u64))
    }

    /// Connections that only the kernel has accepted are not held.
    fn leave_out_unaccepted(&mut self, plan: &Plan) {
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

    /// Whether the target is on this host is seen by its ends of the connections: at an address of this host that is
    /// translated, as a published container port is, they are in another network namespace. What listens here at that
    /// address is not the target then.
    pub(super) fn look_for_the_other_ends(&mut self, plan: &Plan) {
        if self.record.ends_seen || !self.record.both_ends_here || self.open() == 0 {
            return;
        }
        // Those that come and go may all just have gone.
        if plan.populations.iter().all(|population| population.comes_and_goes()) {
            return;
        }
        let seen = self.sources.has_an_end_there(self.observer.destinations());
        // Where the kernel cannot say it now, it cannot later.
        self.record.ends_seen = seen != Some(false);
        if seen == Some(false) {
            self.record.both_ends_here = false;
            self.record.is_translated = true;
            self.observer.lose_target();
        }
    }

    /// Our connections' other ends in this network namespace, where they are to be there and are not too many to be told.
    fn ends_there(&self) -> Option<u64> {
        let open = self.open();
        let is_cheap = self.record.both_ends_here && (1..=MOST_TOLD).contains(&open);
        if is_cheap { self.sources.ends_there(self.observer.destinations()) } else { None }
    }

    /// How many connections the target's side counts: the kernel, where it is on this host and they are not too many to be
    /// told; else the target itself, where it is `throng serve`. Nothing is sent to another one for it.
    fn both_sides(&self, plan: &Plan) -> Option<BothSides> {
        let here = self.open();
        if here == 0 {
            return None;
        }
        let there = self.ends_there().or_else(|| {
            let is_ours = self.observer.target_is_ours() && plan.ports().len() == 1;
            if is_ours { counted_there(plan.destinations()[0]) } else { None }
        });
        there.map(|there| BothSides { here, there })
    }
}
