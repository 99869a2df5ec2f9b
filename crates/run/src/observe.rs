//! What is seen of the target, of the hosts and of throng itself while a run lasts, and what it cost.

mod costs;
mod ending;
mod heap;
mod used;

use std::net::{IpAddr, SocketAddr};

use host::{
    Listener, Processes, Root, UsageSample, Watch, host_sample,
    remote::{MAX_PORTS, Poller, Token},
};
use plan::Plan;
use record::{
    observed::Observed,
    segments::{Lossy, Segments},
};
use samples::{KernelCost, ObserverSeen, Phase, Sample, Samples, TargetSample, TargetSeen};
use units::Nanos;

use crate::{
    both_sides::MAX_COUNTED,
    listeners::{is_reached, listeners, listeners_at, queues},
};
use costs::{Costs, Room, Usage};
use heap::Heap;
use record::{accepts::Accepts, ends::OwnCounts, fill::Fill, moments::Doing, rows::first_of};
use used::Used;

/// The interval of complete samples; memory and CPU time are in each one.
const EVERY: Nanos = Nanos::from_secs(1);
/// Timeout of the first sample of `throng observe`, after which the run begins without it.
const FIRST_REPLY: Nanos = Nanos::from_secs(4);
/// Connections queried at a time: some milliseconds.
const MAX_SEGMENTS: u64 = 2_000;
/// The same of those whose place in the accept queue is asked for at each sample.
const MAX_LISTED: u64 = 2_000;

/// Destinations of which it is seen whether something listens there.
const MAX_LISTENED: usize = 64;

/// What throng does at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Connections open now.
    pub(crate) open: u64,
    /// Dials that succeeded since the start, later ones of the same connection included.
    pub(crate) opened: u64,
    /// Responses since the start.
    pub(crate) answered: u64,
    /// Successful dials of the probe since the start.
    pub(crate) probed: u64,
    /// TLS handshakes since the start, where every connection has one.
    pub(crate) handshakes: Option<u64>,
    /// Connections that were lost since the start: those that throng has given up may be in the accept queue still.
    pub(crate) dropped: u64,
}

/// Watches from before the first dial on. Its memory is the same after a second and after a day.
pub(crate) struct Observer {
    root: Root,
    own: Processes,
    /// The target, where it is on this machine.
    watch: Option<Watch>,
    /// The target's host, where `throng observe` was named.
    poller: Option<Poller>,
    known: Observed,
    /// The target's, each once.
    ports: Vec<u16>,
    /// When the last sample was taken, if at full load.
    held: Option<Nanos>,
    has_held: bool,
    costs: Costs,
    /// The target's managed heap, if collections are permitted.
    heap: Option<Heap>,
    used: Used,
    next_sample: Nanos,
    /// The target's activity since the last call.
    doing: Option<Doing>,
    /// Connections wait, and none receives anything: each sample covers everything, and there are more of them.
    pub(crate) is_silent: bool,
    destinations: Vec<SocketAddr>,
    /// Those of several at which something listens, as far as that is looked at.
    listened: Vec<SocketAddr>,
}

impl Observer {
    /// Finds the target and takes a first sample of everything. To be done before the shards start: if netlink is not
    /// permitted and there are millions of sockets, the kernel takes seconds to list the listeners.
    pub(crate) fn start(plan: &Plan, root: &Root) -> Observer {
        let destinations = plan.destinations();
        let both_here = destinations.iter().all(|d| host::is_local(root, d.ip()));
        let ports = plan.ports();
        let here = both_here && plan.observe.is_none();
        let mut observer = Observer {
            root: root.clone(),
            own: Processes::own(root),
            watch: here
                .then(|| Watch::new(root, &ports, &listeners_at(listeners(root), &destinations)).with_logs()),
            poller: None,
            known: Observed { both_here, is_tun: plan.io == plan::IoChoice::Tun, ..Observed::default() },
            held: None,
            has_held: false,
            costs: Costs::default(),
            heap: None,
            used: Used::default(),
            next_sample: Nanos::ZERO,
            doing: None,
            is_silent: false,
            destinations,
            listened: Vec::new(),
            ports,
        };
        observer.heap = plan.target_gc.then(|| Heap::without_load(root, &observer.jvms(), wanted(plan)));
        observer.start_polling(plan);
        observer.sample(Nanos::ZERO, Phase::Ramp, Load::default());
        observer
    }

