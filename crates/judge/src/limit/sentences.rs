//! All sentences that say what limited a run, to be read in one go. Each names the number that matters; the fix stands with the
//! row that found the cause. A headline is `VERDICT: SENTENCE; FIX`; before what is not certain it says *probably* or *perhaps*.

use std::fmt;

use units::{Bytes, Count, Nanos, percent};

use super::{
    Sentence,
    path::{nth, tenths},
};
use crate::starved::Starved;
pub(super) use responses::counted;

/// By subject; each gives the text of its own sentences.
const SUBJECTS: [fn(&Sentence) -> Option<String>; 8] =
    [refusals, process, tls, responses::responses, closes, accept_queue, this_machine, path];

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = SUBJECTS.iter().find_map(|subject| subject(self));
        f.write_str(&text.expect("each sentence is of a subject"))
    }
}

/// Nobody is there.
fn refusals(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::NothingListens { address } => {
            format!("connection refused: nothing listens on {}", there(address))
        }
        S::RefusedByOthers { address } => {
            format!("connection refused, although a process listens on {}", there(address))
        }
        S::StoppedListening { accepted } => {
            format!("connection refused after the target had accepted {}", connections(*accepted))
        }
        S::StartedLate { dials, until } => format!(
            "{} refused in the first {}, and none afterwards: the target was not listening yet",
            Count(*dials).were("dial"),
            tenths(*until)
        ),
        _ => return None,
    })
}

/// The target's process.
fn process(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::Deserted { address } => {
            format!("the target at {address} is gone: nothing listens there any more")
        }
        S::WorkerExited { lost } => {
            format!("one of the target's processes exited, and {} with it", connections(*lost))
        }
        S::Exited { at } => format!("the target's process exited at {}", connections(*at)),
        S::OomKilled { at } => {
            format!("the target was killed at {}: its host was out of memory", connections(*at))
        }
        S::SocketMemory { is_ours, aborted } => {
            let whose = if *is_ours { "this machine" } else { "the target's host" };
            format!("{whose} ran out of memory for sockets: its kernel aborted {}", connections(*aborted))
        }
        S::OpenFiles { used, limit } => {
            format!("the target ran out of open files: {} of {} used", Count(*used), Count(*limit))
        }
        S::LoggedOpenFiles { at } => {
            format!("the target ran out of open files at {}, according to its log", connections(*at))
        }
        S::LoggedThreads { at } => {
            format!("the target could not start another thread at {}, according to its log", connections(*at))
        }
        S::LoggedMemory { at } => {
            format!("the target ran out of memory at {}, according to its log", connections(*at))
        }
        S::LoggedConnections { at } => {
            format!("the target reached its own limit on connections at {}, according to its log", Count(*at))
        }
        S::Heap { at } => format!("the target's heap was full at {}", connections(*at)),
        S::HeapOf { used, limit, collecting } => format!(
            "the target's heap was full: {} of {} used, {} of the time spent in garbage collections",
            Bytes(*used).brief(),
            Bytes(*limit).brief(),
            percent(*collecting),
        ),
        S::ThreadEnded { name } => {
            format!("the target's thread {name:?} exited, and new connections are no longer accepted")
        }
        S::CpuOfThread { share, from } => {
            let (from, share) = (from_on(*from), percent(*share));
            format!(
                "the target ran out of CPU{from}: its busiest thread was runnable for {share} of the time"
            )
        }
        S::CpuOfProcess { share, from } => {
            let (from, share) = (from_on(*from), percent(*share));
            format!("the target ran out of CPU{from}: it used {share} of its processors")
        }
        S::Silent { of, seconds, state } => {
            let of = of.as_ref().map_or(String::new(), |name| format!(" of {name}"));
            format!("the target{of} stalled: no response for {seconds:.1} s{state}")
        }
        S::Stopped { from_s, until_s } => {
            format!("the target's process was stopped from second {from_s:.0} to {until_s:.0}")
        }
        _ => return None,
    })
}

