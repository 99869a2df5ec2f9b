//! Thresholds that require more throughput than the load offers.

use plan::Threshold;
use samples::Place;

use crate::{case::Case, trouble::Trouble};
use record::tolerances::NEARLY_ALL;

/// Figures that grow with the load, as long as the target serves it.
const THROUGHPUT: [&str; 3] = ["requests.per_s", "requests.bytes_in_per_s", "requests.bytes_out_per_s"];

/// By which factor the failed thresholds exceed the run's throughput, and the first of them; `None` if any requires something else.
pub(crate) fn wanted<'a>(case: &Case<'a>) -> Option<(f64, &'a Threshold)> {
    let all = case.evidence.thresholds.iter().zip(&case.summary.thresholds);
    let wanted: Option<Vec<(f64, &Threshold)>> = all
        .filter(|(_, result)| !result.pass)
        .map(|(threshold, result)| {
            let is_throughput = threshold.figure.place == Place::Run && threshold.figure.is_any(&THROUGHPUT);
            let value =
                result.value.filter(|value| threshold.is_lower_bound() && is_throughput && *value > 0.0)?;
            Some((threshold.bound / value, threshold))
        })
        .collect();
    let wanted = wanted?;
    let most = wanted.iter().map(|(times, _)| *times).fold(0.0, f64::max);
    wanted.into_iter().next().map(|(_, first)| (most, first))
}

/// The same if everything due was answered and nothing else failed: the rate is too low for the thresholds.
pub(crate) fn too_little<'a>(case: &Case<'a>) -> Option<(f64, &'a Threshold)> {
    let (r, subject) = (case.requests(), &case.evidence.subject);
    let rate = subject.rate.filter(|_| case.trouble == Trouble::None && case.evidence.search.is_none())?;
    // Each arriving connection may send several requests.
    let is_reached = subject.arrives || r.per_s >= rate.per_s_f64() * NEARLY_ALL;
    let is_all = r.sent > 0 && r.answered >= r.sent && r.missed == 0;
    wanted(case).filter(|_| is_reached && is_all)
}
