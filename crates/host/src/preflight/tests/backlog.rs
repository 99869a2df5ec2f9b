//! The accept queues of the target's listeners, and how to lengthen them.

use super::{
    doctor::{here, line, line_of, listening, with_servers},
    *,
};

const SOMAXCONN: &str = "proc/sys/net/core/somaxconn";

/// A run of this many connections to listeners with these backlogs.
fn to(backlogs: &[u64], connections: u64) -> Need {
    Need { listeners: backlogs.iter().map(|backlog| listening(*backlog)).collect(), ..here(connections) }
}

#[test]
fn the_targets_backlog_is_seen() {
    let check = |backlogs: &[u64], somaxconn, connections, expected: &str| {
        let line = line(&[(SOMAXCONN, somaxconn)], &to(backlogs, connections), "target's backlog");
        assert_eq!(line, expected, "{backlogs:?} of {somaxconn}");
    };
    check(&[128], "4096\n", 128, "ok target's backlog: at most 128 waiting, up to 128 simultaneous dials");
    check(
        &[512, 512],
        "4096\n",
        1_000_000,
        "ok target's backlog: at most 1,024 waiting, up to 1,024 simultaneous dials",
    );
    let short = "warn target's backlog: at most 128 waiting, up to 300 simultaneous dials";
    let own = "raise the backlog in the target's call of listen() to 4096, and restart it";
    let sysctl = "sysctl -w net.core.somaxconn=4096";
    // The server's backlog is the limit.
    check(&[128], "4096\n", 300, &format!("{short}: {own}"));
    // The kernel's limit is too low.
    check(&[128], "128\n", 300, &format!("{short}: {sysctl}  # then restart the target"));
    // The server's backlog is below the kernel's limit, which is too low as well.
    check(&[128], "256\n", 300, &format!("{short}: {sysctl}  # then {own}"));
    // Two queues of 256 would suffice.
    check(&[64, 64], "256\n", 300, &format!("{short}: {own}"));
    check(&[64, 64], "64\n", 300, &format!("{short}: {sysctl}  # then restart the target"));
}

#[test]
fn the_program_says_how_its_backlog_is_raised() {
    let machine = with_servers(&[(9, 1, "1024", &[])]);
    machine.write(SOMAXCONN, "4096\n");
    assert_eq!(
        line_of(&machine, &to(&[511], 600), "target's backlog"),
        "warn target's backlog: at most 511 waiting, up to 600 simultaneous dials: \
         raise the target's listen backlog (nginx: listen … backlog=4096), and restart it"
    );
}

#[test]
fn several_listeners_have_a_queue_each() {
    let check = |backlogs: &[u64], expected: &str| {
        let line = line(&[(SOMAXCONN, "128\n")], &to(backlogs, 300), "accept queue");
        assert_eq!(line, expected, "{backlogs:?}");
    };
    let dials = "up to 300 simultaneous dials";
    let fix = "sysctl -w net.core.somaxconn=4096";
    check(&[], &format!("warn accept queue: at most 128 waiting, {dials}: {fix}"));
    check(&[128], &format!("warn accept queue: at most 128 waiting, {dials}: {fix}"));
    check(
        &[128; 2],
        &format!("warn accept queue: at most 128 waiting at each of 2 listeners, {dials}: {fix}"),
    );
    check(&[128; 3], &format!("ok accept queue: at most 128 waiting at each of 3 listeners, {dials}"));
}
