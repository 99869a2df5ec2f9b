//! `throng find` commands for the target of a plan.

use plan::{Activity, Plan, Population, Threshold};
use units::{Nanos, shell_word, without_login};

use super::longest_pause;

/// Figures of opening connections, which requests on open connections do not change.
const OF_OPENING: [&str; 5] = ["connections.", "connect_us.", "tls_us.", "tls_resumed_us.", "handshake_us."];

/// For each threshold that a smaller load may meet: its text, and the command that searches the largest load that meets it.
pub(super) fn commands(plan: &Plan) -> Vec<(String, String)> {
    let thresholds = plan.thresholds.iter().filter(|threshold| is_met_by_less(threshold));
    let command = |threshold: &Threshold| {
        let how = by(plan, threshold);
        format!("{}{how} --threshold {}", find_command(&plan.text), shell_word(&threshold.text))
    };
    thresholds.map(|threshold| (threshold.text.clone(), command(threshold))).collect()
}

/// Whether a smaller load can meet the threshold. It has fewer requests, connections and bytes, so it cannot meet a lower bound on their
/// number or rate.
fn is_met_by_less(threshold: &Threshold) -> bool {
    threshold.is_share || !threshold.is_lower_bound()
}

/// The command that searches the rate of arrivals that the target sustains.
pub(super) fn by_arrival(plan: &Plan) -> String {
    format!("{} --by arrival", find_command(&plan.text))
}

/// The command that searches this target, without the flags for what to search.
pub fn find_command(target: &str) -> String {
    format!("throng find {}", shell_word(&without_login(target)))
}

/// The flags for the quantity to increase. In a search by connections most of them pause, so requests without pauses are searched by rate.
fn by(plan: &Plan, threshold: &Threshold) -> String {
    let all = || plan.populations.iter();
    let is_of_opening = OF_OPENING.iter().any(|figure| threshold.figure.key.contains(figure));
    let pauses = |own: &Population| own.activity == Activity::Idle || longest_pause(own) > Nanos::ZERO;
    match &plan.populations[..] {
        _ if all().all(Population::comes_and_goes) => " --by arrival".to_owned(),
        _ if is_of_opening || all().any(pauses) => String::new(),
        [only] if !plan::scenario::is_file(&plan.text) => {
            format!(" --by rate -c {}", only.load.connections())
        }
        _ => " --by rate".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flag, Flags, flag};

    use super::*;

    fn plan_of(target: &str, flags: &[(&'static Flag, &str)]) -> Plan {
        let flags = flags.iter().fold(Flags::new(target), |flags, (flag, value)| flags.with(flag, *value));
        let resolve = |_: &str| Err("no names here".to_owned());
        plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).expect("it is right")
    }

    fn check(target: &str, flags: &[(&'static Flag, &str)], expr: &str, expected: Option<&str>) {
        let flags = [flags, &[(&flag::THRESHOLD, expr)]].concat();
        let found = commands(&plan_of(target, &flags));
        let expected = expected
            .map(|how| (expr.to_owned(), format!("throng find {how}--threshold {}", shell_word(expr))));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{flags:?}");
    }

    const URL: &str = "http://127.0.0.1:1/";

    #[test]
    fn the_search_makes_larger_what_the_figure_depends_on() {
        let latency = "latency.p99 < 50ms";
        check(URL, &[(&flag::CONNECTIONS, "20")], latency, Some("http://127.0.0.1:1/ --by rate -c 20 "));
        check(URL, &[(&flag::RATE, "9/s")], latency, Some("http://127.0.0.1:1/ --by rate -c 50 "));
        check(
            URL,
            &[(&flag::ARRIVE, "9/s"), (&flag::TOTAL, "9")],
            latency,
            Some("http://127.0.0.1:1/ --by arrival "),
        );
        // For connections that pause, and for figures of opening, the number of connections is searched.
        check(URL, &[(&flag::THINK, "1s")], latency, Some("http://127.0.0.1:1/ "));
        check("ws://127.0.0.1:1/", &[], latency, Some("ws://127.0.0.1:1/ "));
        check("tcp://127.0.0.1:1", &[], "connect.p99 < 5ms", Some("tcp://127.0.0.1:1 "));
        check(URL, &[], "connect.p99 < 5ms", Some("http://127.0.0.1:1/ "));
        check(URL, &[], "held >= 99%", Some("http://127.0.0.1:1/ "));
        check(
            URL,
            &[(&flag::ARRIVE, "9/s"), (&flag::TOTAL, "9")],
            "connect.p99 < 5ms",
            Some("http://127.0.0.1:1/ --by arrival "),
        );
        check(
            "http://me:secret@127.0.0.1:1/?a&b",
            &[(&flag::CONNECTIONS, "2")],
            latency,
            Some("'http://127.0.0.1:1/?a&b' --by rate -c 2 "),
        );
    }

    #[test]
    fn what_less_load_does_not_reach_is_not_searched() {
        check(URL, &[], "requests.per_s >= 20k/s", None);
        check(URL, &[], "answered >= 5000", None);
        check(URL, &[], "answered >= 99%", Some("http://127.0.0.1:1/ --by rate -c 50 "));
        check(URL, &[], "faults == 0", Some("http://127.0.0.1:1/ --by rate -c 50 "));
        check(URL, &[], "requests.unanswered <= 5", Some("http://127.0.0.1:1/ --by rate -c 50 "));
    }

    #[test]
    fn a_rate_of_arrivals_is_searched_at_the_same_target() {
        assert_eq!(by_arrival(&plan_of(URL, &[])), "throng find http://127.0.0.1:1/ --by arrival");
    }
}
