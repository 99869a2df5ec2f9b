//! Scenes without a peer, or with half of one: refused dials, the end of listening, and time.

use std::{io::Write, net::TcpStream, time::Duration};

use net::{
    Close, Cx, Gone, Io, Key, Program, Shard,
    io::sim::{self, Faults, Net},
};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use units::Nanos;

use crate::{
    kernel::Kernel,
    ours::{Dial, Ours},
    script::{
        Conduct,
        Event::{self, Bytes, Gone as GoneBy, Opened},
        Say, SharedLog, Take, stream,
    },
    stage::{Over, turn_until},
    threads::{accept, listener, local},
};

const QUIET: Conduct = Conduct::new(Say::Nothing, Take::All);

/// Dials over one kernel backend; every dial must have its expected result.
fn check_dials(over: Over, dials: Vec<Dial>, expected: &[&[Event]]) {
    let log = SharedLog::default();
    let mut shard = Shard::new(over.io(8), 8, Ours::new(QUIET, log.clone()).dialling(dials));
    let all = || log.borrow().seen == expected;
    turn_until(&mut shard, None, &format!("dials over {over:?}"), all, || format!("{:?}", log.borrow().seen));
}

/// The same in the simulator; `dials` gets the address of a listener.
fn check_sim_dials(dials: impl Fn(std::net::SocketAddr) -> Vec<Dial>, expected: &[&[Event]]) {
    let net = Net::new(1, Faults::default());
    let (near, mut far) = (net.host(), net.host());
    let at = far.listen(local()).expect("the simulator has free ports");
    let log = SharedLog::default();
    let mut near = Shard::new(near, 8, Ours::new(QUIET, log.clone()).dialling(dials(at)));
    let mut far = Shard::new(far, 8, Ours::new(QUIET, SharedLog::default()).accepting());
    sim::run(&net, &mut [&mut near, &mut far], Nanos::from_secs(1), || false);
    assert_eq!(log.borrow().seen, expected);
}

#[test]
fn a_dial_without_a_listener_is_refused() {
    let refused: &[Event] = &[GoneBy(Gone::Refused)];
    Over::dialling(|over| {
        // A bound socket that does not listen keeps others off the port.
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a descriptor is free");
        rustix::net::bind(&socket, &local()).expect("the loopback has a free port");
        let at = rustix::net::getsockname(&socket).expect("a bound socket has an address");
        let at = std::net::SocketAddr::try_from(at).expect("an inet socket");
        check_dials(over, vec![(local(), at); 6], &[refused; 6]);
    });
    check_sim_dials(
        |mut at| {
            at.set_port(at.port() + 1);
            vec![(local(), at); 6]
        },
        &[refused; 6],
    );
}

#[test]
fn a_second_dial_from_the_same_address() {
    let in_use: &[Event] = &[GoneBy(Gone::from_errno(libc_eaddrinuse()))];
    // Binding the address again succeeds, but the connection already exists.
    let taken: &[Event] = &[GoneBy(Gone::from_errno(rustix::io::Errno::ADDRNOTAVAIL.raw_os_error()))];
    let opened: &[Event] = &[Opened];
    Over::dialling(|over| {
        let (_one, to) = listener();
        let (_other, to_other) = listener();
        if over == Over::Tun {
            let from = std::net::SocketAddr::from(([198, 18, 0, 7], 5000));
            return check_dials(
                over,
                vec![(from, to), (from, to), (from, to_other)],
                &[opened, taken, opened],
            );
        }
        // Only this test uses the address, so the port stays free.
        let free = std::net::TcpListener::bind("127.7.7.7:0").expect("the loopback has a free port");
        let from = free.local_addr().expect("a bound socket has an address");
        drop(free);
        let dials = vec![(from, to), (from, to), (from, to_other)];
        check_dials(over, dials, &[opened, taken, opened]);
    });
    let from = std::net::SocketAddr::from(([127, 7, 7, 7], 5000));
    check_sim_dials(|to| vec![(from, to); 2], &[opened, in_use]);
}

