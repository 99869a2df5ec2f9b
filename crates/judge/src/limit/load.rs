//! Causes in the load itself.

use plan::Threshold;
use samples::{
    Cause,
    Certainty::{Inferred, Seen},
    Figures, Limit, Side, Summary,
};
use units::{Count, Nanos, Rate, Unit};

use super::{Case, Sentence, Trouble, accept_queue::WORKERS, away};
use crate::{
    By,
    evidence::{Paced, Queueing},
};

/// Connections that carry this share of what they can at the response time of an idle target are busy: between two requests they wait for
/// the next one for a moment.
const BUSY: f64 = 0.9;

/// Requests were due while all connections waited for a response, and nothing else went wrong: their number limits the rate.
pub(super) fn too_few_connections(case: &Case) -> Option<Limit> {
    let s = case.summary;
    if let Some(paced) = case.evidence.paced {
        return busy_connections(case, paced);
    }
    // Of several populations, others have no part in it.
    let several = Some(&s.populations).filter(|all| all.len() > 1);
    let named = several.and_then(|all| all.iter().max_by_key(|(_, own)| own.requests.missed));
    let own: &Figures = named.map_or(&s.figures, |(_, own)| &own.figures);
    let (held, sent, missed) = (own.connections.held, own.requests.sent, own.requests.missed);
    if case.trouble != Trouble::None || missed == 0 || sent == 0 || held == 0 || own.duration_s <= 0.0 {
        return None;
    }
    // The connections of an agent that was not there carried nothing, and what was due on them was missed.
    if s.agents.iter().any(away::was_missing) {
        return None;
    }
    let due = sent + missed;
    // Each carries as much as it did: as many as the rate asks for at this response time (Little's law). Those that the target
    // had closed with an announcement took their part.
    let all = held.max(own.connections.wanted);
    let needed = Count((all as f64 * due as f64 / sent as f64).ceil() as u64);
    // The ramps of a rate have requests too.
    let time_s = if case.evidence.subject.has_stages { own.elapsed_s } else { own.duration_s };
    let per_s = |n: u64| n as f64 / time_s;
    if case.evidence.subject.pause_flag.as_deref() == Some("--ping") && case.evidence.subject.rate.is_none() {
        return slower_than_interval(case, own, per_s(due));
    }
    if case.evidence.queueing == Queueing::InLine {
        return saturated(case, own, per_s(due));
    }
    let sentence = Sentence::TooFewConnections { held, carried: per_s(sent), due: per_s(due) };
    let all =
        if held == 1 { "the connection".to_owned() } else { format!("all {} connections", Count(held)) };
    let detail = format!(
        "{all} waited for a response when {} of {} were due",
        Count(missed),
        Count(due).of("request")
    );
    let more = match (case.evidence.search, named) {
        // It tries fewer connections still.
        (Some(By::Connections | By::Burst), _) => {
            format!("lower the rate, which needs {needed} connections at this response time")
        }
        (_, Some((name, _))) => {
            format!(
                "give {name} {needed} connections or more, which is what its rate needs at this response time"
            )
        }
        _ => format!("use -c {} or more, which is what the rate needs at this response time", needed.0),
    };
    let unclear = match case.evidence.queueing {
        Queueing::Unclear => "; if they carry no more, the target is at its limit",
        _ => "",
    };
    let fix = format!("{more}, or find out what delays the responses{unclear}");
    case.limit(Inferred, (Side::Host, Cause::TooFewConnections), held, sentence, detail, fix)
}

/// Figures of which a larger load has more, as long as the target serves it.
const THROUGHPUT: [&str; 3] = ["requests.per_s", "requests.bytes_in_per_s", "requests.bytes_out_per_s"];
/// The share of a rate from which on it was reached: a run ends within a period of its schedule.
const REACHED: f64 = 0.95;
/// What a rate is raised by beyond what its proportion asks for, so that it is met and not just reached.
const MARGIN: f64 = 1.01;

/// How many times the throughput of a run its failed thresholds ask for, and the first of them; none where one asks for
/// something else.
pub(super) fn throughput_wanted(s: &Summary) -> Option<(f64, Threshold)> {
    let failed = s.thresholds.iter().filter(|result| !result.pass);
    let wanted: Option<Vec<(f64, Threshold)>> = failed
        .map(|result| {
            let threshold = Threshold::parse(&result.expr, &[]).ok()?;
            let is_throughput = THROUGHPUT.contains(&threshold.figure.path.as_str());
            let value =
                result.value.filter(|value| threshold.is_lower_bound() && is_throughput && *value > 0.0)?;
            Some((threshold.bound / value, threshold))
        })
        .collect();
    let wanted = wanted?;
    let most = wanted.iter().map(|(times, _)| *times).fold(0.0, f64::max);
    wanted.into_iter().next().map(|(_, first)| (most, first))
}

