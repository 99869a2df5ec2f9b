//! Cause: the target accepts connections more slowly than they arrive.

use super::*;
use crate::queue::{self, Outrun};

/// By arrival: more and more connections waited in the accept queue from the beginning of the load to its end. Or it accepted at a steady rate
/// (R² > 0.98), slower than they arrive, or while others waited without a break.
pub(crate) enum SlowAccept {
    Outrun { count: u64, given_up: u64 },
    OwnPace { per_s: f64, arrive: Option<f64> },
}

impl Cause for SlowAccept {
    const ID: &'static str = "slow-accept";
    const OF: (Side, Name) = (Side::Target, Name::SlowAccept);
    const YIELDS_TO: &'static str = "cpu open-files logged logged-connections queue-overflowed queue-unaccepted queue-standing \
        target-stopped silent starved no-syn-ack cut-off rejected-in-part unacknowledged blocked-here \
        syn-loss throng-too-slow throng-stopped shared-processors";

    fn find(case: &Case) -> Option<Found<SlowAccept>> {
        if let Some(Outrun::Queued { count, given_up }) = queue::outpaced(case) {
            return Some(Found::seen(SlowAccept::Outrun { count, given_up }, case.left()));
        }
        let e = case.evidence;
        let waits =
            case.trouble == Trouble::Waiting || e.arrivals_per_s.is_some() && queue::waits(case).is_some();
        let per_s = queue::limiting_pace(e).filter(|_| waits)?;
        let found = SlowAccept::OwnPace { per_s, arrive: e.arrivals_per_s };
        Some(Found::inferred(found, case.left()))
    }

    fn sentence(&self) -> String {
        match *self {
            SlowAccept::Outrun { count, given_up } => Outrun::Queued { count, given_up }.sentence(),
            SlowAccept::OwnPace { per_s, arrive } => queue::slow_accept(per_s, arrive),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let e = case.evidence;
        match *self {
            SlowAccept::Outrun { count, given_up } => {
                let rate = e
                    .accepts_per_s
                    .map_or(String::new(), |rate| format!("it accepts a steady {rate:.0}/s; "));
                let of_which = match given_up {
                    0 => String::new(),
                    n => format!(", {} of them already abandoned by throng", Count(n)),
                };
                let (were, of, more) = (Count(count).were("connection"), queue::backlog(e), queue::more(e));
                format!("{rate}{were} in its accept queue{of} when the last one arrived{of_which}; {more}")
            }
            SlowAccept::OwnPace { per_s, .. } => {
                let waiting = Count(e.accept_queue.map_or(0, |queue| queue.used));
                format!("it accepts a steady {per_s:.0}/s, while up to {waiting} waited")
            }
        }
    }

    fn fix(&self, case: &Case) -> String {
        match *self {
            SlowAccept::Outrun { .. } => queue::THREADS.to_owned(),
            SlowAccept::OwnPace { per_s, .. } => queue::own_pace_fix(case.evidence, per_s),
        }
    }
}
