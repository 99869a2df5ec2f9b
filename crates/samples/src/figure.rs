//! Figures: the numbers of a summary by name. A figure is a row of the [table](NUMBERS) for a [`Place`]: the whole run, a population, or a
//! step. Thresholds, comparisons, trends and searches read numbers only through it, so a name means the same number everywhere.
//!
//! A figure has two values: as [measured](Figure::value), and as it is [judged](Figure::judged), where requests without a response are
//! longer than all others.

use serde_json::Value;
use units::{Status, Unit};

use crate::{
    Cost, Figures, Fit, PopulationSummary, Quantiles, Statistic, StepSummary, Summary,
    cost::{SLOPES, Slope},
};

mod table;

use table::{AT_EQUAL_LOAD, FAULTS, Get, GetTimes};
pub use table::{GROUPS, NUMBERS, Number, TIMES, Times};

/// The part of a run that a figure is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    #[default]
    Run,
    /// A population, by its name.
    Population(String),
    /// A step of a population, by their names.
    Step(String, String),
}

/// One number of a summary.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The part of the run that it is of.
    pub place: Place,
    /// Path in the summary's JSON below its place: `latency_us.p99`.
    pub key: String,
    /// Its unit.
    pub unit: Unit,
    row: Row,
}

/// What a figure is.
#[derive(Clone, Copy, Debug)]
enum Row {
    Number(&'static Number),
    Time(&'static Times, Statistic),
    /// The share of a distribution that has no end.
    NoResponse(&'static Times),
    /// Responses with a status.
    Status(u16),
    /// A part of a cost by regression.
    Fit(&'static Slope, fn(&Fit) -> f64),
    /// Another cost.
    Cost(fn(&Cost) -> Option<f64>),
    /// Anything that the hosts showed: what exists depends on them.
    Observed,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        (&self.place, &self.key) == (&other.place, &other.key)
    }
}

impl Eq for Figure {}

/// Prefix of the number of responses with one status: `requests.status.404`.
pub const STATUS: &str = "requests.status.";
/// Suffix of a distribution's share without an end.
const NO_RESPONSE: &str = ".censored.share";

impl Figure {
    /// The figure of a whole run by its path or short name; `None`: there is none of that name.
    pub fn of_run(name: &str) -> Option<Figure> {
        time(name)
            .or_else(|| number(name))
            .or_else(|| status(name))
            .or_else(|| cost(name))
            .or_else(|| observed(name))
    }

    /// The figure of this name that each population has.
    pub fn of_population(population: &str, name: &str) -> Option<Figure> {
        let figure = Figure::of_run(name).filter(|figure| !figure.row.is_of_run_only())?;
        Some(Figure { place: Place::Population(population.to_owned()), ..figure })
    }

    /// The figure of this name that each step has.
    pub fn of_step(population: &str, step: &str, name: &str) -> Option<Figure> {
        let figure = Figure::of_run(name).filter(|figure| figure.row.is_of_steps())?;
        Some(Figure { place: Place::Step(population.to_owned(), step.to_owned()), ..figure })
    }

    /// The figure of a comparison by its path: besides those of a run the latency at a load that all runs had (`equal_load_us.p99`), and
    /// the share of a distribution's events without an end (`latency_us.censored.share`).
    pub fn of_comparison(path: &str) -> Option<Figure> {
        let no_response = || {
            let times = path.strip_suffix(NO_RESPONSE)?;
            let times = TIMES.iter().find(|own| own.path == times)?;
            Some(Figure::new(path.to_owned(), Unit::Share, Row::NoResponse(times)))
        };
        let at_equal_load = || {
            let name = path.strip_prefix(AT_EQUAL_LOAD.path)?.strip_prefix('.')?;
            Some(Figure::time(&AT_EQUAL_LOAD, name, Statistic::named(name)?))
        };
        Figure::of_run(path).or_else(no_response).or_else(at_equal_load)
    }

    /// Every figure of a whole run; one status stands for all.
    pub fn all() -> Vec<Figure> {
        let times =
            TIMES.iter().flat_map(|times| Statistic::ALL.map(|(name, own)| Figure::time(times, name, own)));
        let numbers = NUMBERS.iter().map(Figure::number);
        times.chain(numbers).chain(status("status.200")).collect()
    }

    fn new(key: String, unit: Unit, row: Row) -> Figure {
        Figure { place: Place::Run, key, unit, row }
    }

    fn number(row: &'static Number) -> Figure {
        Figure::new(row.path.to_owned(), row.unit, Row::Number(row))
    }

    fn time(times: &'static Times, name: &str, statistic: Statistic) -> Figure {
        let unit = if statistic == Statistic::Count { Unit::Count } else { Unit::Micros };
        Figure::new(format!("{}.{name}", times.path), unit, Row::Time(times, statistic))
    }

    /// Path in the summary's JSON: `populations.users.latency_us.p99`.
    pub fn path(&self) -> String {
        match &self.place {
            Place::Run => self.key.clone(),
            Place::Population(name) => format!("populations.{name}.{}", self.key),
            Place::Step(name, step) => format!("populations.{name}.steps.{step}.{}", self.key),
        }
    }

    /// Its population; `None` for the whole run.
    pub fn population(&self) -> Option<&str> {
        match &self.place {
            Place::Run => None,
            Place::Population(name) | Place::Step(name, _) => Some(name),
        }
    }

    /// Its step; `None` for a population or the whole run.
    pub fn step(&self) -> Option<&str> {
        match &self.place {
            Place::Step(_, step) => Some(step),
            Place::Run | Place::Population(_) => None,
        }
    }

    /// Its distribution's path: `latency_us`; `None` if it is of none.
    pub fn times(&self) -> Option<&'static str> {
        let (Row::Time(times, _) | Row::NoResponse(times)) = self.row else { return None };
        Some(times.path)
    }

    /// Its statistic, if it is of a distribution.
    pub fn statistic(&self) -> Option<Statistic> {
        if let Row::Time(_, statistic) = self.row { Some(statistic) } else { None }
    }

    /// Whether it is a time that includes time of the target, which cannot be judged if the generator was late.
    pub fn is_latency(&self) -> bool {
        matches!(self.row, Row::Time(times, statistic) if times.is_of_target && statistic != Statistic::Count)
    }

    /// Whether it is one of these, by their paths below a place.
    pub fn is_any(&self, keys: &[&str]) -> bool {
        keys.contains(&self.key.as_str())
    }

    /// Whether it is the number of faults, which includes requests without a response when it is [judged](Figure::judged).
    pub fn is_faults(&self) -> bool {
        self.key == FAULTS
    }

    /// The standard error of a slope, which is unknown if it is not more than twice that; `None` for all other figures, among them a
    /// slope's own error.
    pub fn error_of_slope(&self, s: &Summary) -> Option<f64> {
        let is_slope = self.key.ends_with(".value") || self.key.ends_with("user_bytes_per_connection");
        let fit = if let Row::Fit(slope, _) = self.row { (slope.get)(&s.cost) } else { None };
        is_slope.then(|| fit.map_or(0.0, |fit| fit.error))
    }

    /// Whether it never exceeds its whole.
    pub fn is_part(&self) -> bool {
        matches!(self.row, Row::Number(Number { is_part: true, .. }) | Row::Status(_))
    }

    /// Its value as measured; `None` if nothing was measured.
    pub fn value(&self, s: &Summary) -> Option<f64> {
        self.is_measured(s).then(|| self.stored(s))?
    }

    /// Its value as it is judged: requests without a response (or dials without a connection) are longer than every measured time. `None`
    /// if it lies among them, and for mean, deviation and maximum, which then have no bound. Faults include requests without a
    /// response that no fault ended.
    pub fn judged(&self, s: &Summary) -> Option<f64> {
        match self.statistic() {
            Some(statistic) => self.distribution(s)?.judged(statistic),
            None => Some(self.value(s)? + self.without_fault(s).unwrap_or(0) as f64),
        }
    }

    /// The value of its whole, which percentages refer to; `None` if that is zero.
    pub fn whole_value(&self, s: &Summary) -> Option<f64> {
        positive(self.load(s)?, self.whole()?, s)
    }

    /// Requests without a response that no fault ended (not sent, or outstanding at the end), if it is the faults of a load.
    pub fn without_fault(&self, s: &Summary) -> Option<u64> {
        let requests = &self.load(s).filter(|_| self.is_faults() && self.step().is_none())?.requests;
        Some(requests.unanswered + requests.missed)
    }

    /// The share (0..=1) of its distribution's events without an end; `None` if all have one.
    pub fn censored_share(&self, s: &Summary) -> Option<f64> {
        Some(self.distribution(s)?.censored?.share)
    }

    /// Its distribution in a summary.
    pub fn distribution<'s>(&self, s: &'s Summary) -> Option<&'s Quantiles> {
        let (Row::Time(times, _) | Row::NoResponse(times)) = self.row else { return None };
        match (&times.get, &self.place) {
            (GetTimes::Run(get), _) => get(s),
            (GetTimes::Load(get), _) => Some(get(self.load(s)?)),
            (GetTimes::Step(_, get), Place::Step(..)) => Some(get(self.of_steps(s)?)),
            (GetTimes::Step(get, _), _) => Some(get(self.load(s)?)),
        }
    }

