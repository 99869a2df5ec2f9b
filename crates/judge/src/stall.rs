//! Stalls: a time without any response, whether it is exceptional, and what the target did then.

use samples::{Figures, Quantiles, Summary};
use units::{Count, Nanos};

use crate::{
    case::{Case, Scope},
    evidence::{Evidence, Stall, State},
};
use record::tolerances::{STANDS_OUT, TICK_S};

/// The longest response time in microseconds.
pub(crate) fn longest_us(times: &Quantiles, ramp: &Quantiles) -> f64 {
    times.max.max(ramp.max)
}

/// The figures of the silent population: others may have had responses, and have other times.
fn whose<'a>(s: &'a Summary, e: &Evidence) -> &'a Figures {
    let own = e.stall_of.as_ref().and_then(|name| s.populations.get(name));
    own.map_or(&s.figures, |own| &own.figures)
}

/// The stall, if it is exceptional, with the target's state; and for how many seconds requests waited.
pub(crate) fn of(case: &Case) -> Option<(Stall, f64)> {
    let (s, e) = (whose(case.summary, case.evidence), case.evidence);
    let stall = case.stall().filter(|stall| is_one(s, e, stall))?;
    let is_unreached = matches!(stall.state, State::Idle | State::Unseen) && were_sent_again(s, e);
    let state = if is_unreached { State::Unreached } else { stall.state };
    let (from_s, until_s) = times(s, &stall);
    Some((Stall { state, ..stall }, until_s - from_s))
}

/// Whether segments other than SYNs were retransmitted: a waiting connection retransmits a few times per second (RFC 6298). Retransmissions
/// on one connection in ten are more than a path usually loses.
fn were_sent_again(s: &Figures, e: &Evidence) -> bool {
    let again = e.here.net.retrans_segs.saturating_sub(e.here.net.syn_retrans);
    again >= 3.max(s.connections.held / 10) && !e.subject.is_loopback
}

/// Whether the silence is exceptional, and waiting requests were answered afterwards, unless they timed out. Otherwise it is a request
/// without a response.
fn is_one(s: &Figures, e: &Evidence, stall: &Stall) -> bool {
    let length_us = (stall.until_s - stall.from_s) * 1e6;
    let waited_us = match e.timeout {
        Nanos::ZERO => length_us,
        timeout => length_us.min(timeout.0 as f64 / 1e3),
    };
    let came_late = longest_us(&s.latency_us, &s.ramp_latency_us) >= 0.7 * waited_us;
    stall.is_over && came_late && length_us >= STANDS_OUT * s.latency_us.p50.max(stall.usual_us)
}

/// Start and end of the stall in seconds: it is extended to the waiting time of the request that waited longest, if that exceeds it by at
/// most two ticks.
fn times(s: &Figures, stall: &Stall) -> (f64, f64) {
    let longest_us = longest_us(&s.latency_us, &s.ramp_latency_us);
    let beyond_s = longest_us / 1e6 - (stall.until_s - stall.from_s);
    let each_s = if (0.0..=2.0 * TICK_S).contains(&beyond_s) { beyond_s / 2.0 } else { 0.0 };
    (stall.from_s - each_s, stall.until_s + each_s)
}

/// The warning about a stall for a run that passes.
pub(crate) fn warning(s: &Summary, e: &Evidence) -> Option<String> {
    let case = Case::of(s, e, Scope::default());
    let (stall, _) = of(&case)?;
    Some(format!("warning: {}: {}", describe(&case, &stall), advice(stall.state)))
}

pub(crate) fn describe(case: &Case, stall: &Stall) -> String {
    let (count, s) = (stall.count, whose(case.summary, case.evidence));
    let (from_s, until_s) = times(s, stall);
    let times = if count > 1 { format!("; the longest of {} times", Count(count)) } else { String::new() };
    let state = match stall.state {
        State::Unseen => "",
        State::Stopped => "; the target's process was stopped (state T)",
        State::Blocked => "; the target's process was blocked (state D: usually a disk)",
        State::Collecting => "; the target was collecting garbage",
        State::Cpu => "; the target's process used all of its CPU for something else",
        State::Idle => "; the target's process used little CPU: it waited for something",
        State::Unreached => "; many segments were sent again in this run",
    };
    let of = case.evidence.stall_of.as_ref().map_or(String::new(), |name| format!(" of {name}"));
    format!(
        "no connection{of} received a response from second {from_s:.1} to {until_s:.1} ({:.1} s), while throng was on time{times}{state}",
        until_s - from_s
    )
}

/// What the target did during the stall.
pub(crate) const fn doing(state: State) -> &'static str {
    match state {
        State::Unseen => "",
        State::Stopped => ", while its process was stopped",
        State::Blocked => ", while its process was blocked, usually on a disk",
        State::Collecting => ", while it collected garbage",
        State::Cpu => ", while it used all of its CPU for something else",
        State::Idle => ", while it waited for something",
        State::Unreached => ", and segments were sent again: perhaps the path was interrupted",
    }
}

pub(crate) const fn advice(state: State) -> &'static str {
    match state {
        State::Stopped => "find what stops it (SIGSTOP, Ctrl-Z, a debugger, a paused container or machine)",
        State::Blocked => "check its disks and network file systems (iostat -x, /proc/PID/stack)",
        State::Collecting => {
            "increase its heap or use another collector, and check its garbage collection log"
        }
        State::Cpu => "find what it computes at that time (perf top -p PID)",
        State::Unreached => {
            "check the path at that time (links, routes, firewalls), and whether the target's machine was paused or migrated"
        }
        State::Idle | State::Unseen => {
            "check its log at that time for a lock, a pause of its machine, garbage collection, or what it \
            waited for"
        }
    }
}
