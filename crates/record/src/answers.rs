//! What the target answered in the experiments after the load, and what that says of causes.

use std::fmt;

use samples::{ExperimentSummary, FaultCount, Mark, MarkKind};
use serde::{Deserialize, Serialize};
use units::{Count, Nanos};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A TLS ClientHello.
    Tls,
    /// One more user after a pause, while all connections of the load are open and silent.
    Pause,
    /// The same from another source address.
    OtherSource,
    /// The same at another address of the target.
    OtherAddress,
    /// The same after half of the connections were closed.
    Half,
    /// The same in small segments.
    SmallSegments,
    /// One user while all else is silent: how long do responses take?
    Alone,
    /// A connection that stays silent after its first response: is it closed, and when?
    Silent,
    /// A connection that is never silent for long: is it closed, and when?
    Busy,
}

use crate::tolerances::{HALF, NINE_TENTHS};
use Experiment::{Alone, Busy, Half, OtherAddress, OtherSource, Pause, Silent, SmallSegments, Tls};

/// The outcome of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Responses, in this time: the median of a few.
    Served(Nanos),
    /// A connection, of which no response is expected.
    Open,
    /// A connection, and no response in time.
    Unanswered,
    /// The first fault.
    Failed(FaultCount),
    /// Some had responses, and this is the first fault of the others.
    Mixed(FaultCount),
    /// The connection was closed after this time.
    Closed(Nanos),
    /// It was open for this time, and stayed open.
    Stayed(Nanos),
    /// Whether a record of TLS came.
    Tls(bool),
}

/// An experiment that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which one.
    pub experiment: Experiment,
    /// What it was to distinguish.
    pub why: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Connections of the load that were open meanwhile.
    pub open: u64,
    /// When it began, by the clock of the ticks.
    pub at: Nanos,
    /// How long it took.
    pub took: Nanos,
}

/// How connections were turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// Not any more: by rate, or for a time.
    Passed,
    /// Those from one source address.
    BySource,
    /// Those to one address of the target.
    ByAddress,
    /// Those beyond a number.
    Full,
    /// Also where half of them are gone.
    Broken,
}

/// The answers of a run, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers(pub Vec<Answer>);

impl Answers {
    /// The answer of an experiment, if it was made.
    pub fn of(&self, experiment: Experiment) -> Option<&Outcome> {
        self.answer(experiment).map(|answer| &answer.outcome)
    }

    fn answer(&self, experiment: Experiment) -> Option<&Answer> {
        self.0.iter().find(|answer| answer.experiment == experiment)
    }

    fn is_served(&self, experiment: Experiment) -> bool {
        self.of(experiment).is_some_and(Outcome::is_served)
    }

    /// Whether an experiment would show nothing more: one more user of the load's kind was served already.
    pub fn have_decided(&self, experiment: Experiment) -> bool {
        let before: &[Experiment] = match experiment {
            OtherSource => &[Pause],
            OtherAddress => &[Pause, OtherSource],
            Half => &[Pause, OtherSource, OtherAddress],
            SmallSegments => &[Pause],
            _ => &[],
        };
        before.iter().any(|one| self.is_served(*one))
    }

    /// How connections were turned away where `at` were open; none where that was not found out.
    pub fn turned_away(&self, at: u64) -> Option<TurnedAway> {
        let pause = self.answer(Pause)?;
        if pause.outcome.is_served() {
            // With fewer open than there were, it may have room again, or less to do.
            let are_as_many = pause.open as f64 >= NINE_TENTHS * at as f64;
            return are_as_many.then_some(TurnedAway::Passed);
        }
        // Of some that are served and others that are not, it says nothing that others were.
        if pause.outcome.is_mixed() {
            return None;
        }
        if self.is_served(OtherSource) {
            return Some(TurnedAway::BySource);
        }
        if self.is_served(OtherAddress) {
            return Some(TurnedAway::ByAddress);
        }
        if pause.open as f64 <= HALF * at as f64 {
            // It is not for the others that there is no room.
            return Some(TurnedAway::Broken);
        }
        let half = self.of(Half).filter(|half| !half.is_mixed())?;
        Some(if half.is_served() { TurnedAway::Full } else { TurnedAway::Broken })
    }

