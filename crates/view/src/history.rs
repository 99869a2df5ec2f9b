//! A whole run in bounded memory: at most [`MOST`] records. When there are more, neighbours are merged, so that each record covers
//! twice as many seconds.
//!
//! The page that follows a run merges the ticks that it receives in the same way (`web/src/model`), so a page that is opened late
//! shows the same as one that was open from the beginning.

use samples::{Tick, TickRecord};
use units::Nanos;

/// Maximum number of records; even, so that neighbours can be merged in pairs. No chart can show more points.
const MOST: usize = 600;

/// A run so far. Completed records are stored as JSON, which takes a fiftieth of the memory.
#[derive(Clone)]
pub(crate) struct History {
    /// Maximum number of records.
    most: usize,
    complete: Vec<Complete>,
    /// The record in progress, and the number of ticks in it.
    last: Option<(TickRecord<'static>, u64)>,
    /// Binary logarithm of the number of ticks per record.
    doublings: u32,
    /// Number of ticks in all records.
    count: u64,
}

/// A completed record.
#[derive(Clone)]
struct Complete {
    until: Nanos,
    json: String,
}

impl Complete {
    fn new(record: &TickRecord) -> Complete {
        Complete { until: record.tick.until, json: record.to_json() }
    }

    fn read(&self) -> TickRecord<'static> {
        TickRecord::from_json(&self.json).expect("it was written here")
    }
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

    /// The number of ticks so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The number of ticks per record; the last record may contain fewer.
    pub(crate) fn width(&self) -> u64 {
        1 << self.doublings
    }

    /// Adds a tick.
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
                self.complete.extend(full.map(|(full, _)| Complete::new(&full)));
                if self.complete.len() == self.most {
                    self.merge_neighbours();
                }
            }
        }
    }

    /// Adds late measurements to the record of their time, or else to the last.
    pub(crate) fn amend(&mut self, late: &Tick) {
        let own = self.complete.iter_mut().find(|record| late.is_of(record.until));
        match (own, &mut self.last) {
            (Some(complete), _) => {
                let mut record = complete.read();
                record.tick.to_mut().amend(late);
                complete.json = record.to_json();
            }
            (None, Some((last, _))) => last.tick.to_mut().amend(late),
            (None, None) => {}
        }
    }

    fn merge_neighbours(&mut self) {
        let merge = |pair: &[Complete]| {
            let mut merged = pair[0].read();
            pair[1..].iter().for_each(|later| merged.extend(&later.read()));
            Complete::new(&merged)
        };
        self.complete = self.complete.chunks(2).map(merge).collect();
        self.doublings += 1;
    }

    /// The sum of all records.
    pub(crate) fn total(&self) -> Tick {
        let mut total = Tick::none();
        self.complete.iter().for_each(|record| total.extend(&record.read().tick));
        self.last.iter().for_each(|(last, _)| total.extend(&last.tick));
        total
    }

    /// All records as a JSON array.
    pub(crate) fn to_json(&self) -> String {
        let last = self.last.as_ref().map(|(last, _)| last.to_json());
        let complete = self.complete.iter().map(|record| record.json.as_str());
        let all: Vec<&str> = complete.chain(last.as_deref()).collect();
        format!("[{}]", all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, collections::BTreeMap, fs, path::Path};

    use super::*;
    use serde_json::{Value, json};

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

    /// A tick with values in all fields that are merged.
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

    /// The expected values for the page's tests, which merge the same records.
    fn fixture() -> String {
        let records: Vec<TickRecord> = (0..11).map(varied).collect();
        let (mut all, mut history) = (Tick::default(), History::of(4));
        for record in &records {
            all.extend(&record.tick);
            history.add(record.clone());
        }
        let read = |history: &History| -> Vec<TickRecord> {
            serde_json::from_str(&history.to_json()).expect("records")
        };
        let thinned = read(&history);
        // Late ticks for a second within a record, one at the end of a record, and the last.
        let late: Vec<Tick> = [2, 3, 10].map(|n| varied(n).tick.into_owned()).into();
        late.iter().for_each(|late| history.amend(late));
        let amended = read(&history);
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
        let figures = |records: &[TickRecord]| {
            let of = |figure: fn(&Tick) -> Value| records.iter().map(|r| figure(&r.tick)).collect::<Value>();
            json!({
                "open": of(|tick| tick.open.into()),
                "answered": of(|tick| tick.counts.answered.into()),
                "population_open": of(|tick| tick.populations[0].open.into()),
                "latency_p99_us": of(|tick| tick.latency.quantiles().p99.into()),
                "no_response": of(|tick| tick.latency.censored().into()),
                "agents": of(|tick| json!(tick.agents)),
            })
        };
        let (thinned, amended) = (figures(&thinned), figures(&amended));
        let records: Vec<String> = records.iter().map(TickRecord::to_json).collect();
        let records = records.join(",\n");
        let late = late.iter().map(|late| TickRecord::of(late).to_json()).collect::<Vec<_>>().join(",\n");
        let (limit, width) = (history.most, history.width());
        format!(
            "{{\"records\":[\n{records}\n],\n\"late\":[\n{late}\n],\n\"folded\":{folded},\n\"limit\":{limit},\n\"width\":{width},\n\"thinned\":{thinned},\n\"amended\":{amended}}}\n"
        )
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
    fn what_comes_late_is_added_to_the_record_of_its_time() {
        let mut history = History::of(2);
        (0..4).for_each(|n| history.add(second(n)));
        let late = |n: u64| Tick { open: 100, ..second(n).tick.into_owned() };
        // A connection that was open at the end of a second need not be open at the end of the next one.
        [0, 1, 3].into_iter().for_each(|n| history.amend(&late(n)));
        // An agent's clock may be ahead.
        history.amend(&Tick { open: 1_000, until: late(1).until + Nanos::from_millis(300), ..Tick::none() });
        let ticks: Vec<TickRecord> = serde_json::from_str(&history.to_json()).expect("records");
        let figures = |record: &TickRecord| (record.tick.open, record.tick.counts.answered);
        assert_eq!(ticks.iter().map(figures).collect::<Vec<_>>(), [(1_110, 2), (130, 5 + 3)]);
        History::default().amend(&late(0));
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
