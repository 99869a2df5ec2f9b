use super::*;
use Sentence as S;
use units::Rate;

mod table;

/// Every sentence once: the number of rows is that of variants, which [`place`] counts without a wildcard.
#[test]
fn all_sentences() {
    let table = table::table();
    let mut places: Vec<usize> = table.iter().map(|(sentence, _)| place(sentence)).collect();
    for (sentence, expected) in &table {
        assert_eq!(sentence.to_string(), *expected);
        println!("{expected}");
    }
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), table.len(), "a sentence is there twice");
    assert_eq!(places.last(), Some(&(table.len() - 1)), "a sentence is missing");
}

#[test]
fn numbers_of_one_and_of_many() {
    let check = |sentence: Sentence, expected: &str| assert_eq!(sentence.to_string(), expected);
    check(
        S::NothingListens { address: String::new() },
        "connection refused: nothing listens on the target's addresses",
    );
    check(S::RequestsPerConnection { responses: 1 }, "the target closes each connection after its response");
    check(
        S::Acknowledged { what: "request", count: 91, timeout: Nanos::from_secs(1) },
        "91 requests timed out: the target's host received them, its process did not respond within 1 s",
    );
    check(S::DialsTimedOut { count: 1, timeout: Nanos::ZERO }, "1 dial or request timed out");
    check(
        S::AllAnswered { rate: Rate::per_s(200), arrives: true, each: None },
        "all requests of connections at 200/s completed",
    );
    check(
        S::CpuOfThread { share: 0.99, from: None },
        "the target ran out of CPU: its busiest thread was runnable for 99 % of the time",
    );
    check(S::Rejected { dials: 9, by: None }, "9 dials were rejected on the path");
    check(S::Rejected { dials: 1, by: None }, "1 dial was rejected on the path");
    check(
        S::StreamsReset { count: 1, code: None },
        "the target reset 1 stream (RST_STREAM); its connection stayed open",
    );
    check(
        S::StreamsRefused { count: 7_786, stayed: false },
        "the target refused 7,786 streams (REFUSED_STREAM)",
    );
    check(
        S::MakesRoom { keeps: Some(5), count: 1 },
        "the target closed 1 idle connection to admit new ones, and keeps about 5",
    );
    check(S::MakesRoom { keeps: None, count: 23 }, "the target closed 23 idle connections to admit new ones");
    check(
        S::TurnsAway { beyond: 136, has_probe: true },
        "the target immediately closes connections beyond 136 plus the probe's",
    );
    check(
        S::ClosedInstead { count: 3, how: "closed", sent: 4 },
        "the target closed 3 connections instead of responding",
    );
    check(S::NotPermitted { operations: 1 }, "this machine did not permit 1 operation");
    check(S::Tls { handshakes: 1, what: "x", detail: " (y)".to_owned() }, "1 TLS handshake failed: x (y)");
    check(S::UnexpectedResponse { what: "x", rule: "y".to_owned(), count: 1 }, "x (y) × 1");
    check(
        S::SocketMemory { is_ours: true, aborted: 1 },
        "this machine ran out of memory for sockets: its kernel aborted 1 connection",
    );
    let five = (400..405).map(|status| (status, 2)).collect();
    check(
        S::UnexpectedStatus { statuses: five },
        "unexpected status: 400 × 2, 401 × 2, 402 × 2 and 2 others",
    );
}

#[test]
fn numbers_of_connections_that_were_not_served() {
    let check = |sentence: Sentence, expected: &str| assert_eq!(sentence.to_string(), expected);
    let most =
        Starved { name: Some("users".to_owned()), count: 10, served: 40, responses: 800, in_turns: true };
    let one = Starved { count: 1, served: 1, ..most.clone() };
    check(
        S::Starved { most: one, has_probe: true },
        "1 of 2 connections of population users had no response by the end of the load: the target serves at most 1 at a time, plus \
        the probe's, or one of several backends or workers does not respond",
    );
    check(
        S::Starved { most: Starved { name: None, in_turns: false, ..most.clone() }, has_probe: false },
        "10 of 50 connections had no response by the end of the load: the target serves 40 at a time, or one of several backends or \
        workers does not respond",
    );
    check(
        S::Starved { most: Starved { count: 2, served: 1, ..most }, has_probe: true },
        "the target serves at most 1 connection of population users at a time, plus the probe's: 2 others had no response by the end \
        of the load",
    );
}

