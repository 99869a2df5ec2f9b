//! Evidence from the times that matter: when responses failed, were slow, or did not come at all. What the target did then counts; its
//! averages over the run do not.

use std::collections::BTreeSet;

use samples::{SlowPart, Tick};
use units::{Nanos, cpu_list};

use super::{Evidence, Shared, Stall, State, Timeline};
use record::{
    Record,
    moments::{Collected, Doing, Moment, Moments},
    observed::Observed,
    silences::Silence,
    tolerances::{CPU_OVER, HALF, NEARLY_ALL, ONE_IN_TEN},
};

const SECOND: Nanos = Nanos::from_secs(1);
/// A silence that is at least this likely to occur by chance in the whole run is not attributed to the target.
const CHANCE: f64 = 0.01;

impl Evidence {
    /// Adds the evidence from the seconds of the run; `timeout`: how long a dial or request waits.
    pub(crate) fn add_times(&mut self, r: &Record, timeout: Nanos) {
        (self.timeout, self.is_cut_short) = (timeout, r.is_cut_short);
        let (signs, firsts) = (r.observed.signs.clone(), r.moments.firsts());
        self.timeline = Timeline::new(signs, r.started, firsts, timeout);
        self.answered = r
            .moments
            .between(Nanos::ZERO, Nanos::NEVER)
            .map(|one| (one.from.since(r.started).secs_f64(), one.answered))
            .collect();
        self.least_per_s = least_per_s(&r.moments);
        self.unaccepted = r.unaccepted.unwrap_or(0);
        self.opened_beside = r.losses.opened_beside(timeout);
        (self.unattributed, self.missing) = (r.unattributed, r.missing);
        self.rejection = r.rejection;
        self.resets_by = r.hops.sender();
        let each = (0..).zip(&r.populations);
        let silences = each.filter_map(|(nth, measured)| Some((nth, measured.silences.longest()?)));
        let longest = silences.max_by_key(|(_, (_, silence))| silence.length());
        let is_one = |(nth, (count, silence)): &(u16, (u64, Silence))| {
            !is_of_slow_responses(&r.populations[usize::from(*nth)].totals, *count, silence)
        };
        self.stall = longest.filter(is_one).map(|(population, (count, silence))| Stall {
            from_s: silence.from.since(r.started).secs_f64(),
            until_s: silence.until.since(r.started).secs_f64(),
            count,
            is_over: silence.is_over,
            usual_us: usual(&r.moments, count, &silence).0 as f64 / 1e3,
            state: state(&r.moments, &silence),
            population,
        });
        let silence = longest.map(|(_, (_, silence))| silence);
        self.stopped = stopped(&r.moments, timeout, silence, self.unaccepted > 0, r.started);
        self.pause = pause(&r.moments).unwrap_or(Nanos::ZERO);
        let slow = self.slow_part.map(|part| slow_seconds(&r.moments, part)).unwrap_or_default();
        let number = |one: &&Moment| one.until.since(r.started).secs_f64().round() as u64;
        self.slow_seconds = slow.iter().map(number).collect();
        let mut failed: Vec<&Moment> = r.moments.before_timeouts(timeout).collect();
        let slow = half_reach(failed.iter().filter(|one| one.answered > 0).map(|one| one.slow.secs_f64()));
        // Distinguishes a few stuck requests from a target that serves only some.
        let sum = |of: fn(&Moment) -> u64| failed.iter().map(|one| of(one)).sum::<u64>() as f64;
        let are_few = sum(|one| one.timeouts) <= ONE_IN_TEN * sum(|one| one.answered);
        let serves_others = are_few && slow.is_some_and(|slow_s| slow_s <= ONE_IN_TEN * timeout.secs_f64());
        if failed.is_empty() {
            failed = r.moments.slowest().collect();
        }
        let doing: Vec<Doing> = failed.iter().filter_map(|one| one.target).collect();
        if let Some(target) = &mut self.target {
            target.cpu_thread = target.cpu_thread.and(half_reach(doing.iter().map(|one| one.thread)));
            target.cpu_share = half_reach(doing.iter().map(|one| one.share)).unwrap_or(0.0);
            let cores = r.observed.seen.target.as_ref().and_then(|target| target.process.cores).unwrap_or(0);
            target.cores_used = target.cpu_share * cores as f64;
            let used = doing.iter().map(|one| one.share * cores as f64).collect();
            target.one_processor = one_processor(used).filter(|_| cores > 1);
            target.serves_others = serves_others;
        }
    }
}

