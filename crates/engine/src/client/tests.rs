//! Tests of one shard against a test server on the simulated network, with protocols and layers that no plan can have.

use std::net::IpAddr;

use net::{
    Close, Cx, Gone, Io, Key, Layer, Layered, Program, Shard,
    io::sim::{self, Faults, Net, SimIo},
};
use plan::{Environment, Flags, Plan, Ports, Role, SourcePool, Tuples};
use samples::{Kind, Phase, Stage, Tick};
use units::{Nanos, Rate};

use super::Client;
use crate::{Control, Job, Link, RateProfile, links, protocol::Protocol};

/// The response that accepts the WebSocket upgrade with this head.
fn accepts(head: &[u8]) -> Vec<u8> {
    let head = str::from_utf8(head).expect("a head is text");
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    let mut accept = vec![0; 256];
    let key = key.expect("an upgrade has a key").as_bytes();
    let length = wire::websocket::write_accept(&mut accept, key).expect("there is room");
    accept.truncate(length);
    accept
}

mod bodies;
mod keep_alive;
mod layers;
mod messages;
mod streams;
mod words;

pub(super) const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// One-way delay of the network, constant.
pub(super) const WAY: Nanos = Nanos::from_millis(1);

/// The behaviour of a server on each of its connections.
pub(super) trait Serve {
    /// The state of a connection.
    type Conn: Default;

    /// Reads input; returns the number of bytes used.
    fn read<I: Io>(&mut self, conn: &mut Self::Conn, input: &mut [u8], out: &mut Output<'_, I>) -> usize;

    /// The timer that it set has fired.
    fn due<I: Io>(&mut self, _: &mut Self::Conn, _: &mut Output<'_, I>) {}
}

/// What a server can do on a connection.
pub(super) struct Output<'a, I> {
    cx: &'a mut Cx<I>,
    k: Key,
}

impl<I: Io> Output<'_, I> {
    pub(super) fn now(&self) -> Nanos {
        self.cx.now()
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.cx.send(self.k, bytes.len(), |out| {
            out.copy_from_slice(bytes);
            bytes.len()
        });
    }

    pub(super) fn wake_at(&mut self, at: Nanos) {
        self.cx.wake_at(self.k, at);
    }

    pub(super) fn close(&mut self) {
        self.cx.close(self.k, Close::Graceful);
    }
}

struct Server<'a, S: Serve> {
    serve: &'a mut S,
    conns: Vec<S::Conn>,
    accepts: bool,
}

impl<S: Serve> Program for Server<'_, S> {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let at = k.index as usize;
        self.conns.resize_with(self.conns.len().max(at + 1), S::Conn::default);
        self.conns[at] = S::Conn::default();
        cx.accept();
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.serve.due(&mut self.conns[k.index as usize], &mut Output { cx, k });
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        self.serve.read(&mut self.conns[k.index as usize], input, &mut Output { cx, k })
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if std::mem::take(&mut self.accepts) {
            cx.accept();
        }
        Nanos::NEVER
    }
}

/// A plan from the text of a scenario file.
pub(super) fn plan(text: &str) -> Plan {
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("nothing is looked up".to_owned()) };
    let around = Environment { cores: 1, seed: 7, resolve: &resolve };
    let open = |_: &str| Err("no such file".to_owned());
    plan::scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap_or_else(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", mistakes.join("\n"))
    })
}

/// Replacements: the protocol and the layer of the client.
#[derive(Default)]
pub(super) struct Instead {
    pub(super) protocol: Option<Protocol>,
    pub(super) layer: Option<Box<dyn Layer<Error = tls::Error>>>,
    pub(super) splits: bool,
    /// Additional orders, each with its time.
    pub(super) more: Vec<(Nanos, Control)>,
}

/// How a run went.
pub(super) struct Outcome {
    pub(super) tick: Tick,
    /// Connections open at the end of full load.
    pub(super) held: u64,
}

impl Outcome {
    pub(super) fn faults(&self) -> Vec<(Stage, Kind, u64)> {
        self.tick.faults.iter().map(|(fault, n)| (fault.stage, fault.kind, n)).collect()
    }

    /// Each request has one outcome, and each one without a response is censored: longer than all others.
    pub(super) fn obey_the_laws(&self) {
        let c = &self.tick.counts;
        let is_lost =
            |(stage, kind, _): &&(Stage, Kind, u64)| *stage == Stage::Exchange && !kind.is_wrong_response();
        let lost: u64 = self.faults().iter().filter(is_lost).map(|(_, _, n)| n).sum();
        assert_eq!(c.sent, c.answered + lost + c.unanswered + c.withdrawn, "{c:?}");
        let latency = [&self.tick.latency, &self.tick.ramp_latency];
        assert_eq!(latency.map(|latency| latency.count()).iter().sum::<u64>(), c.answered);
        assert_eq!(
            latency.map(|latency| latency.censored()).iter().sum::<u64>(),
            lost + c.unanswered + c.missed
        );
        assert_eq!(
            c.opened + c.redialled,
            self.tick.open + c.dropped + c.closed + c.finished + c.ended_after
        );
    }
}

