//! Runs both ends and the relay between them.

use std::{
    fs::File,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use net::{
    Io, Shard,
    io::tun::{Settings, Tun, TunDevice, mtu_to},
};
use units::{Clock, Nanos};

use crate::{
    device::{self, NAME},
    far,
    near::{Ended, Near},
    play::{Play, far_addresses, plays},
    relay,
};

/// The timeout of every operation here. With 5 % loss, half of the time is spent waiting for timers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// What happens to packets, in percent, in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) lost: f64,
    pub(crate) repeated: f64,
    pub(crate) delayed: f64,
    pub(crate) damaged: f64,
}

/// The networks of the near end.
fn networks() -> [(IpAddr, u8); 2] {
    [(IpAddr::from([198, 18, 0, 0]), 24), (IpAddr::from(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0)), 112)]
}

/// Plays all connections over this path.
pub(crate) fn play(way: &Way, seed: u64) {
    let (is_over, begun) = (&AtomicBool::new(false), Instant::now());
    let ends = thread::scope(|scope| {
        let (to_relay, from_far) = mpsc::channel();
        let far_end = scope.spawn(move || play_far(to_relay));
        // Nothing arrives if the user lacks the permission.
        let (far_file, listening) = from_far.recv().ok()?;
        let (to_relay, from_near) = mpsc::channel();
        let all = plays(&listening);
        let near_end = scope.spawn({
            let all = all.clone();
            move || play_near(to_relay, all, || far_end.is_finished())
        });
        let near_file: File = from_near.recv().ok()?;
        let relayed = scope.spawn(move || relay::run(&near_file, &far_file, way, seed, is_over));
        let near = near_end.join();
        is_over.store(true, Relaxed);
        Some((all, near, relayed.join().expect("the relay only passes on")))
    });
    let Some((all, near, relayed)) = ends else { return };
    let (ended, counts) = near.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let took = begun.elapsed();
    let said = format!("{way:?}, seed {seed}, {took:?}: {relayed:?}, {counts:?}");
    let expected: Ended = all.iter().map(|play| (play.number, Near::expected(play.end))).collect();
    assert_eq!(ended, expected, "{said}");
    // The path behaved as requested, and affected both ends.
    for (percent, count) in
        [(way.lost, relayed.lost), (way.repeated, relayed.repeated), (way.damaged, relayed.damaged)]
    {
        let expected = relayed.passed as f64 * percent / 100.0;
        assert!((count as f64 - expected).abs() <= 20.0 + expected / 4.0, "{said}");
    }
    assert!(relayed.passed > 15_000 && counts.out_of_order > 10 && counts.duplicates > 10, "{said}");
    assert_eq!(counts.wrong_checksum > 0, way.damaged > 0.0, "{said}");
    assert!(way.lost == 0.0 || counts.retransmitted > 20, "{said}");
}

/// Runs the kernel's end. Sends the relay's file of the device, and the listening addresses.
fn play_far(to_relay: mpsc::Sender<(File, Vec<SocketAddr>)>) {
    if !device::enter() {
        return;
    }
    let file = device::open();
    for address in far_addresses() {
        let (prefix, flag) = if address.is_ipv4() { (32, "") } else { (128, " nodad") };
        device::ip(&format!("addr add {address}/{prefix} dev {NAME}{flag}"));
    }
    for (base, prefix) in networks() {
        device::ip(&format!("route add {base}/{prefix} dev {NAME}"));
    }
    let listen = |address| TcpListener::bind((address, 0)).expect("the device has this address");
    let listeners = far_addresses().map(listen);
    let at = listeners.iter().map(|it| it.local_addr().expect("a bound socket has an address")).collect();
    let count = plays(&far_addresses().map(|address| SocketAddr::new(address, 0))).len();
    to_relay.send((file, at)).expect("the test waits for it");
    far::play(listeners.into(), count);
}

/// Runs throng's end until all connections are over, at the far end too. Returns how they ended, and TCP counters.
fn play_near(
    to_relay: mpsc::Sender<File>,
    plays: Vec<Play>,
    is_over: impl Fn() -> bool,
) -> (Ended, tcp::Counts) {
    assert!(device::enter(), "the far end may");
    let file = device::open();
    for address in far_addresses() {
        device::ip(&format!("route add {address} dev {NAME}"));
    }
    device::set(&format!("ipv4/conf/{NAME}/forwarding"));
    device::set("ipv6/conf/all/forwarding");
    let device = TunDevice::open(Clock::start()).expect("root of a network namespace may make a device");
    for network in networks() {
        device.route(network).expect("nobody else is in this namespace");
    }
    device.allow_forwarding(true).expect("a namespace of our own has its settings");
    let settings = Settings {
        connections: plays.len() as u32,
        networks: networks().into(),
        destinations: plays.iter().map(|play| play.to).collect(),
        mtu: mtu_to(&[]),
        secret: [3, 5],
        watch: std::sync::Arc::default(),
    };
    let count = plays.len();
    let from = |play: &Play| {
        let [(four, _), (six, _)] = networks();
        SocketAddr::new(if play.to.is_ipv4() { four } else { six }, 5000 + u16::from(play.number))
    };
    let near = Near::new(plays.iter().map(|play| (from(play), *play)).collect());
    let mut shard = Shard::new(Tun::new(device, settings), count as u32, near);
    to_relay.send(file).expect("the test waits for it");
    let begun = Instant::now();
    while shard.program().ended.len() < count || !is_over() {
        let (ended, counts) = (shard.program().ended.clone(), *shard.io().tcp_counts());
        assert!(begun.elapsed() < PATIENCE, "not over within {PATIENCE:?}: {ended:?} {counts:?}");
        shard.turn(shard.io().now() + Nanos::from_millis(20));
    }
    let ended = std::mem::take(&mut shard.program().ended);
    (ended, *shard.io().tcp_counts())
}
