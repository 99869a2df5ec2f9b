use samples::{
    Cause, Certainty, Fault, FaultCount, Kind, Limit, NetCounters, Side, SlowPart, Stage, Summary,
    ThresholdResult, Verdict,
};
use units::Nanos;

use super::{is_nobody, suspect, warnings, weight};
use crate::{
    case::{Case, Scope},
    evidence::{Evidence, Host, OwnSeen, Pattern, TargetSeen},
};
use record::{fill::Fill, fixture::fault};

fn reason(fault: &FaultCount, s: &Summary, e: &Evidence) -> String {
    crate::seen::reason(fault, &Case::of(s, e, Scope::default()))
}

/// The limit of the whole run.
fn limit(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    super::limit(summary, evidence, Scope::default())
}

/// A run of 1,000 connections that stopped at `held` with these faults.
fn stopped(held: u64, faults: Vec<FaultCount>) -> Summary {
    let mut s = Summary { verdict: Verdict::Fail, ..Summary::default() };
    s.faults = faults;
    (s.connections.wanted, s.connections.held) = (1_000, held);
    (s.connections.opened, s.connections.peak) = (800, 800);
    s
}

fn waiting() -> Vec<FaultCount> {
    vec![fault(Stage::Dial, Kind::Timeout, 200), fault(Stage::Exchange, Kind::Timeout, 600)]
}

fn closed() -> Vec<FaultCount> {
    vec![fault(Stage::Hold, Kind::Closed, 700), fault(Stage::Exchange, Kind::Reset, 100)]
}

fn reset() -> Vec<FaultCount> {
    vec![fault(Stage::Exchange, Kind::Reset, 800)]
}

fn of(fault: Fault, count: u64) -> Vec<FaultCount> {
    vec![FaultCount::new(fault, count)]
}

fn here(net: NetCounters) -> Evidence {
    let host = Host { net, ..Host::default() };
    Evidence { here: host, there: Some(host), ..Evidence::default() }
}

fn target(target: TargetSeen) -> Evidence {
    Evidence { target: Some(TargetSeen { pid: 81, ..target }), ..here(NetCounters::default()) }
}

fn overflows(n: u64) -> NetCounters {
    NetCounters { listen_overflows: n, listen_drops: n, syn_retrans: n, ..NetCounters::default() }
}

fn lost(pattern: Pattern) -> Evidence {
    let mut e = Evidence { losses: pattern, ..Evidence::default() };
    // On loopback, nothing on a path can send resets.
    e.subject.is_loopback = true;
    e
}

/// Side, cause, load, part of the detail, part of the fix.
type Expected<'a> = (&'a str, &'a str, u64, &'a str, &'a str);

fn check(summary: &Summary, evidence: &Evidence, expected: Expected) {
    let limit = limit(summary, evidence).expect("something stopped it");
    let (side, cause, at, detail, fix) = expected;
    assert_eq!((limit.side.name(), limit.cause.name(), limit.at_connections), (side, cause, at), "{limit:?}");
    assert!(limit.detail.contains(detail) && limit.fix.contains(fix), "{limit:?}");
}

#[test]
fn where_nothing_went_wrong_nothing_stopped_it() {
    let busy = target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() });
    for evidence in [Evidence::default(), here(overflows(9)), busy] {
        let s = Summary { verdict: Verdict::Pass, ..stopped(1_000, Vec::new()) };
        assert_eq!(limit(&s, &evidence), None);
    }
}

#[test]
fn a_process_that_is_gone_comes_first() {
    let files = Some(Fill { used: 1_000, limit: 1_000 });
    let mut gone = target(TargetSeen { ended: true, open_files: files, ..TargetSeen::default() });
    check(&stopped(0, closed()), &gone, ("target", "ended", 800, "process 81 ended", "its log"));
    gone.there = Some(Host { oom_kills: 1, ..Host::default() });
    check(&stopped(0, closed()), &gone, ("target", "memory", 800, "killed a process", "more memory"));
    // The kills that the target's control group counts are used, too.
    gone.target.as_mut().unwrap().oom_kills = 2;
    check(&stopped(0, closed()), &gone, ("target", "memory", 800, "killed 2 processes", ""));
}

