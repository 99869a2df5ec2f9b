//! A whole run in one thread and virtual time: client shards on parts of one plan, a conductor that gives them
//! the orders which `run` gives to threads, and the laws of counting, checked at every tick.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use engine::{Arrivals, Client, Control, Job, Remote, Tempo, links};
use net::{
    Io, Program, Shard,
    io::sim::{self, Faults, Net, SimIo, Turn},
};
use plan::{Flags, Part, Plan, Ports, Ramp, SourcePool, Surroundings, Tuples, Whose};
use run::{Course, Order};
use samples::{Ask, Destination, Fault, Kind, Phase, Stage, Tick};
use serve::{Counters, Http, Knobs};
use units::{Nanos, Rate};

#[path = "laws.rs"]
mod laws;

use laws::{obey_the_laws, obey_the_laws_of_steps};

/// A new rate begins this long after its order.
const NOTICE: Nanos = Nanos::from_millis(120);
/// An order has been obeyed after this time: a shard looks for one several times a second.
const OBEYED: Nanos = Nanos::from_millis(250);
/// A run that has not come to its end by then never will.
const TOO_LONG: Nanos = Nanos::from_secs(2 * 3600);

/// A plan from words: `plan("http://127.0.0.1:80/", "connections=20k think=5s..45s", 7)`.
pub(crate) fn plan(target: &str, words: &str, seed: u64) -> Plan {
    let mut flags = Flags { target: Some(target.to_owned()), ..Flags::default() };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').expect("a word is name=value");
        let flag = match name {
            "connections" => &mut flags.connections,
            "ramp" => &mut flags.ramp,
            "duration" => &mut flags.duration,
            "rate" => &mut flags.rate,
            "arrive" => &mut flags.arrive,
            "total" => &mut flags.total,
            "calls" => &mut flags.calls,
            "probe" => &mut flags.probe,
            "think" => &mut flags.think,
            "ping" => &mut flags.ping,
            "message" => &mut flags.message,
            "timeout" => &mut flags.timeout,
            "expect" => &mut flags.expect,
            "reconnect" => &mut flags.reconnect,
            _ => panic!("no such flag: {name}"),
        };
        *flag = Some(value.to_owned());
    }
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("nobody to ask".to_owned()) };
    plan::from_flags(&flags, &Surroundings { cores: 1, seed, resolve: &resolve })
        .expect("a plan without mistakes")
}

/// A plan from the text of a scenario file, beside which there is a table of three users.
pub(crate) fn scenario(text: &str, seed: u64) -> Plan {
    let open = |file: &str| match file {
        "users.csv" => Ok("id,name\n1,Ada\n2,Grace\n3,Edsger\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    scenario_with(text, &open, seed)
}

/// The same where `open` gives the text of the files that it names.
pub(crate) fn scenario_with(text: &str, open: &dyn Fn(&str) -> Result<String, String>, seed: u64) -> Plan {
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("nobody to ask".to_owned()) };
    let around = Surroundings { cores: 1, seed, resolve: &resolve };
    plan::scenario::read("load.toml", text, &Flags::default(), &around, open).unwrap_or_else(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", mistakes.join("\n"))
    })
}

/// Shards of the reference server on `net`, all at `at`, each with room for all `connections`.
pub(crate) fn servers(
    net: &Net,
    at: SocketAddr,
    shards: u32,
    connections: u32,
) -> (Vec<Shard<SimIo, Http>>, Arc<Counters>) {
    let counters = Arc::new(Counters::new(shards));
    // Accepts that wait for a peer take places too.
    let places = connections + 256;
    let http = |n| Http::new(counters.clone(), n, places, &Knobs::default());
    let shard = |n| listening(net, at, places, http(n));
    ((0..shards).map(shard).collect(), counters)
}

/// A shard that listens at `at`.
pub(crate) fn listening<P: Program>(net: &Net, at: SocketAddr, places: u32, program: P) -> Shard<SimIo, P> {
    let mut io = net.host();
    io.listen(at).expect("the simulated network lets everyone listen");
    Shard::new(io, places, program)
}

/// A client shard for `part` of the plan, over any network.
pub(crate) fn client<I: Io>(io: I, plan: &Plan, part: &Part, link: engine::Link) -> Shard<I, Client> {
    let ports = Ports { list: (10_000..60_000).collect(), inside: 0 };
    let lanes = 0..plan.population(part.whose).target.destinations.len() as u32;
    let tuples = Tuples::new(SourcePool::Loopback4, ports, lanes, part.deal, plan.seed);
    let start = io.now();
    Shard::new(io, part.places, Client::new(part, Job::new(plan, part.whose), tuples, link, start))
}

/// Connections of a command line.
pub(crate) fn connections(plan: &Plan) -> u32 {
    plan.populations[0].load.connections()
}