    /// Whether any one more user was served while the load's connections were open; none where that was not asked.
    pub fn any_served(&self) -> Option<bool> {
        let outcome = self.of(Pause)?;
        Some(outcome.is_served() || outcome.is_mixed())
    }

    /// How long responses take one user alone that take `median` under load, where that is clearly less.
    pub fn faster_alone(&self, median: Nanos) -> Option<Nanos> {
        self.alone().filter(|took| (took.0 as f64) < HALF * median.0 as f64)
    }

    /// How long responses take one user alone.
    pub fn alone(&self) -> Option<Nanos> {
        if let Outcome::Served(took) = self.of(Alone)? { Some(*took) } else { None }
    }

    /// Whether users were served with small segments, and not with any others: by the load, of which `none` was, or after it.
    pub fn needs_small_segments(&self, none: bool) -> bool {
        self.is_served(SmallSegments) && (none || self.any_served() == Some(false))
    }

    /// Whether a connection was closed that was silent, or never was; none where that was not asked.
    pub fn is_closed(&self, experiment: Experiment) -> Option<bool> {
        match self.of(experiment)? {
            Outcome::Closed(_) => Some(true),
            Outcome::Stayed(_) => Some(false),
            _ => None,
        }
    }

    /// Whether a record of TLS came; none where none was asked for.
    pub fn speaks_tls(&self) -> Option<bool> {
        if let Outcome::Tls(speaks) = self.of(Tls)? { Some(*speaks) } else { None }
    }

    /// Each as a mark, with its answer.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        let what = |answer: &Answer| format!("{}: {answer}", answer.experiment.id());
        self.0.iter().map(move |answer| Mark {
            at: answer.at,
            kind: MarkKind::Experiment,
            what: what(answer),
        })
    }

    /// As the summary has them.
    pub fn for_summary(&self) -> Vec<ExperimentSummary> {
        let of = |answer: &Answer| ExperimentSummary {
            what: answer.experiment.id().to_owned(),
            why: answer.why.clone(),
            answer: answer.to_string(),
            took_s: answer.took.secs_f64(),
        };
        self.0.iter().map(of).collect()
    }
}

impl Outcome {
    fn is_served(&self) -> bool {
        matches!(self, Outcome::Served(_) | Outcome::Open)
    }

    fn is_mixed(&self) -> bool {
        matches!(self, Outcome::Mixed(_))
    }
}

impl Experiment {
    /// As the summary, the marks and the table name it.
    pub fn id(self) -> &'static str {
        match self {
            Tls => "tls",
            Pause => "pause",
            OtherSource => "other-source",
            OtherAddress => "other-address",
            Half => "half",
            SmallSegments => "small-segments",
            Alone => "alone",
            Silent => "silent",
            Busy => "busy",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Served(took) => write!(f, "served in {}", took.brief()),
            Outcome::Open => f.write_str("connected"),
            Outcome::Unanswered => f.write_str("connected, no response"),
            Outcome::Failed(fault) => write!(f, "not served: {}", fault.fault().name()),
            Outcome::Mixed(fault) => write!(f, "served in part: {}", fault.fault().name()),
            Outcome::Closed(after) => write!(f, "closed after {}", after.brief()),
            Outcome::Stayed(time) => write!(f, "still open after {}", time.brief()),
            Outcome::Tls(true) => f.write_str("a record of TLS in reply"),
            Outcome::Tls(false) => f.write_str("no record of TLS in reply"),
        }
    }
}

impl fmt::Display for Answer {
    /// `served in 350 µs, with 50 connections open`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome.fmt(f)?;
        match self.experiment {
            Tls | Alone | Silent | Busy => Ok(()),
            _ => write!(f, ", with {} open", Count(self.open).of("connection")),
        }
    }
}

#[cfg(test)]
mod tests;