/// Drives one shard through ramp, full load for `hold` from one second on, and drain.
pub(super) fn run<S: Serve>(
    plan: &Plan,
    rate: Option<Rate>,
    hold: Nanos,
    instead: Instead,
    serve: &mut S,
) -> Outcome {
    let net = Net::new(3, Faults { delay: (WAY, WAY), split: instead.splits, ..Faults::default() });
    let (mut pairs, arrivals) = links(1);
    let (link, remote) = pairs.remove(0);
    let more = instead.more.clone();
    let mut client = client(&net, plan, instead, link);
    let mut io = net.host();
    io.listen(plan.destinations()[0]).expect("the simulated network lets everyone listen");
    let mut server = Shard::new(io, 100, Server { serve, conns: Vec::new(), accepts: true });
    let (from, until) = (MS(1_000), MS(1_000) + hold);
    let connections = plan.populations[0].load.connections();
    let profile = |per_s| RateProfile::Steady(Rate::per_s(per_s));
    let mut orders = vec![
        (Nanos::ZERO, Control::Load { connections, profile: Some(profile(1_000)), from: Nanos::ZERO }),
        (MS(500), Control::Hold(from)),
        (MS(500), Control::Until(until)),
        (until + MS(5_000), Control::Stop),
    ];
    orders.extend(rate.map(|rate| (MS(500), Control::RateProfile(RateProfile::Steady(rate), from))));
    orders.extend(more);
    orders.sort_by_key(|(at, _)| *at);
    let end = [until + MS(6_000)];
    let times = orders.iter().map(|(at, _)| *at).chain(end);
    let mut outcome = Outcome { tick: Tick::default(), held: 0 };
    for (at, order) in times.zip(orders.iter().map(|(_, order)| Some(*order)).chain([None])) {
        sim::run(&net, &mut [&mut client, &mut server], at, || {
            for (_, tick) in arrivals.try_iter() {
                outcome.tick.extend(&tick);
                outcome.held = if tick.until <= until { tick.open } else { outcome.held };
                let _ = remote.used.try_send(tick);
            }
            false
        });
        order.into_iter().for_each(|order| remote.control.try_send(order).expect("there is room"));
    }
    assert!(client.program().is_finished(), "it has taken its last order");
    outcome
}

fn client(net: &Net, plan: &Plan, instead: Instead, link: Link) -> Shard<SimIo, Client> {
    let part = plan.parts(|_| 1)[0];
    let mut job = Job::new(plan, Role::Population(0));
    if let Some(protocol) = instead.protocol {
        job.protocol = protocol;
    }
    let ports = Ports { list: (10_000..60_000).collect(), inside: 0 };
    let tuples = Tuples::new(SourcePool::Loopback4, ports, 0..1, part.tuple_share, plan.seed);
    let mut client = Client::new(&part, job, tuples, link, Nanos::ZERO);
    client.transport.layer = instead.layer.map(|layer| Box::new(Layered::new(layer)));
    Shard::new(net.host(), part.places, client)
}

/// An HTTP server; each request comes as a whole.
struct Http;

impl Serve for Http {
    type Conn = ();

    fn read<I: Io>(&mut self, _: &mut (), input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        out.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        input.len()
    }
}

/// An HTTP server that closes a connection after 300 ms without a request, with these last bytes.
struct Impatient(&'static [u8]);

impl Serve for Impatient {
    type Conn = ();

    fn read<I: Io>(&mut self, _: &mut (), input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        out.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        out.wake_at(out.now() + MS(300));
        input.len()
    }

    fn due<I: Io>(&mut self, _: &mut (), out: &mut Output<'_, I>) {
        if !self.0.is_empty() {
            out.send(self.0);
        }
        out.close();
    }
}

#[test]
fn a_408_before_the_close_of_an_idle_connection_is_that_close() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 10\nthink = \"1s\"\nduration = \"1s\"\n";
    let closes = |last| {
        let splits = Instead { splits: true, ..Instead::default() };
        let outcome = run(&plan(text), None, MS(1_000), splits, &mut Impatient(last));
        outcome.obey_the_laws();
        assert_eq!(outcome.tick.counts.dropped, 10);
        outcome.faults()
    };
    assert_eq!(closes(b""), [(Stage::Hold, Kind::Closed, 10)]);
    let leave = b"HTTP/1.1 408 Request Time-out\r\nConnection: close\r\n\r\n<html>too late</html>";
    assert_eq!(closes(leave), [(Stage::Hold, Kind::Closed, 10)]);
}

