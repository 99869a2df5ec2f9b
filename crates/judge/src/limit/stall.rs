//! A target that was silent or stopped, or a stall of throng itself.

use samples::{AgentSummary, Cause, Certainty::Seen, Figures, Limit, Side, Summary};
use units::{Count, Nanos, percent};

use super::{Case, Sentence, Trouble, load, slow_part};
use crate::{
    evidence::{Evidence, Stall, State, times::COLLECTED},
    honesty,
};

/// Shorter than this, throng's own stalls are lag.
const OWN: Nanos = Nanos::from_millis(100);
/// A silence stands out if it is this many times as long as the usual response time.
const STANDS_OUT: f64 = 4.0;

/// Throng itself was stopped, or had no processor, for long enough to explain what failed.
pub(super) fn ours(case: &Case) -> Option<Limit> {
    let s = case.summary;
    let stall_us = s.generator.stall_us;
    let stands_out = stall_us >= OWN.0 as f64 / 1e3 && stall_us >= STANDS_OUT * s.latency_us.p50;
    let explains = match case.trouble {
        // That a load is too small for a threshold is no stall's doing.
        Trouble::None => 2.0 * stall_us >= longest_us(s) && load::too_little(case).is_none(),
        Trouble::Waiting => honesty::is_of_timeout(case.evidence, stall_us),
        _ => false,
    };
    // Where it had no processor for most of the time, that is the reason.
    if !stands_out || !explains || honesty::saturated(case.evidence).is_some() {
        return None;
    }
    let who = stopped_one(s);
    let mut detail = format!("{who} was stopped, or had no processor, for {:.1} s", stall_us / 1e6);
    if case.trouble != Trouble::None {
        detail += ", which may have caused the failures";
    }
    let sentence = Sentence::ThrongStopped { who, seconds: stall_us / 1e6 };
    let fix = if s.agents.is_empty() { OURS } else { AGENTS };
    case.limit(Seen, (Side::Host, Cause::Stall), case.left(), sentence, detail, fix)
}

const OURS: &str = "do not suspend throng or its machine, and give it its own processors";
const AGENTS: &str = "do not suspend agents or their machines, and give each its own processors";

/// Who that was: of a fleet the agent that was not heard of, or late, for a good part of that time, if it was the only one.
fn stopped_one(s: &Summary) -> String {
    let was_away = |agent: &&AgentSummary| {
        let away_us = (agent.away_s * 1e6).max(agent.lag_p99_us.unwrap_or_default());
        2.0 * away_us >= s.generator.stall_us
    };
    let mut stopped = s.agents.iter().filter(was_away);
    match (stopped.next(), stopped.next()) {
        _ if s.agents.is_empty() => "throng itself".to_owned(),
        (Some(agent), None) => format!("agent {}", agent.id),
        _ => "an agent".to_owned(),
    }
}

fn longest_us(s: &Figures) -> f64 {
    s.latency_us.max.max(s.ramp_latency_us.max)
}

/// A process of the target was stopped while something failed.
pub(super) fn stopped(case: &Case) -> Option<Limit> {
    let (from, until) = case.evidence.stopped.filter(|_| case.is_waiting())?;
    // Of several processes it may have been one that others do not wait for.
    let s = case.summary;
    if case.trouble == Trouble::None && s.latency_us.count > 0 && longest_us(s) < 0.5e6 * (until - from) {
        return None;
    }
    let sentence = Sentence::Stopped { from_s: from, until_s: until };
    let pid = case.evidence.target.map_or(0, |target| target.pid);
    let mut detail = format!(
        "the target's process was stopped (process {pid}, state T) from second {from:.0} to {until:.0}: no CPU, no response"
    );
    if case.evidence.unaccepted > 0 {
        detail += &format!("; {} in its accept queue", Count(case.evidence.unaccepted).of("connection"));
    }
    let at = if case.evidence.unaccepted > 0 { case.summary.connections.held } else { case.left() };
    case.limit(Seen, (Side::Target, Cause::Stall), at, sentence, detail, advice(State::Stopped))
}

/// No connection received a response for a while, and then they did.
pub(super) fn stall(case: &Case) -> Option<Limit> {
    let (figures, of) = (whose(case.summary, case.evidence), &case.evidence.stall_of);
    let stall = silence(figures, case.evidence).filter(|_| case.is_waiting())?;
    // Of what ran into its timeout, a shorter silence is not the reason.
    if case.trouble == Trouble::Waiting && !honesty::is_of_timeout(case.evidence, length_us(&stall)) {
        return None;
    }
    let detail = describe(figures, &stall, of.as_deref());
    let (from_s, until_s) = times(figures, &stall);
    let sentence = Sentence::Silent { of: of.clone(), seconds: until_s - from_s, state: doing(stall.state) };
    case.limit(Seen, (Side::Target, Cause::Stall), case.left(), sentence, detail, advice(stall.state))
}

