//! A whole run in one thread and virtual time: client shards on parts of one plan, led by the conductor that leads threads,
//! and the laws of counting, checked at every tick.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use engine::{Client, Job, links};
use net::{
    Io, Program, Shard,
    io::sim::{Faults, Net, SimIo, Turn},
};
use plan::{Environment, Flag, Flags, Part, Plan, Ports, SourcePool, Tuples, flag::Takes};
use run::{By, Conductor, Record, Schedule, Workers};
use samples::{Command, Fault, Kind, Latency, Quantiles, Stage, Summary, Tick};
use serve::{Counters, Http, Knobs, ServerShard};
use units::{Nanos, Rate};

#[path = "fates.rs"]
pub(crate) mod fates;
#[path = "laws.rs"]
mod laws;
#[path = "sums.rs"]
mod sums;
#[path = "workers.rs"]
mod workers;

use fates::{Frozen, Thread};
use sums::Sums;
use workers::Shards;

/// A plan from words: `plan("http://127.0.0.1:80/", "connections=20k think=5s..45s", 7)`.
pub(crate) fn plan(target: &str, words: &str, seed: u64) -> Plan {
    let mut flags = Flags::new(target);
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').expect("a word is name=value");
        let flag = Flag::named(&format!("--{name}")).unwrap_or_else(|| panic!("no such flag: {name}"));
        // Of two values the later one holds.
        flags = if flag.takes == Takes::Many { flags } else { flags.without(flag) }.with(flag, value);
    }
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("nobody to ask".to_owned()) };
    plan::from_flags(&flags, &Environment { cores: 1, seed, resolve: &resolve })
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
    let around = Environment { cores: 1, seed, resolve: &resolve };
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
) -> (Vec<Shard<SimIo, ServerShard<Http>>>, Arc<Counters>) {
    let counters = Arc::new(Counters::new(shards));
    // Accepts that wait for a peer take places too.
    let places = connections + 256;
    let http = |n| Http::shard(counters.clone(), n, places, &Knobs::default());
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
    let lanes = 0..plan.population(part.role).target.destinations.len() as u32;
    let tuples = Tuples::new(SourcePool::Loopback4, ports, lanes, part.tuple_share, plan.seed);
    let start = io.now();
    Shard::new(io, part.places, Client::new(part, Job::new(plan, part.role), tuples, link, start))
}

/// Connections of a command line.
pub(crate) fn connections(plan: &Plan) -> u32 {
    plan.populations[0].load.connections()
}

/// How a run went.
pub(crate) struct Story {
    /// As the conductor measured it.
    pub(crate) record: Record,
    /// Requests that were waited for in vain, for the drain was cut.
    pub(crate) cut: u64,
    /// Everything that the shards handed over.
    pub(crate) whole: Tick,
    /// Of each population.
    pub(crate) populations: Vec<Tick>,
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
    /// The summary, with its verdict.
    pub(crate) fn judge(&self, plan: &Plan) -> Summary {
        run::judge(plan, &self.record)
    }

    /// The same for a step of a search with this load; and why it does not pass, if so.
    pub(crate) fn judge_step(&self, plan: &Plan, by: By, load: u64) -> (Summary, Vec<String>) {
        let summary = self.judge(plan);
        let reasons = run::reasons(by, load, &summary, None);
        (summary, reasons)
    }

    /// Requests were sent at full load, and none of them late: in virtual time there is no reason to.
    pub(crate) fn assert_on_time(&self) {
        assert_eq!(measured(&self.whole.lag).max, 0.0);
    }

    /// Every fault, with its count.
    pub(crate) fn faults(&self) -> Vec<(Stage, Kind, u64)> {
        self.whole.faults.iter().map(|(Fault { stage, kind, .. }, n)| (stage, kind, n)).collect()
    }
}

/// Times of which there are some: where nothing was measured all of them are 0, and any bound would hold.
pub(crate) fn measured(times: &Latency) -> Quantiles {
    assert!(times.count() > 0, "nothing was measured");
    times.quantiles()
}

