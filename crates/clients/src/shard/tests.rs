//! Clients against servers on a simulated network, in virtual time.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{Sender, channel},
    },
};

use fleet::Caps;
use net::{
    Shard,
    io::sim::{self, Faults, Net, SimIo, Turn},
};
use plan::{Environment, Flags, Ports, SourcePool, TupleShare, Tuples};
use serve::{Counters, Http, Knobs, ServerShard};
use tokio::sync::oneshot;
use wire::websocket::{Event, Frames, Opcode, Role, accept_key, write_close, write_frame};

use super::*;
use crate::{order::NotSent, place::Place, target::Target};

const PING: Nanos = Nanos::from_secs(30);
const AT: &str = "0.0.0.0:8000";

/// A client shard on a network.
struct Stage {
    net: Net,
    shard: Shard<SimIo, ClientShard>,
    orders: Sender<Order>,
    target: Arc<Target>,
    taken: Arc<AtomicU32>,
    last: u32,
}

impl Stage {
    fn new(net: Net) -> Stage {
        let (orders, ordered) = channel();
        let shard = Shard::new(net.host(), 20_000, ClientShard::new(ordered, 7));
        let flags = Flags::new("ws://127.0.0.1:8000/ws/echo?n={seq}");
        let resolve = |_: &str| unreachable!("the target is an address");
        let plan = plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let ports = Ports { list: (10_000..60_000).collect(), inside: 0 };
        let share = TupleShare::ALL;
        let tuples = Tuples::new(SourcePool::Loopback4, ports, [0], share, 1);
        let target = Arc::new(Target::new(&plan.populations[0], tuples.into()));
        Stage { net, shard, orders, target, taken: Arc::default(), last: 0 }
    }

    /// Adds clients, each due `apart` after the previous one.
    fn add(&mut self, count: u32, apart: Nanos) {
        let mut held = Caps::default().hold(count.into(), units::Rate::default()).unwrap();
        let dials = (0..count).map(|nth| {
            self.last += 1;
            let place = Place::new(self.taken.clone(), held.split(1));
            let due = self.net.now() + Nanos(apart.0 * u64::from(nth));
            Dial { number: self.last, target: self.target.clone(), due, ping: PING, place }
        });
        self.orders.send(Order::Add(dials.collect())).unwrap();
    }

    fn run(&mut self, others: &mut dyn Turn, time: Nanos) {
        sim::run(&self.net, &mut [&mut self.shard, others], self.net.now() + time, || false);
    }

