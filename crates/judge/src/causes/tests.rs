//! The sentence of each cause, and the order of precedence.

use std::collections::BTreeSet;

use super::{no_room_here::What, starved::Which, *};
use crate::{
    cpu::Of,
    evidence::{Shared, Stall, State},
    paced::Missed,
    queue::Outrun,
    starved::Starved,
};
use record::{answers::TurnedAway, fill::Fill, rejection::Rejection, signs::FullHeap};
use samples::SlowPart;

/// Id of a cause, its sentence, and the expected one.
type Row = (&'static str, String, &'static str);

fn said<C: Cause>(cause: C, expected: &'static str) -> Row {
    (C::ID, cause.sentence(), expected)
}

fn check(rows: Vec<Row>) -> BTreeSet<&'static str> {
    rows.iter().for_each(|(_, sentence, expected)| assert_eq!(sentence, expected));
    rows.iter().map(|(id, ..)| *id).collect()
}

/// Each cause once, plus the variants of those that have several.
#[test]
fn each_cause_has_its_sentence() {
    let rows =
        [process(), resources(), closes(), queues(), unserved(), asked(), here(), load(), path()].concat();
    let ids = check(rows);
    let all: BTreeSet<&str> = CAUSES.iter().map(|cause| cause.id).collect();
    assert_eq!(ids, all);
    assert_eq!(all.len(), CAUSES.len(), "a name is there twice");
}

fn process() -> Vec<Row> {
    vec![
        said(ended::Ended { at: 20_000 }, "the target's process exited at 20,000 connections"),
        said(
            oom_killed::OomKilled { at: 9_000, killed: 1, is_of_group: false },
            "the target was killed at 9,000 connections: its host was out of memory",
        ),
        said(
            oom_killed::OomKilled { at: 9_000, killed: 1, is_of_group: true },
            "the target was killed at 9,000 connections: its control group was out of memory",
        ),
        said(
            worker_ended::WorkerEnded { lost: 17 },
            "one of the target's processes exited, and 17 connections with it",
        ),
        said(
            deserted::Deserted { address: "127.0.0.1:82".to_owned() },
            "the target at 127.0.0.1:82 is gone: nothing listens there any more",
        ),
    ]
}

fn resources() -> Vec<Row> {
    let logged = |kind| logged::Logged { kind, at: 950 };
    let full = FullHeap { used: 500 << 20, limit: 512 << 20, collecting: 0.6 };
    let stall = Stall { state: State::Collecting, ..Stall::default() };
    let (slow, usual) = (Nanos::from_millis(4_010), Nanos::from_millis(21));
    vec![
        said(
            open_files::OpenFiles { used: 1_024, limit: 1_024 },
            "the target ran out of open files: 1,024 of 1,024 used",
        ),
        said(
            logged(LogKind::OpenFiles),
            "the target ran out of open files at 950 connections, according to its log",
        ),
        said(
            logged(LogKind::Threads),
            "the target could not start another thread at 950 connections, according to its log",
        ),
        said(
            logged(LogKind::Memory),
            "the target ran out of memory at 950 connections, according to its log",
        ),
        said(
            logged_connections::LoggedConnections { at: 510 },
            "the target reached its own limit on connections at 510, according to its log",
        ),
        said(heap::Heap { at: 950, full: None }, "the target's heap was full at 950 connections"),
        said(
            heap::Heap { at: 950, full: Some(full) },
            "the target's heap was full: 500 MiB of 512 MiB used, 60 % of the time spent in garbage collections",
        ),
        said(
            thread_ended::ThreadEnded { name: "acceptor".to_owned() },
            "the target's thread \"acceptor\" exited, and new connections are no longer accepted",
        ),
        said(
            cpu::Cpu { share: 0.99, of: Of::Thread, from: Some(310) },
            "the target ran out of CPU from 310 connections on: its busiest thread was runnable for 99 % of the time",
        ),
        said(
            cpu::Cpu { share: 0.97, of: Of::All, from: None },
            "the target ran out of CPU: it used 97 % of its processors",
        ),
        said(
            cpu::Cpu { share: 0.99, of: Of::One, from: None },
            "the target ran out of CPU: its threads together used 99 % of one processor",
        ),
        said(
            cpu_quota::CpuQuota { cores: 0.2, share: 0.81 },
            "the target used up its CPU quota of 0.2 cores, and had to wait in 81 % of all periods",
        ),
        said(
            silent::Silent { of: None, seconds: 2.5, stall },
            "the target stalled: no response for 2.5 s, while it collected garbage",
        ),
        said(
            target_stopped::TargetStopped { from_s: 5.0, until_s: 9.0 },
            "the target's process was stopped from second 5 to 9",
        ),
        said(
            collecting::Collecting { part: SlowPart { share: 0.05, slow, usual }, pause: slow },
            "5.0 % of responses took 4.0 s, the others 21 ms, while the target collected garbage",
        ),
        said(
            paused::Paused { times: 3, part: SlowPart { share: 0.05, slow, usual }, is_far: false },
            "the target paused 3 times: 5.0 % of responses took 4.0 s, on every connection at once",
        ),
    ]
}

