//! A whole run in one thread and virtual time, for tests: client shards on the parts of a plan, led by the same conductor as real
//! threads, with the laws of counting checked at every tick.
//!
//! This is a separate crate so that client, server and network are compiled for the simulation once and with optimisation, unlike
//! the tests.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use engine::{Client, Job, links};
use net::{
    Io, Program, Shard,
    io::sim::{Faults, Net, SimIo, Turn},
};
use plan::{Environment, Flag, Flags, Part, Plan, Ports, Source, SourcePool, Tuples, flag::Takes};
use run::{By, Conductor, Record, Schedule, Workers};
use samples::{Command, Fault, Kind, Latency, Quantiles, Stage, Summary, Tick};
use serve::{Counters, Http, Knobs, ServerShard};
use units::{Nanos, Rate};

pub mod drawn;
pub mod fates;
mod laws;
pub mod scripted;
mod sums;
mod workers;

use fates::{Frozen, Thread};
use sums::Sums;
use workers::Shards;

/// A plan from flags: `plan("http://127.0.0.1:80/", "connections=20k think=5s..45s", 7)`.
pub fn plan(target: &str, flags: &str, seed: u64) -> Plan {
    let mut parsed = Flags::new(target);
    for item in flags.split_whitespace() {
        let (name, value) = item.split_once('=').expect("NAME=VALUE");
        let flag = Flag::named(&format!("--{name}")).unwrap_or_else(|| panic!("no such flag: {name}"));
        // The later of two values applies.
        parsed = if flag.takes == Takes::Many { parsed } else { parsed.without(flag) }.with(flag, value);
    }
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("no name service".to_owned()) };
    plan::from_flags(&parsed, &Environment { cores: 1, seed, resolve: &resolve })
        .expect("a plan without mistakes")
}

/// A plan from the text of a scenario file, with a data file `users.csv` of three users.
pub fn scenario(text: &str, seed: u64) -> Plan {
    let open = |file: &str| match file {
        "users.csv" => Ok("id,name\n1,Ada\n2,Grace\n3,Edsger\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    scenario_with(text, &open, seed)
}

/// The same; `open` reads the files that the scenario names.
pub fn scenario_with(text: &str, open: &dyn Fn(&str) -> Result<String, String>, seed: u64) -> Plan {
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("no name service".to_owned()) };
    let around = Environment { cores: 1, seed, resolve: &resolve };
    plan::scenario::read("load.toml", text, &Flags::default(), &around, &|file| open(file).map(Source::Text))
        .unwrap_or_else(|mistakes| {
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            panic!("{}\n{text}", mistakes.join("\n"))
        })
}

/// The date at which simulated clocks start: a day in November 2023.
pub const DATE: Nanos = Nanos::from_secs(1_700_000_000);

/// A shard of the reference server.
pub type HttpShard = Shard<SimIo, ServerShard<Http>>;

/// The shards that run beside the clients: mostly servers.
pub type Turns<'a> = [&'a mut dyn Turn];

/// Shards of the reference server on `net`, all at `at`, each with room for all `connections`.
pub fn servers(net: &Net, at: SocketAddr, shards: u32, connections: u32) -> (Vec<HttpShard>, Arc<Counters>) {
    let counters = Arc::new(Counters::new(shards));
    // Pending accepts take places, too.
    let places = connections + 256;
    let http = |n| Http::shard(counters.clone(), n, places, &Knobs::default()).starting(DATE);
    let shard = |n| listening(net, at, places, http(n));
    ((0..shards).map(shard).collect(), counters)
}

/// The servers as [`play`] takes them.
pub fn turns(servers: &mut [HttpShard]) -> Vec<&mut dyn Turn> {
    servers.iter_mut().map(|server| server as &mut dyn Turn).collect()
}

/// A shard that listens at `at`.
pub fn listening<P: Program>(net: &Net, at: SocketAddr, places: u32, program: P) -> Shard<SimIo, P> {
    let mut io = net.host();
    io.listen(at).expect("the simulated network lets everyone listen");
    Shard::new(io, places, program)
}

/// A client shard for `part` of the plan, over any network.
pub fn client<I: Io>(io: I, plan: &Plan, part: &Part, link: engine::Link) -> Shard<I, Client> {
    let ports = Ports { list: (10_000..60_000).collect(), inside: 0 };
    let lanes = 0..plan.population(part.role).target.destinations.len() as u32;
    let tuples = Tuples::new(SourcePool::Loopback4, ports, lanes, part.tuple_share, plan.seed);
    let start = io.now();
    Shard::new(
        io,
        part.places,
        Client::new(part, Job::new(plan, part.role).starting(DATE), tuples, link, start),
    )
}