/// Such as those of an agent without contact to its coordinator.
#[test]
fn connections_are_closed_after_the_load_where_fewer_are_wanted() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 10\nthink = \"100ms\"\nduration = \"1s\"\n";
    let fewer =
        |at: u64, connections: u32| (MS(at), Control::Load { connections, profile: None, from: Nanos::ZERO });
    // The load ends after two seconds.
    for (more, left) in [
        (vec![], 10),
        (vec![fewer(2_500, 4)], 4),
        (vec![fewer(2_500, 4), fewer(3_500, 0)], 0),
        // After the end of the load, no connection is dialled for a higher number.
        (vec![fewer(2_500, 4), fewer(3_500, 9)], 4),
    ] {
        let instead = Instead { more, ..Instead::default() };
        let outcome = run(&plan(text), None, MS(1_000), instead, &mut Http);
        outcome.obey_the_laws();
        let c = &outcome.tick.counts;
        assert_eq!((outcome.held, outcome.tick.open, c.opened, c.finished), (10, left, 10, 10 - left));
        assert!(c.sent > 50 && c.answered == c.sent, "{c:?}");
    }
}

/// As in a search: the next step begins another load.
#[test]
fn the_end_of_a_step_reports_the_longest_silence() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 10\nthink = \"1m\"\nduration = \"1s\"\n";
    // Planned, and early.
    for end in [(MS(500), Control::HoldUntil(MS(1_500))), (MS(1_500), Control::Hold(Nanos::NEVER))] {
        let none = Control::Load { connections: 0, profile: None, from: Nanos::ZERO };
        let instead = Instead { more: vec![end, (MS(1_600), none)], ..Instead::default() };
        let outcome = run(&plan(text), None, MS(1_000), instead, &mut Http);
        outcome.obey_the_laws();
        assert_eq!(outcome.held, 0, "none is left when the load ends");
        let silence = outcome.tick.longest_silence.millis();
        assert!((1_300..=1_500).contains(&silence), "{silence} ms");
    }
}

/// The end does not fall on the end of a period, as on an agent whose clock differs from its coordinator's.
#[test]
fn the_end_of_the_load_is_reported_exactly_to_a_reader_who_is_late() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 10\nthink = \"100ms\"\nduration = \"1s\"\n";
    let net = Net::new(3, Faults { delay: (WAY, WAY), ..Faults::default() });
    let (mut pairs, arrivals) = links(1);
    let (link, remote) = pairs.remove(0);
    let plan = plan(text);
    let mut client = client(&net, &plan, Instead::default(), link);
    let mut io = net.host();
    io.listen(plan.destinations()[0]).expect("the simulated network lets everyone listen");
    let mut serve = Http;
    let mut server = Shard::new(io, 100, Server { serve: &mut serve, conns: Vec::new(), accepts: true });
    let until = MS(2_003);
    let profile = Some(RateProfile::Steady(Rate::per_s(1_000)));
    for order in [
        Control::Load { connections: 10, profile, from: Nanos::ZERO },
        Control::Hold(MS(1_000)),
        Control::HoldUntil(until),
        Control::Until(until),
    ] {
        remote.control.try_send(order).expect("there is room");
    }
    sim::run(&net, &mut [&mut client, &mut server], MS(1_990), || {
        arrivals.try_iter().for_each(|(_, tick)| remote.used.try_send(tick).expect("there is room"));
        false
    });
    sim::run(&net, &mut [&mut client, &mut server], MS(2_150), || false);
    let ends: Vec<(Nanos, Phase)> = arrivals.try_iter().map(|(_, tick)| (tick.until, tick.phase)).collect();
    assert_eq!(ends[..2], [(MS(2_000), Phase::Hold), (until, Phase::Drain)], "{ends:?}");
}

/// When requests came: the first of each connection, and all of them.
#[derive(Default)]
struct Noted {
    firsts: Vec<Nanos>,
    all: Vec<Nanos>,
}

impl Serve for Noted {
    /// Whether the connection has sent a request.
    type Conn = bool;

    fn read<I: Io>(&mut self, has_sent: &mut bool, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        if !std::mem::replace(has_sent, true) {
            self.firsts.push(out.now());
        }
        self.all.push(out.now());
        out.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        input.len()
    }
}

/// As in a later stage: new connections all open first, while the others go on.
#[test]
fn more_connections_of_a_closed_loop_wait_for_each_other() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 10\nduration = \"1s\"\n";
    let load = |connections, profile| Control::Load { connections, profile, from: Nanos::ZERO };
    let more = vec![
        (Nanos::ZERO, load(4, Some(RateProfile::Steady(Rate::per_s(1_000))))),
        (MS(1_500), Control::Hold(Nanos::NEVER)),
        (MS(1_500), load(10, None)),
        (MS(1_800), Control::Hold(MS(1_900))),
    ];
    let mut server = Noted::default();
    let outcome = run(&plan(text), None, MS(2_000), Instead { more, ..Instead::default() }, &mut server);
    outcome.obey_the_laws();
    assert_eq!((outcome.tick.counts.opened, outcome.tick.served), (10, 10));
    let (before, later) = server.firsts.split_at(4);
    assert!(before.iter().all(|at| *at < MS(200)), "{before:?}");
    assert!(later.iter().all(|at| (MS(1_900)..MS(1_950)).contains(at)), "{later:?}");
    let meanwhile = server.all.iter().filter(|at| (MS(1_600)..MS(1_900)).contains(*at)).count();
    assert!(meanwhile > 400, "{meanwhile} requests of four connections in 300 ms");
}