    fn jvms(&self) -> Vec<u32> {
        self.watch.as_ref().map_or(Vec::new(), |watch| watch.jvms().to_vec())
    }

    fn start_polling(&mut self, plan: &Plan) {
        let Some(observe) = &plan.observe else { return };
        self.known.seen.observer =
            Some(ObserverSeen { address: observe.at.to_string(), ..ObserverSeen::default() });
        let token = observe.token_file.as_deref().map(Token::read).transpose();
        let ports = &self.ports[..self.ports.len().min(MAX_PORTS)];
        let poller =
            token.and_then(|token| Poller::start(observe.at, ports, token).map_err(|e| e.to_string()));
        match poller {
            Ok(poller) => {
                if let Some(reply) = poller.wait(FIRST_REPLY) {
                    self.take_sample(Nanos::ZERO, Phase::Ramp, Load::default(), reply);
                }
                self.poller = Some(poller);
            }
            Err(why) => self.take_sample(Nanos::ZERO, Phase::Ramp, Load::default(), Err(why)),
        }
    }

    /// Memory and CPU against the load, and the accept queue; once a second, to the end of the hold, everything else.
    pub(crate) fn sample(&mut self, now: Nanos, phase: Phase, load: Load) {
        if phase == Phase::Hold {
            self.begin_hold(now);
        }
        let queues = self.queues();
        self.see_queues(now, load, &queues);
        let jvms = self.watch.as_ref().map_or(&[][..], Watch::jvms);
        match &mut self.heap {
            Some(heap) if phase == Phase::Drain => heap.load_ends(),
            Some(heap) => heap.mind(&self.root, jvms, load.open),
            None => {}
        }
        if (now >= self.next_sample || self.is_silent) && phase != Phase::Drain {
            self.sample_everything(now, phase, &queues);
            if let Some(room) = self.memory_left() {
                self.costs.room(phase, load, room);
            }
        }
        let target = self.usage_sample(now);
        let kernel = host::kernel_memory(&self.root);
        self.costs.here(now, phase, load, usage(&self.used.own), kernel);
        if let Some(target) = target {
            self.costs.target(phase, load, usage(&target));
        }
        while let Some(reply) = self.poller.as_ref().and_then(Poller::next) {
            self.take_sample(now, phase, load, reply);
        }
    }

