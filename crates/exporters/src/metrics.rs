//! The metrics of a run, under names that follow Prometheus' conventions.
//!
//! One [table](table::TABLE) defines all metrics. For each second a snapshot of all series is computed, and each exporter only
//! serialises it.

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
    /// The name: begins with `throng_` and ends with the unit.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether series may appear during the run, such as one per status code; those of other metrics are known before it.
    pub(crate) is_open: bool,
    pub(crate) help: &'static str,
    /// How its series are read. A metric that is not open always has the same series, with [`Value::Unknown`] where a value is not
    /// known.
    read: Read,
}

impl Metric {
    /// The labels of its series, in the order in which they are written; the population is first.
    pub(crate) const fn labels(&self) -> &'static [&'static str] {
        self.read.labels()
    }
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A count that only grows, from the start of the run unless the help text says otherwise.
    Counter,
    /// A current value.
    Gauge,
    /// A distribution of durations since the run began.
    Histogram,
}

impl Kind {
    /// The name that Prometheus uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A label: name and value.
pub(crate) type Label = (&'static str, String);

/// A series and its value at a point in time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Index of the metric in the table.
    pub(crate) row: usize,
    pub(crate) labels: Vec<Label>,
    pub(crate) value: Value,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A counter or a gauge.
    Number(f64),
    /// A histogram.
    Times(Box<Times>),
    /// Not measured.
    Unknown,
}

/// A distribution of durations, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    /// For each of [`BOUNDS`], the number of values up to it, since the run began.
    pub(crate) up_to: [u64; BOUNDS.len()],
    /// Number of values since the run began.
    pub(crate) count: u64,
    /// Sum of the values since the run began, in seconds.
    pub(crate) sum: f64,
    /// Quantiles of the last period; `None` if it had no values.
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

/// A number that represents part of a value: the suffix of its name, and the number.
pub(crate) type Part = (&'static str, Option<f64>);

impl Value {
    /// The value as plain numbers, for formats without histograms. All values of a kind have the same parts.
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

    /// The series in Prometheus' notation, `name{label="value"}`, with the suffix `ending` after the name.
    pub(crate) fn series(&self, ending: &str) -> String {
        series(self.metric().name, ending, self.labels.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

/// A name with its suffix and labels, in Prometheus' notation.
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

/// Rounds to nine decimal places, so that fewer digits are printed.
pub(crate) fn plain(n: f64) -> f64 {
    (n * 1e9).round() / 1e9
}

/// All series at the end of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The date, computed from the date of the run's start and the time elapsed.
    pub(crate) at: Date,
    /// Time since the run began, shortly before the first dial.
    pub(crate) elapsed: Nanos,
    /// The series, in the order of the table.
    pub(crate) samples: Vec<Sample>,
}

/// The data from which the series are read.
struct Moment<'a> {
    header: &'a Header,
    /// Accumulated since the run began, including populations.
    total: &'a Tick,
    /// The last period.
    last: &'a Tick,
    samples: &'a Samples,
}

/// Collects the series of a metric.
struct Series<'a> {
    row: usize,
    samples: &'a mut Vec<Sample>,
}

impl Series<'_> {
    /// Adds a series. `values` are those of the row's labels; without the first, the population, if there is only one population.
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

/// The label for the population, used if a plan has several.
const POPULATION: &str = "population";

impl Moment<'_> {
    /// Calls `each` for each population, with the values of its label (none if there is only one population), the counts since the
    /// run began, and those of the last period.
    fn populations(&self, mut each: impl FnMut(&[&str], &Tick, &Tick)) {
        if self.header.populations.len() < 2 {
            return each(&[], self.total, self.last);
        }
        let ticks = self.total.populations.iter().zip(&self.last.populations);
        for (name, (total, last)) in self.header.populations.iter().zip(ticks) {
            each(&[name], total, last);
        }
    }

    /// Calls `each` for each destination of a plan with several, with its name, the counts since the run began, and those of the last
    /// period.
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
    /// The state of a run that began at this date.
    pub(crate) fn new(began: Date) -> MetricsState {
        MetricsState { header: Header::default(), began, start: None, total: Tick::default() }
    }

    pub(crate) fn begin(&mut self, header: &Header) {
        self.header = header.clone();
    }

    /// The series before the run, which determine the columns of files.
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

    /// Adds a period; returns the series at its end.
    pub(crate) fn tick(&mut self, tick: &Tick, samples: &Samples) -> Snapshot {
        let start = *self.start.get_or_insert(tick.from);
        self.total.extend(tick);
        self.read(tick.until.since(start), tick, samples)
    }

    /// Adds counts of an earlier period that arrived late; they are included from the next snapshot on.
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