    /// The load that it is of; for a step, its population's.
    fn load<'s>(&self, s: &'s Summary) -> Option<&'s Figures> {
        match self.population() {
            None => Some(&s.figures),
            Some(_) => Some(&self.own_population(s)?.figures),
        }
    }

    fn own_population<'s>(&self, s: &'s Summary) -> Option<&'s PopulationSummary> {
        s.populations.get(self.population()?)
    }

    fn of_steps<'s>(&self, s: &'s Summary) -> Option<&'s StepSummary> {
        self.own_population(s)?.steps.get(self.step()?)
    }

    fn stored(&self, s: &Summary) -> Option<f64> {
        match self.row {
            Row::Number(number) => match (&number.get, &self.place) {
                (Get::Run(get), _) => get(s),
                (Get::Step(_, get), Place::Step(..)) => get(self.of_steps(s)?),
                (Get::Load(get) | Get::Step(get, _), _) => get(self.load(s)?),
            },
            Row::Time(_, statistic) => self.distribution(s)?.get(statistic),
            Row::NoResponse(_) => {
                let times = self.distribution(s)?;
                let none = || (times.count > 0).then_some(0.0);
                times.censored.map(|censored| censored.share).or_else(none)
            }
            Row::Status(code) => Some(self.load(s)?.requests.status.get(&code).copied().unwrap_or(0) as f64),
            Row::Fit(slope, part) => Some(part(&(slope.get)(&s.cost)?)),
            Row::Cost(get) => get(&s.cost),
            Row::Observed => {
                at(&serde_json::to_value(&s.observed).ok()?, self.key.split_once('.')?.1)?.as_f64()
            }
        }
    }

    /// Path of the number that its percentages refer to; `None`: a percentage of it means nothing.
    pub fn whole(&self) -> Option<&'static str> {
        match self.row {
            Row::Number(number) => number.whole,
            Row::Status(_) => Some(table::DUE),
            Row::Time(..) | Row::NoResponse(_) | Row::Fit(..) | Row::Cost(_) | Row::Observed => None,
        }
    }

    /// Whether the count that it depends on is there.
    fn is_measured(&self, s: &Summary) -> bool {
        let about = match self.row {
            Row::Number(number) => number.about,
            // Without responses, their statuses are unknown.
            Row::Status(_) => Some(table::ANSWERED),
            Row::Time(..) | Row::NoResponse(_) | Row::Fit(..) | Row::Cost(_) | Row::Observed => None,
        };
        // A step that never began has no figures, so the requests due are those of the population.
        let about = if self.step().is_some() { about.map(|_| table::DUE) } else { about };
        about.is_none_or(|about| self.load(s).and_then(|load| positive(load, about, s)).is_some())
    }
}

