//! The table of populations and their steps.

use samples::{FaultCount, Quantiles, Summary};
use units::{Count, percent};

use crate::table::aligned;

/// A line for each population and each step; empty if there is only one population without steps.
pub(super) fn table(s: &Summary) -> String {
    let is_plain = s.populations.len() < 2 && s.populations.values().all(|p| p.steps.is_empty());
    if is_plain {
        return String::new();
    }
    let mut rows = vec![
        [
            "population",
            "held",
            "wanted",
            "connects/s",
            "requests/s",
            "p50",
            "p95",
            "p99",
            "no response",
            "faults",
        ]
        .map(str::to_owned),
    ];
    let count = |n: u64| Count(n).to_string();
    let sum = |faults: &[FaultCount]| count(faults.iter().map(|fault| fault.count).sum());
    for (name, p) in &s.populations {
        let [p50, p95, p99, without] = times(&p.latency_us);
        rows.push([
            name.clone(),
            count(p.connections.held),
            count(p.connections.wanted),
            count(p.connections.open_per_s.round() as u64),
            count(p.requests.per_s.round() as u64),
            p50,
            p95,
            p99,
            without,
            sum(&p.faults),
        ]);
        for (step, figures) in &p.steps {
            let (of, shown) = figures.shown();
            let [p50, p95, p99, without] = times(shown);
            let none = String::new;
            rows.push([
                format!("  {step}{of}"),
                none(),
                none(),
                none(),
                none(),
                p50,
                p95,
                p99,
                without,
                sum(&figures.faults),
            ]);
        }
    }
    aligned(&rows, &[0]).iter().map(|line| format!("  {line}\n")).collect()
}

/// p50, p95, p99, and the share of values that they do not cover.
fn times(q: &Quantiles) -> [String; 4] {
    let without = q.censored.map_or("-".to_owned(), |censored| percent(censored.share));
    let time = |us, share| if q.count == 0 { "-".to_owned() } else { super::time(us, q.is_at_least(share)) };
    [time(q.p50, 0.5), time(q.p95, 0.95), time(q.p99, 0.99), without]
}