/// How a run went.
pub(crate) struct Story {
    /// Everything that the shards handed over.
    pub(crate) whole: Tick,
    /// Of each population.
    pub(crate) populations: Vec<Tick>,
    /// Ticks that came.
    pub(crate) ticks: u64,
    /// Connections open at the end of the hold, and most at once at the end of any tick.
    pub(crate) held: u64,
    pub(crate) peak: u64,
    /// When the last first dial was decided, and from when until when full load lasted.
    pub(crate) ramped_at: Nanos,
    pub(crate) hold_from: Nanos,
    pub(crate) hold_until: Nanos,
    /// When each stage of the plan began, and from when its load held; never, where it did not come to that.
    pub(crate) stages: Vec<(Nanos, Nanos)>,
    /// How long each population was at full load.
    pub(crate) at_load: Vec<Nanos>,
}

impl Story {
    /// Requests were sent at full load, and none of them late: in virtual time there is no reason to.
    pub(crate) fn assert_on_time(&self) {
        let lag = &self.whole.lag;
        assert!(lag.count() > 0, "nothing was due at full load, so that nothing was late");
        assert_eq!(lag.quantiles().max, 0.0);
    }

    /// Every fault, with its count.
    pub(crate) fn faults(&self) -> Vec<(Stage, Kind, u64)> {
        self.whole.faults.iter().map(|(Fault { stage, kind, .. }, n)| (stage, kind, n)).collect()
    }
}

/// Runs `plan` in `shards` shards against `servers`, all on `net`; `see` is shown each tick with its shard's number.
pub(crate) fn play(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    see: impl FnMut(u32, &Tick),
) -> Story {
    play_levels(net, plan, shards, servers, &[], see)
}

/// The same where no client shard runs from the first time until the second, as in a process that is stopped.
pub(crate) fn play_frozen(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    frozen: (Nanos, Nanos),
) -> Story {
    play_all(net, plan, shards, servers, &[], Some(frozen), |_, _| {})
}

/// A shard that does not run for a while; what arrives meanwhile waits for it.
struct Frozen<'a> {
    shard: &'a mut dyn Turn,
    net: Net,
    span: (Nanos, Nanos),
    /// A host for which nothing ever arrives.
    nobody: u16,
}

impl Frozen<'_> {
    fn is_frozen(&self) -> bool {
        (self.span.0..self.span.1).contains(&self.net.now())
    }
}

impl Turn for Frozen<'_> {
    fn wakes_at(&self) -> Nanos {
        if self.is_frozen() { self.span.1 } else { self.shard.wakes_at() }
    }

    fn turn(&mut self) {
        self.shard.turn();
    }

    fn host(&self) -> u16 {
        if self.is_frozen() { self.nobody } else { self.shard.host() }
    }
}

/// How much there shall be from some time on, over all shards.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Connections(u32),
    Rate(Rate),
    /// Of the plan's, by hand.
    Asked(Ask),
}

/// The same, with a level from each of these times on.
pub(crate) fn play_levels(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    levels: &[(Nanos, Level)],
    see: impl FnMut(u32, &Tick),
) -> Story {
    play_all(net, plan, shards, servers, levels, None, see)
}

fn play_all(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    levels: &[(Nanos, Level)],
    frozen: Option<(Nanos, Nanos)>,
    see: impl FnMut(u32, &Tick),
) -> Story {
    let parts = plan.parts(|_| shards);
    let (links, arrivals) = links(parts.len() as u32);
    let (links, remotes): (Vec<_>, Vec<_>) = links.into_iter().unzip();
    let mut clients: Vec<_> =
        parts.iter().zip(links).map(|(part, link)| client(net.host(), plan, part, link)).collect();
    let span = frozen.unwrap_or((Nanos::NEVER, Nanos::NEVER));
    drop(net.host());
    let nobody = clients.last().expect("there is a shard").host() + 1;
    let freeze = |shard| Frozen { shard, net: net.clone(), span, nobody };
    let mut frozen: Vec<_> = clients.iter_mut().map(|c| freeze(c as &mut dyn Turn)).collect();
    let mut all: Vec<&mut dyn Turn> = frozen.iter_mut().map(|c| c as &mut dyn Turn).collect();
    all.extend(servers.iter_mut().map(|s| &mut **s as &mut dyn Turn));
    let mut conductor = Conductor::new(plan, &parts, levels, arrivals, remotes, see);
    conductor.give_orders();
    sim::run(net, &mut all, TOO_LONG, || conductor.step(net.now()));
    assert!(conductor.ends_at <= net.now(), "the run comes to its end, seed {}", plan.seed);
    assert!(clients.iter_mut().all(|c| c.program().is_finished()), "every shard has obeyed");
    conductor.story
}