/// The value of a number of this load, if it is more than zero.
fn positive(load: &Figures, path: &str, s: &Summary) -> Option<f64> {
    let row = NUMBERS.iter().find(|row| row.path == path)?;
    let value = match row.get {
        Get::Run(get) => get(s),
        Get::Load(get) | Get::Step(get, _) => get(load),
    };
    value.filter(|n| *n > 0.0)
}

impl Row {
    fn is_of_run_only(self) -> bool {
        match self {
            Row::Number(number) => matches!(number.get, Get::Run(_)),
            Row::Time(times, _) | Row::NoResponse(times) => matches!(times.get, GetTimes::Run(_)),
            Row::Status(_) => false,
            Row::Fit(..) | Row::Cost(_) | Row::Observed => true,
        }
    }

    fn is_of_steps(self) -> bool {
        match self {
            Row::Number(number) => matches!(number.get, Get::Step(..)),
            Row::Time(times, _) => matches!(times.get, GetTimes::Step(..)),
            Row::NoResponse(_) | Row::Status(_) | Row::Fit(..) | Row::Cost(_) | Row::Observed => false,
        }
    }
}

fn time(name: &str) -> Option<Figure> {
    let (of, statistic) = name.rsplit_once('.')?;
    let times = TIMES.iter().find(|times| [times.path, times.short].contains(&of))?;
    Some(Figure::time(times, statistic, Statistic::named(statistic)?))
}