/// All that was due was answered, and nothing failed but thresholds that ask for more throughput: the rate is too low for them.
pub(super) fn too_little(case: &Case) -> Option<Limit> {
    let (r, subject) = (&case.summary.requests, &case.evidence.subject);
    let rate = subject.rate.filter(|_| case.trouble == Trouble::None && case.evidence.search.is_none())?;
    let (times, threshold) = throughput_wanted(case.summary)?;
    // Each connection that arrives may send several.
    let is_reached = subject.arrives || r.per_s >= rate.per_s_f64() * REACHED;
    if r.sent == 0 || r.answered < r.sent || r.missed > 0 || !is_reached {
        return None;
    }
    let bytes = match threshold.figure.path.as_str() {
        "requests.bytes_in_per_s" => Some(r.bytes_in),
        "requests.bytes_out_per_s" => Some(r.bytes_out),
        _ => None,
    };
    let in_words = |bytes: u64| {
        let each = bytes as f64 / r.answered as f64;
        if threshold.is_decimal() { Unit::Bytes.brief_decimal(each) } else { Unit::Bytes.brief(each) }
    };
    let sentence = Sentence::AllAnswered { rate, arrives: subject.arrives, each: bytes.map(in_words) };
    let flag = if subject.arrives { "--arrive" } else { "--rate" };
    let fix = format!("raise {flag} to {}", up_to_two_digits(rate.per_s_f64() * times * MARGIN));
    let detail = "no limit was reached".to_owned();
    case.limit(Seen, (Side::Unknown, Cause::Unknown), case.left(), sentence, detail, fix)
}

/// Where more throughput may come from. A smaller load has less: no load is to be searched.
pub(super) fn more_throughput(case: &Case) -> String {
    let subject = &case.evidence.subject;
    let pause = subject.pause_flag.as_deref().filter(|_| subject.longest_pause > Nanos::ZERO);
    match pause {
        _ if subject.rate.is_some() => "profile the target".to_owned(),
        _ if subject.is_scenario => "use a larger load, or profile the target".to_owned(),
        Some(flag) => {
            format!("use shorter pauses ({flag}) or more connections (-c), or profile the target")
        }
        None => "use more connections (-c), or profile the target".to_owned(),
    }
}

/// A number per second that is above 0, rounded up: 530 for 526.
fn up_to_two_digits(per_s: f64) -> Rate {
    let unit = 10f64.powi(per_s.log10().floor() as i32 - 1);
    Rate::from_per_s_f64((per_s / unit).ceil() * unit)
}

/// In a step of a search by rate, all connections wait for responses that take no longer than those of smaller loads: with more of them the
/// target may serve more. Where it is the target that is busy, each response takes longer, and they carry less.
fn busy_connections(case: &Case, Paced { due_per_s, response }: Paced) -> Option<Limit> {
    let s = case.summary;
    let (held, response_s) = (s.connections.held, response.secs_f64());
    let counted_s = s.duration_s - response_s;
    if !case.is_waiting() || held == 0 || counted_s <= response_s {
        return None;
    }
    // In the time that one takes, none has come yet.
    let carried = s.requests.per_s * s.duration_s / counted_s;
    let are_busy = carried * response_s >= BUSY * held as f64;
    if !are_busy || carried >= due_per_s {
        return None;
    }
    let needed = (held as f64 * due_per_s / carried).ceil();
    let sentence = Sentence::TooFewConnections { held, carried, due: due_per_s };
    let detail = format!(
        "a response takes {:.0} ms, also at smaller loads: {} cannot carry more",
        response_s * 1e3,
        Count(held).of("connection")
    );
    let fix = format!("use -c {needed:.0} or more, which is what the rate needs at this response time");
    case.limit(Inferred, (Side::Host, Cause::TooFewConnections), held, sentence, detail, fix)
}

/// Each connection has messages at an interval, and awaits the reply to one before it sends the next: replies take longer.
fn slower_than_interval(case: &Case, own: &Figures, due: f64) -> Option<Limit> {
    let sentence = Sentence::Saturated { answered: own.requests.per_s, due };
    let detail = format!(
        "{} were due while their connection awaited the reply to one before",
        Count(own.requests.missed).of("message")
    );
    let fix = "find out what delays the replies, or send less often (--ping)".to_owned();
    let held = own.connections.held;
    case.limit(Inferred, (Side::Target, Cause::Saturated), held, sentence, detail, fix)
}

/// The same where responses wait for each other: more connections would carry no more.
fn saturated(case: &Case, own: &Figures, due: f64) -> Option<Limit> {
    let (held, answered) = (own.connections.held, own.requests.per_s);
    let sentence = Sentence::Saturated { answered, due };
    let detail = format!(
        "responses took {} at first, and longer the more requests were under way; {answered:.0}/s were answered",
        Unit::Micros.brief(own.latency_us.min)
    );
    let less = match case.evidence.search {
        Some(By::Rate) => String::new(),
        _ => format!(", or lower the rate to {:.0}/s", (0.9 * answered).floor().max(1.0)),
    };
    let fix = format!("more connections would only wait longer: {WORKERS}{less}");
    case.limit(Inferred, (Side::Target, Cause::Saturated), held, sentence, detail, fix)
}