/// How a run is led.
#[derive(Clone, Copy, Default)]
pub(crate) struct Direction<'a> {
    /// A level from each of these times on.
    pub(crate) levels: &'a [(Nanos, Level)],
    /// No client shard runs from the first time until the second, as in a process that is stopped.
    pub(crate) frozen: Option<(Nanos, Nanos)>,
    /// Responses may come for so long when the load has ended, where that is not the plan's longest timeout.
    pub(crate) patience: Option<Nanos>,
    /// It is a step of a search: its connections stay, and go on.
    pub(crate) goes_on: bool,
}

/// How much there shall be from some time on, over all shards.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Connections(u32),
    Rate(Rate),
    /// Of the plan's, manually.
    UserCommand(Command),
}

/// Runs `plan` in `shards` shards against `servers`, all on `net`; `see` is shown each tick with its shard's number.
pub(crate) fn play(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    see: impl FnMut(u32, &Tick),
) -> Story {
    direct(net, plan, shards, servers, Direction::default(), see)
}

/// The same where no client shard runs from the first time until the second, as in a process that is stopped.
pub(crate) fn play_frozen(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    frozen: (Nanos, Nanos),
) -> Story {
    let direction = Direction { frozen: Some(frozen), ..Direction::default() };
    direct(net, plan, shards, servers, direction, |_, _| {})
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
    direct(net, plan, shards, servers, Direction { levels, ..Direction::default() }, see)
}

/// The same, led in any way.
pub(crate) fn direct(
    net: &Net,
    plan: &Plan,
    shards: u32,
    servers: &mut [&mut dyn Turn],
    direction: Direction,
    see: impl FnMut(u32, &Tick),
) -> Story {
    let parts = plan.parts(|_| shards);
    let (links, arrivals) = links(parts.len() as u32);
    let (links, remotes): (Vec<_>, Vec<_>) = links.into_iter().unzip();
    let mut clients: Vec<_> =
        parts.iter().zip(links).map(|(part, link)| client(net.host(), plan, part, link)).collect();
    let span = direction.frozen.unwrap_or((Nanos::NEVER, Nanos::NEVER));
    let mut threads: Vec<_> = clients.iter_mut().map(|shard| Thread::new(net, shard)).collect();
    let mut frozen: Vec<_> =
        threads.iter_mut().map(|thread| Frozen::new(net, thread as &mut dyn Turn, span)).collect();
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
    };
    let story = conduct(plan, workers, direction);
    assert!(clients.iter_mut().all(|c| c.program().is_finished()), "every shard has obeyed");
    story
}

fn conduct(plan: &Plan, mut workers: Shards<impl FnMut(u32, &Tick)>, direction: Direction) -> Story {
    let goes_on = direction.goes_on;
    let conductor = match goes_on {
        true => Conductor::going_on(plan, &workers, &vec![0; plan.populations.len()]),
        false => Conductor::new(plan, &workers, Nanos::ZERO, Nanos::ZERO),
    };
    let mut conductor = match direction.patience {
        Some(patience) => conductor.with_patience(patience),
        None => conductor,
    };
    let (mut stages, mut hold_from) = (vec![(Nanos::ZERO, Nanos::NEVER)], Nanos::NEVER);
    conductor.give_orders(&mut workers);
    loop {
        assert!(conductor.gather(&mut workers).is_some(), "no shard ends without its order");
        let now = workers.now();
        for ask in workers.commands.drain(..) {
            assert!(conductor.handle_command(ask, now), "{ask:?} changes nothing");
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
    // A step of a search is judged without what comes after it.
    if !goes_on {
        run::stop(&mut workers, |worker, tick| conductor.handle_tick(worker, tick));
    }
    let (last, record) = conductor.finish();
    if goes_on {
        run::stop(&mut workers, |_, _| {});
    } else {
        workers.sums.take_line(&last);
        workers.sums.obey_the_law_of_lines();
    }
    let Sums { whole, populations, held, hold_until, peak, ramped_at, .. } = workers.sums;
    Story { record, cut, whole, populations, held, peak, ramped_at, hold_from, hold_until, stages, at_load }
}

/// Notes that a stage has begun, at `ends`, or that its load holds.
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

/// A good network but for what `change` does to it.
pub(crate) fn network(seed: u64, change: impl FnOnce(&mut Faults)) -> Net {
    let mut faults = Faults::default();
    change(&mut faults);
    Net::new(seed, faults)
}
