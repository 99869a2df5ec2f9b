//! A run that never was, for the tests of all that metrics go to.

use samples::{Destination, Fault, Generator, Header, HostLook, Kind, Looks, Phase, Stage, TargetLook, Tick};
use units::{Date, Nanos};

use super::{Book, Snapshot};

/// Two seconds of two populations; the second one has a name that wants to be escaped.
pub(crate) fn two_seconds() -> (Snapshot, [Snapshot; 2]) {
    let mut book = Book::new(Date(1_700_000_000_250));
    book.begin(&header());
    let blank = book.blank();
    (blank, [1, 2].map(|second| second_of(&mut book, second)))
}

pub(crate) fn header() -> Header {
    Header {
        target: "http://t/ü?a=\"1\"".to_owned(),
        connections: 30,
        hold_s: Some(2.0),
        seed: 7,
        io: "epoll".into(),
        threads: 2,
        steps: Vec::new(),
        populations: vec!["idle".to_owned(), "a,\"b\" =c\\".to_owned()],
        destinations: vec!["10.0.0.1:80".to_owned(), "10.0.0.2:80".to_owned()],
    }
}

/// What the sinks see of its `n`th second.
pub(crate) fn seen(n: u64) -> (Tick, Generator, Looks) {
    let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
    let mut own = Tick { from, until, open: 10 * n, wanted: 20, phase: Phase::Hold, ..Tick::default() };
    let mut other = Tick { open: n, wanted: 10, ..own.clone() };
    (own.counts.sent, own.counts.answered, own.counts.bytes_in) = (1000 * n, 999 * n, 5_000_000_000 * n);
    (0..999 * n).for_each(|_| own.count_status(200));
    other.count_status(503);
    other.faults.count(Fault::target(Stage::Exchange, Kind::WrongStatus));
    for ms in 1..=1000 {
        own.latency.record(Nanos::from_millis(ms * n));
    }
    other.connect.record(Nanos::from_micros(100));
    (0..10 * n).for_each(|_| own.latency.censor());
    other.ramp_latency.censor();
    other.connect.censor();
    other.counts.unanswered = n;
    let mut tick = Tick { from, until, phase: Phase::Hold, populations: vec![own, other], ..Tick::default() };
    for population in std::mem::take(&mut tick.populations) {
        tick.merge(&population);
        tick.populations.push(population);
    }
    let mut silent = Destination { opened: 3, dropped: n, sent: 2, ..Destination::default() };
    silent.faults.count(Fault::target(Stage::Exchange, Kind::Timeout));
    let mut well = Destination { opened: 5, sent: 7 * n, answered: 7 * n, ..Destination::default() };
    (0..n).for_each(|_| silent.latency.censor());
    well.latency.record(Nanos::from_millis(n));
    tick.destinations = vec![well, silent];
    let generator =
        Generator { cpu_s: 0.3 * n as f64, system_s: 0.1, rss_bytes: 1 << 20, ..Generator::default() };
    let target = TargetLook { open_files: Some(n), ..TargetLook::default() };
    let mut host = HostLook::default();
    host.tcp.listen_drops = 5 * n;
    (tick, generator, Looks { target: Some(target), host: Some(host), ..Looks::default() })
}

fn second_of(book: &mut Book, n: u64) -> Snapshot {
    let (tick, generator, looks) = seen(n);
    book.look(&looks);
    book.tick(&tick, &generator)
}
