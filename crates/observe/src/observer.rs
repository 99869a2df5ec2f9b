//! Observation of the target, of the hosts and of throng itself during a run, and the resulting costs. Samples are aggregated at once:
//! memory use does not depend on the length of the run.

mod connections;
mod costs;
mod ending;
mod heap;
mod used;

use std::{net::SocketAddr, sync::Arc};

use host::{
    Listener, Processes, Root, UsageSample, Watch, host_sample,
    remote::{MAX_PORTS, Poller, Token},
};
use plan::Plan;
use record::{accepts::Accepts, fill::Fill, moments::Doing, observed::Observed};
use samples::{KernelCost, ObserverSeen, Phase, Sample, Samples, TargetSample, TargetSeen};
use units::Nanos;

use crate::{
    both_sides::{Ends, MAX_COUNTED, Sources},
    listeners::{is_reached, listeners, listeners_at, queues},
    path::{Rejections, Resets},
};
use connections::OtherEnds;
use costs::{Costs, Room, Usage};
use heap::Heap;
use used::Used;

/// Interval of complete samples. Memory and CPU time are sampled more often.
const EVERY: Nanos = Nanos::from_secs(1);
/// Timeout of the first sample by `throng observe`; without it, the run begins anyway.
const FIRST_REPLY: Nanos = Nanos::from_secs(4);
/// Maximum number of connections whose place in the accept queue is queried at each sample.
const MAX_LISTED: u64 = 2_000;

/// Maximum number of destinations whose listeners are checked.
const MAX_LISTENED: usize = 64;

/// The load at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections open now.
    pub open: u64,
    /// Successful dials since the start, including redials.
    pub opened: u64,
    /// Responses since the start.
    pub answered: u64,
    /// Successful dials of the probe since the start.
    pub probed: u64,
    /// TLS handshakes since the start; `None` unless every connection uses TLS.
    pub handshakes: Option<u64>,
    /// Connections lost since the start. They may still be in the accept queue.
    pub dropped: u64,
}

/// Samples the target and the hosts, starting before the first dial. Its memory use is constant.
pub struct Observer {
    root: Root,
    own: Processes,
    /// The target, if it is on this machine.
    watch: Option<Watch>,
    /// The connection to `throng observe` on the target's host, if one is given.
    poller: Option<Poller>,
    known: Observed,
    /// The target's ports, without duplicates.
    ports: Vec<u16>,
    /// Time of the last complete sample, if it was taken at full load.
    held: Option<Nanos>,
    has_held: bool,
    costs: Costs,
    /// The target's managed heap, if forced collections are permitted.
    heap: Option<Heap>,
    used: Used,
    next_sample: Nanos,
    /// The target's activity since the last call of `take_doing`.
    doing: Option<Doing>,
    /// Requests wait and nothing is received: every sample is complete, and samples are more frequent.
    pub is_silent: bool,
    destinations: Vec<SocketAddr>,
    /// With several destinations: those with a listener at the first check.
    listened: Vec<SocketAddr>,
    /// Where connections are dialled from; `None` if other processes dial.
    sources: Option<Arc<Sources>>,
    other_ends: OtherEnds,
    /// The target's ends of the connections, listed shortly before the end of the load.
    earlier: Option<Ends>,
    rejections: Rejections,
    /// The resets on the way to the target; they may still come after the load.
    pub resets: Resets,
}

