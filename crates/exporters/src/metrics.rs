//! The metrics of a run under names for other tools: one [table](table::TABLE), which all exporters use.

mod agents;
#[cfg(test)]
pub(crate) mod made_up;
mod read;
#[cfg(test)]
mod reference;
mod table;
#[cfg(test)]
mod tests;

use samples::{Destination, Header, Latency, Quantiles, Samples, Tick};
use units::{Date, Nanos};

use read::Read;

pub(crate) use table::TABLE;

/// A row of the table.
pub(crate) struct Metric {
    /// Begins with `throng_`; the unit last.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether series appear dynamically, so that they are not known in advance.
    pub(crate) is_open: bool,
    pub(crate) help: &'static str,
    /// Its series at a point in time; those of a closed metric are always the same, [`Value::Unknown`] if not known.
    read: Read,
}

impl Metric {
    /// By which its series differ, in the order in which they are written; the population first.
    pub(crate) const fn labels(&self) -> &'static [&'static str] {
        self.read.labels()
    }
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows; since the run began, unless the help says otherwise.
    Counter,
    /// Now.
    Gauge,
    /// Times, since the run began.
    Histogram,
}

impl Kind {
    /// Prometheus' word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A label's name and value.
pub(crate) type Label = (&'static str, String);

/// One series and its value at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Nth row of the table.
    pub(crate) row: usize,
    pub(crate) labels: Vec<Label>,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Times(Box<Times>),
    /// Not observed.
    Unknown,
}

/// The distribution of a time; seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    /// How many did not exceed each of [`BOUNDS`], since the run began.
    pub(crate) up_to: [u64; BOUNDS.len()],
    /// How many, since the run began.
    pub(crate) count: u64,
    /// All together, since the run began.
    pub(crate) sum: f64,
    /// Those of the last period alone, if there were any.
    pub(crate) period: Option<Quantiles>,
}

/// The upper bounds of a histogram's buckets.
pub(crate) const BOUNDS: [Nanos; 18] = {
    const US: [u64; 18] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ];
    let mut bounds = [Nanos::ZERO; 18];
    let mut at = 0;
    while at < US.len() {
        bounds[at] = Nanos::from_micros(US[at]);
        at += 1;
    }
    bounds
};

/// A histogram where there are only plain numbers: a part's ending, and the number.
pub(crate) type Part = (&'static str, Option<f64>);

impl Value {
    /// As plain numbers, each with what its name ends in. As many, and the same, for every value of a kind.
    pub(crate) fn parts(&self, kind: Kind) -> Vec<Part> {
        let none = Times::default();
        let times = match (self, kind) {
            (Value::Times(times), _) => times,
            (_, Kind::Histogram) => &none,
            (Value::Number(n), _) => return vec![("", Some(*n))],
            (Value::Unknown, _) => return vec![("", None)],
        };
        let of_period = |of: fn(&Quantiles) -> f64| times.period.as_ref().map(|q| of(q) / 1e6);
        vec![
            ("_count", Some(times.count as f64)),
            ("_sum", Some(times.sum)),
            ("_p50", of_period(|q| q.p50)),
            ("_p90", of_period(|q| q.p90)),
            ("_p95", of_period(|q| q.p95)),
            ("_p99", of_period(|q| q.p99)),
            ("_p999", of_period(|q| q.p999)),
            ("_max", of_period(|q| q.max)),
        ]
    }
}

impl Sample {
    pub(crate) fn metric(&self) -> &'static Metric {
        &TABLE[self.row]
    }

    /// The series as Prometheus writes it, `name{label="value"}`, where the name ends in `ending`.
    pub(crate) fn series(&self, ending: &str) -> String {
        series(self.metric().name, ending, self.labels.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

/// A name with its ending and its labels, as Prometheus writes it.
pub(crate) fn series<'a>(
    name: &str,
    ending: &str,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if labels.is_empty() {
        format!("{name}{ending}")
    } else {
        format!("{name}{ending}{{{}}}", labels.join(","))
    }
}

/// A number in the fewest digits, to the billionth.
pub(crate) fn plain(n: f64) -> f64 {
    (n * 1e9).round() / 1e9
}

/// All series at the end of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The date by the clock that the run began at, and the run's own time since.
    pub(crate) at: Date,
    /// Since the run began, shortly before the first dial.
    pub(crate) elapsed: Nanos,
    /// In the table's order.
    pub(crate) samples: Vec<Sample>,
}

/// What the table reads from.
struct Moment<'a> {
    header: &'a Header,
    /// Since the run began, populations included.
    total: &'a Tick,
    /// The last period.
    last: &'a Tick,
    samples: &'a Samples,
}