fn closes() -> Vec<Row> {
    let s = Nanos::from_millis;
    let room = |keeps, count| makes_room::MakesRoom { keeps, count, silences: None };
    let away = |status: Option<&str>| probe_turned_away::ProbeTurnedAway {
        beyond: 136,
        new: 9,
        status: status.map(str::to_owned),
    };
    let expects = |how| tls_expected::TlsExpected { count: 5, how };
    vec![
        said(
            idle_timeout::IdleTimeout { time: s(30_020), count: 800, by: By::Target },
            "the target closes connections after 30 s of inactivity (800 closed)",
        ),
        said(
            request_timeout::RequestTimeout { time: s(3_230), count: 50, by: By::Target },
            "the target closes connections 3.2 s after a request, without a response (50 closed)",
        ),
        said(
            age_limit::AgeLimit { time: s(2_090), count: 800, by: By::Target },
            "the target ends connections 2.1 s after they are opened (800 ended)",
        ),
        said(
            requests_per_connection::RequestsPerConnection { responses: 100, by: By::Target },
            "the target closes each connection after 100 responses",
        ),
        said(
            requests_per_connection::RequestsPerConnection { responses: 1, by: By::Target },
            "the target closes each connection after its response",
        ),
        said(
            room(Some(510), 88),
            "the target closed 88 idle connections to admit new ones, and keeps about 510",
        ),
        said(room(None, 1), "the target closed 1 idle connection to admit new ones"),
        said(
            turns_away::TurnsAway { beyond: 500, count: 9, are_new: true, by: By::TargetOrPath, asked: None },
            "the target, or something on the path, immediately closes connections beyond 500",
        ),
        said(
            turns_away::TurnsAway { beyond: 472, count: 1, are_new: false, by: By::Target, asked: None },
            "the target closed 1 connection as others opened, and keeps about 472",
        ),
        said(stranded::Stranded { count: 90 }, "the target closed 90 connections after announcing it"),
        said(away(None), "the target immediately closes connections beyond 136 plus the probe's"),
        said(
            away(Some("status 503")),
            "the target responds with status 503 to connections beyond 136 plus the probe's",
        ),
        said(
            expects(tls_expected::How::Rejected),
            "the target expects TLS: it rejected 5 connections in plain text",
        ),
        said(
            expects(tls_expected::How::ClosedAtOnce),
            "the target expects TLS: it closed 5 connections at their first request, sending nothing",
        ),
        said(
            tls::Tls::new(1, "the target's certificate has expired", " (y)"),
            "1 TLS handshake failed: the target's certificate has expired (y)",
        ),
        said(
            no_http2::NoHttp2 { lacks: no_http2::Lacks::Http2, connections: None },
            "the target does not speak HTTP/2 without TLS",
        ),
        said(
            no_http2::NoHttp2 { lacks: no_http2::Lacks::WebSocket, connections: Some(2) },
            "the target does not offer WebSocket over HTTP/2 (RFC 8441) on 2 connections",
        ),
    ]
}