/// ` from 310 connections on`.
fn from_on(from: Option<u64>) -> String {
    from.map_or(String::new(), |n| format!(" from {} on", connections(n)))
}

/// TLS.
fn tls(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::Tls { handshakes, what, detail } => {
            format!("{} failed: {what}{detail}", some(*handshakes, "TLS handshake"))
        }
        S::TlsExpected { connections: n } => {
            format!("the target expects TLS: it rejected {} in plain text", connections(*n))
        }
        S::MuteClose { connections: n } => {
            let their = Count(*n).one_or("its", "their");
            format!(
                "the target expects TLS: it closed {} at {their} first request, sending nothing",
                connections(*n)
            )
        }
        _ => return None,
    })
}

fn slow_accept(per_s: f64, arrive: Option<f64>) -> String {
    let alone = || format!("the target accepts no more than {per_s:.0} connections/s");
    let beside = |arrive| {
        format!("{arrive:.0} connections/s arrive, and the target accepts no more than {per_s:.0}/s")
    };
    arrive.map_or_else(alone, beside)
}

fn own(most: &Starved) -> String {
    most.name.as_ref().map_or(String::new(), |name| format!(" of population {name}"))
}

/// Connections that the target closes.
fn closes(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::ClosedMute { count, how } => {
            format!("the target {how} {} without sending a byte", connections(*count))
        }
        S::Closed { count, how, when } => format!("the target {how} {} {when}", connections(*count)),
        S::ClosedInstead { count, how, sent } => {
            format!("the target {how} {} instead of responding{}", connections(*count), one_of(*count, *sent))
        }
        S::TurnsAwayWith { beyond, status } => format!(
            "the target responds with {status} to connections beyond {} plus the probe's",
            Count(*beyond)
        ),
        S::SessionsEnded { count, frame, code } => {
            format!("the target ended {} with an error ({frame}, {code})", connections(*count))
        }
        S::StreamsReset { count, code } => streams_reset(*count, code.as_deref()),
        S::StreamsRefused { count, stayed } => {
            let refused = format!("the target refused {} (REFUSED_STREAM)", some(*count, "stream"));
            if *stayed { format!("{refused}; the connections stayed open") } else { refused }
        }
        S::IdleTimeout { time, count } => {
            format!(
                "the target closes connections after {} of inactivity ({} closed)",
                tenths(*time),
                Count(*count)
            )
        }
        S::RequestTimeout { time, count } => format!(
            "the target closes connections {} after a request, without a response ({} closed)",
            tenths(*time),
            Count(*count)
        ),
        S::AgeLimit { time, count } => {
            format!(
                "the target ends connections {} after they are opened ({} ended)",
                tenths(*time),
                Count(*count)
            )
        }
        S::RequestsPerConnection { responses: 1 } => {
            "the target closes each connection after its response".to_owned()
        }
        S::RequestsPerConnection { responses } => {
            format!("the target closes each connection after {} responses", Count(*responses))
        }
        S::MakesRoom { keeps, count } => format!(
            "the target closed {} to admit new ones{}",
            some(*count, "idle connection"),
            keeps.map_or(String::new(), |keeps| format!(", and keeps about {}", Count(keeps)))
        ),
        S::KeepsNoMore { keeps, count } => {
            format!(
                "the target closed {} as others opened, and keeps about {}",
                connections(*count),
                Count(*keeps)
            )
        }
        S::TurnsAway { beyond, has_probe } => {
            let plus = if *has_probe { " plus the probe's" } else { "" };
            format!("the target immediately closes connections beyond {}{plus}", Count(*beyond))
        }
        S::NearKnownLimit { sentence, held, what } => {
            format!("{sentence}; {} stayed open, near {what}", Count(*held))
        }
        _ => return None,
    })
}

