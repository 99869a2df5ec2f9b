//! Every sentence with its words.

use samples::SlowPart;
use units::{Nanos, Rate};

use super::{S, Sentence, Starved};
use crate::limit::sentence::HowMany;

pub(super) fn table() -> Vec<(Sentence, &'static str)> {
    [first_part(), second_part(), third_part(), fourth_part(), fifth_part(), around_others()].concat()
}

fn first_part() -> Vec<(Sentence, &'static str)> {
    let address = || "127.0.0.1:81".to_owned();
    vec![
        (S::SlowAccept { per_s: 49.7, arrive: None }, "the target accepts no more than 50 connections/s"),
        (S::NothingListens { address: address() }, "connection refused: nothing listens on 127.0.0.1:81"),
        (
            S::RefusedByOthers { address: address() },
            "connection refused, although a process listens on 127.0.0.1:81",
        ),
        (
            S::StoppedListening { accepted: 800 },
            "connection refused after the target had accepted 800 connections",
        ),
        (S::Exited { at: 20_000 }, "the target's process exited at 20,000 connections"),
        (S::WorkerExited { lost: 17 }, "one of the target's processes exited, and 17 connections with it"),
        (
            S::OomKilled { at: 9_000 },
            "the target was killed at 9,000 connections: its host was out of memory",
        ),
        (
            S::SocketMemory { is_ours: false, aborted: 12 },
            "the target's host ran out of memory for sockets: its kernel aborted 12 connections",
        ),
        (S::OpenFiles { used: 1_024, limit: 1_024 }, "the target ran out of open files: 1,024 of 1,024 used"),
        (
            S::LoggedOpenFiles { at: 950 },
            "the target ran out of open files at 950 connections, according to its log",
        ),
        (
            S::LoggedThreads { at: 950 },
            "the target could not start another thread at 950 connections, according to its log",
        ),
        (
            S::LoggedMemory { at: 950 },
            "the target ran out of memory at 950 connections, according to its log",
        ),
        (
            S::LoggedConnections { at: 510 },
            "the target reached its own limit on connections at 510, according to its log",
        ),
        (S::Heap { at: 950 }, "the target's heap was full at 950 connections"),
        (
            S::HeapOf { used: 500 << 20, limit: 512 << 20, collecting: 0.6 },
            "the target's heap was full: 500 MiB of 512 MiB used, 60 % of the time spent in garbage collections",
        ),
        (
            S::ThreadEnded { name: "acceptor".to_owned() },
            "the target's thread \"acceptor\" exited, and new connections are no longer accepted",
        ),
        (
            S::Tls { handshakes: 5, what: "the target's certificate has expired", detail: String::new() },
            "5 TLS handshakes failed: the target's certificate has expired",
        ),
        (
            S::TlsExpected { connections: 5 },
            "the target expects TLS: it rejected 5 connections in plain text",
        ),
    ]
}

fn second_part() -> Vec<(Sentence, &'static str)> {
    let s = Nanos::from_millis;
    vec![
        (
            S::Deserted { address: "127.0.0.1:82".to_owned() },
            "the target at 127.0.0.1:82 is gone: nothing listens there any more",
        ),
        (
            S::MuteClose { connections: 5 },
            "the target expects TLS: it closed 5 connections at their first request, sending nothing",
        ),
        (
            S::UnexpectedStatus { statuses: vec![(404, 208_232), (503, 12)] },
            "unexpected status: 404 × 208,232, 503 × 12",
        ),
        (
            S::UpgradeRefused { statuses: vec![(404, 5)], reason: "there is no WebSocket at this path" },
            "WebSocket upgrade refused with status 404 × 5: there is no WebSocket at this path",
        ),
        (
            S::ClosedMute { count: 10, how: "closed" },
            "the target closed 10 connections without sending a byte",
        ),
        (
            S::Closed { count: 1, how: "reset", when: "without notice" },
            "the target reset 1 connection without notice",
        ),
        (
            S::ClosedInstead { count: 100, how: "reset", sent: 1_004 },
            "the target reset 100 connections instead of responding (1 in 10 requests)",
        ),
        (
            S::StreamsReset { count: 1_200, code: Some("CANCEL".to_owned()) },
            "the target reset 1,200 streams (RST_STREAM, CANCEL); their connections stayed open",
        ),
        (
            S::StreamsRefused { count: 1, stayed: true },
            "the target refused 1 stream (REFUSED_STREAM); the connections stayed open",
        ),
        (
            S::IdleTimeout { time: s(30_020), count: 800 },
            "the target closes connections after 30 s of inactivity (800 closed)",
        ),
        (
            S::RequestTimeout { time: s(3_230), count: 50 },
            "the target closes connections 3.2 s after a request, without a response (50 closed)",
        ),
        (
            S::AgeLimit { time: s(2_090), count: 800 },
            "the target ends connections 2.1 s after they are opened (800 ended)",
        ),
        (
            S::RequestsPerConnection { responses: 100 },
            "the target closes each connection after 100 responses",
        ),
        (
            S::MakesRoom { keeps: Some(510), count: 88 },
            "the target closed 88 idle connections to admit new ones, and keeps about 510",
        ),
        (
            S::KeepsNoMore { keeps: 472, count: 1 },
            "the target closed 1 connection as others opened, and keeps about 472",
        ),
        (
            S::TurnsAway { beyond: 500, has_probe: false },
            "the target immediately closes connections beyond 500",
        ),
    ]
}

