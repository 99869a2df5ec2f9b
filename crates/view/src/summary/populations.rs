//! The populations of a run, and their steps, as a table.

use std::fmt::Write;

use samples::{Quantiles, Summary};
use units::{Count, percent};

/// A line for each population and each step; nothing where there is only one of both.
pub(super) fn table(s: &Summary) -> String {
    let is_plain = s.populations.len() < 2 && s.populations.values().all(|p| p.steps.is_empty());
    if is_plain {
        return String::new();
    }
    let mut rows = vec![
        ["population", "held", "wanted", "connects/s", "requests/s", "p50", "p99", "no response", "faults"]
            .map(str::to_owned),
    ];
    for (name, p) in &s.populations {
        let faults = p.faults.iter().map(|fault| fault.count).sum();
        let count = |n: u64| Count(n).to_string();
        let [p50, p99, without] = times(&p.latency_us);
        rows.push([
            name.clone(),
            count(p.connections.held),
            count(p.connections.wanted),
            count(p.connections.open_per_s.round() as u64),
            count(p.requests.per_s.round() as u64),
            p50,
            p99,
            without,
            count(faults),
        ]);
        for (step, figures) in &p.steps {
            let [p50, p99, without] = times(&figures.latency_us);
            let none = String::new;
            rows.push([format!("  {step}"), none(), none(), none(), none(), p50, p99, without, none()]);
        }
    }
    aligned(&rows)
}

/// p50, p99, and the share that neither covers.
fn times(q: &Quantiles) -> [String; 3] {
    let without = q.censored.map_or("-".to_owned(), |censored| percent(censored.share));
    let time = |us, share| if q.count == 0 { "-".to_owned() } else { super::time(us, q.is_at_least(share)) };
    [time(q.p50, 0.5), time(q.p99, 0.99), without]
}

/// The first column to the left, the others to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = format!("  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(line, "  {cell:>width$}").expect("a String takes it");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{
        Censored, Connections, Fault, FaultCount, Figures, Kind, PopulationSummary, Requests, Stage,
        StepSummary,
    };

    fn latency(p50: f64, p99: f64) -> Quantiles {
        Quantiles { count: 9, p50, p99, ..Quantiles::default() }
    }

    #[test]
    fn populations_and_steps_stand_in_columns() {
        let mut s = Summary::default();
        let main = PopulationSummary::default();
        s.populations = [("main".to_owned(), main.clone())].into();
        assert_eq!(table(&s), "", "one that does one thing is the whole run");
        let fault = |count| FaultCount::new(Fault::target(Stage::Exchange, Kind::Reset), count);
        let figures = Figures {
            connections: Connections { held: 199, wanted: 200, open_per_s: 99.6, ..Connections::default() },
            requests: Requests { per_s: 1_234.5, ..Requests::default() },
            latency_us: Quantiles {
                censored: Some(Censored { share: 0.031, ..Censored::default() }),
                ..latency(95.0, 18_200.0)
            },
            faults: vec![fault(2), fault(3)],
            ..Figures::default()
        };
        let login = StepSummary { latency_us: latency(1_500.0, 20_000.0) };
        let users = PopulationSummary { figures, steps: [("login".to_owned(), login)].into() };
        s.populations = [("idle".to_owned(), main), ("users".to_owned(), users)].into();
        let expected = "  \
  population  held  wanted  connects/s  requests/s     p50    p99  no response  faults
  idle           0       0           0           0       -      -            -       0
  users        199     200         100       1,235   95 µs  18 ms        3.1 %       5
    login                                           1.5 ms  20 ms            -
";
        assert_eq!(table(&s), expected.trim_start_matches("  ").replacen("population", "  population", 1));
    }
}