/// Some responses were slow because the target collected garbage: too briefly for a silence.
pub(super) fn pauses(case: &Case) -> Option<Limit> {
    let part = slow_part(case)?;
    let pause = case.evidence.pause;
    if pause.secs_f64() < COLLECTED * part.slow.secs_f64() {
        return None;
    }
    let detail = format!(
        "{} of responses took {}; in those seconds the target was collecting garbage for {} at a time",
        percent(part.share),
        part.slow.brief(),
        pause.brief()
    );
    let (sentence, at) = (Sentence::SlowWhileCollecting(part), case.left());
    case.limit(Seen, (Side::Target, Cause::Stall), at, sentence, detail, advice(State::Collecting))
}

/// The same as a warning, of a run that passes.
pub(super) fn warning(s: &Summary, e: &Evidence) -> Option<String> {
    let figures = whose(s, e);
    let stall = silence(figures, e)?;
    let described = describe(figures, &stall, e.stall_of.as_deref());
    Some(format!("warning: {described}: {}", advice(stall.state)))
}

/// The figures of the population that was silent: others may have had responses meanwhile, and have times of their own.
fn whose<'a>(s: &'a Summary, e: &Evidence) -> &'a Figures {
    let own = e.stall_of.as_ref().and_then(|name| s.populations.get(name));
    own.map_or(&s.figures, |own| &own.figures)
}

/// Segments sent again, SYNs apart: of each connection that waits, a few in each second (RFC 6298); of every tenth, more than a path
/// usually loses in between.
fn were_sent_again(s: &Figures, e: &Evidence) -> bool {
    let again = e.here.net.retrans_segs.saturating_sub(e.here.net.syn_retrans);
    again >= 3.max(s.connections.held / 10) && !e.subject.is_loopback
}

/// The silence, if it is one, with what the target did meanwhile.
fn silence(s: &Figures, e: &Evidence) -> Option<Stall> {
    let stall = e.stall.filter(|stall| is_one(s, e, stall))?;
    let state = match stall.state {
        State::Idle | State::Unseen if were_sent_again(s, e) => State::Unreached,
        state => state,
    };
    Some(Stall { state, ..stall })
}

fn length_us(stall: &Stall) -> f64 {
    (stall.until_s - stall.from_s) * 1e6
}

/// Whether it stands out, and the waiting requests got their responses afterwards, as far as their timeout let them wait: else it is a
/// request without a response.
fn is_one(s: &Figures, e: &Evidence, stall: &Stall) -> bool {
    let length_us = length_us(stall);
    let waited_us = match e.timeout {
        Nanos::ZERO => length_us,
        timeout => length_us.min(timeout.0 as f64 / 1e3),
    };
    let came_late = longest_us(s) >= 0.7 * waited_us;
    stall.is_over && came_late && length_us >= STANDS_OUT * s.latency_us.p50
}

/// Ticks are this long: a silence begins within one, and ends within another.
const TICK_S: f64 = 0.2;

/// From when until when: the request that waited longest waited from its beginning to its end, or nearly.
fn times(s: &Figures, stall: &Stall) -> (f64, f64) {
    let beyond_s = longest_us(s) / 1e6 - (stall.until_s - stall.from_s);
    let each_s = if (0.0..=2.0 * TICK_S).contains(&beyond_s) { beyond_s / 2.0 } else { 0.0 };
    (stall.from_s - each_s, stall.until_s + each_s)
}

fn describe(s: &Figures, stall: &Stall, of: Option<&str>) -> String {
    let count = &stall.count;
    let (from_s, until_s) = times(s, stall);
    let times = if *count > 1 { format!("; the longest of {} times", Count(*count)) } else { String::new() };
    let state = match stall.state {
        State::Unseen => "",
        State::Stopped => "; the target's process was stopped (state T)",
        State::Blocked => "; the target's process was blocked (state D: usually a disk)",
        State::Collecting => "; the target was collecting garbage",
        State::Cpu => "; the target's process used all of its CPU for something else",
        State::Idle => "; the target's process used little CPU: it waited for something",
        State::Unreached => "; many segments were sent again in this run",
    };
    let of = of.map_or(String::new(), |name| format!(" of {name}"));
    format!(
        "no connection{of} received a response from second {from_s:.1} to {until_s:.1} ({:.1} s), while throng was on time{times}{state}",
        until_s - from_s
    )
}

/// What the target did meanwhile.
const fn doing(state: State) -> &'static str {
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

const fn advice(state: State) -> &'static str {
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