fn number(name: &str) -> Option<Figure> {
    let is_it = |row: &&Number| row.path == name || !row.short.is_empty() && row.short == name;
    NUMBERS.iter().find(is_it).map(Figure::number)
}

fn status(name: &str) -> Option<Figure> {
    let code = name.strip_prefix(STATUS).or_else(|| name.strip_prefix("status."))?;
    let code = Status::parse(code).filter(|code| code.is_grpc() || (100..1000).contains(&code.0))?;
    Some(Figure::new(format!("{STATUS}{code}"), Unit::Count, Row::Status(code.0)))
}

/// A cost, by its path only: `cost.target_bytes.value`, its `error`, and `r2`.
fn cost(name: &str) -> Option<Figure> {
    let below = name.strip_prefix("cost.")?;
    let figure = |unit, row| Some(Figure::new(name.to_owned(), unit, row));
    match below {
        "ceiling_connections" => {
            return figure(Unit::Count, Row::Cost(|cost| cost.ceiling_connections.map(|n| n as f64)));
        }
        "target_live_bytes" => return figure(Unit::Bytes, Row::Cost(|cost| cost.target_live_bytes)),
        _ => {}
    }
    let (of, part) = below.split_once('.')?;
    let slope = SLOPES.iter().find(|slope| slope.name == of)?;
    match part {
        "value" => figure(slope.unit, Row::Fit(slope, |fit| fit.value)),
        "error" => figure(slope.unit, Row::Fit(slope, |fit| fit.error)),
        "r2" => figure(Unit::Number, Row::Fit(slope, |fit| fit.r2)),
        _ => None,
    }
}

/// A figure about hosts, by its path only. A missing one is reported as not measured.
fn observed(name: &str) -> Option<Figure> {
    let is_key = |key: &str| {
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let is_path = name.strip_prefix("observed.")?.split('.').all(is_key);
    is_path.then(|| Figure::new(name.to_owned(), Unit::Number, Row::Observed))
}

/// The value at a path in JSON, such as `latency_us.censored`.
pub fn at<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(json, |value, key| value.get(key))
}

#[cfg(test)]
mod tests;