#[test]
fn a_reset_before_the_dial_is_checked() {
    let expected: &[Event] = &[Opened, Bytes(10), GoneBy(Gone::Reset)];
    // Not over a TUN device, where a connection cannot exist before the result of the dial was read.
    for over in Over::KERNEL {
        let (listener, at) = listener();
        let log = SharedLog::default();
        let ours = Ours::new(QUIET, log.clone()).dialling(vec![(local(), at)]);
        let mut shard = Shard::new(over.io(6), 6, ours);
        // Turns until the dial is sent, and no further: its result is read only after the peer has reset it.
        let turns = if matches!(over, Over::Epoll | Over::EpollByMillis) { 1 } else { 2 };
        (0..turns).for_each(|_| _ = shard.turn(Nanos::ZERO));
        let mut peer = accept(&listener);
        peer.write_all(&stream(1, 0, 10)).expect("the kernel takes it");
        rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).expect("TCP has this option");
        drop(peer);
        let all = || log.borrow().over == 1;
        turn_until(&mut shard, None, &format!("a reset over {over:?}"), all, || {
            format!("{:?}", log.borrow().seen)
        });
        assert_eq!(log.borrow().seen, [expected], "over {over:?}");
    }
}

#[test]
fn the_end_of_listening_completes_pending_accepts() {
    let waiting = vec![vec![GoneBy(Gone::Other(libc_einval()))]; 6];
    for over in Over::KERNEL {
        let mut io = over.io(6);
        let at = io.listen(local()).expect("the loopback has a free port");
        let log = SharedLog::default();
        let mut shard = Shard::new(io, 6, Ours::new(QUIET, log.clone()).accepting());
        shard.turn(Nanos::ZERO);
        shard.turn(shard.io().now() + Nanos::from_millis(5));
        assert_eq!(shard.parts().1.taken(), 6, "all places wait");
        shard.program().stop_accepting();
        shard.parts().1.unlisten();
        let all = || log.borrow().over == 6;
        turn_until(&mut shard, None, &format!("unlisten over {over:?}"), all, || {
            format!("{:?}", log.borrow().seen)
        });
        assert_eq!(log.borrow().seen, waiting, "over {over:?}");
        assert_eq!(shard.parts().1.taken(), 0);
        let refused =
            TcpStream::connect_timeout(&at, Duration::from_secs(10)).expect_err("nobody listens any more");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
    let net = Net::new(1, Faults::default());
    let mut io = net.host();
    io.listen(local()).expect("the simulator has free ports");
    let log = SharedLog::default();
    let mut shard = Shard::new(io, 6, Ours::new(QUIET, log.clone()).accepting());
    sim::run(&net, &mut [&mut shard], Nanos::from_millis(1), || false);
    shard.program().stop_accepting();
    shard.parts().1.unlisten();
    sim::run(&net, &mut [&mut shard], Nanos::from_millis(2), || false);
    assert_eq!(log.borrow().seen, waiting);
    assert_eq!(shard.parts().1.taken(), 0);
}

#[test]
fn only_what_was_dialled_gets_packets_from_a_device() {
    Over::over_tun(|over| {
        let (_listener, to) = listener();
        let mut io = over.io(2);
        let k = net::Slab::new(1).take().expect("a free place");
        io.dial(k, local(), to);
        // A foreign socket dials an address of the device, and gets no response.
        let stranger =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None);
        let stranger = stranger.expect("a descriptor is free");
        let own = std::net::SocketAddr::from(([198, 18, 0, 1], 80));
        let began = rustix::net::connect(&stranger, &own);
        assert_eq!(began, Err(rustix::io::Errno::INPROGRESS));
        // A dial from outside the device's network is denied.
        let k = net::Key { index: 1, ..k };
        io.dial(k, std::net::SocketAddr::from(([198, 18, 1, 1], 80)), to);
        let mut scratch = net::Scratch::new(false);
        let mut seen = Vec::new();
        while seen.len() < 2 {
            io.wait(io.now() + Nanos::from_millis(20), &mut scratch);
            seen.extend(std::iter::from_fn(|| io.next()));
        }
        let denied = net::What::Gone(Gone::Denied(rustix::io::Errno::PERM.raw_os_error()));
        assert!(seen.iter().any(|done| done.what == denied), "{seen:?}");
        assert!(seen.iter().any(|done| done.what == net::What::Dialled), "{seen:?}");
        let Kernel::Tun(io, _) = io else { unreachable!("as chosen") };
        // The SYN, and the acknowledgement of the response.
        assert!(
            io.counts().written <= 2 && io.tcp_counts().not_ours == 1,
            "{:?} {:?}",
            io.counts(),
            io.tcp_counts()
        );
    });
}

