//! The backends on which each scene is played.

use std::{cell::Cell, net::SocketAddr, rc::Rc, thread::JoinHandle, time::Instant};

use net::{
    Io, Program, Shard,
    io::{
        epoll::{self, Epoll},
        sim::{self, Faults, Net},
        tun::{self, Tun, TunDevice},
        uring::{self, Uring},
    },
};
use units::{Clock, Nanos};

use crate::{
    kernel::{Kernel, NETWORK},
    namespace,
    ours::{Dial, Ours},
    player::Player,
    script::{Case, Event, Log, SharedLog, Way},
    threads::{self, PATIENCE, local},
};

/// The backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Over {
    /// One ring, with deferred work.
    OneRing,
    /// Tables of four slots: as many rings as needed, with one eventfd.
    SeveralRings,
    /// Only operations of Linux 5.19: dials with system calls.
    OldKernel,
    /// Several rings with queues so short that completions overflow all the time.
    ShortQueues,
    Epoll,
    /// epoll that sleeps in whole milliseconds, in closed loop.
    EpollByMillis,
    /// A TUN device, in a network namespace of this thread. Only dials.
    Tun,
    Sim,
}

impl Over {
    pub(crate) const KERNEL: [Over; 6] = [
        Over::OneRing,
        Over::SeveralRings,
        Over::OldKernel,
        Over::ShortQueues,
        Over::Epoll,
        Over::EpollByMillis,
    ];
    pub(crate) const ALL: [Over; 7] = [
        Over::OneRing,
        Over::SeveralRings,
        Over::OldKernel,
        Over::ShortQueues,
        Over::Epoll,
        Over::EpollByMillis,
        Over::Sim,
    ];

    /// Plays a scene that dials on every backend except the simulator.
    pub(crate) fn dialling<R: Send>(play: impl Fn(Over) -> R + Sync) -> Vec<R> {
        Over::KERNEL.map(&play).into_iter().chain(Over::over_tun(play)).collect()
    }

