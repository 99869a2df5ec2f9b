//! Metrics of an invented run, for tests.

use fixtures::{header, seen};
use units::Date;

use super::{MetricsState, Snapshot};

/// Two seconds of a run with two populations; the name of the second population needs escaping.
pub(crate) fn two_seconds() -> (Snapshot, [Snapshot; 2]) {
    let mut metrics_state = MetricsState::new(Date(1_700_000_000_250));
    metrics_state.begin(&header());
    let blank = metrics_state.blank();
    (blank, [1, 2].map(|second| second_of(&mut metrics_state, second)))
}

fn second_of(metrics_state: &mut MetricsState, n: u64) -> Snapshot {
    let (tick, samples) = seen(n);
    metrics_state.tick(&tick, &samples)
}