fn third_part() -> Vec<(Sentence, &'static str)> {
    let s = Nanos::from_millis;
    vec![
        (
            S::CpuOfThread { share: 0.99, from: Some(310) },
            "the target ran out of CPU from 310 connections on: its busiest thread was runnable for 99 % of the time",
        ),
        (
            S::CpuOfProcess { share: 0.97, from: None },
            "the target ran out of CPU: it used 97 % of its processors",
        ),
        (S::DialsTimedOut { count: 200, timeout: s(10_000) }, "200 dials and requests timed out after 10 s"),
        (S::TimedOut { what: "request", count: 600, timeout: Nanos::ZERO }, "600 requests timed out"),
        (
            S::Unended { count: 20, timeout: Nanos::from_secs(3) },
            "20 responses began and did not end within 3 s",
        ),
        (
            S::NoHttp2 { what: "does not speak HTTP/2 without TLS", connections: None },
            "the target does not speak HTTP/2 without TLS",
        ),
        (
            S::Acknowledged { what: "request", count: 1, timeout: Nanos::ZERO },
            "1 request timed out: the target's host received it, its process did not respond",
        ),
        (
            S::NearKnownLimit {
                sentence: Box::new(S::Closed { count: 90, how: "closed", when: "without notice" }),
                held: 510,
                what: "nginx's worker_connections of 512",
            },
            "the target closed 90 connections without notice; 510 stayed open, near nginx's worker_connections of 512",
        ),
        (
            S::Silent { of: None, seconds: 2.5, state: ", while it collected garbage" },
            "the target stalled: no response for 2.5 s, while it collected garbage",
        ),
        (S::Stopped { from_s: 5.0, until_s: 9.0 }, "the target's process was stopped from second 5 to 9"),
        (
            S::ThrongStopped { who: "agent a2".to_owned(), seconds: 1.25 },
            "agent a2 was stopped, or had no processor, for 1.2 s",
        ),
        (S::ThrongTooSlow { why: "throng was late".to_owned() }, "throng was late"),
        (
            S::SharedProcessors { list: "0-1".to_owned() },
            "throng and the target compete for the same processors (0-1)",
        ),
        (S::ForeignSource { dials: 7 }, "7 dials used a source address that this machine does not have"),
        (S::NoFreePort { dials: 7 }, "this machine had no free local port for 7 dials"),
        (S::NoMemoryHere { sockets: 7 }, "this machine had no memory for 7 sockets"),
        (S::NoFilesHere { sockets: 7 }, "this machine had no file descriptors for 7 sockets"),
        (
            S::DialsFailedHere { dials: 7, error: "EINVAL".to_owned() },
            "7 dials failed on this machine: EINVAL",
        ),
        (
            S::RefusedHere { what: "ports: 676 free, 1,000 needed".to_owned() },
            "this machine does not have enough ports: 676 free, 1,000 needed",
        ),
        (
            S::Conntrack { owner: "this host's", used: 500, limit: 500 },
            "this host's conntrack table is full: 500 of 500 entries",
        ),
        (S::NotPermitted { operations: 9 }, "this machine did not permit 9 operations"),
        (S::BlockedHere { dials: 9 }, "this machine's firewall dropped 9 dials"),
        (
            S::NoSynAck { dials: 9 },
            "9 dials got no reply: the path drops packets, or no host has that address",
        ),
    ]
}

fn fourth_part() -> Vec<(Sentence, &'static str)> {
    vec![
        (
            S::WindowClosed { count: 66, timeout: Nanos::from_secs(1) },
            "66 requests timed out after 1 s: the target's HTTP/2 flow-control window blocked their bodies",
        ),
        (
            S::UnexpectedResponse { what: "unexpected length", rule: String::new(), count: 1_200 },
            "unexpected length × 1,200",
        ),
        (
            S::Outrun { count: 1_420 },
            "connections arrive faster than the target serves them: 1,420 waited for a response at the end",
        ),
        (
            S::Queued { count: 406, given_up: 346 },
            "connections arrive faster than the target accepts them: 406 in its accept queue at the end, 346 of them already abandoned \
            by throng",
        ),
        (
            S::QueueStarved {
                most: Starved { count: 30, served: 20, responses: 90, ..Starved::default() },
                queued: 22,
            },
            "the target serves 20 connections at a time: 30 others had no response by the end of the load, 22 of them in its accept queue",
        ),
        (
            S::Saturated { answered: 94.4, due: 1_200.0 },
            "the target responds to only 94 of the 1,200 requests due per second",
        ),
        (
            S::TookLonger { count: 66, timeout: Nanos::from_secs(1) },
            "66 requests took longer than the timeout of 1 s",
        ),
        (
            S::RateBacklog { count: 42, connections: 50 },
            "requests come faster than the target serves them on 50 connections: 42 waited at the end",
        ),
        (
            S::Starved {
                most: Starved { count: 92, served: 8, responses: 80_000, ..Starved::default() },
                has_probe: false,
            },
            "the target serves 8 connections at a time: 92 others had no response by the end of the load",
        ),
        (
            S::StarvedProbe { new: 21, served: 22 },
            "21 new probe connections got no correct response, the kept ones got 22: the target serves a limited number \
            of connections at a time, including the probe's",
        ),
        (
            S::SessionsEnded { count: 5, frame: "GOAWAY", code: "ENHANCE_YOUR_CALM".to_owned() },
            "the target ended 5 connections with an error (GOAWAY, ENHANCE_YOUR_CALM)",
        ),
    ]
}