/// ` (1 of 10 requests)`; nothing of more than half, where each may have been its connection's only one.
fn one_of(count: u64, all: u64) -> String {
    let each = (all as f64 / count.max(1) as f64).round() as u64;
    if each < 2 { String::new() } else { format!(" (1 in {})", Count(each).of("request")) }
}

/// The target's accept queue.
fn accept_queue(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::QueueOverflowed { backlog: 0, times } => {
            format!("the target's accept queue was full: it overflowed {}", some(*times, "time"))
        }
        S::QueueOverflowed { backlog, times } => {
            format!(
                "the target's accept queue of {} was full: it overflowed {}",
                Count(*backlog),
                some(*times, "time")
            )
        }
        S::QueueUnaccepted { count } => {
            let they_wait = Count(*count).one_or("it waits", "they wait");
            format!(
                "the target's process did not accept {}: {they_wait} in its accept queue",
                connections(*count)
            )
        }
        S::QueueStanding { served, count: Some(count) } => format!(
            "the target serves {} at a time: {} {} in its accept queue",
            connections(*served),
            Count(*count),
            Count(*count).one_or("other waits", "others wait")
        ),
        S::QueueStanding { served, count: None } => format!(
            "the target serves at most {} at a time: others wait in its accept queue",
            connections(*served)
        ),
        S::QueueStarved { most, queued } if *queued >= most.count => format!(
            "{}: {} {} in its accept queue",
            serves(most),
            Count(most.count),
            Count(most.count).one_or("other waits", "others wait")
        ),
        S::QueueStarved { most, queued } => format!(
            "{}: {} had no response by the end of the load, {} of them in its accept queue",
            serves(most),
            Count(most.count).of("other"),
            Count(*queued)
        ),
        S::SlowAccept { per_s, arrive } => slow_accept(*per_s, *arrive),
        S::Queued { count, given_up: 0 } => format!(
            "connections arrive faster than the target accepts them: {} waited in its accept queue at the end",
            Count(*count)
        ),
        S::Queued { count, given_up } => format!(
            "connections arrive faster than the target accepts them: {} in its accept queue at the end, {} of them already \
            abandoned by throng",
            Count(*count),
            Count(*given_up)
        ),
        S::Outrun { count } => format!(
            "connections arrive faster than the target serves them: {} waited for a response at the end",
            Count(*count)
        ),
        S::Saturated { answered, due } => format!(
            "the target responds to only {} of the {} requests due per second",
            Count(answered.round() as u64),
            Count(due.round() as u64)
        ),
        S::RateBacklog { count, connections: held } => format!(
            "requests come faster than the target serves them on {}: {} waited at the end",
            connections(*held),
            Count(*count)
        ),
        _ => return None,
    })
}

/// This machine, and throng.
fn this_machine(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::ThrongStopped { who, seconds } => {
            format!("{who} was stopped, or had no processor, for {seconds:.1} s")
        }
        S::ThrongTooSlow { why } => why.clone(),
        S::SharedProcessors { list } => {
            format!("throng and the target compete for the same processors ({list})")
        }
        S::ForeignSource { dials } => {
            format!("{} used a source address that this machine does not have", some(*dials, "dial"))
        }
        S::NoFreePort { dials } => {
            format!("this machine had no free local port for {}", some(*dials, "dial"))
        }
        S::NoMemoryHere { sockets } => {
            format!("this machine had no memory for {}", some(*sockets, "socket"))
        }
        S::NoFilesHere { sockets } => {
            format!("this machine had no file descriptors for {}", some(*sockets, "socket"))
        }
        S::DialsFailedHere { dials, error } => {
            format!("{} failed on this machine: {error}", some(*dials, "dial"))
        }
        S::RefusedHere { what } => format!("this machine does not have enough {what}"),
        S::NotPermitted { operations } => {
            format!("this machine did not permit {}", some(*operations, "operation"))
        }
        S::BlockedHere { dials } => format!("this machine's firewall dropped {}", some(*dials, "dial")),
        S::TooFewConnections { held, carried, due } => format!(
            "too few connections: {} carried {} of the {} requests that were due each second",
            Count(*held),
            Count(carried.round() as u64),
            Count(due.round() as u64)
        ),
        S::RejectedHere { dials } => {
            format!("this machine's firewall rejected {}", some(*dials, "dial"))
        }
        _ => return None,
    })
}