    /// Plays over a TUN device, in a separate thread with a network namespace; `None` without the permission.
    pub(crate) fn over_tun<R: Send>(play: impl Fn(Over) -> R + Sync) -> Option<R> {
        let own = || namespace::enter().then(|| play(Over::Tun));
        let played = std::thread::scope(|scope| scope.spawn(own).join());
        played.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The kernel backend for this many connections.
    pub(crate) fn io(self, places: u32) -> Kernel {
        let connections = places.max(8);
        let by_millis = self == Over::EpollByMillis;
        if self == Over::Epoll || by_millis {
            let settings = epoll::Settings { connections: places, by_millis };
            let mut io = Epoll::new(settings, Clock::start()).expect("every kernel has epoll");
            if by_millis {
                io.coalesce(Nanos::from_micros(50));
            }
            return Kernel::Epoll(Box::new(io));
        }
        if self == Over::Tun {
            return tun(places);
        }
        // Two rings for six connections, twenty for thousands.
        let slots = match self {
            Over::SeveralRings => 4.max(places / 20),
            Over::ShortQueues => 4.max(places / 2),
            _ => connections,
        };
        let settings = uring::Settings {
            old_kernel: self == Over::OldKernel,
            few_entries: (self == Over::ShortQueues).then_some(4),
            ..uring::Settings::new(connections, slots)
        };
        Kernel::Uring(Box::new(Uring::new(settings, Clock::start()).expect("this kernel allows io_uring")))
    }
}

/// A TUN device with its own addresses.
fn tun(connections: u32) -> Kernel {
    let device = TunDevice::open(Clock::start()).expect("root of a network namespace may make a device");
    device.route(NETWORK).expect("nobody else is in this namespace");
    device.allow_loopback().expect("the settings of a namespace of our own can be written");
    let settings = tun::Settings {
        connections,
        networks: vec![NETWORK],
        destinations: Vec::new(),
        mtu: tun::mtu_to(&[]),
        secret: [7, 9],
        watch: std::sync::Arc::default(),
    };
    Kernel::Tun(Box::new(Tun::new(device, settings)), 2_000)
}

/// Plays the scene on each backend; every connection must see exactly `expected`. Returns the logs for further checks.
pub(crate) fn check(case: Case, expected: &[Event]) -> Vec<(Over, Log)> {
    let on = |over| (over, check_over(over, case, expected));
    match case.way {
        Way::WeDial => Over::dialling(on).into_iter().chain([on(Over::Sim)]).collect(),
        Way::TheyDial => Over::ALL.map(on).into(),
    }
}

/// Plays the scene on one backend.
pub(crate) fn check_over(over: Over, case: Case, expected: &[Event]) -> Log {
    let log = match over {
        Over::Sim => over_sim(case),
        _ => over_kernel(over, case),
    };
    assert_eq!(log.seen.len(), case.count, "{} over {over:?}: connections seen: {:?}", case.name, log.seen);
    for (number, seen) in log.seen.iter().enumerate() {
        assert_eq!(seen, expected, "{} over {over:?}: connection {number}", case.name);
    }
    log
}

fn dials(case: Case, to: SocketAddr) -> Vec<Dial> {
    vec![(local(), to); case.count]
}

fn taken(log: SharedLog) -> Log {
    log.take()
}

fn over_kernel(over: Over, case: Case) -> Log {
    let mut io = over.io(case.places);
    let log = SharedLog::default();
    let ours = Ours::new(case.ours, log.clone());
    let (ours, peers) = match case.way {
        Way::WeDial => {
            let (listener, at) = threads::listener();
            (ours.dialling(dials(case, at)), threads::play(case, at, Some(listener)))
        }
        Way::TheyDial => {
            let at = io.listen(local()).expect("the loopback has a free port");
            (ours.accepting(), threads::play(case, at, None))
        }
    };
    let mut shard = Shard::new(io, case.places, ours);
    let what = format!("{} over {over:?}", case.name);
    turn_until(
        &mut shard,
        Some(peers),
        &what,
        || log.borrow().over >= case.count,
        || format!("{:?}", log.borrow()),
    );
    assert_eq!(shard.parts().1.blocked(), 0, "{what}: something is left to send");
    taken(log)
}

/// Turns the shard until `over` returns true and the peers have played all steps, with a timeout.
pub(crate) fn turn_until<I: Io, P: Program>(
    shard: &mut Shard<I, P>,
    mut peers: Option<JoinHandle<()>>,
    what: &str,
    over: impl Fn() -> bool,
    state: impl Fn() -> String,
) {
    let begun = Instant::now();
    while peers.is_some() || !over() {
        let waited = begun.elapsed();
        assert!(waited < 2 * PATIENCE, "{what}: not over within {waited:?}: {}", state());
        shard.turn(shard.io().now() + Nanos::from_millis(20));
        if let Some(done) = peers.take_if(|p| p.is_finished()) {
            done.join().unwrap_or_else(|_| panic!("{what}: a peer saw something else (above): {}", state()));
        }
    }
}

fn over_sim(case: Case) -> Log {
    let net = Net::new(1, Faults::default());
    let (mut near, mut far) = (net.host(), net.host());
    let log = SharedLog::default();
    let finished = Rc::new(Cell::new(0));
    let ours = Ours::new(case.ours, log.clone());
    let (ours, to) = match case.way {
        Way::WeDial => {
            let at = far.listen(local()).expect("the simulator has free ports");
            (ours.dialling(dials(case, at)), at)
        }
        Way::TheyDial => (ours.accepting(), near.listen(local()).expect("the simulator has free ports")),
    };
    let mut near = Shard::new(near, case.places, ours);
    let mut far = Shard::new(far, case.count as u32, Player::new(case, to, finished.clone()));
    let over = || log.borrow().over >= case.count && finished.get() == case.count;
    let patience = Nanos(PATIENCE.as_nanos() as u64);
    sim::run(&net, &mut [&mut near, &mut far], patience, over);
    let played = finished.get();
    assert!(
        over(),
        "{} over Sim: {played} peers have played all by {:?}: {:?}",
        case.name,
        net.now(),
        log.borrow()
    );
    assert_eq!(near.parts().1.blocked(), 0, "{} over Sim: something is left to send", case.name);
    drop((near, far));
    taken(log)
}