/// Responses per second in the slowest third of full load; `None` if full load was too short.
fn least_per_s(moments: &Moments) -> Option<f64> {
    let each: Vec<(f64, f64)> =
        moments.loaded().map(|one| (one.times.count as f64, one.until.since(one.from).secs_f64())).collect();
    // The first and the last second are incomplete.
    let whole = each.get(1..each.len().saturating_sub(1)).filter(|whole| whole.len() >= 3)?;
    let per_s = |part: &[(f64, f64)]| {
        let (count, time_s) = part.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        count / time_s
    };
    whole.chunks_exact(whole.len() / 3).map(per_s).reduce(f64::min).filter(|per_s| *per_s > 0.0)
}

/// Approximate median latency from the beginning of a silence on, without the requests that waited for a silence to end. Earlier latencies
/// are no measure for it.
fn usual(moments: &Moments, count: u64, silence: &Silence) -> Nanos {
    let times = moments.between(silence.from, Nanos::NEVER).map(|one| one.times);
    let all = times.reduce(|one, other| one.plus(&other)).unwrap_or_default();
    all.without_longest(count * silence.waiting).half()
}

/// Whether the silence is probably a coincidence of slow responses, of which the population has some at other times as well. The
/// probability is computed for the requests sent after the silence began, which were not selected by their length, and for those that would
/// be under way at any time if all were fast (Little's law). Requests beyond these may have been waiting for long before the silence, and
/// are ignored.
fn is_of_slow_responses(totals: &Tick, count: u64, silence: &Silence) -> bool {
    let mut all = totals.latency.clone();
    all.merge(&totals.ramp_latency);
    let (length_s, half) = (silence.length().secs_f64(), Nanos(silence.length().0 / 2));
    let new = silence.waiting.saturating_sub(silence.before);
    let usual_s = all.quantile(0.5).secs_f64();
    let fresh = silence.before.min((silence.per_s as f64 * usual_s).round() as u64);
    // Slow responses outside the silences: their share of all responses, and of the time that requests are under way.
    let slow = all.count_within(half, Nanos::NEVER);
    let others = slow.saturating_sub(count * (new + fresh)) as f64;
    // Nothing is slow at other times: no coincidence, however few were waiting.
    if others == 0.0 {
        return false;
    }
    let fast = all.count().saturating_sub(slow) as f64;
    let share = |part: f64, rest: f64| part / (part + rest);
    let (of_all, of_time) = (share(others, fast), share(others * length_s, fast * usual_s));
    all.count() as f64 * of_all.powf(new as f64) * of_time.powf(fresh as f64) >= CHANCE
}

