//! Connections that the target closes: after a time, after a number of responses, or to make room.

use samples::{Cause, Certainty, Certainty::Inferred, Kind, Limit, Side, Stage};
use units::{Count, Nanos};

use super::{Case, Sentence, Trouble, path::tenths, starved, statuses};
use crate::destinations;

/// Shorter times are not configured timeouts: immediate losses have other reasons.
pub(crate) const SET: Nanos = Nanos::from_millis(900);

/// Whether connections ended, and the target did not say why: neither so, nor by the status of its responses.
fn is_unannounced(case: &Case) -> bool {
    case.trouble == Trouble::Lost && case.detail.is_none() && statuses::explaining(case).is_none()
}

/// All were lost at the same time of their lives.
pub(super) fn constant_time(case: &Case) -> Option<Limit> {
    if !is_unannounced(case) {
        return None;
    }
    let (n, peak, how) = (case.faults(), case.peak(), how(case.kind?));
    let were = n.were("connection");
    let pattern = case.evidence.losses;
    let silence = pattern.silence.filter(|time| *time >= SET);
    let age = pattern.age.filter(|time| *time >= SET);
    // For a connection with traffic only at its start both are the same. An idle timeout closes; a limit on age, or a restart, resets.
    let count = case.count;
    let may_be_age = age.is_some() || pattern.is_one_moment;
    if let Some(silence) = silence.filter(|_| !may_be_age || case.kind == Some(Kind::Closed)) {
        let time = tenths(silence);
        if case.stage == Some(Stage::Exchange) {
            let detail = format!("{were} {how} {time} after a request, without a response");
            let fix =
                format!("look for a request timeout of {time}, in the target and in any proxy before it");
            let sentence = Sentence::RequestTimeout { time: silence, count };
            return case.limit(Inferred, (Side::Target, Cause::RequestTimeout), peak, sentence, detail, fix);
        }
        let detail = format!("{were} {how} after {time} of inactivity");
        let fix = outlast(case, silence);
        let sentence = Sentence::IdleTimeout { time: silence, count };
        return case.limit(Inferred, (Side::Target, Cause::IdleCut), peak, sentence, detail, fix);
    }
    let (age, time) = (age?, tenths(age?));
    let they = n.one_or("it was", "they were");
    let detail = format!("{were} {how} {time} after {they} opened");
    let fix =
        format!("look for a maximum connection age of {time}, in the target and in any proxy before it");
    let sentence = Sentence::AgeLimit { time: age, count };
    case.limit(Inferred, (Side::Target, Cause::ResetAfter), peak, sentence, detail, fix)
}

/// How connections outlast an idle timeout: it has to be above the longest pause between two requests, which may be far longer than the
/// silence after which they were closed, where that is known.
pub(super) fn outlast(case: &Case, silence: Nanos) -> String {
    let (pause, flag) = (case.evidence.subject.longest_pause, case.evidence.subject.pause_flag.as_deref());
    if pause.max(silence) == Nanos::ZERO {
        return "raise its idle timeout, or send more often".to_owned();
    }
    let above = tenths(pause.max(silence));
    match flag.filter(|_| pause > silence) {
        Some(flag) => {
            format!(
                "raise its idle timeout above {above}, or send more often ({flag} {})",
                well_below(silence)
            )
        }
        None => format!("raise its idle timeout above {above}, or send more often"),
    }
}

/// A pause that is clearly shorter.
fn well_below(silence: Nanos) -> String {
    match silence.0 / Nanos::from_secs(1).0 {
        0 | 1 => "100ms".to_owned(),
        seconds => format!("{}s", (seconds / 5).max(1)),
    }
}

pub(super) fn how(kind: Kind) -> &'static str {
    if kind == Kind::Reset { "reset" } else { "closed" }
}

/// It closes each connection after the same number of responses, and does not announce it.
pub(super) fn responses(case: &Case) -> Option<Limit> {
    let n = case.evidence.losses.responses.filter(|_| is_unannounced(case))?;
    let responses = if n == 1 { "its response".to_owned() } else { Count(n).of("response") };
    // With equal pauses connections of one age have had as many responses. One that ends with its only response has the age of that.
    let age = case.evidence.losses.age.filter(|age| *age >= SET && n > 1);
    let (or, or_look) = match age.map(tenths) {
        Some(age) => (
            format!("; each had been open for {age}, which may be the limit"),
            format!("; or look for a maximum connection age of {age}"),
        ),
        None => Default::default(),
    };
    let detail = format!("it closes each connection after {responses} without announcing it{or}");
    let subject = &case.evidence.subject;
    let fix = match (subject.has_messages, subject.is_http2) {
        (true, _) => "look for a limit on messages per connection, in the target and in any proxy before it",
        (_, true) => {
            "raise its limit on requests per connection (keepalive_requests), or make it announce the close (GOAWAY)"
        }
        (_, false) => {
            "raise its limit on requests per connection (keepalive_requests, MaxKeepAliveRequests), or make it announce the close \
            (Connection: close)"
        }
    };
    let fix = format!("{fix}{or_look}");
    let sentence = Sentence::RequestsPerConnection { responses: n };
    case.limit(Inferred, (Side::Target, Cause::RequestsPerConnection), case.peak(), sentence, detail, fix)
}

