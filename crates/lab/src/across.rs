//! A table of all servers, each with its best results.

use crate::{
    figure::{NONE, shown},
    outcome::Outcome,
    table::Row,
};

/// Number of bytes in a gigabyte.
const GB: f64 = 1e9;

const HEAD: [&str; 5] =
    ["server", "connections per GB", "connects/s", "requests/s", "p99 with all connected"];

/// Minimum number of connections for a meaningful connection rate.
const MANY: f64 = 1000.0;

/// A table with a row per server, in the order of their first outcomes: name; connections per GB of the server's total memory in the
/// outcome with the most connections; highest connection rate, with at least [`MANY`] connections; highest response rate; p99 in the
/// outcome with the most connections.
pub(crate) fn across(outcomes: &[Outcome]) -> Vec<Row> {
    let name = |outcome: &Outcome| format!("{} · {}", outcome.subject.lab, outcome.subject.server);
    let mut names: Vec<String> = Vec::new();
    for outcome in outcomes {
        if !names.contains(&name(outcome)) {
            names.push(name(outcome));
        }
    }
    let text = |path: &str, n: Option<f64>| n.map_or(NONE.to_owned(), |n| shown(path, n));
    let row = |server: String| {
        let own = || outcomes.iter().filter(|outcome| name(outcome) == server && outcome.is_valid());
        let is_many = |outcome: &&Outcome| outcome.figure("connections.opened").is_some_and(|n| n >= MANY);
        let connects = own().filter(is_many).filter_map(|one| one.figure("connections.open_per_s"));
        let connects = text("", connects.reduce(f64::max));
        let responses = own().filter_map(|one| one.figure("requests.per_s")).reduce(f64::max);
        let held = |outcome: &Outcome| outcome.figure("connections.held").unwrap_or(0.0);
        let fullest = own().max_by(|a, b| held(a).total_cmp(&held(b))).filter(|one| held(one) > 0.0);
        let figure = |path: &str| fullest.and_then(|one| one.figure(path)).filter(|n| *n > 0.0);
        let per_gb = figure("connections.held").zip(figure("target_cost.rss_bytes"));
        let per_gb = text("", per_gb.map(|(held, bytes)| held / bytes * GB));
        let p99 = "latency_us.p99";
        [server, per_gb, connects, text("", responses), text(p99, figure(p99))]
    };
    let rows = [HEAD.map(str::to_owned)].into_iter().chain(names.into_iter().map(row));
    rows.map(Row::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Subject;
    use serde_json::json;

    fn outcome(server: &str, held: u64, rss: u64, opened: f64, per_s: f64, p99: f64) -> Outcome {
        let summary = json!({
            "connections": {"held": held, "opened": held, "open_per_s": opened},
            "requests": {"per_s": per_s},
            "latency_us": {"p99": p99},
            "target_cost": {"rss_bytes": rss},
        });
        let subject = Subject { lab: "l".to_owned(), server: server.to_owned(), ..Subject::default() };
        Outcome { subject, summary, ..Outcome::default() }
    }

    #[test]
    fn each_server_at_its_best() {
        let outcomes = [
            outcome("a", 400, 1_000_000, 90_000.0, 20_000.0, 900.0),
            outcome("b", 10, 0, 0.0, 0.0, 0.0),
            outcome("c", 0, 1_000_000, 0.0, 10.0, 5.0),
            outcome("a", 10_000, 50_000_000, 3000.0, 100.0, 1500.0),
        ];
        let rows = across(&outcomes);
        assert_eq!(rows[1], ["l · a", "200,000", "3,000", "20,000", "1.5 ms"].map(str::to_owned));
        assert_eq!(rows[2], ["l · b", "–", "–", "0", "–"].map(str::to_owned));
        // If no connections were held, memory per connection and latency are unknown.
        assert_eq!(rows[3], ["l · c", "–", "–", "10", "–"].map(str::to_owned));
        assert_eq!(rows.len(), 4);
    }
}