impl Observer {
    /// Finds the target and takes a first complete sample. Must be called before the shards start: without netlink permission, listing
    /// the listeners among millions of sockets takes the kernel seconds.
    pub fn start(plan: &Plan, root: &Root) -> Observer {
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
            sources: None,
            other_ends: OtherEnds::default(),
            earlier: None,
            rejections: Rejections::default(),
            resets: Resets::default(),
        };
        observer.heap =
            plan.target_gc.then(|| Heap::without_load(root, jvms(observer.watch.as_ref()), wanted(plan)));
        observer.start_polling(plan);
        observer.sample(Nanos::ZERO, Phase::Ramp, Load::default());
        observer
    }

    fn start_polling(&mut self, plan: &Plan) {
        let Some(observe) = &plan.observe else { return };
        self.known.seen.observer =
            Some(ObserverSeen { address: observe.at.to_string(), ..ObserverSeen::default() });
        let token = observe.token_file.as_deref().map(Token::read).transpose();
        let ports = &self.ports[..self.ports.len().min(MAX_PORTS)];
        let poller =
            token.and_then(|token| Poller::start(observe.at, ports, token).map_err(|e| e.to_string()));
        let reply = match poller {
            Ok(poller) => self.poller.insert(poller).wait(FIRST_REPLY),
            Err(why) => Some(Err(why)),
        };
        if let Some(reply) = reply {
            self.take_sample(Nanos::ZERO, Phase::Ramp, Load::default(), reply);
        }
    }

    /// Samples memory and CPU time against the load, and the accept queue; once a second until the end of the hold, everything else as
    /// well.
    pub fn sample(&mut self, now: Nanos, phase: Phase, load: Load) {
        if phase == Phase::Hold {
            self.begin_hold(now);
        }
        let queues = self.queues();
        self.see_queues(now, load, &queues);
        let jvms = jvms(self.watch.as_ref());
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

    /// Notes the beginning of full load, at the first call: earlier samples belong to the ramp.
    pub fn begin_hold(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.has_held, true) {
            self.sample_now(now, Phase::Ramp);
            self.held = Some(now);
            self.heap.iter_mut().for_each(Heap::at_full_load);
        }
    }

    /// Discards the target's samples: the listener at the target's address on this host is not the target.
    fn lose_target(&mut self) {
        self.known.both_here = false;
        if self.poller.is_none() {
            (self.watch, self.heap, self.doing) = (None, None, None);
            self.used.lose_target();
            (self.known.seen.target, self.known.accepts) = (None, Accepts::default());
            self.costs.lose_target();
        }
    }

    /// The root of this machine's file system, where `/proc` and `/sys` are read.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Takes the last sample of the hold, before throng closes its connections: later changes are not caused by the target.
    pub fn end_hold(&mut self, now: Nanos, phase: Phase, open: u64) {
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
        // At whole seconds, like the lines, so that a delay does not accumulate.
        self.next_sample = Nanos((now.0 / EVERY.0 + 1) * EVERY.0);
        // throng first: its share must cover the time until now.
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

    /// Returns the target's activity since the last call, if it was sampled.
    pub fn take_doing(&mut self) -> Option<Doing> {
        self.doing.take()
    }

    /// Whether extra samples are worth their cost: during a silence, or while an accept queue fills.
    pub fn is_curious(&self) -> bool {
        self.is_silent || self.known.accepts.is_queueing
    }

    /// The target's listeners on this host; empty if the target is elsewhere. Queries listeners only, so that the cost does not depend on
    /// the number of connections.
    fn queues(&self) -> Vec<Listener> {
        if self.known.both_here { listeners_at(queues(), &self.destinations) } else { Vec::new() }
    }

    /// With several destinations, checks whether each still has a listener.
    fn see_listeners(&mut self, now: Nanos, listeners: &[Listener]) {
        // Without any listener, the whole target has ended, or listeners cannot be listed.
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

    /// Memory that the target may still allocate; `None` unless it is on this host.
    fn memory_left(&self) -> Option<Room> {
        let own_group = self.known.seen.target.as_ref().filter(|_| self.watch.is_some())?.memory_available;
        let left = self.known.seen.host.as_ref()?.memory_available.last;
        let available = own_group.map_or(left, |group| group.last.min(left));
        Some(Room { available, slabs: host::slab_reclaimable(&self.root).unwrap_or(0) })
    }

    /// The latest samples. throng's memory and CPU time are from the latest usage sample, the rest from the last complete one.
    pub fn latest(&self) -> Samples {
        let mut latest = self.known.latest();
        if let Some(own) = &mut latest.own {
            let UsageSample { rss_bytes, cpu_user_ns, cpu_system_ns, .. } = self.used.own;
            (own.rss_bytes, own.cpu_user_ns, own.cpu_system_ns) = (rss_bytes, cpu_user_ns, cpu_system_ns);
        }
        latest
    }

    /// Ends the observation; returns the results.
    pub fn finish(mut self, now: Nanos) -> Observed {
        self.count_own();
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

    /// Samples memory and CPU time. Returns the target's, if it is on this host.
    fn usage_sample(&mut self, now: Nanos) -> Option<UsageSample> {
        let target = self.watch.as_mut().and_then(Watch::usage_sample);
        self.used.take(now, self.own.usage_sample(), target);
        target
    }

    /// Handles a sample by `throng observe`, or a failure, which is counted while the run continues.
    fn take_sample(&mut self, now: Nanos, phase: Phase, load: Load, reply: Result<Sample, impl ToString>) {
        let observer = self.known.seen.observer.get_or_insert_default();
        let sample = match reply {
            Ok(sample) => sample,
            Err(why) => {
                observer.failures += 1;
                observer.last_failure = Some(why.to_string());
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

/// The target's Java virtual machines on this host.
fn jvms(watch: Option<&Watch>) -> &[u32] {
    watch.map_or(&[], Watch::jvms)
}

/// Connections held at the plan's largest load, without arrivals, whose number does not follow from the plan.
fn wanted(plan: &Plan) -> u64 {
    let populations = (0..).zip(&plan.populations);
    populations.map(|(nth, population)| plan.peak(nth).of(population.load.held().into())).sum()
}

fn usage(usage_sample: &UsageSample) -> Usage {
    Usage { rss_bytes: usage_sample.rss_bytes, cpu_ns: usage_sample.cpu_ns() }
}