    fn ask<T>(&mut self, others: &mut dyn Turn, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> T {
        let (reply, mut replied) = oneshot::channel();
        self.orders.send(order(reply)).unwrap();
        self.run(others, Nanos::from_millis(50));
        replied.try_recv().expect("a shard replies within its interval")
    }

    fn counted(&mut self, others: &mut dyn Turn) -> Tick {
        *self.ask(others, Order::Report)
    }

    fn view(&mut self, others: &mut dyn Turn, number: u32) -> Option<View> {
        self.ask(others, |reply| Order::Get(number, reply))
    }

    fn list(&mut self, others: &mut dyn Turn, filter: Filter) -> usize {
        self.ask(others, |reply| Order::List(filter, reply)).len()
    }
}

fn network() -> Net {
    Net::new(3, Faults::default())
}

fn listening<P: Program>(net: &Net, program: P) -> Shard<SimIo, P> {
    let mut io = net.host();
    io.listen(AT.parse::<SocketAddr>().unwrap()).unwrap();
    Shard::new(io, 20_000, program)
}

/// The reference server.
fn serving(net: &Net) -> (Shard<SimIo, ServerShard<Http>>, Arc<Counters>) {
    let counters = Arc::new(Counters::new(1));
    (listening(net, Http::shard(counters.clone(), 0, 20_000, &Knobs::default())), counters)
}

fn texts(texts: &[Arc<str>]) -> Vec<&str> {
    texts.iter().map(|text| &**text).collect()
}

#[test]
fn clients_stay_connected_by_their_pings() {
    const N: u64 = 1_000;
    let mut stage = Stage::new(network());
    let (mut server, counters) = serving(&stage.net);
    stage.add(N as u32, Nanos::ZERO);
    stage.run(&mut server, Nanos::from_secs(30));
    let early = stage.counted(&mut server);
    // The first ping comes after a random part of 30 s.
    assert!(early.counts.sent.abs_diff(N) < 10, "{:?}", early.counts);
    stage.run(&mut server, Nanos::from_secs(3_600 - 30));
    let tick = stage.counted(&mut server);
    let c = &tick.counts;
    assert_eq!((tick.open, tick.wanted, c.opened, c.dropped, c.failed), (N, N, N, 0, 0), "{:?}", tick.faults);
    assert!((c.sent as f64 / (N as f64 * 120.0) - 1.0).abs() < 0.01, "{c:?}");
    assert_eq!(
        (c.answered, tick.latency.count(), tick.waiting),
        (c.sent - tick.waiting, c.answered, tick.waiting)
    );
    assert_eq!((tick.connect.count(), tick.handshake.count()), (N, N));
    let server_side = counters.read();
    assert_eq!((server_side.open, server_side.accepted, server_side.errors), (N, N, 0));
    // The one-way delay is 20 to 200 µs.
    assert!(tick.latency.min() >= Nanos::from_micros(40) && tick.latency.max() < Nanos::from_millis(3));
    let view = stage.view(&mut server, 17).unwrap();
    assert_eq!((view.connected, &*view.ws, view.lost), (true, "ws://127.0.0.1:8000/ws/echo?n={seq}", None));
    assert_eq!((texts(&view.sent), texts(&view.received)), (vec!["ping"; 5], vec!["ping"; 5]));
    assert_eq!(
        (stage.list(&mut server, Filter::Live), stage.list(&mut server, Filter::Lost)),
        (N as usize, 0)
    );
}

#[test]
fn texts_are_sent_and_what_comes_is_kept() {
    let mut stage = Stage::new(network());
    let (mut server, _) = serving(&stage.net);
    stage.add(1, Nanos::ZERO);
    // The first text waits for the connection.
    let long = "x".repeat(5_000);
    for text in ["early", "later", &long] {
        let sent = stage.ask(&mut server, |reply| Order::Send(1, text.into(), reply)).unwrap();
        assert!(sent.is_ok(), "{sent:?}");
    }
    stage.run(&mut server, Nanos::from_secs(1));
    let view = stage.view(&mut server, 1).unwrap();
    let cut = format!("{}… (5000 bytes)", &long[..4_096]);
    let kept: Vec<&str> = view.received.iter().map(|text| &**text).filter(|text| *text != "ping").collect();
    assert_eq!(kept, [&cut, "later", "early"]);
    assert_eq!(stage.counted(&mut server).counts.pushed, 3);
    assert_eq!(stage.ask(&mut server, |reply| Order::Send(2, "x".into(), reply)), None);
}

#[test]
fn a_deleted_client_is_closed_and_forgotten() {
    let mut stage = Stage::new(network());
    let (mut server, counters) = serving(&stage.net);
    stage.add(3, Nanos::ZERO);
    stage.run(&mut server, Nanos::from_secs(1));
    let view = stage.ask(&mut server, |reply| Order::Delete(2, reply)).unwrap();
    assert_eq!((view.number, view.connected, view.lost), (2, false, None));
    let tick = stage.counted(&mut server);
    assert_eq!((tick.open, tick.wanted, tick.counts.finished), (2, 2, 1));
    assert_eq!((counters.read().open, counters.read().errors, stage.taken.load(Relaxed)), (2, 0, 2));
    assert_eq!(stage.view(&mut server, 2), None);
    assert_eq!(stage.ask(&mut server, |reply| Order::Delete(2, reply)), None);
    // A client whose dial is not due yet.
    stage.add(1, Nanos::ZERO);
    assert!(stage.ask(&mut server, |reply| Order::Delete(4, reply)).is_some());
    stage.orders.send(Order::Stop).unwrap();
    stage.run(&mut server, Nanos::from_secs(1));
    assert!(stage.shard.program().is_finished() && counters.read().open == 0);
    assert_eq!(stage.taken.load(Relaxed), 0);
}

#[test]
fn dials_come_at_their_rate() {
    let mut stage = Stage::new(network());
    let (mut server, counters) = serving(&stage.net);
    stage.add(100, Nanos::from_millis(100));
    for second in 1..=10u64 {
        stage.run(&mut server, Nanos::from_secs(1));
        assert!(
            counters.read().accepted.abs_diff(second * 10) <= 1,
            "{} in {second} s",
            counters.read().accepted
        );
    }
    let connect = stage.counted(&mut server).connect;
    assert!(connect.count() == 100 && connect.max() < Nanos::from_millis(3), "{connect:?}");
}

/// A server that accepts the upgrade, and then follows its script.
#[derive(Clone, Copy, PartialEq)]
enum Script {
    Mute,
    /// Echoes this many texts, then sends nothing.
    Echoes(u32),
    Closes,
    Breaks,
    Refuses,
}

struct Scripted {
    script: Script,
    accepting: u32,
    conns: Vec<Option<(Frames, u32)>>,
    closes: Vec<Option<u16>>,
    /// The request lines, as they came.
    requests: Vec<String>,
}

impl Scripted {
    fn new(script: Script) -> Scripted {
        Scripted { script, accepting: 0, conns: vec![None; 20_000], closes: Vec::new(), requests: Vec::new() }
    }