fn fifth_part() -> Vec<(Sentence, &'static str)> {
    let (slow, usual) = (Nanos::from_millis(4_010), Nanos::from_millis(21));
    let slow_part = SlowPart { share: 0.05, slow, usual };
    vec![
        (
            S::QueueOverflowed { backlog: 8, times: 66 },
            "the target's accept queue of 8 was full: it overflowed 66 times",
        ),
        (
            S::QueueUnaccepted { count: 60 },
            "the target's process did not accept 60 connections: they wait in its accept queue",
        ),
        (
            S::QueueStanding { served: 200, count: Some(60) },
            "the target serves 200 connections at a time: 60 others wait in its accept queue",
        ),
        (
            S::NoSynAckToSources { dials: 9 },
            "9 dials got no reply: packets are not forwarded, or replies have no route to the source network",
        ),
        (
            S::NoSynAckSince { opened: 1_000 },
            "dials got no reply from the 1,001st on, while the open connections are served",
        ),
        (
            S::Unacknowledged { connections: 9, of: 10 },
            "the path is interrupted: data on 9 of 10 connections is not acknowledged",
        ),
        (
            S::SynsAgain { count: 1_204, p99_s: 3.04, by: "the path" },
            "1,204 SYNs were retransmitted, and connect p99 was 3.0 s: the path drops some SYNs",
        ),
        (
            S::BesideStatus {
                sentence: Box::new(S::TimedOut {
                    what: "request",
                    count: 190,
                    timeout: Nanos::from_millis(300),
                }),
                statuses: vec![(503, 180)],
            },
            "190 requests timed out after 0.3 s, and 180 responses had an unexpected status (503 × 180)",
        ),
        (S::RejectedOrSilent { dials: 9 }, "9 dials were rejected or got no SYN-ACK"),
        (S::RejectedHere { dials: 9 }, "this machine's firewall rejected 9 dials"),
        (S::NoHost { dials: 9 }, "9 dials failed: no host responds at that address"),
        (S::Rejected { dials: 9, by: Some("10.0.0.1".to_owned()) }, "9 dials were rejected by 10.0.0.1"),
        (
            S::TooFewConnections { held: 20, carried: 39.6, due: 1_200.0 },
            "too few connections: 20 carried 40 of the 1,200 requests that were due each second",
        ),
        (
            S::AllAnswered { rate: Rate::per_s(200), arrives: false, each: Some("200 kB".to_owned()) },
            "all requests at 200/s completed, with 200 kB each",
        ),
        (S::NothingUsedUp, "no cause was found: no resource that throng sees was exhausted"),
        (
            S::StartedLate { dials: 9, until: Nanos::from_millis(180) },
            "9 dials were refused in the first 0.2 s, and none afterwards: the target was not listening yet",
        ),
        (S::SlowPart(slow_part), "5.0 % of responses took 4.0 s, the others 21 ms"),
        (
            S::SlowWhileCollecting(slow_part),
            "5.0 % of responses took 4.0 s, the others 21 ms, while the target collected garbage",
        ),
    ]
}

/// Those that have others in them.
fn around_others() -> Vec<(Sentence, &'static str)> {
    vec![
        (
            S::TurnsAwayWith { beyond: 98, status: "status 503".to_owned() },
            "the target responds with status 503 to connections beyond 98 plus the probe's",
        ),
        (
            S::WithOthers {
                sentence: Box::new(S::UnexpectedStatus { statuses: vec![(404, 200)] }),
                others: vec![("response without the expected text", 150), ("truncated response", 2)],
            },
            "unexpected status: 404 × 200, and response without the expected text × 150, truncated response × 2",
        ),
        (
            S::Whose {
                sentence: Box::new(S::TimedOut { what: "request", count: 9, timeout: Nanos::from_secs(1) }),
                place: "step look".to_owned(),
                how_many: HowMany::NearlyAll,
            },
            "9 requests timed out after 1 s, nearly all in step look",
        ),
    ]
}
