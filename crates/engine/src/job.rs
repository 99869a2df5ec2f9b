//! What is the same for all connections of a population, worked out once.

use std::{collections::HashMap, net::SocketAddr};

use plan::{Act, Load, Plan, Population, Reconnect, Role, Text, Think};
use samples::{MAX_DESTINATIONS, row_of};
use units::{Nanos, Random};

use crate::{
    captures::{Captures, Keeps},
    memory::acts,
    op::{self, Op},
    protocol::{Awaited, Protocol, Session},
    pushes::Watch,
    request::{Call, Message, Request, ValueSource},
    secured::secured,
    watch::Wanted,
};

/// A population of the plan, or of its probe, compiled.
#[derive(Clone, Debug)]
pub struct Job {
    ops: Vec<Op>,
    /// Which of the plan's steps each operation belongs to.
    step_of: Vec<u16>,
    /// What each connection keeps.
    keeps: Keeps,
    /// WebSocket: whether each operation is done before the upgrade; empty where none is.
    before_upgrade: Vec<bool>,
    /// Steps of the plan, if those of this population are distinguished; else 0.
    pub(crate) steps: usize,
    pub(crate) protocol: Protocol,
    /// How connections are secured, where they are.
    pub(crate) tls: Option<tls::Client>,
    pub(crate) destinations: Vec<SocketAddr>,
    /// The row of each destination among those that are counted by themselves; empty where the plan has only one.
    rows: Vec<u8>,
    /// Rows of the whole plan.
    pub(crate) rows_of_plan: usize,
    pub(crate) timeout: Nanos,
    pub(crate) reconnect: Reconnect,
    pub(crate) load: Load,
    /// Requests per connection before it is closed.
    pub(crate) calls: Option<u32>,
    /// A connection may have to wait between a response and the next request.
    pub(crate) waits: bool,
    /// The longest of its think times.
    pub(crate) longest_wait: Think,
    /// A wrong response counts as none.
    pub(crate) only_right: bool,
    /// Length of a tick.
    pub(crate) period: Nanos,
    /// What is looked for in messages that the server sends by itself.
    pub(crate) watch: Watch,
    /// A message that each WebSocket sends at this interval.
    pub(crate) heartbeat: Option<(Message, Nanos)>,
    /// HTTP/2: a connection that has received nothing for this time sends a PING.
    pub(crate) keep_alive: Option<Nanos>,
    /// WebSockets of a connection, and of HTTP/2 its requests at once, as many as are wanted.
    pub(crate) tunnels: u32,
    /// Values of headers of its requests that may be secrets.
    secrets: Vec<Text>,
    /// The date, as the time since 1970, at the start of the clock.
    pub(crate) date: Nanos,
}

impl Job {
    /// Length of a tick. Short, so that the ramp gives enough points for a slope.
    pub const PERIOD: Nanos = Nanos::from_millis(200);

    /// What a shard of this plan does. The constant part of a request is written once and kept for the life of the process.
    ///
    /// # Panics
    /// The plan has no such population, or no probe.
    pub fn new(plan: &Plan, role: Role) -> Job {
        match role {
            Role::Population(nth) => {
                let population = &plan.populations[usize::from(nth)];
                let is_told_apart = population.step_names().len() > 1;
                let steps = if is_told_apart { plan.steps().count() } else { 0 };
                let first_step = plan.steps().take_while(|(of, _)| *of < nth).count();
                let (rows, rows_of_plan) = rows(plan, population);
                Job { steps, rows, rows_of_plan, ..Job::of(population, first_step as u16) }
            }
            Role::Probe(_) => Job { only_right: true, ..Job::of(plan.population(role), 0) },
        }
    }

    /// The same, where the clock started at this time since 1970: times in messages are compared with it.
    #[must_use]
    pub fn starting(self, date: Nanos) -> Job {
        Job { date, ..self }
    }