    fn send<I: Io>(cx: &mut Cx<I>, k: Key, bytes: &[u8]) {
        cx.send(k, bytes.len(), |out| {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        });
    }

    fn welcome<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let head = std::str::from_utf8(input).unwrap();
        self.requests.extend(head.lines().next().map(str::to_owned));
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = accept_key(key.as_bytes());
        let accept = std::str::from_utf8(&accept).unwrap();
        if self.script == Script::Refuses {
            Self::send(
                cx,
                k,
                b"HTTP/1.1 302 Found\r\nLocation: ws://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
            );
            return input.len();
        }
        let welcome = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        Self::send(cx, k, welcome.as_bytes());
        let mut frame = [0; 64];
        match self.script {
            Script::Closes => {
                let n = write_close(&mut frame, Some(1001), None).unwrap();
                Self::send(cx, k, &frame[..n]);
            }
            Script::Breaks => Self::send(cx, k, b"\xff\xff\xff"),
            _ => {}
        }
        self.conns[k.index as usize] = Some((Frames::new(Role::Server), 0));
        input.len()
    }
}

impl Program for Scripted {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        self.conns[k.index as usize] = None;
    }
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let Some((frames, echoed)) = &mut self.conns[k.index as usize] else {
            return self.welcome(cx, k, input);
        };
        let mut used = 0;
        while let Ok((n, event)) = frames.handle_bytes(&input[used..], 1 << 20) {
            used += n;
            match event {
                Some(Event::Data(data)) if matches!(self.script, Script::Echoes(most) if *echoed < most) => {
                    *echoed += 1;
                    let mut frame = vec![0; data.payload.len() + 14];
                    let text: Vec<u8> = data.payload.bytes().collect();
                    let n = write_frame(&mut frame, Opcode::Text, true, None, &text).unwrap();
                    Self::send(cx, k, &frame[..n]);
                }
                Some(Event::Closing(closing)) => self.closes.push(closing.code),
                None if n == 0 => break,
                _ => {}
            }
        }
        used
    }
    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, _: Gone) {
        cx.close(k, Close::Graceful);
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < 64 && cx.accept() {
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}

/// Checks that no client is lost at `before`, and all are at `after`, for the reason `why`.
fn check(script: Script, before: Nanos, after: Nanos, why: &str) -> (Tick, Shard<SimIo, Scripted>) {
    let mut stage = Stage::new(network());
    let mut server = listening(&stage.net, Scripted::new(script));
    stage.add(10, Nanos::ZERO);
    stage.run(&mut server, before);
    assert_eq!(stage.list(&mut server, Filter::Lost), 0, "{why}: too early");
    stage.run(&mut server, after.since(before));
    let view = stage.view(&mut server, 3).unwrap();
    assert_eq!((view.connected, view.lost.as_deref()), (false, Some(why)));
    let lists = [Filter::Live, Filter::Connected, Filter::Lost, Filter::All];
    assert_eq!(lists.map(|filter| stage.list(&mut server, filter)), [0, 0, 10, 10], "{why}");
    let refused = stage.ask(&mut server, |reply| Order::Send(3, "hello".into(), reply));
    assert_eq!((refused, stage.taken.load(Relaxed)), (Some(Err(NotSent::Lost)), 0), "{why}");
    let tick = stage.counted(&mut server);
    assert_eq!(
        (tick.open, tick.wanted, tick.waiting),
        (0, 10, 0),
        "{why}: those that are lost count no more"
    );
    (tick, server)
}

#[test]
fn silence_is_noticed_after_60_s() {
    let seconds = Nanos::from_secs;
    let (tick, _) = check(Script::Mute, seconds(59), seconds(62), "target hold timeout");
    assert_eq!((tick.counts.dropped, tick.faults.total()), (10, 10));
    // Two pings each, without an echo.
    assert_eq!((tick.counts.sent, tick.latency.censored(), tick.latency.count()), (20, 20, 0));
    // Counted from the last input: the second echo came after 30 to 60 s.
    let (tick, _) = check(Script::Echoes(2), seconds(89), seconds(121), "target hold timeout");
    assert_eq!((tick.latency.count(), tick.counts.answered), (20, 20));
    // The kernel accepts for a server without free file descriptors: nothing else happens.
    let mut stage = Stage::new(Net::new(3, Faults { half_open: 1_000_000, ..Faults::default() }));
    let (mut server, _) = serving(&stage.net);
    stage.add(10, Nanos::ZERO);
    stage.run(&mut server, seconds(59));
    assert_eq!((stage.list(&mut server, Filter::Live), stage.list(&mut server, Filter::Connected)), (10, 0));
    stage.run(&mut server, seconds(2));
    assert_eq!(stage.view(&mut server, 1).unwrap().lost.as_deref(), Some("target handshake timeout"));
    let tick = stage.counted(&mut server);
    assert_eq!((tick.counts.failed, tick.handshake.censored(), tick.counts.opened), (10, 10, 0));
}

#[test]
fn an_end_is_noticed_at_once_with_its_cause() {
    let (nothing, second) = (Nanos::ZERO, Nanos::from_secs(1));
    let (tick, mut server) = check(Script::Closes, nothing, second, "closed by the server with code 1001");
    assert_eq!((tick.counts.closed, tick.counts.dropped, tick.faults.total()), (10, 0, 0));
    assert_eq!(server.program().closes, [Some(1001); 10], "each close has its reply");
    let requests = &mut server.program().requests;
    requests.sort();
    assert_eq!(
        (&*requests[0], requests.len()),
        ("GET /ws/echo?n=1 HTTP/1.1", 10),
        "seq is the number of the client"
    );
    assert_eq!(requests[1], "GET /ws/echo?n=10 HTTP/1.1");
    let (tick, _) =
        check(Script::Breaks, nothing, second, "target exchange bad-answer (malformed frame of WebSocket)");
    assert_eq!((tick.counts.dropped, tick.faults.total()), (10, 10));
    // A redirect is not followed.
    let (tick, _) = check(Script::Refuses, nothing, second, "target handshake wrong-status");
    assert_eq!((tick.counts.failed, tick.counts.opened), (10, 0));
}

#[test]
fn a_server_that_dies_loses_its_clients_and_of_many_lost_ones_the_last_are_remembered() {
    let mut stage = Stage::new(network());
    let (mut server, _) = serving(&stage.net);
    stage.add(50, Nanos::ZERO);
    stage.run(&mut server, Nanos::from_secs(1));
    stage.net.kill(Turn::host(&server));
    let mut other = Shard::new(stage.net.host(), 1, Scripted::new(Script::Mute));
    stage.run(&mut other, Nanos::from_secs(1));
    assert_eq!(stage.list(&mut other, Filter::Lost), 50);
    assert_eq!(stage.view(&mut other, 50).unwrap().lost.as_deref(), Some("target hold closed"));
    stage.add(MAX_LOST as u32, Nanos::ZERO);
    stage.run(&mut other, Nanos::from_secs(2));
    let lists = [Filter::Lost, Filter::All].map(|filter| stage.list(&mut other, filter));
    assert_eq!(lists, [MAX_LOST; 2]);
    assert_eq!(stage.view(&mut other, 50), None, "the oldest is forgotten");
    let lost = stage.view(&mut other, 51).unwrap().lost;
    assert_eq!(lost.as_deref(), Some("target dial refused"));
    let tick = stage.counted(&mut other);
    assert_eq!((tick.counts.failed, tick.wanted, stage.taken.load(Relaxed)), (10_000, 10_000, 0));
}
