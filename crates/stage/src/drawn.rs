//! Runs against a server whose behaviour is drawn from a seed, and which keeps books of its own: at the end of each run they are
//! compared with the client's, and with the verdict. The client's own laws are checked at each tick, as in any simulated run.
//!
//! What holds, with the reasons for which a comparison has two ends:
//! - Bytes: those that the client sent are those that the server read, and those that nobody read (the network counts them). What says
//!   goodbye when a run ends may not be counted by the client any more.
//! - Requests: those received are those sent, without those in bytes that nobody read; of HTTP/1.1 exactly, for all are of one size.
//! - Responses, right and wrong ones and by status: exactly those that the server completed at least two delays before the timeout.
//!   Between that and two delays after it, with lost segments, with slow accepts, and for two delays before the client ends a
//!   connection or its run, it is not known what the client saw.
//! - Nothing of the kind is known on a connection on which unsolicited bytes were sent.
//! - Requests that were withdrawn: no more than met a close that was announced when they were sent. Those that the server received, did
//!   not respond to, and had not announced an end for by then, failed or stayed unanswered: there are no fewer of these in the books.
//! - Connections: the network has counted as many dials. Those accepted are those opened, and perhaps failed dials. Announced closes are
//!   no more than the server announced; losses, with dials that fail where the network is prompt, no more than connections on which it
//!   did something wrong.
//! - No run passes in which something that was due has no right response, or the outcome of a dial was not known at its end.
//! - Of a load with bodies it is not certain how many of their bytes were sent. A body may end before its response, or after it.
//! - Over a layer (TLS) bytes are those that are sealed, handshakes and alerts among them, so that the number of requests does not follow
//!   from them. A client that ends a connection in good order says so in the layer, and says what is wrong with what it was sent, unless a
//!   body is in the way that a full window does not take. What the server says, or sends that cannot be read, ends the connection.
//! - Of a response that surely arrives in a stall of the client, and in time, the client takes off all stalls since its request: by the most
//!   that it took off any, no less than by the most that the server knows of one.
//! - The probe has a timeout and an expectation of its own, and sends again what meets the close of a connection that was idle: beside
//!   one, responses are compared with requests only.
//!
//! With its repair taken out of the engine, the conductor or the judge, each of these was found by the seeds named (HTTP/1.1, HTTP/2,
//! gRPC, WebSocket, WebSocket over HTTP/2 and TCP as 1, 2, g, w, t and b): withdrawn requests of a connection that is not dialled again
//! vanish (1: 33, 2: 5, g: 5, w: 4, t: 5); the same only in the drain (2: 36, g: 36, w: 479, t: 885); withdrawn requests that wait when
//! the run ends vanish (g: 701); slots of a schedule that find no connection vanish (1: 9, 2: 43, w: 33, b: 9); *announced* is asked at the
//! time of the close, whenever the request was sent (1: 59); dials under way at the end are not given up (1: 219, 2: 133, g: 133, t: 60); a
//! run passes although something due has no response (1: 43, 2: 235, w: 135, b: 126); what is expected of a response is not looked at
//! (g: 0); a response that ends before its request leaks its stream (2: 365, g: 681); SETTINGS that allow WebSockets late open none
//! (t: 108); the close of one WebSocket with an error withdraws the messages on the others (t: 22); a stage without connections ends a number
//! of requests (1: 989); a stage of as many connections as before dials at a rate of nothing (1: 404, w: 404).
//! Not found in 1,000 seeds: a run passes although the outcome of a dial was not known at its end.
//!
//! One in four runs is over TLS, and in one in four servers that close a connection go on to take what arrives ([`Faults::half_close`]).
//! Found there: a response that the end of its connection ends is whole without close_notify (1: 23); an alert is not sent (1: 23, 2: 205,
//! g: 7, w: 23, t: 47, b: 23); what the layer sends is not counted (1, 2, g, w, t, b: 1); close_notify is not sent (1: 1, 2: 1, g: 1, w: 1,
//! t: 23, b: 7), or only not where the server has announced the end (1: 52, 2: 106, g: 159, w: 1, t: 106); close_notify without FIN ends
//! nothing (1: 286, 2: 127, g: 202); a part of what was unsealed is not kept for the rest (1: 1, 2: 20, g: 20, w: 1, t: 1), or kept for the
//! next connection (1: 13); a handshake has no timeout (1: 106, 2: 106, g: 106, w: 205, t: 106, b: 7). And with either or neither: a later
//! stage waits for a shard whose load has ended by itself (g: 593, w: 2325, b: 976). Not found in 3,000 seeds of HTTP/1.1: half a head that is
//! kept unsealed is no beginning of a response.
//!
//! Seeds from [`HARD`] on have more (see [`hard`]), and are counted from there. Found by them: a body of MiB in one send (1: 2); what passes in a
//! stall of throng is the target's time (1: 697, b: 19), or only of two stalls in one request the first is (1: 557, 2: 25, g: 25, w: 121,
//! b: 121); timeouts run on in a stall (1: 147, b: 111); unread replies pile up (2: 0, t: 1); numbers that were skipped without
//! bound (w: 0); a 408 before the close of an idle connection is a wrong response (1: 4), or only where it comes with the response before it
//! (1: 19); throng's own stalls hide what the target did wrong (1: 151, 2: 116, g: 134, t: 129); a message at an interval goes out that is
//! beyond the number of them (t: 2345).
//!
//! What a simulated target cannot show has tests of its own: a response before a reset that epoll does not read (`net`, `peers`), a thread
//! that panics (`black_box`, `failures`), and what each version makes of a request (`interop`, `recorded`).
//!
//! Not drawn: records that change the keys, and the end of what keys may seal (crate `tls` has tests of these); a client that closes its
//! sending side only, which throng never does.