/// Whether connections ended while a response was due, and were not new: a limit on connections ends idle ones, or new ones. Of HTTP/2 each
/// stream counts.
pub(super) fn is_instead(case: &Case) -> bool {
    is_in_use(case) && !case.evidence.subject.is_http2
}

/// The same, of HTTP/2 too: they were neither idle nor new.
fn is_in_use(case: &Case) -> bool {
    case.stage == Some(Stage::Exchange) && case.evidence.losses.had_responses
}

/// It closes idle connections to make room for new ones, and others that are silent for longer stay.
pub(super) fn evicted(case: &Case) -> Option<Limit> {
    let losses = case.evidence.losses;
    let may_be = is_unannounced(case) && case.kind == Some(Kind::Closed) && !is_in_use(case);
    let silence = losses.evicted.filter(|_| may_be)?;
    let (were, c) = (case.faults().were("connection"), &case.summary.connections);
    let (silence, others, peak) = (tenths(silence), tenths(losses.others), case.peak());
    // Where it closes many at a time, as nginx does, how many are left at the end is accidental.
    let keeps = Some(c.held).filter(|held| peak.saturating_sub(*held) <= peak / 20);
    let about = keeps.map_or(String::new(), |held| format!(", and keeps about {}", Count(held)));
    let detail = format!(
        "{were} closed as others opened, after {silence} of inactivity, while others were \
        inactive for {others}: the target makes room for new ones{about}"
    );
    let fix = "raise its limit on connections (worker_connections, maxconn)";
    let sentence = Sentence::MakesRoom { keeps, count: case.count };
    case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), c.held, sentence, detail, fix)
}

/// It announced the close of all, and none was opened again.
pub(super) fn announced(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::None || case.evidence.stranded.is_empty() {
        return None;
    }
    let c = &case.summary.connections;
    let fix = match case.evidence.subject.never_redials {
        true => "leave out --reconnect never, with which no others are opened",
        false => "let it keep connections open for longer (idle timeout, maximum age), or send more often",
    };
    let sentence = Sentence::Closed { count: c.closed, how: "closed", when: "after announcing it" };
    let detail =
        format!("{} closed as announced, and none was open at the end", Count(c.closed).were("connection"));
    case.limit(Certainty::Seen, (Side::Target, Cause::Closed), case.peak(), sentence, detail, fix.to_owned())
}

/// From some number on new connections were turned away, and no others.
pub(super) fn connection_limit(case: &Case) -> Option<Limit> {
    let c = &case.summary.connections;
    if !is_unannounced(case) || !case.evidence.losses.is_surplus || is_in_use(case) {
        return None;
    }
    // One that holds none at all has no limit on them.
    let destinations = destinations::at_fault(&case.summary.destinations);
    if destinations.is_some_and(|(bad, _)| bad.iter().all(|own| own.open == 0)) {
        return None;
    }
    let were = case.faults().were("connection");
    let (held, how, keeps, count) = (Count(c.held), how(case.kind?), c.held, case.count);
    let (sentence, detail) = match case.evidence.losses.were_old {
        Some(false) => (
            Sentence::TurnsAway { beyond: c.held, has_probe: false },
            format!("new connections beyond {held} open ones were {how} immediately"),
        ),
        Some(true) => (
            Sentence::MakesRoom { keeps: Some(keeps), count },
            format!(
                "{were} {how} as others opened, after a time of inactivity: beyond {held} open ones the target makes room"
            ),
        ),
        None => (
            Sentence::KeepsNoMore { keeps, count },
            format!(
                "{were} {how} as others opened, beyond {held} open ones: new ones, or idle ones to make room"
            ),
        ),
    };
    case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), c.held, sentence, detail, RAISE)
}

pub(super) const RAISE: &str = "raise its limit on connections (worker_connections, maxconn, --max-open)";

/// The same where the load is below it, and new connections of the probe are not: nobody waits.
pub(super) fn probe_turned_away(case: &Case) -> Option<Limit> {
    let probe = case.summary.probe.as_ref().filter(|_| case.is_waiting() || case.trouble == Trouble::Lost)?;
    let (new, _) = starved::shut_out(probe).filter(|(new, _)| starved::turns_away(probe, *new))?;
    let at = case.left();
    let detail = format!(
        "{} of the probe were closed or reset immediately, beyond {} open ones and those that it keeps",
        Count(new).of("new connection"),
        Count(at)
    );
    let fix = starved::with_probes_places(case, RAISE.to_owned());
    let sentence = Sentence::TurnsAway { beyond: at, has_probe: true };
    case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), at, sentence, detail, fix)
}
