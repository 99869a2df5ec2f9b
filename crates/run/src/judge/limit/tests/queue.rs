//! The target's accept queue, and what makes it longer.

use super::*;

#[test]
fn a_full_accept_queue_names_its_backlog() {
    let queue = |used, net| Evidence { accept_queue: Some(Fill { used, limit: 8 }), ..here(net) };
    let expected =
        ("target", "accept-queue", 40, "accept queue of 8 was full: it overflowed 66 times", "somaxconn");
    check(&stopped(40, waiting()), &queue(9, overflows(33)), expected);
    // Seen full, and not overflowing any more.
    let quiet = NetCounters::default();
    check(&stopped(40, waiting()), &queue(9, quiet), ("target", "accept-queue", 40, "of 8", ""));
    check(&stopped(40, waiting()), &queue(3, quiet), ("target", "timeout", 800, "", ""));
    // Another listener's overflow, while this queue was short; and if it cannot be seen.
    check(&stopped(40, waiting()), &queue(3, overflows(9)), ("target", "timeout", 800, "", ""));
    check(&stopped(40, waiting()), &here(overflows(9)), ("target", "accept-queue", 40, "18 times", ""));
    // A burst between two samples: 200 dials timed out, and as many overflows were counted.
    check(&stopped(40, waiting()), &queue(0, overflows(199)), ("target", "timeout", 800, "", ""));
    check(&stopped(40, waiting()), &queue(0, overflows(200)), ("target", "accept-queue", 40, "of 8 ", ""));
    check(&stopped(40, reset()), &queue(9, overflows(1)), ("target", "accept-queue", 40, "", ""));
    check(&stopped(40, closed()), &queue(9, overflows(1)), ("target", "closed", 800, "", ""));
    // Only our own counters: they show nothing about another host.
    let remote = Evidence { there: None, ..here(overflows(33)) };
    check(&stopped(40, waiting()), &remote, ("target", "timeout", 800, "", ""));
    let slow = Evidence { accepts_per_s: Some(500.4), ..queue(9, overflows(1)) };
    check(&stopped(40, waiting()), &slow, ("target", "accept-queue", 40, "a steady 500/s", ""));
}

#[test]
fn what_limits_a_queue_is_raised() {
    let check = |limit: u64, somaxconn: Option<u64>, program: &str, expected: &str| {
        let evidence = Evidence {
            accept_queue: Some(Fill { used: limit + 1, limit }),
            somaxconn,
            program: program.to_owned(),
            ..here(overflows(33))
        };
        let found = super::limit(&stopped(40, waiting()), &evidence).expect("something stopped it");
        let own_limit =
            "check whether its own limit on connections (max-connections) keeps it from accepting";
        assert_eq!(found.fix, format!("{own_limit}; otherwise {expected}"), "{limit} of {somaxconn:?}");
        // A run that passes is warned of the same.
        let passed = Summary { verdict: Verdict::Pass, ..Summary::default() };
        let warning = accept_queue::overflow_warning(&passed, &evidence).expect("it overflowed");
        assert!(warning.ends_with(&format!(" is retransmitted after 1 s; {expected}")), "{warning}");
    };
    let nginx =
        |to: u64| format!("raise the target's listen backlog (nginx: listen … backlog={to}), and restart it");
    check(511, Some(4_096), "nginx", &nginx(4_096));
    check(511, Some(20_000), "nginx", &nginx(20_000));
    let sysctl = "sysctl -w net.core.somaxconn";
    check(128, Some(1_024), "nginx", &format!("{sysctl}=4096, then {}", nginx(4_096)));
    check(4_096, Some(4_096), "nginx", &format!("{sysctl}=65535, then restart the target"));
    check(65_535, Some(65_535), "nginx", &format!("{sysctl}=131070, then restart the target"));
    check(
        8,
        Some(4_096),
        "a-server",
        "raise the backlog in the target's call of listen() to 4096, and restart it",
    );
    // On another host, or where netlink is forbidden.
    let both = format!(
        "{}; if net.core.somaxconn of its host is smaller, raise that first ({sysctl}=65535)",
        nginx(65_535)
    );
    check(511, None, "nginx", &both);
}