/// The highest value that at least half of the seconds reach. Not the median: the first of two seconds began before the load did.
fn half_reach(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The median number of processors used, if nearly the whole middle half of the values is one. A process with one processor (`GOMAXPROCS`)
/// or one global lock (CPython's) uses exactly one, on whichever thread.
fn one_processor(mut used: Vec<f64>) -> Option<f64> {
    used.sort_by(f64::total_cmp);
    let at = |quarter: usize| used.get(used.len() * quarter / 4).copied();
    let is_one = used.len() >= LEAST_SECONDS && at(1)? >= NEARLY_ALL && at(3)? <= 1.0 / NEARLY_ALL;
    at(2).filter(|_| is_one)
}

/// With fewer seconds, a value of one may be a coincidence.
const LEAST_SECONDS: usize = 3;

/// What the target did during a silence.
fn state(moments: &Moments, silence: &Silence) -> State {
    let (from, until) = (silence.from, silence.until);
    let inside: Vec<Doing> = moments.between(from, until).filter_map(|one| one.target).collect();
    let Some(all) = inside.iter().copied().reduce(Doing::and) else { return State::Unseen };
    let collected = collected(moments, from, until);
    let collected_ns =
        collected.last().zip(collected.first()).map_or(0, |(last, first)| last.since(*first).ns);
    let thread = half_reach(inside.iter().map(|one| one.thread)).unwrap_or(0.0);
    let share = half_reach(inside.iter().map(|one| one.share)).unwrap_or(0.0);
    if all.is_stopped {
        State::Stopped
    } else if collected_ns as f64 >= HALF * silence.length().0 as f64 {
        State::Collecting
    } else if all.blocked > 0 && 2 * all.blocked >= all.samples {
        State::Blocked
    } else if thread >= NEARLY_ALL || share >= NEARLY_ALL {
        State::Cpu
    } else if thread < HALF && share < HALF {
        State::Idle
    } else {
        State::Unseen
    }
}

/// Counts of collections: until the second before, in each second of the silence, and after it, as a collection is counted when it is over.
fn collected(moments: &Moments, from: Nanos, until: Nanos) -> Vec<Collected> {
    let around = moments.between(Nanos(from.0.saturating_sub(SECOND.0)), until + SECOND + SECOND);
    around.filter_map(|one| one.target?.collected).collect()
}

/// How long a collection stopped the target in at least half of the seconds with the slowest responses.
fn pause(moments: &Moments) -> Option<Nanos> {
    let pauses = |collected: &[Collected]| {
        collected.windows(2).map(|pair| pair[1].since(pair[0])).collect::<Vec<Collected>>()
    };
    let all = pauses(&collected(moments, Nanos::ZERO, Nanos::NEVER));
    let usual = half_reach(all.iter().map(|one| one.ns as f64))?;
    // One long collection among short ones: its time is what exceeds the usual time per second.
    let longest = |one: &Collected| (one.ns as f64 / one.count.max(1) as f64).max(one.ns as f64 - usual);
    let slowest = moments.slowest().map(|one| {
        let around = collected(moments, Nanos(one.from.0.saturating_sub(one.slow.0)), one.until);
        pauses(&around).iter().map(longest).fold(0.0, f64::max)
    });
    half_reach(slowest).map(|ns| Nanos(ns as u64))
}

/// The seconds in which slow responses came, if they are far fewer than independent slow responses would touch: then the slow responses
/// have their time in common. Empty otherwise.
fn slow_seconds(moments: &Moments, part: SlowPart) -> Vec<&Moment> {
    // Slow responses take at least four times as long as all others, so half and a quarter of their time still exceed the others.
    let is_slow = |one: &&Moment| one.times.over(Nanos(part.slow.0 / 2)) > 0;
    let slow: Vec<&Moment> = moments.loaded().filter(is_slow).collect();
    let has_one = |one: &Moment| 1.0 - (1.0 - part.share).powf(one.times.count as f64);
    let expected: f64 = moments.loaded().map(has_one).sum();
    if slow.len() as f64 <= HALF * expected { slow } else { Vec::new() }
}

/// From and until when the target was stopped while something failed; `always`: something failed all the time.
fn stopped(
    moments: &Moments,
    timeout: Nanos,
    silence: Option<Silence>,
    always: bool,
    started: Nanos,
) -> Option<(f64, f64)> {
    let is_stopped = |one: &&Moment| one.target.is_some_and(|target| target.is_stopped);
    let silence = silence.unwrap_or_default();
    let from = if always { Nanos::ZERO } else { silence.from };
    let until = if always { Nanos::NEVER } else { silence.until };
    let waited = moments.before_timeouts(timeout).chain(moments.between(from, until));
    let times = waited.filter(is_stopped).map(|one| (one.from, one.until));
    let (from, until) = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some((from.since(started).secs_f64(), until.since(started).secs_f64()))
}

impl Shared {
    /// `None` if one end may run on other processors, or both may run on any.
    pub(super) fn seen(observed: &Observed) -> Option<Shared> {
        let target = observed.seen.target.as_ref().filter(|_| observed.both_here)?;
        let samples = observed.latest();
        let own = observed.seen.own.as_ref()?;
        let list = samples.own?.cpus;
        let ours = processors(&list);
        let is_same = !ours.is_empty() && ours == processors(&target.latest().process.cpus);
        let is_confined = observed.processors.is_some_and(|all| (ours.len() as u64) < all);
        if !is_same || !is_confined || observed.held_for < CPU_OVER {
            return None;
        }
        let time_ns = observed.held_for.0 as f64 * ours.len() as f64;
        let used = |process: &samples::ProcessSeen| process.cpu_user_ns.hold + process.cpu_system_ns.hold;
        let share = |process| used(process) as f64 / time_ns;
        let waited = (own.run_queue_wait_ns.hold + target.process.run_queue_wait_ns.hold) as f64 / time_ns;
        let (own, target) = (share(own), share(&target.process));
        Some(Shared { list, own, target, wanted: own + target + waited })
    }
}

/// Upper bound for processor numbers in a list: kernels are built for at most 8,192.
const MAX_PROCESSORS: u64 = 8_192;

/// The processors in a list of the kernel's format; empty if it cannot be parsed.
fn processors(list: &str) -> BTreeSet<u64> {
    let spans = cpu_list(list).unwrap_or_default();
    spans.into_iter().flat_map(|(first, last)| first..=last.min(MAX_PROCESSORS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::TargetSeen;
    use record::moments::Times;
    use samples::Latency;

    fn second(n: u64, timeouts: u64, target: Doing) -> Moment {
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        let (answered, slow) = (9, Nanos::from_millis(1));
        let target = Some(Doing { samples: 2, ..target });
        Moment { from, until, timeouts, answered, slow, target, ..Moment::default() }
    }

    /// Ten seconds, with `then` in the sixth and seventh.
    fn moments(then: Doing) -> Moments {
        let busy = Doing { thread: 1.0, collected: Some(Collected::default()), ..Doing::default() };
        let after = Doing { collected: then.collected.or(busy.collected), ..busy };
        let doing = |n| match n {
            0..5 => busy,
            5 | 6 => then,
            _ => after,
        };
        Moments::of(&(0..10).map(|n| second(n, 0, doing(n))).collect::<Vec<_>>())
    }

    #[test]
    fn one_processor_is_used_second_after_second() {
        let check = |used: &[f64], expected| assert_eq!(one_processor(used.to_vec()), expected, "{used:?}");
        check(&[0.1, 0.97, 1.01, 0.99, 1.04], Some(0.99));
        check(&[1.0, 1.01, 0.2, 0.99, 0.3, 1.0, 1.02, 1.0], Some(1.0));
        check(&[0.9, 1.0, 1.1, 0.8, 1.2], None);
        check(&[1.5, 1.6, 1.0, 1.5], None);
        check(&[1.0, 1.0], None);
        check(&[], None);
    }

    #[test]
    fn a_silence_has_the_state_of_its_own_seconds() {
        let (from, until) = (Nanos::from_secs(5), Nanos::from_secs(7));
        let silence = Silence { from, until, waiting: 9, is_over: true, ..Silence::default() };
        let check = |then: Doing, expected: State| {
            assert_eq!(state(&moments(then), &silence), expected, "{then:?}");
        };
        check(Doing::default(), State::Idle);
        check(Doing { is_stopped: true, blocked: 2, ..Doing::default() }, State::Stopped);
        check(Doing { blocked: 1, ..Doing::default() }, State::Blocked);
        check(Doing { thread: 1.0, ..Doing::default() }, State::Cpu);
        // It computed for most of a second, but not all of it.
        check(Doing { thread: 0.7, ..Doing::default() }, State::Unseen);
        check(Doing { thread: 0.3, ..Doing::default() }, State::Idle);
        let collected = Some(Collected { count: 1, ns: 1_500_000_000 });
        let collecting = Doing { thread: 1.0, collected, ..Doing::default() };
        check(collecting, State::Collecting);
        assert_eq!(state(&Moments::default(), &silence), State::Unseen);
    }

    /// Ten seconds with (slowest response in ms, number of collections, their time in ms).
    fn collecting(seconds: [(u64, u64, u64); 10]) -> Option<Nanos> {
        let mut sum = Collected::default();
        let mut each = |(n, (slow_ms, count, ms)): (u64, (u64, u64, u64))| {
            sum = Collected { count: sum.count + count, ns: sum.ns + ms * 1_000_000 };
            let doing = Doing { collected: Some(sum), ..Doing::default() };
            Moment { slow: Nanos::from_millis(slow_ms), ..second(n, 0, doing) }
        };
        pause(&Moments::of(&(0..10).zip(seconds).map(&mut each).collect::<Vec<_>>()))
    }

    #[test]
    fn a_collection_is_a_pause_of_the_seconds_that_were_slow_by_it() {
        let ms = |ms: u64| Some(Nanos::from_millis(ms));
        let mut one = [(20, 0, 0); 10];
        (one[6], one[7]) = ((700, 0, 0), (20, 1, 680));
        assert_eq!(collecting(one), ms(680), "counted when it was over");
        (one[7], one[9]) = ((20, 0, 0), (20, 1, 680));
        assert_eq!(collecting(one), ms(0), "a long time afterwards");
        // Among short ones in each second: its time is what exceeds the usual.
        let mut among = [(20, 10, 30); 10];
        among[6] = (700, 11, 710);
        assert_eq!(collecting(among), ms(680));
        // Slow for another reason: collections are as short as before.
        among[6] = (700, 10, 30);
        assert_eq!(collecting(among), ms(3));
        // A long one in each second.
        assert_eq!(collecting([(300, 1, 280); 10]), ms(280));
        // In only one of three slow seconds.
        let mut rarely = [(20, 0, 0); 10];
        (rarely[0], rarely[3], rarely[8]) = ((700, 0, 0), (700, 1, 680), (700, 0, 0));
        assert_eq!(collecting(rarely), ms(0));
        assert_eq!(pause(&moments(Doing::default())), ms(0));
        assert_eq!(pause(&Moments::default()), None);
    }

    /// Seconds with (responses after 20 ms, responses after 700 ms): returns the numbers of the seconds that are reported as slow.
    fn slow_in(seconds: &[(u64, u64)]) -> Vec<u64> {
        let mut all = Latency::default();
        let each = (0..).zip(seconds).map(|(n, (fast, slow))| {
            let mut own = Latency::default();
            own.record_n(Nanos::from_millis(20), *fast);
            own.record_n(Nanos::from_millis(700), *slow);
            all.merge(&own);
            Moment { times: Times::of(&own), ..second(n, 0, Doing::default()) }
        });
        let moments = Moments::of(&each.collect::<Vec<_>>());
        let slow = slow_seconds(&moments, all.slow_part().expect("there are slow ones"));
        slow.iter().map(|one| one.until.millis() / 1_000).collect()
    }

    #[test]
    fn slow_responses_of_a_few_seconds_have_the_time_in_common() {
        let mut seconds = [(4_000, 0); 10];
        (seconds[2].1, seconds[6].1) = (100, 80);
        assert_eq!(slow_in(&seconds), [3, 7]);
        // As many slow responses, spread over all seconds.
        assert!(slow_in(&[(4_000, 18); 10]).is_empty());
        // So few responses that half of the seconds would have a slow one by chance.
        let few: Vec<(u64, u64)> = (0..20).map(|n| (9, n % 2)).collect();
        assert!(slow_in(&few).is_empty());
        // As few responses, with the slow ones in two seconds.
        let mut few = [(9, 0); 20];
        (few[4].1, few[5].1) = (5, 5);
        assert_eq!(slow_in(&few), [5, 6]);
    }

    /// (responses after 20 ms, and after 4 s), responses per second before a silence of 2 s, requests waiting before it and at its end.
    #[test]
    fn a_silence_that_slow_responses_explain_is_no_stall() {
        let is_stall = |(fast, slow): (u64, u64), per_s: u64, before: u64, waiting: u64| {
            let mut totals = Tick::default();
            totals.latency.record_n(Nanos::from_millis(20), fast);
            totals.latency.record_n(Nanos::from_secs(4), slow);
            let silence = Silence {
                until: Nanos::from_secs(2),
                waiting,
                before,
                per_s,
                is_over: true,
                ..Silence::default()
            };
            !is_of_slow_responses(&totals, 1, &silence)
        };
        // All of 50 connections stopped at once: no others were waiting.
        assert!(is_stall((20_000, 50), 2_500, 50, 50));
        // With pauses between requests: they began to wait one after the other, or as requests were due.
        assert!(is_stall((500, 10), 50, 0, 10) && is_stall((900, 20), 100, 2, 20));
        // Beside responses that are slow at any time.
        assert!(is_stall((900, 120), 100, 10, 50));
        // Two of the 50 were left: the others had met a slow response before.
        assert!(!is_stall((1_700, 50), 100, 50, 50));
        // One in twenty is slow: ten connections are often occupied at the same time, and three in a row are likely where half are slow.
        assert!(!is_stall((950, 50), 50, 10, 10) && !is_stall((40, 40), 5, 0, 3));
        assert!(!is_stall((300, 9), 0, 9, 9), "nothing is known of them");
        assert!(is_stall((900, 0), 0, 9, 9), "none is slow at any time");
    }

    #[test]
    fn cpu_is_that_of_the_seconds_in_which_something_failed() {
        let busy = Doing { thread: 1.0, share: 0.9, ..Doing::default() };
        let idle = Doing { is_stopped: true, ..Doing::default() };
        // Busy at first; then it is stopped, and requests time out three seconds later.
        let each = (0..10).map(|n| second(n, if n == 8 { 20 } else { 0 }, if n < 5 { busy } else { idle }));
        let mut record = record::fixture::record();
        record.moments = Moments::of(&each.collect::<Vec<_>>());
        let seen = TargetSeen { cpu_thread: Some(1.0), cpu_share: 0.9, ..TargetSeen::default() };
        let mut evidence = Evidence { target: Some(seen), ..Evidence::default() };
        evidence.add_times(&record, Nanos::from_secs(3));
        let target = evidence.target.expect("it was there");
        assert_eq!((target.cpu_thread, target.cpu_share), (Some(0.0), 0.0));
        assert_eq!(evidence.stopped, Some((5.0, 9.0)));
        // No second failed: the slowest ones count, here all.
        record.moments = Moments::of(&(0..10).map(|n| second(n, 0, busy)).collect::<Vec<_>>());
        let mut evidence = Evidence { target: Some(seen), ..Evidence::default() };
        evidence.add_times(&record, Nanos::from_secs(3));
        assert_eq!(evidence.target.map(|target| target.cpu_thread), Some(Some(1.0)));
        assert_eq!((evidence.stopped, evidence.stall), (None, None));
        // One of two seconds.
        record.moments = Moments::of(&[second(0, 0, idle), second(1, 0, busy)]);
        let mut evidence = Evidence { target: Some(seen), ..Evidence::default() };
        evidence.add_times(&record, Nanos::from_secs(3));
        assert_eq!(evidence.target.map(|target| target.cpu_share), Some(0.9));
    }
}
