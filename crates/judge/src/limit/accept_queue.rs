//! The target's accept queue: full, standing, or emptied slowly.

use crate::longer_queue::{USUAL_SOMAXCONN, longer_queue};
use samples::{
    Cause,
    Certainty::{Inferred, Seen},
    Kind, Limit, Side, Stage, Summary,
};
use units::{Count, Nanos};

use super::{
    Case, Sentence, Trouble,
    syn_loss::{self, SENT_AGAIN_US},
    target,
};
use crate::{By, evidence::Evidence, fill::Fill, starved::Starved};

const OWN_LIMIT: &str =
    "check whether its own limit on connections (max-connections) keeps it from accepting";

/// Queues of this length are advised where that of Linux is too short.
const LONG: u64 = 65_535;

/// Its accept queue is full, or was, or connections are stuck in it. Where more arrive all the time than it has CPU for, or accepts, no
/// queue is long enough: that is the cause. So it is where connections that pause use up its CPU, and the others wait in a queue, full or
/// not; unless some are served all the time, and the others not at all.
pub(super) fn accept_queue(case: &Case) -> Option<Limit> {
    let (found, e) = (queue(case)?, case.evidence);
    let pauses = e.subject.longest_pause > Nanos::ZERO && e.starved.is_empty();
    let outpaced = match e.arrivals_per_s {
        Some(_) => target::cpu(case).or_else(|| at_own_pace(case)),
        None if pauses && (overflows(case.summary, e).is_none() || target::uses_it_up(case).is_some()) => {
            target::cpu(case)
        }
        None => None,
    };
    Some(outpaced.unwrap_or(found))
}

fn queue(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let may_be = matches!(case.trouble, Trouble::Waiting | Trouble::Lost);
    let overflown = overflows(case.summary, e);
    // A few that are in it at the end remain from an overflow: that is why the others were not accepted.
    let is_more = 2 * e.unaccepted >= case.count || overflown.is_none();
    // Those that the overflow has kept out altogether are more of it than those that are in the queue.
    let missing = e.missing.filter(|missing| *missing > 0 && overflown.is_some());
    let are_more_in_it = e.unaccepted > 0 && missing.is_none_or(|missing| e.unaccepted >= missing);
    if are_more_in_it && (may_be && is_more || case.trouble == Trouble::None) {
        return unaccepted(case);
    }
    // Resets follow from an overflow too: the peer took itself for connected. Closes do not.
    let fits = case.trouble == Trouble::Waiting || case.kind == Some(Kind::Reset);
    let are_only_missing = case.trouble == Trouble::None && missing.is_some();
    if !are_only_missing && (!may_be || !fits) {
        return None;
    }
    let Some(lost) = overflown else { return standing(case) };
    let rate = e.accepts_per_s.map_or(String::new(), |rate| format!("; it accepts a steady {rate:.0}/s"));
    let half_open = missing.map_or(String::new(), |missing| {
        format!(
            "; {} established on this machine only, and unknown to the target's host",
            Count(missing).were("connection")
        )
    });
    let times = Count(lost).of("time");
    let detail =
        format!("its accept queue{} was full: it overflowed {times}{rate}{half_open}", backlog(case));
    // The counters alone are of all listeners together.
    let is_its_own = is_full(e) || e.queue_drops > 0 || missing.is_some();
    let certainty = if is_its_own { Seen } else { Inferred };
    let backlog = e.accept_queue.map_or(0, |queue| queue.limit);
    let sentence = Sentence::QueueOverflowed { backlog, times: lost };
    let fix = format!("{OWN_LIMIT}; otherwise {}", longer(e));
    case.limit(certainty, (Side::Target, Cause::AcceptQueue), case.served(), sentence, detail, fix)
}

pub(super) fn is_full(e: &Evidence) -> bool {
    e.accept_queue.is_some_and(Fill::is_full)
}

/// ` of 511`, where that is known.
fn backlog(case: &Case) -> String {
    let queue = case.evidence.accept_queue.filter(|queue| queue.limit > 0);
    queue.map_or(String::new(), |queue| format!(" of {}", Count(queue.limit)))
}