fn queues() -> Vec<Row> {
    let unaccepted = |count, most| queue_unaccepted::QueueUnaccepted { count, most };
    let standing = |served, count| queue_standing::QueueStanding {
        served,
        stood: 60,
        count,
        most: None,
        in_turns: false,
    };
    vec![
        said(
            queue_overflowed::QueueOverflowed { backlog: 8, times: 66 },
            "the target's accept queue of 8 was full: it overflowed 66 times",
        ),
        said(
            queue_slowed_dials::QueueSlowedDials { backlog: 0, times: 1 },
            "the target's accept queue was full: it overflowed 1 time",
        ),
        said(
            unaccepted(60, None),
            "the target's process did not accept 60 connections: they wait in its accept queue",
        ),
        said(
            unaccepted(1, None),
            "the target's process did not accept 1 connection: it waits in its accept queue",
        ),
        said(
            unaccepted(6, Some(most(&[], 6, 4))),
            "the target serves 4 connections at a time: 6 others wait in its accept queue",
        ),
        said(
            unaccepted(2, Some(most(&["readers", "writers"], 6, 4))),
            "the target serves 4 connections of population readers and writers at a time: 6 others had no response by the end of the \
            load, 2 of them in its accept queue",
        ),
        said(
            standing(1, Some(1)),
            "the target serves 1 connection at a time: 1 other waits in its accept queue",
        ),
        said(
            standing(8, None),
            "the target serves at most 8 connections at a time: others wait in its accept queue",
        ),
        said(
            probe_starved::ProbeStarved { new: 21, served: 22, at: 9 },
            "21 new probe connections got no correct response, the kept ones got 22: the target serves a limited number \
            of connections at a time, including the probe's",
        ),
    ]
}

fn most(names: &[&str], count: u64, served: u64) -> Starved {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Starved { names, count, served, ..Starved::default() }
}

fn unserved() -> Vec<Row> {
    let in_turns = |most| Starved { in_turns: true, ..most };
    let starved = |most: Starved, has_probe| {
        let by = if most.may_be_of_one() { Which::Either } else { Which::Limit };
        starved::Starved { most, has_probe, by }
    };
    vec![
        said(
            upstream_ports::UpstreamPorts { at: 950 },
            "the target ran out of local ports to its upstream at 950 connections, according to its log",
        ),
        said(
            starved::Starved { most: most(&[], 16, 48), has_probe: false, by: Which::OneOf },
            "16 of 64 connections had no response by the end of the load: one of several backends or workers does not respond",
        ),
        said(
            starved(most(&[], 92, 8), false),
            "the target serves 8 connections at a time: 92 others had no response by the end of the load",
        ),
        said(
            starved(in_turns(most(&["users"], 1, 1)), true),
            "1 of 2 connections of population users had no response by the end of the load: the target serves at most 1 at a time, plus \
            the probe's, or one of several backends or workers does not respond",
        ),
        said(
            starved(in_turns(most(&["users"], 2, 1)), true),
            "the target serves at most 1 connection of population users at a time, plus the probe's: 2 others had no response by the end \
            of the load",
        ),
    ]
}

