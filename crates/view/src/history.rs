//! A whole run in bounded room: at most [`MOST`] records, each of as many seconds as that takes.
//!
//! The page that follows a run does the same with what it is sent (`web/src/model`), so that one that joins late has just
//! what one has that was there from the beginning.

use samples::TickRecord;

/// Records at most; even, so that neighbours can always be merged. More points than that no chart shows.
const MOST: usize = 600;

/// A run so far. Completed parts are stored as JSON, which takes a fiftieth of the memory.
pub(crate) struct History {
    /// Records at most.
    most: usize,
    complete: Vec<String>,
    /// The one under way, and how many ticks are in it.
    last: Option<(TickRecord<'static>, u64)>,
    /// Ticks in a record: two to the power of this.
    doublings: u32,
    /// Ticks in all of them.
    count: u64,
}

impl Default for History {
    fn default() -> History {
        History::of(MOST)
    }
}

impl History {
    fn of(most: usize) -> History {
        History { most, complete: Vec::new(), last: None, doublings: 0, count: 0 }
    }

    /// Ticks until now.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Ticks in a record; in the last one there may be fewer.
    pub(crate) fn width(&self) -> u64 {
        1 << self.doublings
    }

    /// A further tick.
    pub(crate) fn add(&mut self, tick: TickRecord<'static>) {
        self.count += 1;
        let width = self.width();
        match &mut self.last {
            Some((last, ticks)) if *ticks < width => {
                last.extend(&tick);
                *ticks += 1;
            }
            last => {
                let full = last.replace((tick, 1));
                self.complete.extend(full.map(|(full, _)| full.to_json()));
                if self.complete.len() == self.most {
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
            merged.to_json()
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
    use std::{borrow::Cow, collections::BTreeMap, fs, path::Path};

    use super::*;
    use samples::Tick;
    use serde_json::{Value, json};
    use units::Nanos;

    /// The nth second, with n responses.
    fn second(n: u64) -> TickRecord<'static> {
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        let mut tick = Tick { index: n, from, until, open: 10 * n, ..Tick::default() };
        tick.counts.answered = n;
        tick.latency.record(Nanos::from_millis(n));
        (0..n % 3).for_each(|_| tick.latency.censor());
        TickRecord::coarse(&TickRecord { tick: Cow::Owned(tick), ..TickRecord::default() })
    }

    fn check(seconds: u64, records: usize, width: u64) {
        let mut history = History::default();
        (0..seconds).for_each(|n| history.add(second(n)));
        let json = history.to_json();
        let ticks: Vec<TickRecord> = serde_json::from_str(&json).expect("an array of records");
        assert_eq!((ticks.len(), history.width(), history.count()), (records, width, seconds));
        for (nth, record) in ticks.iter().enumerate() {
            let (first, next) = (nth as u64 * width, ((nth as u64 + 1) * width).min(seconds));
            let tick = &record.tick;
            assert_eq!((tick.from, tick.until), (Nanos::from_secs(first), Nanos::from_secs(next)), "{nth}");
            assert_eq!((tick.open, tick.counts.answered), (10 * (next - 1), (first..next).sum()), "{nth}");
            assert_eq!(
                (tick.latency.count(), tick.latency.max()),
                (next - first, Nanos::from_millis(next - 1))
            );
            assert_eq!(tick.latency.censored(), (first..next).map(|n| n % 3).sum::<u64>(), "{nth}");
        }
    }

    /// A tick with something in everything that is added up.
    fn varied(n: u64) -> TickRecord<'static> {
        let (mut tick, samples) = fixtures::seen(n + 1);
        (0..50 * n).for_each(|i| tick.ramp_latency.record(Nanos(37 * i * i)));
        let took = |n| samples::Took { time: Nanos(7_000 * n), stalled: Nanos(10_000_019 * n) };
        (0..n).for_each(|n| tick.connect.record_seen(took(n)));
        (1..20 * n).for_each(|i| tick.lag.record(Nanos(1_000_003 * i)));
        tick.ramp_latency.censor();
        tick.steps = vec![tick.latency.clone(), tick.lag.clone()];
        TickRecord { tick: Cow::Owned(tick), looks: Cow::Owned(samples) }
    }

    /// What the page's own tests hold against what they make of the same records.
    fn fixture() -> String {
        let records: Vec<TickRecord> = (0..11).map(varied).collect();
        let (mut all, mut history) = (Tick::default(), History::of(4));
        for record in &records {
            all.extend(&record.tick);
            history.add(record.clone());
        }
        let thinned: Vec<TickRecord> = serde_json::from_str(&history.to_json()).expect("records");
        let status: BTreeMap<usize, u64> =
            (all.status.iter().copied().enumerate()).filter(|(_, n)| *n > 0).collect();
        let faults: Vec<Value> = (all.faults.iter())
            .map(|(f, count)| json!({"side": f.side.name(), "stage": f.stage.name(), "kind": f.kind.name(), "count": count}))
            .collect();
        let populations: Vec<Value> = (all.populations.iter())
            .map(|own| json!({"counts": own.counts, "latency_us": own.latency.quantiles()}))
            .collect();
        let folded = json!({
            "counts": all.counts,
            "faults": faults,
            "status": status,
            "latency_us": all.latency.quantiles(),
            "ramp_latency_us": all.ramp_latency.quantiles(),
            "connect_us": all.connect.quantiles(),
            "lag_us": all.lag.quantiles(),
            "populations": populations,
            "steps": all.steps.iter().map(samples::Latency::quantiles).collect::<Vec<_>>(),
        });
        let thinned = json!({
            "limit": 4,
            "width": history.width(),
            "open": thinned.iter().map(|record| record.tick.open).collect::<Vec<_>>(),
            "latency_p99_us": thinned.iter().map(|r| r.tick.latency.quantiles().p99).collect::<Vec<_>>(),
            "no_response": thinned.iter().map(|r| r.tick.latency.censored()).collect::<Vec<_>>(),
        });
        let records: Vec<String> = records.iter().map(TickRecord::to_json).collect();
        let records = records.join(",\n");
        format!("{{\"records\":[\n{records}\n],\n\"folded\":{folded},\n\"thinned\":{thinned}}}\n")
    }

    #[test]
    fn the_pages_tests_have_the_figures_of_today() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/records.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, fixture()).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        assert!(fixture() == golden, "not what {} has: UPDATE_GOLDEN=1 writes it", file.display());
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