    fn of(population: &Population, first_step: u16) -> Job {
        let (ops, step_of) = op::compile(population, first_step);
        let target = &population.target;
        let at_once = |op: &Op| match op {
            // After a fire-and-forget message, the connection's timer is that of the next operation.
            Op::Wait(_) | Op::Stay | Op::Send(_) => false,
            Op::Ping(_, every) => *every == Nanos::ZERO,
            _ => true,
        };
        let heartbeat = population.pushes.heartbeat.as_ref();
        let heartbeat = heartbeat.map(|beat| (Message::alone(&beat.text), beat.every));
        Job {
            protocol: Protocol::new(population),
            tls: secured(population),
            destinations: target.destinations.clone(),
            rows: Vec::new(),
            rows_of_plan: 0,
            timeout: population.timeout,
            reconnect: population.reconnect,
            load: population.load,
            calls: population.calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
            waits: !ops.iter().all(at_once),
            longest_wait: longest_wait(&ops),
            only_right: false,
            period: Job::PERIOD,
            keeps: Keeps::of(population),
            before_upgrade: before_upgrade(population, &ops, &step_of, first_step),
            ops,
            step_of,
            steps: 0,
            watch: Watch::new(&population.pushes),
            heartbeat,
            keep_alive: population.keep_alive,
            tunnels: population.streams.unwrap_or(1).into(),
            secrets: secrets(population),
            date: Nanos::ZERO,
        }
    }

    /// Whether an operation is done before a connection is upgraded to a WebSocket: then it is one of HTTP.
    pub(crate) fn is_before_upgrade(&self, at: u16) -> bool {
        self.before_upgrade.get(usize::from(at)) == Some(&true)
    }

    /// The session of a connection that is dialled, and continues with the operation `at`.
    pub(crate) fn session_of_dial(&self, at: u16, random: &mut Random) -> Session {
        match self.is_before_upgrade(at) {
            true => self.protocol.session_of_requests(),
            false => self.protocol.session_of_dial(random),
        }
    }

    /// The session of a connection that is open, with nothing under way, and continues with the operation `at`.
    pub(crate) fn session(&self, at: u16) -> Session {
        match self.is_before_upgrade(at) {
            true => self.protocol.session_of_requests(),
            false => self.protocol.session(),
        }
    }

    /// Whether the dial alone shows how fast the target accepts connections; `has_request`: a request follows.
    pub(crate) fn is_known_by_dial(&self, has_request: bool) -> bool {
        match self.is_before_upgrade(0) && !self.is_http2() {
            true => !has_request,
            false => self.protocol.is_known_by_dial(has_request),
        }
    }

    /// Where connections keep what they capture, if they do.
    pub(crate) fn captures(&self, places: u32) -> Option<Box<Captures>> {
        let watches = self.ops.iter().any(|op| op.wanted().is_some());
        Captures::new(self.keeps, watches, places)
    }

    /// Whether an operation captures what later ones need.
    pub(crate) fn captures_at(&self, at: u16) -> bool {
        self.op(at).wanted().is_some_and(Wanted::captures)
    }

    /// The time from one message of a connection to the next, where several go out in turn on WebSockets of their own and none
    /// waits for the reply to another.
    pub(crate) fn overlapping(&self) -> Option<Nanos> {
        match self.op(0) {
            Op::Ping(_, every)
                if *every > Nanos::ZERO && self.protocol.has_tunnels() && self.load.rate().is_none() =>
            {
                Some(*every)
            }
            _ => None,
        }
    }

    /// Whether HTTP/2 is spoken.
    pub(crate) fn is_http2(&self) -> bool {
        self.protocol.is_http2()
    }

    /// How many connections stay open without a request, where they are dialled on demand.
    pub(crate) fn most_idle(&self) -> Option<u64> {
        match self.reconnect {
            Reconnect::OnDemand { idle } => Some(idle.into()),
            _ => None,
        }
    }

    /// Whether connections are dialled on demand.
    pub(crate) fn dials_on_demand(&self) -> bool {
        self.most_idle().is_some()
    }

    /// What is to be done at a place.
    pub(crate) fn op(&self, at: u16) -> &Op {
        &self.ops[usize::from(at)]
    }

    /// The plan's step of an operation, if steps are distinguished.
    pub(crate) fn step(&self, at: u16) -> Option<usize> {
        (self.steps > 0).then(|| usize::from(self.step_of[usize::from(at)]))
    }

