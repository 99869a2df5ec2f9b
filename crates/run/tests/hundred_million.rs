//! A hundred million connections held for an hour in virtual time, each with a request at least every 20 minutes: the real client with
//! the TCP of `--io tun`, against a stateless responder. `cargo xtask test sim` runs it, and prints the resources that it would need; the
//! ordinary test checks the same at a five-thousandth of the size.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use engine::{Arrivals, Client, Job, Remote, links};
use host::UsageSample;
use net::{
    Shard,
    io::tun::{Device, Incoming, Settings, Tun},
};
use plan::{Part, Plan, Role};
use run::{Conductor, Order, Update, Workers};
use samples::{Summary, Tick};
use tcp::Outgoing;
use units::{Count, Nanos};

const SEED: u64 = 100_000_000;
const TARGET: &str = "127.0.0.1:8000";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello World!";
/// Round-trip time.
const DELAY: Nanos = Nanos::from_micros(200);
const HEADS: usize = 20 + 20;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A server that is a pure function of the packet it receives: its sequence numbers are those that the peer acknowledges.
struct Responder {
    now: Nanos,
    /// Replies, with their times of arrival.
    replies: VecDeque<(Nanos, [u8; HEADS + RESPONSE.len()], usize)>,
    exchanges: u64,
}

impl Responder {
    fn reply(&mut self, head: &[u8], flags: u8, (seq, ack): (u32, u32), payload: &[u8]) {
        let len = HEADS + payload.len();
        let mut packet = [0; HEADS + RESPONSE.len()];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 6]);
        packet[12..16].copy_from_slice(&head[16..20]);
        packet[16..20].copy_from_slice(&head[12..16]);
        let words = packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = words.sum::<u32>();
        packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        packet[20..22].copy_from_slice(&head[22..24]);
        packet[22..24].copy_from_slice(&head[20..22]);
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[28..32].copy_from_slice(&ack.to_be_bytes());
        packet[32..36].copy_from_slice(&[5 << 4, flags, 0xff, 0xff]);
        packet[HEADS..len].copy_from_slice(payload);
        self.replies.push_back((self.now + DELAY, packet, len));
    }
}

impl Device for Responder {
    fn read(&mut self, into: &mut [u8]) -> Option<Incoming> {
        let (at, packet, len) = self.replies.front()?;
        if *at > self.now {
            return None;
        }
        let end = *len;
        into[..end].copy_from_slice(&packet[..end]);
        self.replies.pop_front();
        Some(Incoming { at: 0, end, is_trusted: true })
    }

    fn write(&mut self, packet: &Outgoing) -> bool {
        let Outgoing { head, payload, .. } = *packet;
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (flags, seq, ack) = (head[33], number(24), number(28));
        let next = seq.wrapping_add(payload.len() as u32);
        match flags & (SYN | RST | FIN) {
            SYN => self.reply(head, SYN | ACK, (seq ^ 0x5eed, seq.wrapping_add(1)), b""),
            FIN => self.reply(head, FIN | ACK, (ack, next.wrapping_add(1)), b""),
            0 if !payload.is_empty() => {
                self.exchanges += 1;
                self.reply(head, ACK, (ack, next), RESPONSE);
            }
            _ => {}
        }
        true
    }

    fn wait(&mut self, until: Nanos) {
        let next = self.replies.front().map_or(Nanos::NEVER, |(at, ..)| *at);
        self.now = self.now.max(until.min(next));
    }

    fn nap(&mut self, time: Nanos) {
        self.now = self.now + time;
    }

    fn now(&self) -> Nanos {
        self.now
    }
}

/// The single shard, as the workers of a run.
struct Alone {
    shard: Shard<Tun<Responder>, Client>,
    arrivals: Arrivals,
    remote: Remote,
    read: Option<Box<Tick>>,
    whole: Tick,
    part: Part,
}

impl Workers for Alone {
    fn role(&self) -> Vec<Role> {
        vec![Role::Population(0)]
    }

    fn notice(&self) -> Nanos {
        Nanos::from_millis(120)
    }

    fn period(&self) -> Nanos {
        Job::PERIOD
    }

    fn now(&self) -> Nanos {
        self.shard.io().device().now()
    }