/// The number of connections of a command line.
pub fn connections(plan: &Plan) -> u32 {
    plan.populations[0].load.connections()
}

/// The result of a run.
pub struct RunResult {
    /// As measured by the conductor.
    pub record: Record,
    /// Requests without a response because the drain was cut short.
    pub cut: u64,
    /// Everything that the shards handed over.
    pub whole: Tick,
    /// The sum for each population.
    pub populations: Vec<Tick>,
    /// Connections open at the end of the hold.
    pub held: u64,
    /// Most connections open at the end of any tick.
    pub peak: u64,
    /// When the last first dial was decided.
    pub ramped_at: Nanos,
    /// When full load began.
    pub hold_from: Nanos,
    /// When full load ended.
    pub hold_until: Nanos,
    /// When each stage of the plan began, and when its load was reached; never, if it was not.
    pub stages: Vec<(Nanos, Nanos)>,
    /// How long each population was at full load.
    pub at_load: Vec<Nanos>,
}

impl RunResult {
    /// The summary, with its verdict.
    pub fn judge(&self, plan: &Plan) -> Summary {
        run::judge(plan, &self.record)
    }

    /// The same for a step of a search with this load, and the reasons if it fails.
    pub fn judge_step(&self, plan: &Plan, by: By, load: u64) -> (Summary, Vec<String>) {
        let summary = self.judge(plan);
        let reasons = run::reasons(by, load, &summary, None);
        (summary, reasons)
    }

    /// Asserts that requests were sent at full load, none of them late: in virtual time there is no reason to be.
    pub fn assert_on_time(&self) {
        assert_eq!(measured(&self.whole.lag).max, 0.0);
    }

    /// Every fault, with its count.
    pub fn faults(&self) -> Vec<(Stage, Kind, u64)> {
        self.whole.faults.iter().map(|(Fault { stage, kind, .. }, n)| (stage, kind, n)).collect()
    }
}

/// The quantiles of times that must not be empty: without values all are 0, and any bound would hold.
pub fn measured(times: &Latency) -> Quantiles {
    assert!(times.count() > 0, "nothing was measured");
    times.quantiles()
}

/// How a run is led.
#[derive(Clone, Copy, Default)]
pub struct Direction<'a> {
    /// Levels, each with the time at which it begins.
    pub levels: &'a [(Nanos, Level)],
    /// Intervals in which no client shard runs, as in a stopped process.
    pub frozen: &'a [(Nanos, Nanos)],
    /// How long responses are awaited after the load; `None`: the plan's longest timeout.
    pub patience: Option<Nanos>,
    /// Whether this is a step of a search: its connections stay open and continue.
    pub goes_on: bool,
}

/// A load from some time on, over all shards.
#[derive(Clone, Copy)]
pub enum Level {
    /// Connections held.
    Connections(u32),
    /// Requests or arrivals per second.
    Rate(Rate),
    /// A command of manual control: a share of the plan's load.
    UserCommand(Command),
}

/// Runs `plan` in `shards` shards against `servers`, all on `net`; `see` gets each tick with its shard's number.
pub fn play(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut Turns<'_>,
    see: impl FnMut(u32, &Tick),
) -> RunResult {
    direct(net, plan, shards, servers, Direction::default(), see)
}

/// The same, with an interval in which no client shard runs, as in a stopped process.
pub fn play_frozen(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut Turns<'_>,
    frozen: (Nanos, Nanos),
) -> RunResult {
    let direction = Direction { frozen: &[frozen], ..Direction::default() };
    direct(net, plan, shards, servers, direction, |_, _| {})
}

/// The same with levels, each with the time at which it begins.
pub fn play_levels(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut Turns<'_>,
    levels: &[(Nanos, Level)],
    see: impl FnMut(u32, &Tick),
) -> RunResult {
    direct(net, plan, shards, servers, Direction { levels, ..Direction::default() }, see)
}

/// The same with any direction.
pub fn direct(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut Turns<'_>,
    direction: Direction,
    mut see: impl FnMut(u32, &Tick),
) -> RunResult {
    lead(net, plan, shards, servers, direction, &mut see)
}