    /// The plan's step of an operation.
    pub(crate) fn step_of_plan(&self, at: u16) -> usize {
        usize::from(self.step_of[usize::from(at)])
    }

    /// The row in which a destination is counted, where that is done.
    pub(crate) fn row(&self, destination: u16) -> Option<usize> {
        self.rows.get(usize::from(destination)).map(|row| usize::from(*row))
    }

    /// What a sample of a response must not show: the values of headers that the connection at `index` sends, as far as they may be
    /// secrets, and words of them; what it has captured, and its cookies.
    pub(crate) fn secrets(&self, source: &ValueSource, index: u32) -> Vec<Box<[u8]>> {
        let values = self.secrets.iter().map(|text| source.known(text, index));
        let words = |value: Vec<u8>| {
            let words: Vec<Box<[u8]>> = value.split(|b| b" ;=".contains(b)).map(Box::from).collect();
            words.into_iter().chain([value.into_boxed_slice()])
        };
        values.flat_map(words).chain(source.captured(index).map(Box::from)).collect()
    }

    /// Whether it waits for messages that come by themselves, again and again.
    pub(crate) fn listens(&self) -> bool {
        (0..self.ops.len() as u16).any(|at| self.listens_at(at))
    }

    /// Whether an operation does. What is awaited once, such as a greeting, is to come like a response.
    pub(crate) fn listens_at(&self, at: u16) -> bool {
        let from = usize::from(at);
        let is_back = |op: &Op| matches!(op, Op::Goto(to) if *to <= at);
        matches!(self.op(at), Op::Expect(_)) && self.ops[from..].iter().any(is_back)
    }

    /// Whether a response may have any number of messages.
    pub(crate) fn is_streaming(&self, at: u16) -> bool {
        matches!(self.op(at), Op::Request(Request { call: Some(Call::Streaming), .. }))
    }

    /// Whether any may.
    pub(crate) fn streams(&self) -> bool {
        (0..self.ops.len() as u16).any(|at| self.is_streaming(at))
    }

    /// Whether it does nothing but send requests and await their responses.
    pub(crate) fn only_requests(&self) -> bool {
        let is_one = |op: &Op| matches!(op, Op::Request(_) | Op::Exchange(_) | Op::Goto(_) | Op::Choose(_));
        self.ops.iter().all(is_one) && !self.streams()
    }

    /// Whether a connection starts with a request.
    pub(crate) fn starts_with_request(&self) -> bool {
        matches!(self.op(0), Op::Request(_) | Op::Exchange(_) | Op::Expect(_))
    }

    /// The operation that `at` leads to.
    pub(crate) fn led_to(&self, mut at: u16) -> u16 {
        while let Op::Goto(to) = self.op(at) {
            at = *to;
        }
        at
    }

    /// Whether an operation follows redirects of its response.
    pub(crate) fn follows_redirects(&self, at: u16) -> bool {
        self.op(at).wanted().is_some_and(|wanted| wanted.redirects > 0)
    }

    /// What is awaited at a place, of the connection at `index`; `nth` is the number of the message that it sent.
    pub(crate) fn awaited<'a>(
        &'a self,
        at: u16,
        nth: u32,
        index: u32,
        source: &'a mut ValueSource,
    ) -> Awaited<'a> {
        match self.op(at) {
            Op::Request(request) => Awaited::Response(&request.check),
            Op::Expect(check) => Awaited::Message(check, b""),
            Op::Ping(message, _) if message.is_ping() => Awaited::Pong,
            Op::Exchange(message) | Op::Ping(message, _) if message.check.expected.echo => {
                Awaited::Message(&message.check, source.again(message, nth, index))
            }
            Op::Exchange(message) => Awaited::Message(&message.check, b""),
            Op::Upgrade => Awaited::Upgrade,
            _ => unreachable!("it awaits nothing"),
        }
    }
}

