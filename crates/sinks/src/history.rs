//! A whole run in bounded room: at most [`MOST`] records, each of as many seconds as that takes.
//!
//! The page that follows a run does the same with what it is sent (`web/src/model`), so that one that joins late has just
//! what one has that was there from the beginning.

use samples::TickRecord;

/// Records at most; even, so that neighbours can always be merged. More points than that no chart shows.
const MOST: usize = 600;

/// A run so far. What is complete is kept as JSON, which takes a fiftieth of the room.
#[derive(Default)]
pub(crate) struct History {
    complete: Vec<String>,
    /// The one under way, and how many ticks are in it.
    last: Option<(TickRecord<'static>, u64)>,
    /// Ticks in a record: two to the power of this.
    doublings: u32,
}

impl History {
    /// Ticks in a record; in the last one there may be fewer.
    pub(crate) fn width(&self) -> u64 {
        1 << self.doublings
    }

    /// A further tick, with its times to two digits already.
    pub(crate) fn add(&mut self, tick: TickRecord<'static>) {
        let width = self.width();
        match &mut self.last {
            Some((last, ticks)) if *ticks < width => {
                last.extend(&tick);
                *ticks += 1;
            }
            last => {
                let full = last.replace((tick, 1));
                self.complete.extend(full.map(|(full, _)| full.to_json()));
                if self.complete.len() == MOST {
                    self.merge_neighbours();
                }
            }
        }
    }

    fn merge_neighbours(&mut self) {
        let read = |json: &String| TickRecord::from_json(json).expect("it was written here");
        let merge = |pair: &[String]| {
            let mut merged = read(&pair[0]);
            pair[1..].iter().for_each(|later| merged.extend(&read(later)));
            TickRecord::coarse(&merged).to_json()
        };
        self.complete = self.complete.chunks(2).map(merge).collect();
        self.doublings += 1;
    }

    /// All records as a JSON array.
    pub(crate) fn to_json(&self) -> String {
        let last = self.last.as_ref().map(|(last, _)| last.to_json());
        let all: Vec<&str> = self.complete.iter().chain(&last).map(String::as_str).collect();
        format!("[{}]", all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::Tick;
    use std::borrow::Cow;
    use units::Nanos;

    /// The nth second, in which n requests were answered.
    fn second(n: u64) -> TickRecord<'static> {
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        let mut tick = Tick { index: n, from, until, open: 10 * n, ..Tick::default() };
        tick.counts.answered = n;
        tick.latency.record(Nanos::from_millis(n));
        TickRecord::coarse(&TickRecord { tick: Cow::Owned(tick), ..TickRecord::default() })
    }

    fn check(seconds: u64, records: usize, width: u64) {
        let mut history = History::default();
        (0..seconds).for_each(|n| history.add(second(n)));
        let json = history.to_json();
        let ticks: Vec<TickRecord> = serde_json::from_str(&json).expect("an array of records");
        assert_eq!((ticks.len(), history.width()), (records, width), "after {seconds} s");
        for (nth, record) in ticks.iter().enumerate() {
            let (first, next) = (nth as u64 * width, ((nth as u64 + 1) * width).min(seconds));
            let tick = &record.tick;
            assert_eq!((tick.from, tick.until), (Nanos::from_secs(first), Nanos::from_secs(next)), "{nth}");
            assert_eq!((tick.open, tick.counts.answered), (10 * (next - 1), (first..next).sum()), "{nth}");
            assert_eq!(
                (tick.latency.count(), tick.latency.max()),
                (next - first, Nanos::from_millis(next - 1))
            );
        }
    }

    #[test]
    fn a_long_run_takes_no_more_room_than_a_short_one() {
        check(0, 0, 1);
        check(1, 1, 1);
        check(600, 600, 1);
        check(601, 301, 2);
        check(1_200, 600, 2);
        check(1_201, 301, 4);
        check(3_605, 451, 8);
    }
}