    /// Full load has begun, if this is the first call: what was seen until now is the ramp's.
    pub(crate) fn begin_hold(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.has_held, true) {
            self.sample_now(now, Phase::Ramp);
            self.held = Some(now);
            self.heap.iter_mut().for_each(Heap::at_full_load);
        }
    }

    /// Whether the listener here was seen to take our dials: they waited in its queue, or overflowed one.
    pub(crate) fn was_dialled_here(&self) -> bool {
        let overflows = self.known.seen.host.as_ref().map_or(0, |host| host.tcp().listen_overflows);
        self.known.accepts.has_queued() || overflows > 0
    }

    /// What listens here at the target's address is not the target: its samples mean nothing.
    pub(crate) fn lose_target(&mut self) {
        self.known.both_here = false;
        if self.poller.is_none() {
            (self.watch, self.heap, self.doing) = (None, None, None);
            self.used.lose_target();
            (self.known.seen.target, self.known.accepts) = (None, Accepts::default());
            self.costs.lose_target();
        }
    }

    /// Where the files of this machine are.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The target's, each once.
    pub(crate) fn destinations(&self) -> &[SocketAddr] {
        &self.destinations
    }

    /// At the end of the hold, before throng closes its own connections: what comes after is not the target's doing.
    pub(crate) fn end_hold(&mut self, now: Nanos, phase: Phase, open: u64) {
        self.sample_now(now, phase);
        let queues = self.queues();
        let here = queues.iter().filter_map(|queue| queue.waiting).reduce(|sum, queue| sum + queue);
        if let Some(queued) = here.filter(|queued| *queued > 0 && open <= MAX_COUNTED) {
            self.known.given_up_at_end = queued - self.live(queued);
        }
        let there = || self.known.seen.target.as_ref().and_then(|target| target.latest().accept_queue);
        self.known.queued_at_end = if self.known.both_here { here } else { there() };
    }

    fn sample_now(&mut self, now: Nanos, phase: Phase) {
        let queues = self.queues();
        self.sample_everything(now, phase, &queues);
    }

    fn sample_everything(&mut self, now: Nanos, phase: Phase, queues: &[Listener]) {
        // At whole seconds, as the lines: a moment's delay of one does not put the next one off.
        self.next_sample = Nanos((now.0 / EVERY.0 + 1) * EVERY.0);
        // Ourselves first: our share is of the time until now.
        let own = self.own.sample(now);
        self.known.seen.see_here(phase, &host_sample(&self.root), &own);
        if let Some(watch) = &mut self.watch
            && let Some(target) = watch.sample(now, queues)
        {
            self.known.seen.see_target(phase, &target);
            self.see_doing(&target);
        }
        self.known.signs.see(now, &self.known.seen, self.known.both_here, None);
        let held = (phase == Phase::Hold).then_some(now);
        if let (Some(last), Some(now)) = (self.held, held) {
            self.known.held_for = self.known.held_for + now.since(last);
        }
        self.held = held;
    }

    fn see_doing(&mut self, target: &TargetSample) {
        let now = Doing::seen(target);
        self.doing = Some(self.doing.map_or(now, |before| before.and(now)));
    }

    /// The target's activity since the last call, if it was sampled.
    pub(crate) fn take_doing(&mut self) -> Option<Doing> {
        self.doing.take()
    }

    /// Whether an additional check is worth its cost: of a silence, or a queue.
    pub(crate) fn is_curious(&self) -> bool {
        self.is_silent || self.known.accepts.is_queueing
    }

    /// Whether both ends of the connections are on this host, as far as is known.
    pub(crate) fn has_both_ends(&self) -> bool {
        self.known.both_here
    }

    /// Whether this address is this machine's.
    pub(crate) fn is_here(&self, address: IpAddr) -> bool {
        host::is_local(&self.root, address)
    }

    /// ICMP messages so far that reported something as unreachable or prohibited.
    pub(crate) fn icmp_unreachable(&self) -> u64 {
        let by_kernel = self.known.seen.host.as_ref().map_or(0, |host| host.tcp().icmp_unreachable);
        by_kernel + self.known.own_counts.icmp
    }

    /// The first destination that is counted in this row.
    pub(crate) fn destination(&self, row: usize) -> Option<SocketAddr> {
        self.destinations.get(first_of(row, self.destinations.len())).copied()
    }

    /// What shards count that have no sockets.
    pub(crate) fn set_own_counts(&mut self, counts: OwnCounts) {
        self.known.own_counts = counts;
    }

    /// TCP's state of connections, or of a sample of them by the kernel, if it is not `known`; returns the current state.
    pub(crate) fn sample_segments(&mut self, known: Option<net::Segments>) -> Option<net::Segments> {
        let now = match known {
            Some(known) => known,
            None => net::segments_to(&self.destinations, MAX_SEGMENTS).ok()?,
        };
        let waiting = |seen: &Segments| seen.unacknowledged + seen.unanswered + seen.syns;
        let net::Segments { connections, unacknowledged, unanswered, quiet, syns, .. } = now;
        let quiet = quiet.map(|quiet| Nanos(quiet.as_nanos() as u64));
        let lossy = self.known.segments.lossy;
        let seen = Segments { connections, unacknowledged, unanswered, quiet, syns, lossy };
        if waiting(&seen) >= waiting(&self.known.segments) {
            self.known.segments = seen;
        }
        self.take_lossy(now);
        Some(now)
    }

    /// The same while nothing seems wrong: only what shows that segments are lost is of interest.
    pub(crate) fn sample_losses(&mut self, known: Option<net::Segments>) {
        let now = known.or_else(|| net::segments_to(&self.destinations, MAX_SEGMENTS).ok());
        now.into_iter().for_each(|now| self.take_lossy(now));
    }

    fn take_lossy(&mut self, now: net::Segments) {
        let net::Segments { connections, unacknowledged: stuck, stuck_for, disordered, slow, .. } = now;
        let stuck_for = Nanos(stuck_for.unwrap_or_default().as_nanos() as u64);
        self.known
            .segments
            .lossy
            .take(Lossy { connections, stuck, stuck_for, disordered, ..Lossy::default() }, slow);
    }

    /// Connections at one of these ports that are in the target's accept queue, of `open` ones; `None` if that cannot be
    /// read. Those counted by `dropped` may still be in it, unless they are `listed`.
    pub(crate) fn unaccepted(
        &self,
        ports: &[u16],
        open: u64,
        dropped: u64,
        listed: Option<u64>,
    ) -> Option<u64> {
        let stands = self.known.accepts.stands();
        if !self.known.both_here {
            let queue = self.known.seen.target.as_ref().and_then(|target| target.latest().accept_queue);
            return queue.map(|queue| queue.min(stands).saturating_sub(dropped).min(open));
        }
        let queues = self.queues();
        let is_seen = ports.iter().all(|port| queues.iter().any(|queue| queue.port == *port));
        if !is_seen || stands == 0 || open > MAX_COUNTED {
            return is_seen.then(|| stands.saturating_sub(dropped).min(open));
        }
        Some(listed.or_else(|| unaccepted_at(ports))?.min(stands).min(open))
    }

    /// How many of those in the accept queues throng has not given up.
    fn live(&self, queued: u64) -> u64 {
        unaccepted_at(&self.ports).map_or(queued, |live| live.min(queued))
    }

    /// The listeners here, if the target is here too. Only listeners are queried: that takes no longer with millions of
    /// connections.
    fn queues(&self) -> Vec<Listener> {
        if self.known.both_here { listeners_at(queues(), &self.destinations) } else { Vec::new() }
    }

    /// Whether something listens still at each of several destinations.
    fn see_listeners(&mut self, now: Nanos, listeners: &[Listener]) {
        // Where none is left, all of the target has ended; or listeners are not listed.
        if self.destinations.len() < 2 || listeners.is_empty() {
            return;
        }
        let gone = self.listened.iter().find(|at| !is_reached(listeners, **at)).copied();
        self.known.deserted = self.known.deserted.or(gone);
        self.known.signs.see_listeners(now, gone.is_some());
        if self.listened.is_empty() {
            let looked_at = self.destinations.iter().take(MAX_LISTENED).copied();
            self.listened = looked_at.filter(|at| is_reached(listeners, *at)).collect();
        }
    }

    fn see_queues(&mut self, now: Nanos, load: Load, queues: &[Listener]) {
        self.see_listeners(now, queues);
        let fills: Vec<Fill> = queues.iter().filter_map(|l| Fill::of(l.waiting, l.backlog)).collect();
        let waiting: u64 = fills.iter().map(|queue| queue.used).sum();
        if let Some(dropped) = queues.iter().filter_map(|queue| queue.dropped).reduce(|all, own| all + own) {
            self.known.accepts.see_drops(dropped);
        }
        if let Some(fullest) = fills.into_iter().max_by_key(|queue| queue.used) {
            let has_given_up = waiting > 0 && load.dropped > 0 && load.open <= MAX_LISTED;
            let live = if has_given_up { self.live(waiting) } else { waiting };
            self.known.accepts.see(now, load.opened + load.probed, (waiting, live), fullest);
            self.known.signs.see_queue(now, Some(fullest), false);
        }
    }

    /// Whether the target reports its own counts.
    pub(crate) fn target_is_ours(&self) -> bool {
        self.known.seen.target.as_ref().is_some_and(TargetSeen::is_ours)
    }

    /// What the target may still take, where it is here.
    fn memory_left(&self) -> Option<Room> {
        let own_group = self.known.seen.target.as_ref().filter(|_| self.watch.is_some())?.memory_available;
        let left = self.known.seen.host.as_ref()?.memory_available.last;
        let available = own_group.map_or(left, |group| group.last.min(left));
        Some(Room { available, slabs: host::slab_reclaimable(&self.root).unwrap_or(0) })
    }

    /// What was seen last. Of throng itself memory and CPU time are known of each sample, the rest once a second.
    pub(crate) fn latest(&self) -> Samples {
        let mut latest = self.known.latest();
        if let Some(own) = &mut latest.own {
            let UsageSample { rss_bytes, cpu_user_ns, cpu_system_ns, .. } = self.used.own;
            (own.rss_bytes, own.cpu_user_ns, own.cpu_system_ns) = (rss_bytes, cpu_user_ns, cpu_system_ns);
        }
        latest
    }

    /// What it all came to.
    pub(crate) fn finish(mut self, now: Nanos) -> Observed {
        self.usage_sample(now);
        if let Some(runtime) = self.known.seen.target.as_ref().and_then(TargetSeen::runtime) {
            self.costs.runtime = Some(runtime);
        }
        if let Some(heap) = self.heap.take() {
            self.costs.live = Some(heap.finish());
        }
        let cost = self.costs.finish(self.known.both_here);
        Observed {
            target: self.known.seen.target.as_ref().map(|target| self.used.target(target, &cost)),
            kernel: (cost.kernel_bytes).map(|fit| KernelCost {
                value: fit.value,
                both_ends: self.known.both_here && !self.known.is_tun,
            }),
            generator: self.used.generator(&cost),
            processors: host::processors_online(&self.root),
            somaxconn: host::somaxconn(&self.root),
            cost,
            ..self.known
        }
    }

    /// Memory and CPU time now; the target's where it is here.
    fn usage_sample(&mut self, now: Nanos) -> Option<UsageSample> {
        let target = self.watch.as_mut().and_then(Watch::usage_sample);
        self.used.take(now, self.own.usage_sample(), target);
        target
    }

    /// A response of `throng observe`, or none: the run continues, and it is counted.
    fn take_sample(&mut self, now: Nanos, phase: Phase, load: Load, reply: Result<Sample, String>) {
        let observer = self.known.seen.observer.get_or_insert_default();
        let sample = match reply {
            Ok(sample) => sample,
            Err(why) => {
                observer.failures += 1;
                observer.last_failure = Some(why);
                return;
            }
        };
        observer.answers += 1;
        self.known.seen.see_there(phase, &sample);
        let Some(target) = &sample.target else { return };
        self.used.see_target(now);
        self.see_doing(target);
        let fullest = Fill::of(target.accept_queue, target.accept_backlog);
        self.known.signs.see(now, &self.known.seen, self.known.both_here, fullest);
        if let Some(fullest) = fullest.filter(|_| !self.known.both_here) {
            self.known.accepts.see(now, load.opened + load.probed, (fullest.used, fullest.used), fullest);
        }
        let process = &target.process;
        let (rss_bytes, cpu_ns) = (process.rss_bytes, process.cpu_user_ns + process.cpu_system_ns);
        self.costs.target(phase, load, Usage { rss_bytes, cpu_ns });
        self.costs.kernel_there(phase, load, sample.host.kernel_bytes);
        let least = target.memory_available.unwrap_or(u64::MAX).min(sample.host.memory_available);
        self.costs.room(phase, load, Room { available: least, slabs: sample.host.slab_reclaimable_bytes });
    }
}

/// Connections at these ports that no process has accepted, and that are open still; `None` if the kernel does not list them.
fn unaccepted_at(ports: &[u16]) -> Option<u64> {
    ports.iter().map(|port| net::unaccepted_at(*port)).sum::<Result<u64, _>>().ok()
}

/// Connections that a plan holds at its largest load; none of those that come and go, whose number is not the plan's.
fn wanted(plan: &Plan) -> u64 {
    let populations = (0..).zip(&plan.populations);
    populations.map(|(nth, population)| plan.peak(nth).of(population.load.held().into())).sum()
}

fn usage(usage_sample: &UsageSample) -> Usage {
    Usage { rss_bytes: usage_sample.rss_bytes, cpu_ns: usage_sample.cpu_ns() }
}
