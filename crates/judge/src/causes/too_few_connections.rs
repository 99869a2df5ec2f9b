//! Cause: the rate needs more connections at this response time.

use super::*;
use crate::{
    By,
    evidence::Queueing,
    paced::{self, Missed},
};
use record::tolerances::NEARLY_ALL;

/// Requests were due while all connections waited for a response (`requests.missed`), and nothing else failed: the rate needs more connections
/// at this response time.
pub(crate) struct TooFewConnections {
    pub(crate) held: u64,
    /// Requests per second that they carried, and that were due.
    pub(crate) carried: f64,
    pub(crate) due: f64,
    pub(crate) missed: Missed,
}

impl Cause for TooFewConnections {
    const ID: &'static str = "too-few-connections";
    const OF: (Side, Name) = (Side::Host, Name::TooFewConnections);
    const YIELDS_TO: &'static str = paced::YIELDS_TO;

    fn find(case: &Case) -> Option<Found<TooFewConnections>> {
        let missed = paced::missed(case).filter(|_| case.evidence.paced.is_none())?;
        if paced::is_by_interval(case) || case.evidence.queueing == Queueing::InLine {
            return None;
        }
        // Not for a single population: it may have begun later than the time that this figure covers.
        let least = case.evidence.least_per_s.filter(|_| missed.population.is_none());
        let mean = missed.sent as f64 / missed.time_s;
        let carried = least.filter(|least| *least < NEARLY_ALL * mean).unwrap_or(mean);
        let (held, due) = (missed.held, missed.due_per_s());
        // How long a request was under way, by Little's law. If responses are faster under less load, more connections would not carry
        // more.
        let took = Nanos((held as f64 / carried * 1e9) as u64);
        if case.evidence.answers.faster_alone(took).is_some() {
            return None;
        }
        Some(Found::inferred(TooFewConnections { held, carried, due, missed }, held))
    }

    fn sentence(&self) -> String {
        paced::too_few(self.held, self.carried, self.due)
    }

    fn detail(&self, _: &Case) -> String {
        let all = match self.held {
            1 => "the connection".to_owned(),
            held => format!("all {} connections", Count(held)),
        };
        let (missed, due) = (Count(self.missed.missed), some(self.missed.due(), "request"));
        format!("{all} waited for a response when {missed} of {due} were due")
    }

    fn fix(&self, case: &Case) -> String {
        // By Little's law: the connections that the rate needs if each carries as much as before. Connections that the target closed with
        // an announcement carried a part, so they count.
        let sent = self.carried * self.missed.time_s;
        let needed = Count((self.missed.all as f64 * self.missed.due() as f64 / sent.round()).ceil() as u64);
        let more = match (case.evidence.search, &self.missed.population) {
            // Such a search tries fewer connections next, so it cannot use more.
            (Some(By::Connections | By::Burst), _) => {
                format!("lower the rate, which needs {needed} connections at this response time")
            }
            (_, Some(name)) => format!(
                "give {name} {needed} connections or more, which is what its rate needs at this response time"
            ),
            _ => format!("use -c {} or more, which is what the rate needs at this response time", needed.0),
        };
        let unclear = match case.evidence.queueing {
            Queueing::Unclear => "; if they carry no more, the target is at its limit",
            Queueing::None | Queueing::InLine => "",
        };
        format!("{more}, or find out what delays the responses{unclear}")
    }
}