#[test]
fn one_of_several_targets_that_is_gone_is_named() {
    let at = Some("127.0.0.2:80".parse().expect("an address"));
    let deserted = Evidence { deserted: at, ..Evidence::default() };
    let refused = || vec![fault(Stage::Dial, Kind::Refused, 300)];
    for faults in [closed(), refused()] {
        let detail = "nothing listens on 127.0.0.2:80 any more";
        check(&stopped(500, faults), &deserted, ("target", "ended", 800, detail, "its log"));
    }
    // An ended process does not explain that other connections wait.
    assert_ne!(limit(&stopped(500, waiting()), &deserted).expect("it is bad").cause, Cause::Ended);
}

#[test]
fn memory_of_sockets_is_reported() {
    let short = here(NetCounters { abort_on_memory: 40, ..overflows(3) });
    check(&stopped(300, closed()), &short, ("host", "memory", 300, "40 connections", "tcp_mem"));
    let there = Evidence { here: Host::default(), ..short };
    check(&stopped(300, closed()), &there, ("target", "memory", 300, "40 connections", "tcp_mem"));
}

#[test]
fn a_server_that_closes_without_a_byte_may_expect_tls() {
    let e = |speaks_tls, silence_ms: Option<u64>| {
        let silence = silence_ms.map(Nanos::from_millis);
        Evidence { is_mute: true, speaks_tls, ..lost(Pattern { silence, ..Pattern::default() }) }
    };
    let at_once = || vec![fault(Stage::Exchange, Kind::Closed, 800)];
    let seen = ("target", "tls-expected", 800, "a TLS ClientHello received a reply", "use https://");
    check(&stopped(0, at_once()), &e(Some(true), None), seen);
    check(&stopped(0, vec![fault(Stage::Handshake, Kind::Reset, 800)]), &e(Some(true), Some(0)), seen);
    let guess = ("target", "tls-expected", 800, "perhaps the target expects TLS", "openssl s_client");
    check(&stopped(0, at_once()), &e(None, Some(1)), guess);
    let certainty =
        |evidence: &Evidence| limit(&stopped(0, at_once()), evidence).map(|limit| limit.certainty);
    use Certainty::{Guess, Seen};
    assert_eq!([e(Some(true), None), e(None, None)].map(|e| certainty(&e)), [Some(Seen), Some(Guess)]);
    // Not the cause: the target does not accept TLS; it waited before closing; a byte arrived; idle connections were closed.
    let closed = ("target", "closed", 800, "closed by the peer", "log");
    check(&stopped(0, at_once()), &e(Some(false), None), closed);
    check(&stopped(0, at_once()), &e(None, Some(3_000)), ("target", "request-timeout", 800, "", ""));
    check(&stopped(0, at_once()), &Evidence { is_mute: false, ..e(Some(true), None) }, closed);
    check(&stopped(0, vec![fault(Stage::Hold, Kind::Closed, 800)]), &e(Some(true), None), closed);
}