/// What makes its queue longer: the smaller one of its own backlog and somaxconn is to be raised. Where one of them is not seen, both.
fn longer(e: &Evidence) -> String {
    let backlog = e.accept_queue.map(|queue| queue.limit).filter(|limit| *limit > 0);
    let (Some(backlog), Some(most)) = (backlog, e.somaxconn) else {
        let (_, own) = longer_queue(&e.program, Some(LONG), None);
        return format!(
            "{own}; if net.core.somaxconn of its host is smaller, raise that first (sysctl -w net.core.somaxconn={LONG})"
        );
    };
    let (own, allowed) = match backlog < most {
        true => (Some(most.max(USUAL_SOMAXCONN)), (most < USUAL_SOMAXCONN).then_some(USUAL_SOMAXCONN)),
        false => (None, Some(LONG.max(most.saturating_mul(2)))),
    };
    match longer_queue(&e.program, own, allowed) {
        (Some(command), then) => format!("{command}, then {then}"),
        (None, what) => what,
    }
}

/// How often the target's queue overflowed, if it was full or may have been.
fn overflows(s: &Summary, e: &Evidence) -> Option<u64> {
    let net = e.there?.net;
    let all = syn_loss::dropped(net);
    let lost = if e.queue_drops > 0 { e.queue_drops } else { all };
    // The counters cover all listeners: another one's overflow is not of this queue, if it can be seen. A burst may be over
    // between two samples; but each of its dials that timed out has overflown a queue.
    let dials = s.faults.iter().filter(|f| f.stage == Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = dials.map(|f| f.count).sum();
    let may_be_its_own = e.accept_queue.is_none_or(|queue| queue.used * 2 >= queue.limit)
        || timed_out > 0 && net.listen_overflows >= timed_out
        || e.has_missing()
        || drops_explain(s, e);
    (is_full(e) || lost > 0 && may_be_its_own).then_some(lost)
}

/// Whether what its listeners dropped is why requests timed out: those on connections of which the last segment of the handshake was
/// dropped never have a response, and each of them was dropped once or more. Of those that still waited at the end it is known whether
/// the target has them.
fn drops_explain(s: &Summary, e: &Evidence) -> bool {
    let exchanges = s.faults.iter().filter(|f| f.stage != Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = exchanges.map(|f| f.count).sum();
    let waited = match e.missing {
        Some(0) => timed_out.saturating_sub(s.connections.dropped_in_drain),
        _ => timed_out + s.requests.unanswered,
    };
    waited > 0 && e.queue_drops >= waited && 2 * e.unserved >= waited
}

/// The same where dials came through when their SYNs were sent again.
fn overflows_of_slow_dials(s: &Summary, e: &Evidence) -> Option<u64> {
    let net = e.there?.net;
    let seen = overflows(s, e).filter(|lost| *lost > 0);
    seen.or_else(|| Some(net.listen_overflows).filter(|n| *n > 0 && s.connect_us.max >= SENT_AGAIN_US))
}

/// Dials took too long for a threshold, and that is all that failed, or why requests did.
pub(super) fn slow_dials(case: &Case) -> Option<Limit> {
    let (s, e) = (case.summary, case.evidence);
    let times = overflows_of_slow_dials(s, e)?;
    let times_in_words = Count(times).of("time");
    let detail = format!(
        "its accept queue{} overflowed {times_in_words}: {}",
        backlog(case),
        syn_loss::connecting_took(s)
    );
    let certainty = if is_full(e) { Seen } else { Inferred };
    let sentence =
        Sentence::QueueOverflowed { backlog: e.accept_queue.map_or(0, |queue| queue.limit), times };
    case.limit(certainty, (Side::Target, Cause::AcceptQueue), case.left(), sentence, detail, longer(e))
}

/// The same as a warning, of a run that passes.
pub(super) fn overflow_warning(s: &Summary, e: &Evidence) -> Option<String> {
    let lost = overflows_of_slow_dials(s, e)?;
    let (p99, max) = (s.connect_us.p99 / 1e6, s.connect_us.max / 1e6);
    let times = Count(lost).of("time");
    let fix = match (e.arrivals_per_s, own_pace(e)) {
        (Some(_), Some((sentence, fix))) => format!("{sentence}: {fix}"),
        _ => longer(e),
    };
    Some(format!(
        "warning: the target's accept queue overflowed {times}: dials took up to {max:.1} s (p99 \
        {p99:.1} s), because a dropped SYN is retransmitted after 1 s; {fix}"
    ))
}

/// Connections that only the kernel has accepted.
fn unaccepted(case: &Case) -> Option<Limit> {
    let (were, of) = (Count(case.evidence.unaccepted).were("connection"), backlog(case));
    let detail = format!(
        "{were} accepted by the kernel only, in the target's accept queue{of}, and not by its process"
    );
    let unserved = most_starved(case.evidence).filter(|most| most.count >= case.evidence.unaccepted);
    if let Some(most) = unserved {
        return stuck(case, most, case.evidence.unaccepted, detail);
    }
    let sentence = Sentence::QueueUnaccepted { count: case.evidence.unaccepted };
    let (cause, at) = ((Side::Target, Cause::AcceptQueue), case.summary.connections.held);
    case.limit(Seen, cause, at, sentence, detail, UNACCEPTED)
}

/// Connections that were in the queue, which was not full, as many as those that timed out.
fn standing(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    if e.stood == 0 || e.accepts_per_s.is_some() || 2 * e.stood < case.count {
        return None;
    }
    let most = most_starved(e);
    let served = most.map_or(case.served(), |most| most.served);
    let c = &case.summary.connections;
    // Places that throng gives up are free for the others, which wait meanwhile.
    let takes_turns = most.map_or(c.redialled > 0, |most| most.in_turns);
    let (were, of, all) = (Count(e.stood).were("connection"), backlog(case), Count(served));
    let at_most = if takes_turns { "at most " } else { "" };
    let detail = format!(
        "{were} in its accept queue{of} and not accepted although it was not full: the target serves {at_most}{all} \
        at a time"
    );
    if let Some(most) = most {
        return stuck(case, most, e.stood, detail);
    }
    // The probe's fresh ones wait there too.
    let others = if case.summary.probe.is_some() { u64::MAX } else { c.wanted.saturating_sub(served) };
    let count = Some(e.stood.min(others)).filter(|_| !takes_turns && others > 0);
    let sentence = Sentence::QueueStanding { served, count };
    case.limit(Seen, (Side::Target, Cause::AcceptQueue), served, sentence, detail, UNACCEPTED)
}

/// Those of a population that had no response while the others had many.
pub(super) fn most_starved(e: &Evidence) -> Option<&Starved> {
    e.starved.iter().max_by_key(|own| own.count)
}

/// The same where those that had no response are known: some of them are in the queue, and the others are not served either, as those that
/// throng has given up.
fn stuck(case: &Case, most: &Starved, queued: u64, detail: String) -> Option<Limit> {
    let sentence = Sentence::QueueStarved { most: most.clone(), queued: queued.min(most.count) };
    case.limit(Seen, (Side::Target, Cause::AcceptQueue), most.served, sentence, detail, UNACCEPTED)
}

const UNACCEPTED: &str = "raise its own limit on connections (maxconn, max-connections) or threads, or \
find out why it does not call accept()";

/// Of the connections that wait, this share is in the accept queue where that is what they wait for: the probe's are there too.
const QUEUED: f64 = 0.5;

/// In a step of a search for how fast connections, or requests on `connections`, may come: more and more waited all the time, and had their
/// responses only once no more came. That is not sustained, however long the queue is that takes them.
pub(crate) fn outrun(e: &Evidence, connections: u64) -> Option<Sentence> {
    match e.search {
        Some(By::Arrival) => outruns(e),
        Some(By::Rate) => e.rate_backlog.map(|count| Sentence::RateBacklog { count, connections }),
        _ => None,
    }
}

/// The same as a warning, of a run that passes: each had its response, once no more came.
pub(super) fn outrun_warning(e: &Evidence) -> Option<String> {
    let sentence = outruns(e).filter(|_| e.search.is_none())?;
    let command = &e.subject.search_by_arrival;
    Some(format!("warning: {sentence}; search the rate that it sustains ({command})"))
}

fn outruns(e: &Evidence) -> Option<Sentence> {
    e.backlog.map(|waiting| outrun_by(e, waiting))
}

/// Those that are accepted as fast as they arrive may be in the queue for a moment, and wait for something else.
fn outrun_by(e: &Evidence, waiting: u64) -> Sentence {
    let keeps_up = e.accepts_per_s.is_some() && limiting_pace(e).is_none();
    let given_up = e.given_up_at_end;
    let is_most =
        |queued: &u64| !keeps_up && queued.saturating_sub(given_up) as f64 >= QUEUED * waiting as f64;
    match e.queued_at_end.filter(is_most) {
        Some(count) => Sentence::Queued { count, given_up },
        None => Sentence::Outrun { count: waiting },
    }
}

/// The same as what stopped a run that does not pass: as many may time out as come too fast, and then no more and more wait.
fn outpaced(case: &Case) -> Option<Sentence> {
    let e = case.evidence;
    let sentence = match e.search {
        None => e.outpaced.map(|waiting| outrun_by(e, waiting)),
        Some(_) => outrun(e, case.summary.connections.held),
    };
    sentence.filter(|_| case.is_waiting())
}

const fn more(e: &Evidence) -> &'static str {
    match e.search {
        None => "more waited, or had timed out, in each part of the load than in the one before",
        Some(_) => "more waited in each part of the step than in the one before",
    }
}

/// Where those wait that come faster than they are accepted, some of them until their timeout; and nothing else is wrong.
fn outran(case: &Case) -> Option<Limit> {
    let sentence = outpaced(case)?;
    let Sentence::Queued { count, given_up } = sentence else { return None };
    let rate = case
        .evidence
        .accepts_per_s
        .map_or(String::new(), |rate| format!("it accepts a steady {rate:.0}/s; "));
    let (were, of) = (Count(count).were("connection"), backlog(case));
    let more = more(case.evidence);
    let of_which = match given_up {
        0 => String::new(),
        n => format!(", {} of them already abandoned by throng", Count(n)),
    };
    let detail = format!("{rate}{were} in its accept queue{of} when the last one arrived{of_which}; {more}");
    case.limit(Seen, (Side::Target, Cause::SlowAccept), case.left(), sentence, detail, THREADS)
}

const THREADS: &str = "make it accept in more threads or worker processes";

/// By arrival, or in a step of a search by rate: more and more waited for a response, and no resource is seen to be used up.
pub(super) fn saturated(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let sentence = outpaced(case)?;
    let timed_out = match case.count {
        0 => String::new(),
        n => format!("; {} timed out", Count(n)),
    };
    let detail = format!("{}{timed_out}", more(e));
    let fix = match e.search {
        Some(By::Rate) => format!("{WORKERS}; where all its responses take long, use more connections (-c)"),
        _ => WORKERS.to_owned(),
    };
    case.limit(Inferred, (Side::Target, Cause::Saturated), case.left(), sentence, detail, fix)
}

pub(super) const WORKERS: &str = "check the number of its workers or threads, and what they wait for: locks, or what it calls (gdb -p, jstack)";

/// It accepts at its own pace.
pub(super) fn slow_accept(case: &Case) -> Option<Limit> {
    let own_pace = || at_own_pace(case).filter(|_| case.trouble == Trouble::Waiting);
    outran(case).or_else(own_pace)
}

fn at_own_pace(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let (rate, (sentence, fix)) = (limiting_pace(e)?, own_pace(e)?);
    let waiting = e.accept_queue.map_or(0, |queue| queue.used);
    let detail = format!("it accepts a steady {rate:.0}/s, while up to {} waited", Count(waiting));
    case.limit(Inferred, (Side::Target, Cause::SlowAccept), case.left(), sentence, detail, fix)
}

/// What is said of that, and the fix.
fn own_pace(e: &Evidence) -> Option<(Sentence, String)> {
    let rate = limiting_pace(e)?;
    let fix = match slower(e) {
        Some(flag) => format!("use {flag} {}/s, or {THREADS}", (rate * 0.9).floor().max(1.0)),
        None => THREADS.to_owned(),
    };
    Some((Sentence::SlowAccept { per_s: rate, arrive: e.arrivals_per_s }, fix))
}

/// A rate of accepts that is within this of the rate of arrivals is that one: a line through samples of a queue is no more exact.
const KEEPS_UP: f64 = 0.95;

/// Connections accepted in a second, where that is a limit: fewer than arrive, or others waited for most of the time.
fn limiting_pace(e: &Evidence) -> Option<f64> {
    let is_limit = |rate: &f64| match e.arrivals_per_s {
        Some(arrive) => *rate < KEEPS_UP * arrive,
        None => !e.queue_empties,
    };
    e.accepts_per_s.filter(is_limit)
}

/// The flag that makes dials slower; none in a search for how fast they may be.
fn slower(e: &Evidence) -> Option<&'static str> {
    match e.search {
        Some(By::Arrival | By::Burst) => None,
        _ if e.subject.arrives => Some("--arrive"),
        _ => Some("--ramp"),
    }
}