/// The path between.
fn path(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::Conntrack { owner, used, limit } => {
            format!("{owner} conntrack table is full: {} of {} entries", Count(*used), Count(*limit))
        }
        S::NoSynAck { dials } => {
            format!(
                "{} got no reply: the path drops packets, or no host has that address",
                some(*dials, "dial")
            )
        }
        S::NoSynAckToSources { dials } => format!(
            "{} got no reply: packets are not forwarded, or replies have no route to the source network",
            some(*dials, "dial")
        ),
        S::NoSynAckSince { opened } => format!(
            "dials got no reply from the {} on, while the open connections are served",
            nth(opened + 1)
        ),
        S::Unacknowledged { connections: n, of } => {
            format!(
                "the path is interrupted: data on {} of {} is not acknowledged",
                Count(*n),
                connections(*of)
            )
        }
        S::SynsAgain { count, p99_s, by } => format!(
            "{} retransmitted, and connect p99 was {p99_s:.1} s: {by} drops some SYNs",
            Count(*count).were("SYN")
        ),
        S::NoHost { dials } => {
            format!("{} failed: no host responds at that address", some(*dials, "dial"))
        }
        S::Rejected { dials, by: Some(by) } => format!("{} rejected by {by}", Count(*dials).were("dial")),
        S::Rejected { dials, by: None } => format!("{} rejected on the path", Count(*dials).were("dial")),
        S::RejectedOrSilent { dials } => {
            format!("{} rejected or got no SYN-ACK", Count(*dials).were("dial"))
        }
        S::AllAnswered { rate, arrives, each } => {
            let of = if *arrives { "of connections " } else { "" };
            let each = each.as_ref().map(|each| format!(", with {each} each")).unwrap_or_default();
            format!("all requests {of}at {rate} completed{each}")
        }
        S::NothingUsedUp => "no cause was found: no resource that throng sees was exhausted".to_owned(),
        _ => return None,
    })
}

/// `the target serves 4 connections at a time`
fn serves(most: &Starved) -> String {
    let at_most = if most.in_turns { "at most " } else { "" };
    format!("the target serves {at_most}{}{} at a time", connections(most.served), own(most))
}

fn there(address: &str) -> &str {
    if address.is_empty() { "the target's addresses" } else { address }
}

fn connections(n: u64) -> String {
    Count(n).of("connection")
}

fn some(n: u64, what: &str) -> String {
    Count(n).of(what)
}

/// Of which there are as many, together.
pub(super) fn dials_and_requests(n: u64) -> String {
    format!("{} {}", Count(n), Count(n).one_or("dial or request", "dials and requests"))
}

/// ` after 10 s`, where that is known.
fn after(timeout: Nanos) -> String {
    if timeout == Nanos::ZERO { String::new() } else { format!(" after {}", tenths(timeout)) }
}

/// ` within 10 s`, where that is known.
pub(super) fn within(timeout: Nanos) -> String {
    if timeout == Nanos::ZERO { String::new() } else { format!(" within {}", tenths(timeout)) }
}

mod responses;

fn streams_reset(count: u64, code: Option<&str>) -> String {
    let connections = Count(count).one_or("its connection", "their connections");
    let code = code.map(|code| format!(", {code}")).unwrap_or_default();
    format!("the target reset {} (RST_STREAM{code}); {connections} stayed open", some(count, "stream"))
}

#[cfg(test)]
mod tests;