#[test]
fn open_files_are_held_against_their_limit() {
    let files = |used, limit| {
        let seen = TargetSeen { open_files: Some(Fill { used, limit }), ..TargetSeen::default() };
        Evidence { target: target(seen).target, ..here(overflows(5)) }
    };
    let expected =
        ("target", "open-files", 195, "has 200 of 200 files open", "prlimit --pid 81 --nofile=1048576");
    check(&stopped(195, waiting()), &files(200, 200), expected);
    check(
        &stopped(500, waiting()),
        &files(201, 200),
        ("target", "open-files", 200, "has 200 of 200 files open", ""),
    );
    // Some descriptors are reserved; and a target may hold more connections than files, as with direct descriptors.
    check(&stopped(1_000, waiting()), &files(990, 1_000), ("target", "open-files", 800, "990", "--nofile"));
    check(&stopped(195, closed()), &files(195, 200), ("target", "open-files", 195, "195", ""));
    // A step of a search does not wait for connections in the accept queue.
    let queued = |used| Evidence { unaccepted: 983, is_cut_short: true, ..files(used, 1_024) };
    check(
        &stopped(1_017, vec![]),
        &queued(1_024),
        ("target", "open-files", 800, "1,024 of 1,024", "--nofile"),
    );
    check(&stopped(1_017, vec![]), &queued(1_010), ("target", "accept-queue", 1_017, "", ""));
    // Far below its limit on files: another cause.
    check(&stopped(195, waiting()), &files(200, 1_024), ("target", "accept-queue", 195, "", ""));
    // A lack of files does not cause wrong responses.
    let wrong = vec![fault(Stage::Exchange, Kind::WrongStatus, 9)];
    check(&stopped(1_000, wrong), &files(200, 200), ("target", "wrong-answer", 800, "9 responses", "curl"));
}

#[test]
fn a_full_table_of_tracked_connections_is_seen() {
    let host = |used| Host { conntrack: Some(Fill { used, limit: 500 }), ..Host::default() };
    let table = |used| Evidence { here: host(used), ..Evidence::default() };
    let expected = ("host", "conntrack", 250, "500 of 500 entries", "nf_conntrack_max=2000");
    check(&stopped(250, waiting()), &table(500), expected);
    check(
        &stopped(250, of(Fault::host(Stage::Dial, Kind::Denied), 9)),
        &table(496),
        ("host", "conntrack", 250, "496", ""),
    );
    check(&stopped(250, waiting()), &table(400), ("target", "timeout", 800, "", ""));
    // The table of the target's host, which is another machine and was observed.
    let there = Evidence { there: Some(host(500)), ..table(400) };
    let expected =
        ("target", "conntrack", 250, "the target's host's conntrack table has 500", "nf_conntrack_max=2000");
    check(&stopped(250, waiting()), &there, expected);
    // The kernel counts the packets that a full table drops: the table with drops is the cause.
    let drops = |used, drops| Host { conntrack_drops: Some(drops), ..host(used) };
    let both = Evidence { here: drops(500, 0), there: Some(drops(480, 90)), ..Evidence::default() };
    let expected = ("target", "conntrack", 250, "dropped 90 packets", "nf_conntrack_max=2000");
    check(&stopped(250, waiting()), &both, expected);
    // A full table that dropped nothing is not the cause; it may have been one on the path.
    let neither = Evidence { here: drops(500, 0), there: None, ..Evidence::default() };
    check(&stopped(250, waiting()), &neither, ("target", "timeout", 800, "", ""));
}

#[test]
fn our_own_calls_name_their_errors() {
    for (kind, cause, fix) in [
        (Kind::AddressInUse, "ports", "--sources"),
        (Kind::NoMemory, "memory", "fewer"),
        (Kind::OpenFiles, "open-files", "ulimit -n"),
        (Kind::Other, "unknown", "strace"),
    ] {
        let faults = of(Fault::host(Stage::Dial, kind), 7);
        check(&stopped(793, faults), &Evidence::default(), ("host", cause, 800, "7 ", fix));
    }
}