use net::{
    Shard,
    io::sim::{self, Faults},
};
use samples::{Counts, Tick};
use units::{Nanos, Random};

use crate::{Direction, direct, listening, network};

mod books;
mod compare;
mod grpc;
mod hard;
mod http1;
mod http2;
mod load;
mod server;
mod tcp;
mod tunnels;
mod websocket;

use books::{CROSSING, Times};
use compare::Played;
pub use hard::HARD;
use hard::{Hardships, Standstill};
use load::{Carries, Habit, Load};
use server::{Accepts, Palette, Server, Speaks, layered::Layer};

/// What the client speaks.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// HTTP/1.1.
    Http1,
    /// WebSocket over HTTP/1.1.
    WebSocket,
    /// WebSocket over HTTP/2.
    Tunnels,
    /// Messages over TCP.
    Tcp,
    /// HTTP/2.
    Http2,
    /// Calls of gRPC.
    Grpc,
}

/// Says which run it was, if that fails.
struct Seed(Family, u64, String);

impl Drop for Seed {
    #[allow(clippy::print_stderr, reason = "tests only")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={} of {:?}: {}", self.1, self.0, self.2);
        }
    }
}

/// What is the same whenever a seed is played.
#[derive(Debug, PartialEq, Eq)]
pub struct Fingerprint {
    counts: Counts,
    /// By the network.
    carried: u64,
    ended: Nanos,
}

/// Plays the run of this seed and compares the books of both sides.
pub fn check(family: Family, seed: u64) {
    play(family, seed);
}

/// The same.
pub fn play(family: Family, seed: u64) -> Fingerprint {
    match family {
        Family::Http1 => {
            let habit =
                Habit { carries: Carries::Requests, has_streams: false, flags: "expect=status=200,length=5" };
            run((family, seed), "http://127.0.0.1:80/", habit, http1::Http1)
        }
        Family::Http2 => {
            let habit = Habit {
                carries: Carries::Requests,
                has_streams: true,
                flags: "http2= expect=status=200,length=5",
            };
            run((family, seed), "http://127.0.0.1:80/", habit, http2::Http2::new())
        }
        Family::Grpc => {
            let (expected, flags) =
                [(grpc::OK, ""), (grpc::NOT_FOUND, "expect=status=NOT_FOUND")][seed as usize % 2];
            let habit = Habit { carries: Carries::Calls, has_streams: true, flags };
            run((family, seed), "grpc://127.0.0.1:80/a.B/C", habit, grpc::grpc(expected))
        }
        Family::WebSocket => {
            let habit = Habit { carries: Carries::Messages, has_streams: false, flags: "message=hello" };
            run((family, seed), "ws://127.0.0.1:80/", habit, websocket::WebSocket)
        }
        Family::Tunnels => {
            let habit =
                Habit { carries: Carries::Messages, has_streams: true, flags: "http2= message=hello" };
            run((family, seed), "ws://127.0.0.1:80/", habit, tunnels::Tunnels::new())
        }
        Family::Tcp => {
            let habit = Habit { carries: Carries::Messages, has_streams: false, flags: "message=hello" };
            run((family, seed), "tcp://127.0.0.1:80", habit, tcp::Tcp)
        }
    }
}