/// What one shard said last.
#[derive(Clone, Copy)]
struct State {
    open: u64,
    resolved: u64,
    waiting: u64,
    ramped_at: Nanos,
    phase: Phase,
}

struct Conductor<'a, F> {
    plan: &'a Plan,
    parts: &'a [Part],
    course: Course<'a>,
    /// Those not ordered yet.
    levels: &'a [(Nanos, Level)],
    arrivals: Arrivals,
    remotes: Vec<Remote>,
    states: Vec<State>,
    story: Story,
    draining: bool,
    /// Every shard has handed over its last tick by then.
    ends_at: Nanos,
    see: F,
}

impl<'a, F: FnMut(u32, &Tick)> Conductor<'a, F> {
    fn new(
        plan: &'a Plan,
        parts: &'a [Part],
        levels: &'a [(Nanos, Level)],
        arrivals: Arrivals,
        remotes: Vec<Remote>,
        see: F,
    ) -> Self {
        let never = Nanos::NEVER;
        let silent = State { open: 0, resolved: 0, waiting: 0, ramped_at: never, phase: Phase::Ramp };
        let story = Story {
            whole: Tick::default(),
            populations: vec![Tick::default(); plan.populations.len()],
            ticks: 0,
            held: 0,
            peak: 0,
            ramped_at: never,
            hold_from: never,
            hold_until: never,
            stages: vec![(Nanos::ZERO, never)],
            at_load: vec![Nanos::ZERO; plan.populations.len()],
        };
        let states = vec![silent; remotes.len()];
        let course = Course::new(plan, Nanos::ZERO);
        Conductor {
            plan,
            parts,
            course,
            levels,
            arrivals,
            remotes,
            states,
            story,
            draining: false,
            ends_at: never,
            see,
        }
    }

    fn order(&self, order: Order) {
        for (part, remote) in self.parts.iter().zip(&self.remotes) {
            if let Some(control) = order.to(part) {
                remote.control.try_send(control).expect("a shard obeys within a few ticks");
            }
        }
    }

    fn give_orders(&mut self) {
        self.course.orders().into_iter().for_each(|order| self.order(order));
    }

    /// What the shards of a population said last.
    fn of(&self, population: u16) -> impl Iterator<Item = &State> {
        let whose = Whose::Population(population);
        self.parts
            .iter()
            .zip(&self.states)
            .filter(move |(part, _)| part.whose == whose)
            .map(|(_, state)| state)
    }

    /// What the shards said last, but for the probe lane's.
    fn of_load(&self) -> impl Iterator<Item = &State> {
        self.parts
            .iter()
            .zip(&self.states)
            .filter(|(part, _)| part.whose != Whose::Probe)
            .map(|(_, state)| state)
    }

    /// After each turn: takes the ticks that are there, gives the orders that are due. True at the end.
    fn step(&mut self, now: Nanos) -> bool {
        while let Ok((shard, tick)) = self.arrivals.try_recv() {
            self.take(shard, &tick);
            self.remotes[shard as usize].used.try_send(tick).expect("two ticks go back and forth");
        }
        self.order_level(now);
        if !self.draining {
            let ramped: Vec<Option<Nanos>> = (0..self.plan.populations.len() as u16)
                .map(|nth| self.of(nth).map(|s| s.ramped_at).max().filter(|at| *at != Nanos::NEVER))
                .collect();
            self.go_on(now, |nth| ramped[usize::from(nth)]);
            self.give_orders();
        }
        self.story.hold_from = self.story.hold_from.min(self.course.progress(0).hold_from);
        let ended = self.of_load().all(|s| s.phase == Phase::Drain);
        if !self.draining && (ended || now >= self.course.ends_at()) {
            self.draining = true;
            self.order(Order::All(Control::Drain));
        }
        let drained = ended && self.states.iter().all(|s| s.waiting == 0);
        if self.draining && drained && self.ends_at == Nanos::NEVER {
            self.ends_at = now + OBEYED;
            self.order(Order::All(Control::Stop));
        }
        now >= self.ends_at
    }

    /// From stage to stage.
    fn go_on(&mut self, now: Nanos, ramped: impl Fn(u16) -> Option<Nanos>) {
        let (stages, ends) = (&mut self.story.stages, self.course.acts_at());
        if self.course.step(now, ramped) {
            stages.push((ends, Nanos::NEVER));
        } else if let (false, Some((_, from @ Nanos::NEVER))) = (self.course.is_moving(), stages.last_mut()) {
            let stays = self.plan.stages[self.course.stage()].hold.time();
            *from = if stays == Nanos::NEVER { now } else { self.course.acts_at().since(stays) };
        }
    }