#[test]
fn constant_times_are_reported() {
    let time = |silence_ms: Option<u64>, age_ms: Option<u64>| {
        lost(Pattern {
            silence: silence_ms.map(Nanos::from_millis),
            age: age_ms.map(Nanos::from_millis),
            ..Pattern::default()
        })
    };
    let idle =
        ("target", "idle-cut", 800, "800 connections were closed after 30 s of inactivity", "above 30 s");
    check(&stopped(0, closed()), &time(Some(30_020), None), idle);
    let both = ("target", "idle-cut", 800, "closed after 2 s of inactivity", "");
    check(&stopped(0, closed()), &time(Some(1_990), Some(2_040)), both);
    let expected =
        ("target", "reset-after", 800, "800 connections were reset 2.1 s after they were opened", "of 2.1 s");
    check(&stopped(0, reset()), &time(Some(1_990), Some(2_090)), expected);
    check(&stopped(0, reset()), &time(None, Some(2_090)), expected);
    // All connections were opened or reset at one moment, as by a restart: neither age nor silence explains that.
    let mut restarted = time(Some(1_990), None);
    restarted.losses.is_one_moment = true;
    let mut s = stopped(0, reset());
    s.connections.dropped = 800;
    check(&s, &restarted, ("target", "closed", 800, "reset by the peer", "check the target's log"));
    check(
        &stopped(0, reset()),
        &time(Some(3_000), None),
        ("target", "request-timeout", 800, "reset 3 s after a request", ""),
    );
    // The target gives up a request that has no response in time.
    let waited = || vec![fault(Stage::Exchange, Kind::Closed, 50)];
    let expected = (
        "target",
        "request-timeout",
        800,
        "3.2 s after a request, without a response",
        "a request timeout of 3.2 s",
    );
    check(&stopped(0, waited()), &time(Some(3_230), Some(3_240)), expected);
    // Closed immediately: not a configured timeout.
    check(&stopped(0, closed()), &time(Some(150), Some(200)), ("target", "closed", 800, "800", "and log"));
}

#[test]
fn late_dials_were_surplus() {
    let check_texts = |were_old, detail: &str, sentence: &str| {
        let surplus = lost(Pattern { is_surplus: true, were_old, ..Pattern::default() });
        check(&stopped(500, closed()), &surplus, ("target", "connection-limit", 500, detail, "--max-open"));
        let limit = limit(&stopped(500, closed()), &surplus).expect("there is one");
        assert_eq!(limit.sentence, sentence);
    };
    let turns_away = "the target immediately closes connections beyond 500";
    check_texts(Some(false), "beyond 500 open ones were closed immediately", turns_away);
    let makes_room = "the target closed 800 idle connections to admit new ones, and keeps about 500";
    check_texts(Some(true), "beyond 500 open ones the target makes room", makes_room);
    let not_known = "the target closed 800 connections as others opened, and keeps about 500";
    check_texts(None, "new ones, or idle ones to make room", not_known);
}

#[test]
fn a_target_without_cpu_is_distinguished_from_a_slow_one() {
    let cpu = |cpu_thread, cpu_share| target(TargetSeen { cpu_thread, cpu_share, ..TargetSeen::default() });
    let expected =
        ("target", "cpu", 1_000, "busiest thread of process 81 was runnable for 99 %", "more processors");
    let mut slow = stopped(1_000, Vec::new());
    slow.connections.peak = 1_000;
    let bad = |evidence: &Evidence| limit(&slow, evidence).expect("it is bad");
    let limit = bad(&cpu(Some(0.99), 0.5));
    assert_eq!(
        (limit.side.name(), limit.cause.name(), limit.at_connections),
        (expected.0, expected.1, expected.2)
    );
    assert!(limit.detail.contains(expected.3) && limit.fix.contains(expected.4), "{limit:?}");
    assert!(bad(&cpu(None, 0.97)).detail.contains("97 % of its processors"));
    assert_eq!(bad(&cpu(Some(0.9), 0.9)).cause, Cause::Unknown);
    let steady = Evidence { accepts_per_s: Some(50.0), ..cpu(Some(1.0), 0.5) };
    check(&stopped(300, waiting()), &steady, ("target", "cpu", 300, "", ""));
}

#[test]
fn a_steady_rate_of_accepts_is_named() {
    let queue = Some(Fill { used: 450, limit: 4_096 });
    let slow = Evidence { accepts_per_s: Some(49.7), accept_queue: queue, ..here(NetCounters::default()) };
    let expected = ("target", "slow-accept", 300, "a steady 50/s, while up to 450 waited", "--ramp 44/s");
    check(&stopped(300, waiting()), &slow, expected);
}