/// Whether each operation is done before the upgrade.
fn before_upgrade(population: &Population, ops: &[Op], step_of: &[u16], first_step: u16) -> Vec<bool> {
    let steps = population.http_steps();
    if steps.is_empty() {
        return Vec::new();
    }
    // What follows an upgrade in its own step is its think time, or the end.
    let is_upgraded = |at: usize| {
        let own = ops[..at].iter().zip(step_of).filter(|(_, step)| **step == step_of[at]);
        own.into_iter().any(|(op, _)| matches!(op, Op::Upgrade))
    };
    let of_step = |at: usize| steps[usize::from(step_of[at] - first_step)] && !is_upgraded(at);
    let is_one = |(at, op): (usize, &Op)| match op {
        // What leads elsewhere is part of that, as far as connections are concerned that are dialled there.
        Op::Goto(to) => of_step(usize::from(*to).min(ops.len() - 1)),
        _ => of_step(at),
    };
    (0..).zip(ops).map(is_one).collect()
}

/// The row of each destination of a population, and how many rows the plan has; none where it has one destination.
fn rows(plan: &Plan, population: &Population) -> (Vec<u8>, usize) {
    let all = plan.destinations();
    if all.len() < 2 {
        return (Vec::new(), 0);
    }
    let places: HashMap<SocketAddr, usize> = all.iter().copied().zip(0..).collect();
    let row = |destination: &SocketAddr| row_of(places[destination], all.len()) as u8;
    (population.target.destinations.iter().map(row).collect(), all.len().min(MAX_DESTINATIONS))
}

/// Nothing, where none of them waits.
fn longest_wait(ops: &[Op]) -> Think {
    let waits = ops.iter().filter_map(|op| match op {
        Op::Wait(think) => Some(*think),
        Op::Ping(_, every) => Some(Think { min: *every, max: *every }),
        _ => None,
    });
    waits.max_by_key(|think| think.max).unwrap_or(Think { min: Nanos::ZERO, max: Nanos::ZERO })
}

/// Values of headers that are shown nowhere else either ([`plan::is_public`]): of requests, calls and upgrades.
fn secrets(population: &Population) -> Vec<Text> {
    let of_step = |act: &Act| match act {
        Act::Request { request, .. } => request.headers.clone(),
        Act::Upgrade { headers, .. } => headers.clone(),
        _ => Vec::new(),
    };
    let headers = acts(population).flat_map(of_step).chain(population.headers.clone());
    headers.filter(|(name, _)| !plan::is_public(name)).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, scenario};

    const LOGIN: &str = r#"
target = "ws://127.0.0.1:1/"
duration = "1s"
[[population]]
name = "members"
connections = 1
[[population.step]]
request = "POST /login"
headers = { X-Tenant = "tenant-4711", Content-Type = "text/plain" }
capture = { token = { json = "/t" } }
[[population.step]]
upgrade = "/chat"
headers = { Authorization = "Bearer k3y; x", Origin = "https://shop.example" }
"#;

    #[test]
    fn no_sample_shows_a_header_that_is_shown_nowhere_or_what_was_captured() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no files here".to_owned());
        let plan = scenario::read("load.toml", LOGIN, &Flags::default(), &around, &open).unwrap();
        let job = Job::new(&plan, Role::Population(0));
        let mut source = ValueSource::new(&plan.parts(|_| 1)[0], job.captures(1));
        let secrets = |source: &ValueSource| {
            let all = job.secrets(source, 0);
            let all = all.iter().map(|value| String::from_utf8_lossy(value).into_owned());
            all.filter(|value| !value.is_empty()).collect::<Vec<_>>()
        };
        let of_headers = ["tenant-4711", "tenant-4711", "Bearer", "k3y", "x", "Bearer k3y; x"];
        assert_eq!(secrets(&source), of_headers);
        let wanted = job.ops.iter().find_map(Op::wanted).unwrap();
        let captures = source.captures.as_mut().unwrap();
        captures.begin(0, wanted, b"/login");
        let mut watch = captures.take(0).unwrap();
        watch.content(wanted, br#"{"t":"t0ken-1"}"#.iter().copied());
        captures.put(0, watch);
        assert_eq!(captures.end(0, wanted, (true, None, false), Nanos::ZERO), None);
        assert_eq!(secrets(&source), [&of_headers[..], &["t0ken-1"]].concat());
    }
}
