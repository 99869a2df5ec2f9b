use super::*;
use crate::sample::SockStat;

fn host(overflows: u64, tracked: Option<u64>, oom_kills: u64) -> HostSample {
    let mut look =
        HostSample { conntrack: tracked, conntrack_max: Some(1000), oom_kills, ..HostSample::default() };
    look.tcp.listen_overflows = overflows;
    look
}

#[test]
fn events_belong_to_the_phase_in_which_they_grew() {
    let mut all = Observation::default();
    let own = ProcessSample::default();
    // Counts before the run belong to no phase.
    all.see_here(Phase::Ramp, &host(100, None, 7), &own);
    all.see_here(Phase::Ramp, &host(130, Some(10), 7), &own);
    all.see_here(Phase::Hold, &host(135, Some(985), 9), &own);
    let seen = all.host.as_ref().unwrap();
    assert_eq!((seen.tcp_ramp.listen_overflows, seen.tcp_hold.listen_overflows), (30, 5));
    assert_eq!(seen.tcp().listen_overflows, 35);
    assert_eq!(seen.oom_kills, Growth { ramp: 0, hold: 2 });
    all.see_here(Phase::Drain, &host(136, Some(990), 9), &own);
    assert_eq!(all.host.unwrap().tcp_hold.listen_overflows, 6);
}

fn busy(cores_used: f64, cpu_user_ns: u64, processes: u64) -> TargetSample {
    let process = ProcessSample {
        processes,
        cores_used,
        busiest_thread: cores_used,
        cpu_user_ns,
        ..ProcessSample::default()
    };
    TargetSample {
        pid: 3,
        process,
        accept_queue: Some(8),
        accept_backlog: Some(8),
        ..TargetSample::default()
    }
}

#[test]
fn a_targets_processes_are_those_of_full_load() {
    let mut all = Observation::default();
    let check = |all: &mut Observation, phase, rss_bytes, expected| {
        let processes = vec![ProcessMemory { pid: 3, rss_bytes }];
        all.see_target(phase, &TargetSample { pid: 3, processes, ..TargetSample::default() });
        let seen = all.target.as_ref().unwrap().processes();
        assert_eq!(seen, [ProcessMemory { pid: 3, rss_bytes: expected }], "{phase:?} {rss_bytes}");
    };
    check(&mut all, Phase::Ramp, 1, 1);
    check(&mut all, Phase::Ramp, 2, 2);
    check(&mut all, Phase::Hold, 9, 9);
    check(&mut all, Phase::Hold, 8, 8);
    check(&mut all, Phase::Ramp, 3, 8);
    check(&mut all, Phase::Drain, 4, 8);
    assert_eq!(all.latest(true, false).target.unwrap().processes, [], "each second is stored");
}

#[test]
fn a_targets_share_at_full_load_is_kept_apart() {
    let mut all = Observation::default();
    for (phase, look) in [
        (Phase::Ramp, busy(0.0, 50, 2)),
        (Phase::Ramp, busy(1.9, 60, 2)),
        // Half of this second belonged to the ramp.
        (Phase::Hold, busy(1.5, 75, 2)),
        (Phase::Hold, busy(0.4, 80, 0)),
        (Phase::Drain, busy(0.1, 81, 0)),
    ] {
        all.see_target(phase, &look);
    }
    let seen = all.target.unwrap();
    assert_eq!(seen.process.cores_used, Some(Gauge { first: 1.9, min: 0.1, max: 1.9, last: 0.1 }));
    assert_eq!(seen.process.cores_used_hold, Some(Gauge::new(0.4)));
    assert_eq!(seen.process.cpu_user_ns, Growth { ramp: 10, hold: 21 });
    assert_eq!((seen.process.processes.max, seen.process.processes.min), (2, 0));
    assert_eq!(seen.process.cpu_ns(), 31);
    assert_eq!(seen.accept_queue_full, 4);
}

#[test]
fn a_remote_sample_fills_its_own_places() {
    let mut all = Observation::default();
    let look = Sample { target: None, host: host(5, None, 0) };
    all.see_there(Phase::Ramp, &look);
    assert!(all.target.is_none() && all.host.is_none());
    all.see_there(Phase::Ramp, &Sample { target: Some(busy(0.0, 1, 1)), host: host(9, None, 0) });
    assert_eq!(all.target.as_ref().unwrap().pid, 3);
    assert_eq!(all.target_host.unwrap().tcp().listen_overflows, 4);
}

#[test]
fn connections_at_the_targets_side_are_sockets_beyond_the_first_sample() {
    let sockets =
        |n| HostSample { sockets: SockStat { tcp_inuse: n, ..SockStat::default() }, ..HostSample::default() };
    let mut here = Observation::default();
    assert_eq!((here.latest(true, false).connections, here.latest(false, false).connections), (None, None));
    for n in [40, 2_040, 2_000] {
        here.see_here(Phase::Ramp, &sockets(n), &ProcessSample::default());
    }
    assert_eq!(
        (here.latest(true, false).connections, here.latest(false, false).connections),
        (Some(980), None)
    );
    assert_eq!(here.latest(true, true).connections, Some(1_960), "the target's alone");
    let mut there = here.clone();
    for n in [7, 1_003] {
        there.see_there(Phase::Ramp, &Sample { host: sockets(n), ..Sample::default() });
    }
    assert_eq!([false, true].map(|is_tun| there.latest(false, is_tun).connections), [Some(996); 2]);
    // Meanwhile, sockets of other connections may close.
    there.see_there(Phase::Hold, &Sample { host: sockets(3), ..Sample::default() });
    assert_eq!(there.latest(false, false).connections, Some(0));
}

#[test]
fn threads_that_had_ended_before_the_run_are_none_of_its() {
    let look = |names: &[&str]| TargetSample {
        threads_gone: names.iter().map(|name| (*name).to_owned()).collect(),
        ..TargetSample::default()
    };
    let mut all = Observation::default();
    all.see_target(Phase::Ramp, &look(&["yesterday"]));
    assert_eq!(all.target.as_ref().unwrap().threads_gone, [""; 0]);
    all.see_target(Phase::Hold, &look(&["acceptor", "yesterday"]));
    assert_eq!(all.target.unwrap().threads_gone, ["acceptor"]);
}