/// Not generic over `see`, so that it is compiled in this crate.
fn lead(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut Turns<'_>,
    direction: Direction,
    see: &mut dyn FnMut(u32, &Tick),
) -> RunResult {
    let parts = plan.parts(|_| shards);
    let (links, arrivals) = links(parts.len() as u32);
    let (links, remotes): (Vec<_>, Vec<_>) = links.into_iter().unzip();
    let mut clients: Vec<_> =
        parts.iter().zip(links).map(|(part, link)| client(net.host(), plan, part, link)).collect();
    let mut threads: Vec<_> = clients.iter_mut().map(|shard| Thread::new(net, shard)).collect();
    let mut frozen: Vec<_> = threads
        .iter_mut()
        .map(|thread| Frozen::new(net, thread as &mut dyn Turn, direction.frozen))
        .collect();
    let mut all: Vec<&mut dyn Turn> = frozen.iter_mut().map(|c| c as &mut dyn Turn).collect();
    all.extend(servers.iter_mut().map(|s| &mut **s as &mut dyn Turn));
    let workers = Shards {
        net,
        plan,
        parts: &parts,
        turns: all,
        arrivals,
        remotes,
        read: None,
        sums: Sums::new(plan, &parts),
        see,
        levels: direction.levels,
        commands: Vec::new(),
        stopped: Nanos::NEVER,
        moves_from: direction.frozen.last().map_or(Nanos::ZERO, |(_, until)| *until),
    };
    let result = conduct(plan, workers, direction);
    assert!(clients.iter_mut().all(|c| c.program().is_finished()), "every shard has obeyed");
    result
}

fn conduct(plan: &Plan, mut workers: Shards<'_>, direction: Direction) -> RunResult {
    let goes_on = direction.goes_on;
    let conductor = match goes_on {
        true => Conductor::going_on(plan, &workers, &vec![0; plan.populations.len()]),
        false => Conductor::new(plan, &workers, Nanos::ZERO, Nanos::ZERO),
    };
    let mut conductor = conductor.with_patience(direction.patience);
    let (mut stages, mut hold_from) = (vec![(Nanos::ZERO, Nanos::NEVER)], Nanos::NEVER);
    conductor.give_orders(&mut workers);
    loop {
        assert!(conductor.gather(&mut workers).is_some(), "no shard ends without its order");
        let now = workers.now();
        for command in workers.commands.drain(..) {
            assert!(conductor.handle_command(command, now), "{command:?} changes nothing");
        }
        conductor.poll_line(now).iter().for_each(|line| workers.sums.take_line(line));
        let ends = conductor.schedule().acts_at();
        let step = conductor.step(now);
        conductor.give_orders(&mut workers);
        hold_from = hold_from.min(conductor.schedule().progress(0).hold_from);
        note_stage(&mut stages, plan, conductor.schedule(), (ends, now));
        if step.is_over {
            break;
        }
    }
    let cut = conductor.awaited();
    let at_load = at_load(plan, conductor.schedule(), workers.sums.hold_until);
    // A step of a search is judged without what follows it.
    if !goes_on {
        run::stop(&mut workers, |update| conductor.handle(update));
    }
    let (last, record) = conductor.finish();
    if goes_on {
        run::stop(&mut workers, |_| {});
    } else {
        workers.sums.take_line(&last);
        workers.sums.obey_the_law_of_lines();
    }
    let Sums { whole, populations, held, hold_until, peak, ramped_at, .. } = workers.sums;
    RunResult {
        record,
        cut,
        whole,
        populations,
        held,
        peak,
        ramped_at,
        hold_from,
        hold_until,
        stages,
        at_load,
    }
}

/// Notes that a stage has begun, at `ends`, or that its load has been reached.
fn note_stage(
    stages: &mut Vec<(Nanos, Nanos)>,
    plan: &Plan,
    schedule: &Schedule,
    (ends, now): (Nanos, Nanos),
) {
    if schedule.stage() == stages.len() {
        stages.push((ends, Nanos::NEVER));
    } else if let (false, Some((_, from @ Nanos::NEVER))) = (schedule.is_moving(), stages.last_mut()) {
        let stays = plan.stages[schedule.stage()].hold.time();
        *from = if stays == Nanos::NEVER { now } else { schedule.acts_at().since(stays) };
    }
}

/// How long each population was at full load.
fn at_load(plan: &Plan, schedule: &Schedule, until: Nanos) -> Vec<Nanos> {
    let of = |nth: u16| schedule.progress(nth).holding + until.since(schedule.progress(nth).hold_from);
    (0..plan.populations.len() as u16).map(of).collect()
}

/// A good network, except for `change`.
pub fn network(seed: u64, change: impl FnOnce(&mut Faults)) -> Net {
    let mut faults = Faults::default();
    change(&mut faults);
    Net::new(seed, faults)
}