fn run<S: Speaks>((family, seed): (Family, u64), target: &str, habit: Habit, protocol: S) -> Fingerprint {
    let mut random = Random::new(seed);
    let mut load = Load::draw(&mut random, habit);
    let (mut faults, accepts, mut palette) =
        (draw_faults(&mut random), draw_accepts(&mut random), draw_palette(&mut random, protocol.ways()));
    let mut beside = Random::new(seed ^ BESIDE);
    let (is_secured, half_closes) = (beside.below(4) == 0, beside.below(4) == 0);
    let layer = is_secured.then(|| Layer::draw(&mut beside));
    let target = &layer.map_or_else(|| target.to_owned(), |_| Layer::target(target));
    load.flags += layer.map_or("", |layer| layer.flags);
    faults.half_close = half_closes;
    let hard = match seed >= HARD {
        true => {
            // A flood is to come through.
            faults.window = if habit.has_streams { Faults::default().window } else { faults.window };
            Hardships::draw(seed, &mut beside, &mut load, habit)
        }
        false => Hardships::default(),
    };
    hard.slow_down(&mut palette);
    load.has_numbers = hard.is_hard && matches!(family, Family::WebSocket);
    let notes = format!(
        "{} {:?} body={} shards={} {faults:?} {accepts:?} {}% {:?} {layer:?} {hard:?}",
        load.flags, load.tables, load.body, load.shards, palette.wrong_percent, palette.ways
    );
    let _seed = Seed(family, seed, notes);
    let thresholds = habit.thresholds();
    let plans: Vec<_> =
        thresholds.iter().map(|threshold| (*threshold, load.plan(target, threshold, seed))).collect();
    let plan = &plans[0].1;
    let net = network(seed, |f| *f = faults);
    let most = if faults.loss > 0 { Nanos::NEVER } else { faults.delay.1 + hard.stalled() };
    let times = Times {
        least: faults.delay.0,
        most,
        timeout: Nanos::from_millis(load.timeout_ms),
        stalled: hard.stalled(),
        crossing: if habit.has_streams { Nanos::NEVER } else { CROSSING },
        upload: upload(&load, &faults),
    };
    let server = Server::new(protocol, (random, palette), times, accepts, load.streams)
        .with_layer(layer)
        .with_hardships(hard.is_hard, Standstill::new(&hard, &faults));
    let mut server: Shard<_, Server<S>> = listening(&net, plan.destinations()[0], PLACES, server);
    let direction = Direction { patience: load.patience, frozen: &hard.stalls, ..Direction::default() };
    let mut all = Tick::default();
    let result = direct(&net, plan, load.shards, &mut [&mut server], direction, |_, tick| all.extend(tick));
    // What is under way arrives.
    server.program().end(net.now());
    sim::run(&net, &mut [&mut server], net.now() + AFTERWARDS, || false);
    let books = &server.program().books;
    Played {
        result: &result,
        all: &all,
        has_probe: load.flags.contains("probe="),
        books,
        habit,
        has_bodies: load.has_bodies(),
        has_layer: layer.is_some(),
        is_held: load.is_held,
        slowest: hard.slowest(&load, &faults, accepts.is_prompt()),
        is_prompt: faults.loss == 0 && faults.backlog > 1 && accepts.is_prompt(),
        dials: net.dials(),
        unread: net.unread(),
        plans: &plans,
    }
    .compare();
    Fingerprint { counts: all.counts, carried: net.carried(), ended: net.now() }
}

/// Layer and half-closed connections are drawn from a stream of their own, which has neither for the seeds of the first list above: those
/// play as they did when they were found.
const BESIDE: u64 = 0x18_9d25 << 32;

/// Connections of the server at once: the client's, and those under way.
const PLACES: u32 = 4_096;
/// A round trip for each window of the bodies that go out together, and for those before them that have a response already.
fn upload(load: &Load, faults: &Faults) -> Nanos {
    let windows = load.body / faults.window.min(http2::WINDOW) + 1;
    let rounds = if load.has_bodies() { 2 * windows as u64 * load.streams } else { 0 };
    Nanos(2 * faults.delay.1.0 * rounds)
}

/// By then a slow server has taken all connections.
const AFTERWARDS: Nanos = Nanos::from_secs(60);

fn draw_faults(random: &mut Random) -> Faults {
    let least = Nanos::from_micros(random.between(500, 5_000));
    let most = least + Nanos::from_micros(random.below(10_000));
    let one_of = |random: &mut Random, n| random.below(n) == 0;
    let loss = if one_of(random, 10) { 10_000 } else { 0 };
    let backlog = if one_of(random, 10) { 1 } else { 4_096 };
    let window = [256 * 1024, 256 * 1024, 32 * 1024, 8 * 1024][random.below(4) as usize];
    let (split, buffer) = (one_of(random, 3), net::io::OUT_BYTES);
    Faults { delay: (least, most), loss, split, backlog, window, buffer, ..Faults::default() }
}

fn draw_accepts(random: &mut Random) -> Accepts {
    let (from, every) = match random.below(10) {
        0 => (random.below(600), 0),
        1 => (0, random.below(100)),
        _ => (0, 0),
    };
    Accepts { from: Nanos::from_millis(from), every: Nanos::from_millis(every) }
}

/// A few ways to go wrong, for few requests or for most of them.
fn draw_palette(random: &mut Random, ways: u8) -> Palette {
    let ways = (0..random.below(4)).map(|_| 1 + random.below(ways.into()) as u8).collect();
    Palette { wrong_percent: [2, 10, 40, 100][random.below(4) as usize], ways }
}
