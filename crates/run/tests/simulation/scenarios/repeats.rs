//! Steps that are skipped or repeated, decided by what was captured.

use samples::Kind;

use super::run;
use crate::listener::{Received, Speaks, response};

const TASKS: &str = r#"
target = "http://127.0.0.1:80/"
duration = "20s"
[[population]]
name = "users"
connections = 7
think = "100ms"
[[population.step]]
name = "poll"
request = "GET /task?n={seq}"
capture = { third = { header = "X-Third", default = "no" } }
times = 4
until = "{var third} = yes"
[[population.step]]
name = "odd"
if = "{var third} != yes"
request = "GET /late"
times = 2
"#;

/// Whether the job is done at this request: it depends on its number only.
fn is_done(line: &str) -> bool {
    let number: u64 = line.rsplit('=').next().and_then(|n| n.parse().ok()).unwrap();
    number.is_multiple_of(5)
}

fn check(shards: u32, text: &str, speaks: Speaks) {
    let script = |received: &Received| match received.line() {
        line if line.starts_with("GET /task") && is_done(line) => vec![response(200, "X-Third: yes\r\n", "")],
        _ => vec![response(200, "", "")],
    };
    let (result, server) = run(text, shards, speaks, script);
    let mut unmet = 0;
    for received in server.by_connection() {
        let lines: Vec<&str> = received.iter().map(|received| received.line()).collect();
        assert!(lines.len() > 100, "{}", lines.len());
        let (mut polls, mut late, mut was_done) = (0, 0, true);
        for line in lines {
            if line == "GET /late" {
                // After four polls in vain, twice.
                assert!(polls == 4 && !was_done && late < 2, "{polls} {late} {was_done}");
                late += 1;
                continue;
            }
            if was_done || late > 0 {
                assert!(was_done || late == 2, "{late}");
                (polls, late) = (0, 0);
            }
            polls += 1;
            was_done = is_done(line);
            assert!(polls <= 4, "{polls}");
            unmet += u64::from(polls == 4 && !was_done);
        }
    }
    let [(_, kind, wrong)] = result.faults()[..] else { panic!("{:?}", result.faults()) };
    assert_eq!(kind, Kind::WrongBody);
    // The last responses may still be on their way.
    assert!(unmet > 20 && (unmet - 7..=unmet).contains(&wrong), "{wrong} of {unmet}");
}

#[test]
fn a_step_ends_when_it_is_decided_and_a_condition_skips_the_next() {
    check(1, TASKS, Speaks::Http);
    check(3, TASKS, Speaks::Http);
}