    /// Orders the next level when its time has come: each shard has its share of it.
    fn order_level(&mut self, now: Nanos) {
        let Some((&(at, level), rest)) = self.levels.split_first() else { return };
        if now < at {
            return;
        }
        self.levels = rest;
        let tempo = match self.plan.stages[0].ramp {
            Ramp::Rate(rate) => Some(Tempo::Steady(rate)),
            _ => None,
        };
        self.order(match level {
            Level::Asked(ask) => {
                assert!(self.course.heed(ask, now).is_some(), "{ask:?} changes nothing");
                return self.give_orders();
            }
            Level::Connections(n) => Order::Load(0, n, tempo, now),
            Level::Rate(rate) => Order::Population(0, Control::Tempo(Tempo::Steady(rate), at + NOTICE)),
        });
    }

    fn take(&mut self, shard: u32, tick: &Tick) {
        (self.see)(shard, tick);
        let &Tick { open, resolved, waiting, ramped_at, until, phase, .. } = tick;
        self.states[shard as usize] = State { open, resolved, waiting, ramped_at, phase };
        let sum = |field: fn(&State) -> u64| self.states.iter().map(field).sum::<u64>();
        let (open, resolved, waiting) = (sum(|s| s.open), sum(|s| s.resolved), sum(|s| s.waiting));
        let story = &mut self.story;
        story.whole.extend(tick);
        if let Whose::Population(nth) = self.parts[shard as usize].whose {
            story.populations[usize::from(nth)].extend(tick);
        }
        (story.whole.open, story.whole.resolved, story.whole.waiting) = (open, resolved, waiting);
        story.ticks += 1;
        story.peak = story.peak.max(open);
        let ramped_at = self.of_load().map(|s| s.ramped_at).max().expect("there is a shard");
        let ended = self.of_load().all(|s| s.phase == Phase::Drain);
        let story = &mut self.story;
        story.ramped_at = ramped_at;
        if story.hold_until == Nanos::NEVER && ended {
            story.hold_until = until;
            story.held = open;
            for (nth, at_load) in (0..).zip(&mut story.at_load) {
                let progress = self.course.progress(nth);
                *at_load = progress.holding + until.since(progress.hold_from);
            }
        }
        // Of each population, for they may speak different protocols.
        for (nth, population) in (0..).zip(&self.plan.populations) {
            let own =
                self.parts.iter().zip(&self.states).filter(|(part, _)| part.whose == Whose::Population(nth));
            let (open, resolved, waiting) =
                own.fold((0, 0, 0), |(o, r, w), (_, s)| (o + s.open, r + s.resolved, w + s.waiting));
            let whole = &mut story.populations[usize::from(nth)];
            (whole.open, whole.resolved, whole.waiting) = (open, resolved, waiting);
            obey_the_laws(self.plan, population, whole);
            obey_the_laws_of_steps(self.plan, nth, whole);
        }
        self.obey_the_law_of_the_whole();
        self.obey_the_law_of_destinations();
    }

    /// The destinations together are the whole, where they are counted each by itself.
    fn obey_the_law_of_destinations(&self) {
        let t = &self.story.whole;
        if t.destinations.is_empty() {
            return;
        }
        let mut sum = Destination::default();
        t.destinations.iter().for_each(|own| sum.merge(own));
        let c = &t.counts;
        let of_sum = [sum.opened, sum.failed, sum.dropped, sum.closed, sum.redialled, sum.finished];
        assert_eq!(of_sum, [c.opened, c.failed, c.dropped, c.closed, c.redialled, c.finished]);
        assert_eq!((sum.sent, sum.answered, &sum.faults), (c.sent, c.answered, &t.faults));
        assert_eq!((sum.latency.count(), sum.open()), (t.latency.count(), t.open));
    }

    /// The populations together are the whole: the probe lane's figures are its own.
    fn obey_the_law_of_the_whole(&self) {
        let Story { whole, populations, .. } = &self.story;
        if populations.len() < 2 {
            return;
        }
        let mut sum = Tick::default();
        populations.iter().for_each(|population| sum.merge(population));
        let essence = |t: &Tick| {
            let latencies =
                [&t.latency, &t.ramp_latency, &t.connect].map(|latency| (latency.count(), latency.max()));
            let counts = samples::Counts { addresses_skipped: 0, ..t.counts.clone() };
            (counts, t.faults.clone(), t.status.clone(), latencies)
        };
        assert_eq!(essence(&sum), essence(whole), "the sum, seed {}", self.plan.seed);
    }
}

/// A good network but for what `change` does to it.
pub(crate) fn network(seed: u64, change: impl FnOnce(&mut Faults)) -> Net {
    let mut faults = Faults::default();
    change(&mut faults);
    Net::new(seed, faults)
}