/// Series under way.
struct Series<'a> {
    row: usize,
    samples: &'a mut Vec<Sample>,
}

impl Series<'_> {
    /// `values`: of the row's labels; without the first, the population, if there is only one.
    fn add(&mut self, values: &[&str], value: Value) {
        let names = TABLE[self.row].labels();
        let names = &names[names.len() - values.len()..];
        let labels = names.iter().zip(values).map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.samples.push(Sample { row: self.row, labels, value });
    }

    fn number(&mut self, values: &[&str], n: Option<f64>) {
        self.add(values, n.map_or(Value::Unknown, Value::Number));
    }

    fn times(&mut self, values: &[&str], all: &Latency, last: &Latency) {
        let period = (last.count() > 0).then(|| last.quantiles());
        let (up_to, count, sum) = (all.counts_up_to(&BOUNDS), all.count(), all.sum_s());
        self.add(values, Value::Times(Box::new(Times { up_to, count, sum, period })));
    }
}

/// What is shown where a plan has several populations.
const POPULATION: &str = "population";

impl Moment<'_> {
    /// Goes over the populations, each with the value of its label; without one if there is only one. `each` gets what happened
    /// since the run began, and in the last period.
    fn populations(&self, mut each: impl FnMut(&[&str], &Tick, &Tick)) {
        if self.header.populations.len() < 2 {
            return each(&[], self.total, self.last);
        }
        let ticks = self.total.populations.iter().zip(&self.last.populations);
        for (name, (total, last)) in self.header.populations.iter().zip(ticks) {
            each(&[name], total, last);
        }
    }

    /// Goes over the destinations of a plan that has several. `each` gets what happened there since the run began, and in the
    /// last period.
    fn destinations(&self, mut each: impl FnMut(&str, &Destination, &Destination)) {
        let none = Destination::default();
        for (row, name) in self.header.destinations.iter().enumerate() {
            let [total, last] =
                [self.total, self.last].map(|tick| tick.destinations.get(row).unwrap_or(&none));
            each(name, total, last);
        }
    }
}

/// The state from which the series of a run are computed.
pub(crate) struct MetricsState {
    header: Header,
    began: Date,
    start: Option<Nanos>,
    total: Tick,
}

impl MetricsState {
    /// Of a run that began then.
    pub(crate) fn new(began: Date) -> MetricsState {
        MetricsState { header: Header::default(), began, start: None, total: Tick::default() }
    }

    pub(crate) fn begin(&mut self, header: &Header) {
        self.header = header.clone();
    }

    /// The series before anything happened: which of the closed metrics' there will be.
    pub(crate) fn blank(&self) -> Snapshot {
        let populations = vec![Tick::default(); self.header.populations.len()];
        let nothing = Tick { populations, ..Tick::default() };
        let before = MetricsState {
            total: nothing.clone(),
            header: self.header.clone(),
            ..MetricsState::new(self.began)
        };
        before.read(Nanos::ZERO, &nothing, &Samples::default())
    }

    /// A period.
    pub(crate) fn tick(&mut self, tick: &Tick, samples: &Samples) -> Snapshot {
        let start = *self.start.get_or_insert(tick.from);
        self.total.extend(tick);
        self.read(tick.until.since(start), tick, samples)
    }

    /// What came late of a period: counted with the next one.
    pub(crate) fn late(&mut self, tick: &Tick) {
        self.total.amend(tick);
    }

    fn read(&self, elapsed: Nanos, last: &Tick, samples: &Samples) -> Snapshot {
        let MetricsState { header, total, .. } = self;
        let moment = Moment { header, total, last, samples };
        let mut samples = Vec::new();
        for (row, metric) in TABLE.iter().enumerate() {
            metric.read.series(&moment, &mut Series { row, samples: &mut samples });
        }
        Snapshot { at: Date(self.began.0 + elapsed.0 / 1_000_000), elapsed, samples }
    }
}