#[test]
fn each_limit_has_a_certainty() {
    let sure = |s: &Summary, e: &Evidence| limit(s, e).expect("something stopped it").certainty;
    let files = Some(Fill { used: 200, limit: 200 });
    let out_of_files = target(TargetSeen { open_files: files, ..TargetSeen::default() });
    assert_eq!(sure(&stopped(195, waiting()), &out_of_files), Certainty::Seen);
    let surplus = lost(Pattern { is_surplus: true, ..Pattern::default() });
    assert_eq!(sure(&stopped(500, closed()), &surplus), Certainty::Inferred);
    assert_eq!(sure(&stopped(400, closed()), &Evidence::default()), Certainty::Seen);
    assert_eq!(sure(&stopped(400, waiting()), &Evidence::default()), Certainty::Guess);
}

#[test]
fn the_most_frequent_trouble_is_the_one() {
    let mut faults = reset();
    faults.extend(waiting());
    // With as many resets as timeouts, the timeouts are reported first.
    check(&stopped(5, faults.clone()), &Evidence::default(), ("target", "timeout", 800, "800", ""));
    faults.push(fault(Stage::Hold, Kind::Closed, 1));
    let mut s = stopped(5, faults);
    s.connections.dropped = 801;
    check(&s, &Evidence::default(), ("target", "closed", 800, "801", ""));
}

#[test]
fn slots_waiting_at_the_end_count_as_missed() {
    let mut s = stopped(1_000, Vec::new());
    s.requests.unanswered = 40;
    check(&s, &Evidence::default(), ("target", "timeout", 800, "40 requests timed out", ""));
    // A user who interrupts the run does not wait for responses, so there is no limit.
    s.verdict = Verdict::Interrupted;
    assert_eq!(limit(&s, &Evidence::default()), None);
    s.faults = vec![fault(Stage::Exchange, Kind::Timeout, 7)];
    check(&s, &Evidence::default(), ("target", "timeout", 800, "7 requests timed out", ""));
}

#[test]
fn the_path_is_distinguished_from_its_ends() {
    let unreachable = of(Fault { side: Side::Path, ..Fault::host(Stage::Dial, Kind::Unreachable) }, 4);
    check(
        &stopped(0, unreachable),
        &Evidence::default(),
        ("path", "unreachable", 800, "4 dials", "ip route"),
    );
    let denied = of(Fault::host(Stage::Dial, Kind::Denied), 4);
    check(&stopped(0, denied), &Evidence::default(), ("host", "denied", 800, "4 ", "firewall"));
}

#[test]
fn an_unknown_cause_reports_what_was_observed() {
    let other = of(Fault { side: Side::Unknown, ..Fault::host(Stage::Exchange, Kind::Other) }, 12);
    let seen = "12 unknown exchange other, 3 listen overflows in the whole network namespace";
    check(&stopped(5, other), &here(overflows(3)), ("unknown", "unknown", 5, seen, "strace"));
    let nothing = limit(&stopped(1_000, Vec::new()), &Evidence::default()).expect("it is bad");
    assert_eq!((nothing.side, nothing.detail.as_str()), (Side::Unknown, "unknown; seen: nothing unusual"));
    let mut strict = stopped(1_000, Vec::new());
    strict.thresholds = vec![samples::ThresholdResult { value: Some(9e3), ..Default::default() }];
    let strict = limit(&strict, &Evidence::default()).expect("it is bad");
    assert_eq!(strict.detail, "no limit was reached; seen: nothing unusual");
}

#[test]
fn a_run_that_passes_has_a_suspect() {
    let passed = Summary { verdict: Verdict::Pass, ..stopped(1_000, Vec::new()) };
    let busy = target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() });
    let expected =
        |evidence: &Evidence| suspect(&passed, evidence).map(|limit| (limit.side.name(), limit.cause.name()));
    assert_eq!(expected(&busy), Some(("target", "cpu")));
    // The target may be slow because throng uses up its processor.
    let own = Some(OwnSeen { cpu_share: 1.0, demand: 1.0 });
    assert_eq!(expected(&Evidence { own, ..busy }), Some(("host", "cpu")));
    assert_eq!(expected(&Evidence::default()), None, "nothing is seen");
}

