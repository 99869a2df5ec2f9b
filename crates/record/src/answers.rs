//! Outcomes of the experiments after the load, and the conclusions from them about causes.

use std::fmt;

use samples::{ExperimentSummary, FaultCount, Mark, MarkKind};
use serde::{Deserialize, Serialize};
use units::{Count, Nanos};

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Sends a TLS ClientHello.
    Tls,
    /// One more user after a pause, while all connections of the load are open and silent.
    Pause,
    /// One more user from another source address.
    OtherSource,
    /// One more user at another address of the target.
    OtherAddress,
    /// One more user after half of the connections were closed.
    Half,
    /// One more user with small segments.
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
    /// Responses came; their median time.
    Served(Nanos),
    /// A connection was established, and no response is expected.
    Open,
    /// A connection was established, and no response came in time.
    Unanswered,
    /// No response; the first fault.
    Failed(FaultCount),
    /// Some responses came; the first fault of the others.
    Mixed(FaultCount),
    /// The connection was closed after this time.
    Closed(Nanos),
    /// The connection was watched for this time and stayed open.
    Stayed(Nanos),
    /// Whether a TLS record came.
    Tls(bool),
}

/// An experiment with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which experiment.
    pub experiment: Experiment,
    /// The causes that it should distinguish.
    pub why: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Connections of the load that were open during the experiment.
    pub open: u64,
    /// When it began, by the clock of the ticks.
    pub at: Nanos,
    /// How long it took.
    pub took: Nanos,
}

/// How connections were turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// No longer: by rate, or temporarily.
    Passed,
    /// By source address.
    BySource,
    /// At one address of the target.
    ByAddress,
    /// Above a number of connections.
    Full,
    /// Even with half of the connections gone.
    Broken,
}

/// The experiments of a run, in the order in which they were performed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers(pub Vec<Answer>);

impl Answers {
    /// The outcome of an experiment; `None` if it was not performed.
    pub fn of(&self, experiment: Experiment) -> Option<&Outcome> {
        self.answer(experiment).map(|answer| &answer.outcome)
    }

    fn answer(&self, experiment: Experiment) -> Option<&Answer> {
        self.0.iter().find(|answer| answer.experiment == experiment)
    }

    fn is_served(&self, experiment: Experiment) -> bool {
        self.of(experiment).is_some_and(Outcome::is_served)
    }

    /// Whether the experiment would show nothing new, because one more user of the load's kind was already served.
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

    /// How connections were turned away when `at` were open; `None` if the experiments do not show it.
    pub fn turned_away(&self, at: u64) -> Option<TurnedAway> {
        let pause = self.answer(Pause)?;
        if pause.outcome.is_served() {
            // With fewer connections open, the target may have room again or less to do.
            let are_as_many = pause.open as f64 >= NINE_TENTHS * at as f64;
            return are_as_many.then_some(TurnedAway::Passed);
        }
        // If some are served and others not, a served user proves nothing.
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
            // Half of the connections are gone already: they are not the reason for the lack of room.
            return Some(TurnedAway::Broken);
        }
        let half = self.of(Half).filter(|half| !half.is_mixed())?;
        Some(if half.is_served() { TurnedAway::Full } else { TurnedAway::Broken })
    }

    /// Whether any additional user was served while the load's connections were open; `None` if not tested.
    pub fn any_served(&self) -> Option<bool> {
        let outcome = self.of(Pause)?;
        Some(outcome.is_served() || outcome.is_mixed())
    }

    /// The response time for a single user, if it is clearly shorter than the `median` under load.
    pub fn faster_alone(&self, median: Nanos) -> Option<Nanos> {
        self.alone().filter(|took| (took.0 as f64) < HALF * median.0 as f64)
    }

    /// The response time for a single user; `None` if not tested or without response.
    pub fn alone(&self) -> Option<Nanos> {
        if let Outcome::Served(took) = self.of(Alone)? { Some(*took) } else { None }
    }

    /// Whether users were served with small segments only; `none`: the load had no response at all.
    pub fn needs_small_segments(&self, none: bool) -> bool {
        self.is_served(SmallSegments) && (none || self.any_served() == Some(false))
    }

    /// Whether the connection of this experiment was closed; `None` if not tested.
    pub fn is_closed(&self, experiment: Experiment) -> Option<bool> {
        match self.of(experiment)? {
            Outcome::Closed(_) => Some(true),
            Outcome::Stayed(_) => Some(false),
            _ => None,
        }
    }

    /// Whether a TLS record came; `None` if not tested.
    pub fn speaks_tls(&self) -> Option<bool> {
        if let Outcome::Tls(speaks) = self.of(Tls)? { Some(*speaks) } else { None }
    }

    /// One mark per experiment, with its outcome.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        let what = |answer: &Answer| format!("{}: {answer}", answer.experiment.id());
        self.0.iter().map(move |answer| Mark {
            at: answer.at,
            kind: MarkKind::Experiment,
            what: what(answer),
        })
    }

    /// The experiments as they appear in the summary.
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
    /// The name in the summary, the marks and the table of experiments.
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
