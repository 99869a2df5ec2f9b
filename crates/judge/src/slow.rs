//! A part of the responses that is far slower than all others.

use samples::{SlowPart, ThresholdResult};
use units::percent;

use crate::{case::Case, trouble::Trouble};

/// The slow part of responses, if it makes a latency threshold fail and nothing else is wrong.
pub(crate) fn part(case: &Case) -> Option<SlowPart> {
    let part = case.slow().filter(|_| case.trouble == Trouble::None)?;
    let slow_us = part.slow.0 as f64 / 1e3;
    let is_of_it = |expr: &str| {
        expr.split(|c: char| c != '_' && !c.is_alphanumeric())
            .any(|word| ["latency", "latency_us"].contains(&word))
    };
    let fails_by_it = |t: &ThresholdResult| {
        !t.pass && is_of_it(&t.expr) && t.value.is_some_and(|value| 2.0 * value >= slow_us)
    };
    case.summary.thresholds.iter().any(fails_by_it).then_some(part)
}

/// `5.0 % of responses took 4.0 s, the others 21 ms`
pub(crate) fn sentence(part: &SlowPart) -> String {
    let (slow, usual) = (part.slow.brief(), part.usual.brief());
    format!("{} of responses took {slow}, the others {usual}", percent(part.share))
}
