//! Fairness: no connection may starve another.

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use net::{
    Cx, Gone, Io, Key, Program, Shard,
    io::sim::{self, Faults, Net},
};
use units::Nanos;

use crate::{
    ours::Ours,
    script::{Case, Conduct, Say, SharedLog, Step, Take, Way},
    stage::{Over, turn_until},
    threads::{PATIENCE, local, play},
};

/// Three connections with ten requests each, of which each call serves one, once all are open.
#[derive(Default)]
struct Patient {
    waiting: Vec<Key>,
    served: Vec<u32>,
}

const REQUESTS: usize = 10;

impl Program for Patient {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.waiting.push(k);
        cx.wake_at(k, Nanos::from_millis(100));
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.waiting.retain(|waiting| *waiting != k);
        cx.call_again(k);
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        if self.waiting.contains(&k) {
            return 0;
        }
        self.served.push(k.index);
        if input.len() > 1 {
            cx.call_again(k);
        }
        1
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, why: Gone) {
        panic!("nobody ends: {why:?}");
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while cx.accept() {}
        Nanos::NEVER
    }
}

#[test]
fn repeated_calls_wait_for_all_others() {
    let net = Net::new(1, Faults::default());
    let (mut near, far) = (net.host(), net.host());
    let at = near.listen(local()).expect("the simulator has free ports");
    let speaker = Conduct::new(Say::Out(REQUESTS), Take::All);
    let log = SharedLog::default();
    let mut near = Shard::new(near, 3, Patient::default());
    let mut far = Shard::new(far, 3, Ours::new(speaker, log).dialling(vec![(local(), at); 3]));
    sim::run(&net, &mut [&mut near, &mut far], Nanos::from_secs(1), || false);
    let served = &near.program().served;
    assert_eq!(served.len(), 3 * REQUESTS, "{served:?}");
    for (round, served) in served.chunks(3).enumerate() {
        let mut sorted = served.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2], "round {round} serves each once: {:?}", near.program().served);
    }
}

/// Dials, and writes as fast as possible until stopped.
fn flood(at: std::net::SocketAddr, over: &AtomicBool) {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).expect("our shard listens");
    stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
    let bytes = vec![0; 256 * 1024];
    while !over.load(Ordering::Relaxed) {
        stream.write_all(&bytes).expect("our program takes it");
    }
}

/// Echoes input that begins with a byte other than zero, and discards other input.
#[derive(Default)]
struct Sieve;

impl Program for Sieve {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        unreachable!("no timer is set");
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        if input[0] != 0 {
            cx.send(k, input.len(), |out| {
                out.copy_from_slice(input);
                input.len()
            });
        }
        input.len()
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while cx.accept() {}
        Nanos::NEVER
    }
}

#[test]
fn a_flood_starves_nobody() {
    // A peer's stream begins with its salt, which is not zero.
    const QUIET: &[Step] = &[Step::Pause(50), Step::Send(1), Step::Expect(1), Step::Pause(50), Step::Close];
    for over in Over::KERNEL {
        let mut io = over.io(16);
        let at = io.listen(local()).expect("the loopback has a free port");
        let stop = Arc::new(AtomicBool::new(false));
        let floods: Vec<_> = (0..6)
            .map(|_| {
                let stop = stop.clone();
                thread::spawn(move || flood(at, &stop))
            })
            .collect();
        let case = Case::new("quiet", Conduct::new(Say::Nothing, Take::All), QUIET);
        let case = Case { way: Way::TheyDial, count: 2, ..case };
        let quiet = thread::spawn(move || {
            let played = play(Case { count: 2, ..case }, at, None).join();
            stop.store(true, Ordering::Relaxed);
            played.expect("the quiet are heard");
        });
        let mut shard = Shard::new(io, 16, Sieve);
        turn_until(&mut shard, Some(quiet), &format!("a flood over {over:?}"), || true, String::new);
        for flood in floods {
            turn_until(&mut shard, Some(flood), &format!("the ebb over {over:?}"), || true, String::new);
        }
    }
}

/// Number of peers that request more than they read; one more keeps requesting.
const SLOW: u32 = 200;
const ROUNDS: u32 = 1_000;
/// More than the leftover limit and a window together.
const MUCH: usize = 100_000;

/// Sends much to a peer that sends `s`, and closes the connection after that; echoes to other peers.
#[derive(Default)]
struct Closing {
    finishing: u32,
}

impl Program for Closing {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        unreachable!("no timer is set");
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let slow = input == b"s";
        cx.send(k, if slow { MUCH } else { 1 }, |out| {
            out.fill(b'e');
            out.len()
        });
        if slow {
            self.finishing += 1;
            cx.finish(k);
        }
        input.len()
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, why: Gone) {
        panic!("nobody has read all: {why:?}");
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while cx.accept() {}
        Nanos::NEVER
    }
}

/// Dials the slow connections, which consume nothing, and the quick one.
struct Readers {
    to: std::net::SocketAddr,
    dialled: u32,
    rounds: u32,
}

impl Program for Readers {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if k.index < SLOW {
            return cx.send_static(k, b"s");
        }
        // By then all the others are blocked.
        cx.wake_at(k, cx.now() + Nanos::from_millis(50));
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.send_static(k, b"e");
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        if k.index < SLOW {
            return 0;
        }
        self.rounds += 1;
        if self.rounds < ROUNDS {
            cx.send_static(k, b"e");
        }
        input.len()
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, why: Gone) {
        panic!("the server waits: {why:?}");
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.dialled <= SLOW {
            let k = cx.take().expect("there is a place for each");
            cx.dial(k, local(), self.to);
            self.dialled += 1;
        }
        Nanos::NEVER
    }
}

#[test]
fn waiting_for_a_slow_reader_costs_a_turn_nothing() {
    let net = Net::new(1, Faults { window: 8 * 1024, ..Faults::default() });
    let (mut near, far) = (net.host(), net.host());
    let to = near.listen(local()).expect("the simulator has free ports");
    let mut near = Shard::new(near, SLOW + 1, Closing::default());
    let mut far = Shard::new(far, SLOW + 1, Readers { to, dialled: 0, rounds: 0 });
    sim::run(&net, &mut [&mut near, &mut far], Nanos::from_secs(2), || false);
    assert_eq!((near.program().finishing, near.parts().1.blocked()), (SLOW, SLOW as usize));
    assert_eq!(far.program().rounds, ROUNDS);
    // A few checks per connection and per round, not one per connection in each round.
    let write_checks = near.io().write_checks();
    assert!(
        (1..10 * u64::from(SLOW + ROUNDS)).contains(&write_checks),
        "{write_checks} checks in {ROUNDS} rounds"
    );
}