#[test]
fn seen_causes_outweigh_inferred_ones() {
    let limit = |(side, cause)| Limit { side, cause, certainty: Certainty::Seen, ..Limit::default() };
    let ascending = [
        (Side::Unknown, Cause::Unknown),
        (Side::Target, Cause::Timeout),
        (Side::Target, Cause::Refused),
        (Side::Host, Cause::Cpu),
        (Side::Target, Cause::Cpu),
        (Side::Host, Cause::Memory),
        (Side::Target, Cause::OpenFiles),
        (Side::Target, Cause::Memory),
        (Side::Target, Cause::Ended),
    ];
    let weights = ascending.map(|what| weight(&limit(what)));
    assert_eq!(weights, [0, 1, 1, 1, 2, 2, 3, 4, 4]);
    let guess = Limit { certainty: Certainty::Guess, ..limit((Side::Target, Cause::OpenFiles)) };
    assert_eq!(weight(&guess), 1, "what is a guess gives way");
    assert!(
        is_nobody(&limit((Side::Target, Cause::Refused)))
            && !is_nobody(&limit((Side::Target, Cause::Timeout)))
    );
    assert!(!is_nobody(&Limit { at_connections: 9, ..limit((Side::Target, Cause::Refused)) }), "it listened");
}

#[test]
fn a_generator_that_was_the_limit_is_reported() {
    let mut s = stopped(1_000, Vec::new());
    s.verdict = Verdict::Invalid;
    s.reasons = vec!["throng was late: lag p99 20.0 ms > 10.0 ms".to_owned()];
    check(&s, &Evidence::default(), ("host", "cpu", 800, "lag p99 20.0 ms", "processors"));
    // A little lag does not explain dials that exceed a timeout of 10 s; lag of that order does.
    s.faults = waiting();
    s.lag_us.max = 27_000.0;
    let patient = || Evidence { timeout: Nanos::from_secs(10), ..Evidence::default() };
    check(&s, &patient(), ("target", "timeout", 800, "", ""));
    s.lag_us.max = 6e6;
    check(&s, &patient(), ("host", "cpu", 800, "lag p99", ""));
    s.lag_us.max = 27_000.0;
    let starved = Evidence { own: Some(OwnSeen { cpu_share: 0.9, demand: 1.0 }), ..patient() };
    check(&s, &starved, ("host", "cpu", 800, "lag p99", ""));
    // Failures that throng's lateness does not explain remain the target's.
    s.faults = closed();
    let surplus = lost(Pattern { is_surplus: true, ..Pattern::default() });
    check(&s, &surplus, ("target", "connection-limit", 1_000, "", ""));
    check(&s, &Evidence::default(), ("target", "closed", 800, "", ""));
    s.faults = of(Fault::host(Stage::Dial, Kind::AddressInUse), 5);
    check(&s, &Evidence::default(), ("host", "ports", 800, "5 dials", ""));
}

mod asked;
mod first;
mod load;
mod lost;
mod mixed;
mod pace;
mod process;
mod queue;
mod resets;
mod search;
mod secured;
mod silence;
mod streams;
mod way;
mod whose;
mod wrong;

/// The listed order of causes decides no stored run: in tests, [`super::limit`] compares both orders.
#[test]
fn no_stored_run_depends_on_the_order_of_the_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/records");
    let parts = ["tuned", "held_out"].map(|part| folder.join(part).read_dir().expect("a folder"));
    let mut judged = 0;
    for file in parts.into_iter().flatten() {
        judged += 1;
        let path = file.expect("a file").path();
        let file = std::fs::File::open(path).expect("it is there");
        let stored: serde_json::Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("a record");
        crate::rejudge(&stored["measured"].to_string()).expect("it can be judged");
    }
    assert!(judged > 500, "{judged}");
}