    fn order(&mut self, order: Order) {
        if let Some(control) = order.to(&self.part) {
            self.remote.control.try_send(control).expect("a shard obeys within a few ticks");
        }
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if let Some(tick) = self.read.take() {
            self.remote.used.try_send(tick).expect("there is room for each");
        }
        loop {
            if let Ok((_, tick)) = self.arrivals.try_recv() {
                self.whole.merge(&tick);
                return Update::Tick(0, self.read.insert(tick));
            }
            if self.shard.program().is_finished() {
                return Update::Ended;
            }
            if self.now() >= until {
                return Update::Nothing;
            }
            self.shard.turn(until);
        }
    }
}

/// The result of a hold.
struct Held {
    summary: Summary,
    whole: Tick,
    exchanges: u64,
    virtual_time: Nanos,
    /// Memory of the process while all connections are still held.
    usage: UsageSample,
}

/// Each connection sends a request at once, and then at least one in every third of the time.
fn hold(connections: u32, minutes: u32) -> Held {
    let think = format!("{}s..{}s", 18 * minutes, 20 * minutes);
    // Shorter than the shortest think time.
    let ramp = connections / (8 * minutes);
    let flags = format!(
        "connections={connections} think={think} duration={minutes}m ramp={ramp}/s expect=status=200,length=12"
    );
    let plan = stage::plan(&format!("http://{TARGET}/"), &flags, SEED);
    let part = plan.parts(|_| 1)[0];
    let (mut pairs, arrivals) = links(1);
    let (link, remote) = pairs.remove(0);
    let target: SocketAddr = TARGET.parse().unwrap();
    let settings = Settings {
        connections: part.places,
        networks: vec![(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8)],
        destinations: vec![target],
        mtu: net::io::tun::mtu_to(&[]),
        secret: [SEED, SEED],
        watch: Arc::default(),
    };
    let responder = Responder { now: Nanos::ZERO, replies: VecDeque::new(), exchanges: 0 };
    let shard = stage::client(Tun::new(responder, settings), &plan, &part, link);
    conduct(&plan, Alone { shard, arrivals, remote, read: None, whole: Tick::default(), part })
}

fn conduct(plan: &Plan, mut workers: Alone) -> Held {
    let mut conductor = Conductor::new(plan, &workers, Nanos::ZERO, Nanos::ZERO);
    conductor.give_orders(&mut workers);
    loop {
        conductor.gather(&mut workers).expect("the shard does not end without its order");
        let now = workers.now();
        conductor.poll_line(now);
        let is_over = conductor.step(now).is_over;
        conductor.give_orders(&mut workers);
        if is_over {
            break;
        }
    }
    let (virtual_time, usage) = (workers.now(), host::Processes::own(&host::Root::real()).usage_sample());
    run::stop(&mut workers, |update| conductor.handle(update));
    let (_, record) = conductor.finish();
    let exchanges = workers.shard.io().device().exchanges;
    Held { summary: run::judge(plan, &record), whole: workers.whole, exchanges, virtual_time, usage }
}

/// All connections are held, without faults, and both ends have the same counts.
fn check(held: &Held, n: u64) {
    let Held { summary, whole, exchanges, .. } = held;
    let c = &whole.counts;
    assert_eq!(summary.faults.len(), 0, "{:?}", summary.faults);
    assert_eq!((c.opened, summary.connections.held, c.dropped), (n, n, 0));
    // The first request during the ramp, then three.
    assert_eq!((c.sent, c.answered, *exchanges), (4 * n, 4 * n, 4 * n));
}

#[test]
fn twenty_thousand_are_held_and_all_responses_count() {
    check(&hold(20_000, 2), 20_000);
}

#[test]
#[ignore = "minutes in a release build, 7 GB: cargo xtask test sim"]
fn a_hundred_million_are_held_for_an_hour() {
    const N: u32 = 100_000_000;
    let root = host::Root::real();
    let available = host::memory(&root).unwrap().available;
    if available < 8 << 30 {
        return eprintln!("skipped: 8 GiB of memory needed, available: {} GiB", available >> 30);
    }
    let held = hold(N, 60);
    check(&held, N.into());
    let cpu_s = (held.usage.cpu_user_ns + held.usage.cpu_system_ns) as f64 / 1e9;
    let each = held.usage.rss_bytes as f64 / f64::from(N);
    println!(
        "{} connections, {} exchanges, {} virtual: {:.0} s of CPU, {:.2} us an exchange, {:.1} bytes a connection",
        Count(N.into()),
        Count(held.exchanges),
        held.virtual_time.brief(),
        cpu_s,
        cpu_s * 1e6 / held.exchanges as f64,
        each,
    );
    // The records of client, TCP and timers alone use more than half of it.
    assert!((32.0..=64.7).contains(&each), "{each} bytes a connection");
}