fn libc_eaddrinuse() -> i32 {
    rustix::io::Errno::ADDRINUSE.raw_os_error()
}

fn libc_einval() -> i32 {
    rustix::io::Errno::INVAL.raw_os_error()
}

#[test]
fn a_turn_in_which_nothing_happens_ends_in_time() {
    let nap = Nanos::from_millis(30);
    let turn = |over: Over| {
        let mut shard = Shard::new(over.io(6), 6, Ours::new(QUIET, SharedLog::default()));
        shard.turn(Nanos::ZERO);
        let before = shard.io().now();
        let after = shard.turn(before + nap);
        // Far above any plausible delay by the scheduler, and far below sleeping forever.
        assert!(
            after >= before + nap && after < before + Nanos::from_secs(5),
            "{before:?} to {after:?} over {over:?}"
        );
    };
    for over in Over::KERNEL {
        // In a separate thread, because the end of another backend's ring would interrupt the sleep.
        std::thread::scope(|scope| scope.spawn(|| turn(over)).join()).expect("a panic says why");
    }
    let net = Net::new(1, Faults::default());
    let mut shard = Shard::new(net.host(), 6, Ours::new(QUIET, SharedLog::default()));
    sim::run(&net, &mut [&mut shard], nap, || false);
    assert_eq!(net.now(), nap);
}

/// Sets timers on slots that never dial, and frees each slot when its timer fires.
struct Timers {
    at_ms: Vec<u64>,
    fired: Vec<(Nanos, Nanos)>,
}

impl Program for Timers {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        unreachable!("nobody dials");
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.fired.push((cx.timer(k), cx.now()));
        cx.close(k, Close::Graceful);
    }
    fn bytes<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: &mut [u8]) -> usize {
        unreachable!("nobody dials");
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {
        unreachable!("nobody dials");
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        for ms in self.at_ms.drain(..) {
            let k = cx.take().expect("as many places as timers");
            cx.wake_at(k, cx.now() + Nanos::from_millis(ms));
        }
        Nanos::NEVER
    }
}

const TIMERS: [u64; 6] = [30, 5, 55, 0, 20, 21];

fn check_timers(timers: &Timers, over: Over) {
    let set: Vec<Nanos> = timers.fired.iter().map(|(set, _)| *set).collect();
    assert_eq!(set.len(), TIMERS.len(), "over {over:?}");
    assert!(set.is_sorted(), "over {over:?}: {set:?}");
    assert!(timers.fired.iter().all(|(set, now)| now >= set), "too early over {over:?}: {:?}", timers.fired);
    assert_eq!(set[5], set[1] + Nanos::from_millis(50), "over {over:?}");
}

#[test]
fn timers_come_in_order_and_never_early() {
    for over in Over::KERNEL {
        let timers = Timers { at_ms: TIMERS.to_vec(), fired: Vec::new() };
        let mut shard = Shard::new(over.io(6), 6, timers);
        let begun = std::time::Instant::now();
        while shard.program().fired.len() < TIMERS.len() {
            assert!(begun.elapsed() < Duration::from_secs(10), "over {over:?}: {:?}", shard.program().fired);
            shard.turn(Nanos::NEVER);
        }
        check_timers(shard.program(), over);
        assert_eq!(shard.parts().1.taken(), 0);
    }
    let net = Net::new(1, Faults::default());
    let mut shard = Shard::new(net.host(), 6, Timers { at_ms: TIMERS.to_vec(), fired: Vec::new() });
    sim::run(&net, &mut [&mut shard], Nanos::from_secs(1), || false);
    check_timers(shard.program(), Over::Sim);
    assert!(shard.program().fired.iter().all(|(set, now)| now == set), "virtual time is exact");
}
