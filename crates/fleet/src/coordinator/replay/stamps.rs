//! The elapsed time of a run at which each entry of its log was stored.
//!
//! Entries are stamped by the server's wall clock, which may be set during a run. The agents' ticks have times of the run, by monotonic
//! clocks: where the ticks continue and the stamps do not match, the wall clock was set.

use units::Nanos;

use super::UNREACHED;
use crate::message::{Entry, Record};

/// The elapsed times at which these entries were stored. The run began at the stamp `start`.
pub(super) fn times(start: Nanos, stamped: &[(Nanos, Entry)]) -> Vec<Nanos> {
    let by_stamp = |nth: usize| signed(stamped[nth].0) - signed(start);
    let gap = signed(UNREACHED);
    let follows = |nth: &usize| (0..=gap).contains(&(by_stamp(*nth) - by_stamp(*nth - 1)));
    let (mut times, mut last) = (Vec::with_capacity(stamped.len()), 0);
    // `shift`: correction of stamps, possibly negative. `usual`: delay between counting and storing when nothing delays an entry.
    let (mut shift, mut usual) = (0, 0);
    let mut from = 0;
    while from < stamped.len() {
        let until = (from + 1..stamped.len()).find(|nth| !follows(nth)).unwrap_or(stamped.len());
        let delay = |nth: usize| Some(by_stamp(nth) + shift - counted_to(&stamped[nth].1)?);
        // Agents that were unreachable deliver old counts late, and then again in time.
        match (from..until).filter_map(delay).min() {
            Some(least) if from > 0 && (least - usual).abs() > gap => shift += usual - least,
            Some(least) => usual = least,
            None => shift += (last - by_stamp(from) - shift).max(0),
        }
        for nth in from..until {
            last = last.max(by_stamp(nth) + shift);
            times.push(Nanos(last.unsigned_abs()));
        }
        from = until;
    }
    times
}

/// The time of the run up to which an agent has counted; `None` for other entries.
fn counted_to(entry: &Entry) -> Option<i64> {
    match &entry.record {
        Record::Ticks(ticks) => ticks.iter().map(|tick| signed(tick.until)).max(),
        _ => None,
    }
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use samples::Tick;

    use super::*;
    use crate::message::{Author, Incarnation};

    const HOUR: i64 = 3_600_000;

    fn millis(ms: i64) -> Nanos {
        Nanos::from_millis(u64::try_from(ms).unwrap())
    }

    /// An entry of an agent that has counted up to this time.
    fn ticks(until_ms: i64) -> Record {
        Record::Ticks(vec![Tick { until: millis(until_ms), ..Tick::default() }])
    }

    /// Entries with their stamps in milliseconds since the beginning of the run, and the expected times.
    fn check(stamped: &[(i64, Record)], expected: &[i64]) {
        let start = 10 * HOUR;
        let author = Author::Agent(Incarnation { id: "a".to_owned(), nonce: 1 });
        let entry = |record: &Record| Entry { author: author.clone(), sequence: 0, record: record.clone() };
        let entries: Vec<_> =
            stamped.iter().map(|(at, record)| (millis(start + at), entry(record))).collect();
        let expected: Vec<Nanos> = expected.iter().copied().map(millis).collect();
        assert_eq!(times(millis(start), &entries), expected, "{stamped:?}");
    }

    #[test]
    fn a_clock_that_is_not_set_is_right() {
        check(&[], &[]);
        check(&[(-400, Record::Resumed), (1_100, ticks(1_000)), (1_150, ticks(1_000))], &[0, 1_100, 1_150]);
        // The broker was unreachable, and late counts are stored late.
        let away = [
            (1_100, ticks(1_000)),
            (7_000, ticks(2_000)),
            (7_001, ticks(3_000)),
            (7_100, ticks(7_000)),
            (8_100, Record::Resumed),
        ];
        check(&away, &[1_100, 7_000, 7_001, 7_100, 8_100]);
        // No agent was reachable.
        check(&[(1_100, ticks(1_000)), (9_000, Record::Resumed)], &[1_100, 9_000]);
    }

    #[test]
    fn a_clock_that_is_set_by_an_hour_changes_nothing() {
        for by in [HOUR, -HOUR] {
            let set = [
                (1_100, ticks(1_000)),
                (2_100, ticks(2_000)),
                (by + 3_100, ticks(3_000)),
                (by + 4_100, ticks(4_000)),
                (by + 4_700, Record::Resumed),
            ];
            check(&set, &[1_100, 2_100, 3_100, 4_100, 4_700]);
        }
        // Set back again; also before anything was counted.
        let twice = [
            (100, Record::Resumed),
            (HOUR + 1_100, ticks(1_000)),
            (2_100, ticks(2_000)),
            (2_600, Record::Resumed),
        ];
        check(&twice, &[100, 1_000, 2_000, 2_500]);
        // Set back, with nothing afterwards that shows by how much.
        check(&[(1_100, ticks(1_000)), (1_500 - HOUR, Record::Resumed)], &[1_100, 1_100]);
    }
}