fn asked() -> Vec<Row> {
    let full = |of| full::Full { most: 500, of };
    let few_at_a_time = |per_s, is_most_late| few_at_a_time::FewAtATime {
        alone: Nanos::from_millis(50),
        median: Nanos::from_millis(1_200),
        per_s,
        is_most_late,
    };
    vec![
        said(
            full(TurnedAway::Full),
            "the target serves no more than 500 connections: one more was served only when half of them were closed",
        ),
        said(
            full(TurnedAway::BySource),
            "the target serves no more than 500 connections of a source address: one from another address was served",
        ),
        said(
            full(TurnedAway::ByAddress),
            "the target serves no more than 500 connections at this address: one at another of its addresses was served",
        ),
        said(
            few_at_a_time(79.0, false),
            "the target works on about 4 requests at a time: a response takes 50 ms alone, and 1.2 s under load",
        ),
        said(
            few_at_a_time(3.0, false),
            "the target works on about 1 request at a time: a response takes 50 ms alone, and 1.2 s under load",
        ),
        said(
            few_at_a_time(79.0, true),
            "the target works on few requests at a time: a response takes 50 ms alone, and over 1.2 s under load",
        ),
    ]
}

fn here() -> Vec<Row> {
    let no = |what| no_room_here::NoRoomHere { what, count: 7 };
    let list = "0-1".to_owned();
    let memory = |side| socket_memory::SocketMemory { side, aborted: 12 };
    vec![
        said(no(What::ForeignSource), "7 dials used a source address that this machine does not have"),
        said(no(What::Ports), "this machine had no free local port for 7 dials"),
        said(no(What::Memory), "this machine had no memory for 7 sockets"),
        said(no(What::Files), "this machine had no file descriptors for 7 sockets"),
        said(no(What::Other("EINVAL".to_owned())), "7 dials failed on this machine: EINVAL"),
        said(
            memory(Side::Target),
            "the target's host ran out of memory for sockets: its kernel aborted 12 connections",
        ),
        said(
            memory(Side::Host),
            "this machine ran out of memory for sockets: its kernel aborted 12 connections",
        ),
        said(
            conntrack::Conntrack { side: Side::Host, table: Fill { used: 500, limit: 500 }, drops: None },
            "this host's conntrack table is full: 500 of 500 entries",
        ),
        said(
            throng_stopped::ThrongStopped { who: "agent a2".to_owned(), seconds: 1.25 },
            "agent a2 was stopped, or had no processor, for 1.2 s",
        ),
        said(throng_too_slow::ThrongTooSlow { why: "throng was late".to_owned() }, "throng was late"),
        said(
            shared_processors::SharedProcessors(Shared { list, ..Shared::default() }),
            "throng and the target compete for the same processors (0-1)",
        ),
        said(
            blocked_here::BlockedHere { dials: 9, segments: 1, since: String::new() },
            "this machine's firewall dropped 9 dials",
        ),
    ]
}

fn load() -> Vec<Row> {
    let missed = Missed {
        population: None,
        held: 20,
        all: 20,
        sent: 400,
        missed: 11_600,
        answered_per_s: 94.4,
        least_us: 9.0,
        time_s: 10.0,
    };
    let due = 1_200.0;
    let saturated = |outrun| saturated::Saturated { outrun };
    vec![
        said(
            too_few_connections::TooFewConnections { held: 20, carried: 39.6, due, missed: missed.clone() },
            "too few connections: 20 carried 40 of the 1,200 requests that were due each second",
        ),
        said(
            busy_connections::BusyConnections { held: 20, carried: 39.6, due, response: Nanos(1) },
            "too few connections: 20 carried 40 of the 1,200 requests that were due each second",
        ),
        said(
            falls_behind::FallsBehind { missed, is_by_interval: false },
            "the target responds to only 94 of the 1,200 requests due per second",
        ),
        said(
            slow_accept::SlowAccept::OwnPace { per_s: 49.7, arrive: None },
            "the target accepts no more than 50 connections/s",
        ),
        said(
            slow_accept::SlowAccept::OwnPace { per_s: 98.4, arrive: Some(200.0) },
            "200 connections/s arrive, and the target accepts no more than 98/s",
        ),
        said(
            slow_accept::SlowAccept::Outrun { count: 406, given_up: 346 },
            "connections arrive faster than the target accepts them: 406 in its accept queue at the end, 346 of them already abandoned \
            by throng",
        ),
        said(
            slow_accept::SlowAccept::Outrun { count: 420, given_up: 0 },
            "connections arrive faster than the target accepts them: 420 waited in its accept queue at the end",
        ),
        said(
            saturated(Outrun::Served { count: 1_420 }),
            "connections arrive faster than the target serves them: 1,420 waited for a response at the end",
        ),
        said(
            saturated(Outrun::Rate { count: 42, connections: 50 }),
            "requests come faster than the target serves them on 50 connections: 42 waited at the end",
        ),
    ]
}

