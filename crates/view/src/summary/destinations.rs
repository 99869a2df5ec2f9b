//! The rows about destinations with failures.

use samples::{DestinationSummary, Summary};
use units::{Count, percent};

use super::row;

/// Writes a row for each of the worst destinations with failures, if there are several destinations.
pub(super) fn rows(s: &Summary, out: &mut String) {
    const MOST: usize = 5;
    let is_bad = |own: &&DestinationSummary| !own.faults.is_empty() || own.latency_us.censored.is_some();
    let mut bad: Vec<_> = s.destinations.iter().filter(is_bad).collect();
    let missing = |own: &DestinationSummary| own.latency_us.censored_count();
    bad.sort_by_key(|own| std::cmp::Reverse((own.fault_count(), missing(own))));
    for own in bad.iter().take(MOST) {
        let faults = own.faults.iter().map(|f| format!(", {} {}", Count(f.count), f.fault().name()));
        let dialled = Count(own.opened + own.failed);
        let silent = own.latency_us.censored.as_ref();
        let silent = silent.map(|c| format!(", {} of its requests without a response", percent(c.share)));
        let value = format!(
            "{}: {} of {dialled} dialled open{}{}",
            own.name(),
            Count(own.open),
            faults.collect::<String>(),
            silent.unwrap_or_default(),
        );
        row(out, "destination", value);
    }
    if bad.len() > MOST {
        let others = Count((bad.len() - MOST) as u64).of("other destination");
        row(out, "", format!("and {others} with faults"));
    }
}