#[test]
fn numbers_of_connections_in_the_accept_queue() {
    let check = |sentence: Sentence, expected: &str| assert_eq!(sentence.to_string(), expected);
    check(
        S::QueueOverflowed { backlog: 0, times: 3 },
        "the target's accept queue was full: it overflowed 3 times",
    );
    check(
        S::QueueOverflowed { backlog: 8, times: 1 },
        "the target's accept queue of 8 was full: it overflowed 1 time",
    );
    check(
        S::QueueUnaccepted { count: 1 },
        "the target's process did not accept 1 connection: it waits in its accept queue",
    );
    check(
        S::QueueStanding { served: 1, count: Some(1) },
        "the target serves 1 connection at a time: 1 other waits in its accept queue",
    );
    check(
        S::QueueStanding { served: 8, count: None },
        "the target serves at most 8 connections at a time: others wait in its accept queue",
    );
    let most = |name: Option<&str>| Starved {
        name: name.map(str::to_owned),
        count: 6,
        served: 4,
        ..Starved::default()
    };
    check(
        S::QueueStarved { most: most(None), queued: 6 },
        "the target serves 4 connections at a time: 6 others wait in its accept queue",
    );
    check(
        S::QueueStarved { most: most(Some("readers and writers")), queued: 2 },
        "the target serves 4 connections of population readers and writers at a time: 6 others had no response by the end of the load, \
        2 of them in its accept queue",
    );
    check(
        S::SlowAccept { per_s: 98.4, arrive: Some(200.0) },
        "200 connections/s arrive, and the target accepts no more than 98/s",
    );
    check(
        S::Queued { count: 420, given_up: 0 },
        "connections arrive faster than the target accepts them: 420 waited in its accept queue at the end",
    );
}

/// Which of them it is, counted from 0: without a wildcard, so that a new one has to be added here.
#[allow(clippy::too_many_lines, reason = "a table")]
fn place(sentence: &Sentence) -> usize {
    match sentence {
        S::NothingListens { .. } => 0,
        S::RefusedByOthers { .. } => 1,
        S::StoppedListening { .. } => 2,
        S::Exited { .. } => 3,
        S::OomKilled { .. } => 4,
        S::SocketMemory { .. } => 5,
        S::OpenFiles { .. } => 6,
        S::LoggedOpenFiles { .. } => 7,
        S::LoggedThreads { .. } => 8,
        S::LoggedMemory { .. } => 9,
        S::LoggedConnections { .. } => 10,
        S::Heap { .. } => 11,
        S::HeapOf { .. } => 12,
        S::ThreadEnded { .. } => 13,
        S::Tls { .. } => 14,
        S::TlsExpected { .. } => 15,
        S::MuteClose { .. } => 16,
        S::UnexpectedStatus { .. } => 17,
        S::UpgradeRefused { .. } => 18,
        S::UnexpectedResponse { .. } => 19,
        S::ClosedMute { .. } => 20,
        S::Closed { .. } => 21,
        S::IdleTimeout { .. } => 22,
        S::RequestTimeout { .. } => 23,
        S::AgeLimit { .. } => 24,
        S::RequestsPerConnection { .. } => 25,
        S::MakesRoom { .. } => 26,
        S::TurnsAway { .. } => 27,
        S::QueueOverflowed { .. } => 28,
        S::QueueUnaccepted { .. } => 29,
        S::QueueStanding { .. } => 30,
        S::QueueStarved { .. } => 81,
        S::WithOthers { .. } => 82,
        S::Whose { .. } => 83,
        S::Deserted { .. } => 84,
        S::TurnsAwayWith { .. } => 85,
        S::SlowAccept { .. } => 31,
        S::CpuOfThread { .. } => 32,
        S::CpuOfProcess { .. } => 33,
        S::DialsTimedOut { .. } => 34,
        S::TimedOut { .. } => 35,
        S::Acknowledged { .. } => 36,
        S::NearKnownLimit { .. } => 37,
        S::Silent { .. } => 38,
        S::Stopped { .. } => 39,
        S::ThrongStopped { .. } => 40,
        S::ThrongTooSlow { .. } => 41,
        S::SharedProcessors { .. } => 42,
        S::ForeignSource { .. } => 43,
        S::NoFreePort { .. } => 44,
        S::NoMemoryHere { .. } => 45,
        S::NoFilesHere { .. } => 46,
        S::DialsFailedHere { .. } => 47,
        S::RefusedHere { .. } => 48,
        S::Conntrack { .. } => 49,
        S::NotPermitted { .. } => 50,
        S::BlockedHere { .. } => 51,
        S::NoSynAck { .. } => 52,
        S::NoSynAckSince { .. } => 53,
        S::Unacknowledged { .. } => 54,
        S::RejectedHere { .. } => 55,
        S::NoHost { .. } => 56,
        S::Rejected { .. } => 57,
        S::NothingUsedUp => 58,
        S::KeepsNoMore { .. } => 59,
        S::NoHttp2 { .. } => 60,
        S::TooFewConnections { .. } => 61,
        S::StreamsReset { .. } => 62,
        S::NoSynAckToSources { .. } => 63,
        S::RejectedOrSilent { .. } => 64,
        S::StreamsRefused { .. } => 65,
        S::SessionsEnded { .. } => 66,
        S::Outrun { .. } => 67,
        S::Queued { .. } => 80,
        S::SynsAgain { .. } => 68,
        S::Unended { .. } => 69,
        S::Starved { .. } => 70,
        S::StarvedProbe { .. } => 71,
        S::RateBacklog { .. } => 72,
        S::AllAnswered { .. } => 73,
        S::BesideStatus { .. } => 74,
        S::SlowPart(_) => 75,
        S::StartedLate { .. } => 76,
        S::ClosedInstead { .. } => 77,
        S::TookLonger { .. } => 78,
        S::Saturated { .. } => 79,
        S::WindowClosed { .. } => 86,
        S::SlowWhileCollecting(_) => 87,
        S::WorkerExited { .. } => 88,
    }
}