fn path() -> Vec<Row> {
    let at = "10.0.0.9:80".parse().expect("an address");
    let rejected = |by: Option<&str>, is_ours, code| rejected::Rejected {
        icmp: Rejection {
            by: by.map(|by| by.parse().expect("an address")),
            is_v6: false,
            kind: 3,
            code,
            at,
            is_ours,
        },
        rejected: 5,
        silent: 4,
    };
    let none = |is_routed| no_syn_ack::NoSynAck { dials: 9, again: 0, is_routed };
    vec![
        said(rejected(Some("10.0.0.1"), false, 13), "9 dials were rejected by 10.0.0.1"),
        said(rejected(None, false, 13), "9 dials were rejected on the path"),
        said(rejected(Some("10.0.0.1"), true, 13), "this machine's firewall rejected 9 dials"),
        said(rejected(Some("10.0.0.1"), true, 1), "9 dials failed: no host responds at that address"),
        said(
            rejected_in_part::RejectedInPart { dials: 9, messages: 2 },
            "9 dials were rejected or got no SYN-ACK",
        ),
        said(
            black_hole::BlackHole { count: 50, what: "request", is_ours: false },
            "the path drops large packets: 50 requests had no response, and users with small segments were served",
        ),
        said(
            loses_segments::LosesSegments { count: 39, disordered: 38, of: 40 },
            "the path loses segments: 39 responses began and did not end in time",
        ),
        said(
            forgotten::Forgotten { silence: Nanos::from_millis(2_147), count: 70, by: By::Path },
            "something on the path forgets idle connections: 70 requests failed that came after 2.1 s of silence or longer",
        ),
        said(none(false), "9 dials got no reply: the path drops packets, or no host has that address"),
        said(
            none(true),
            "9 dials got no reply: packets are not forwarded, or replies have no route to the source network",
        ),
        said(
            cut_off::CutOff { dials: 28, opened: 56, is_beyond: false },
            "28 of 84 dials got no reply, while others at the same time were served",
        ),
        said(
            cut_off::CutOff { dials: 300, opened: 1_000, is_beyond: true },
            "dials got no reply from the 1,001st on, while the open connections are served",
        ),
        said(
            unacknowledged::Unacknowledged { count: 9, of: 10, quiet_s: 2.0 },
            "the path is interrupted: data on 9 of 10 connections is not acknowledged",
        ),
        said(
            syn_loss::SynLoss { again: 1_204, p99_s: 3.04, by: syn_loss::By::Path },
            "1,204 SYNs were retransmitted, and connect p99 was 3.0 s: the path drops some SYNs",
        ),
    ]
}

/// Precedence between causes has no cycles and names only existing causes.
#[test]
fn what_explains_what_is_acyclic() {
    let yields_to = |id: &str| CAUSES.iter().find(|cause| cause.id == id).map(|cause| cause.yields_to);
    for cause in CAUSES {
        let mut reached: Vec<&str> = cause.yields_to.split_whitespace().collect();
        let mut next = 0;
        while let Some(id) = reached.get(next).copied() {
            let further =
                yields_to(id).unwrap_or_else(|| panic!("{} yields to {id}, which is none", cause.id));
            reached.extend(further.split_whitespace().filter(|id| !reached.contains(id)).collect::<Vec<_>>());
            next += 1;
        }
        assert!(!reached.contains(&cause.id), "{} yields to itself: {reached:?}", cause.id);
    }
}
