//! Silence is a failure: every way in which a server stops responding over real sockets, with and without thresholds. No run passes
//! that should not, and each request has exactly one outcome. Each load model has the same in virtual time, in `simulation/matrix.rs`.

use std::{thread, time::Duration};

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal},
    summary::Summary,
};

/// What the target does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    NeverAnswers,
    StopsInTheMiddle,
    StopsInTheLastSecond,
    LosesSome,
    IsKilled,
    StopsAndGoesOn,
}

use Trouble::*;

const ALL: [Trouble; 6] =
    [NeverAnswers, StopsInTheMiddle, StopsInTheLastSecond, LosesSome, IsKilled, StopsAndGoesOn];

/// Longer than any correct response here takes, and shorter than any stop of the server.
const THRESHOLD: &str = "latency.max < 500ms";

struct Cell {
    trouble: Trouble,
    judged: bool,
}

impl Cell {
    fn check(&self) {
        let Cell { trouble, judged } = *self;
        let (server, summary, status) = self.run();
        drop(server);
        let place = format!("{trouble:?}, judged {judged}: {:#}", summary.0["reasons"]);
        let count = |name: &str| summary.count(&format!("requests.{name}"));
        let (sent, answered, unanswered) = (count("sent"), count("answered"), count("unanswered"));
        assert!(sent > 0, "{place}");
        let under_way = |fault: &&Value| {
            fault["stage"] == "exchange" && !fault["kind"].as_str().unwrap().starts_with("wrong-")
        };
        let faults = summary.at("faults").as_array().unwrap().iter().filter(under_way);
        let lost: u64 = faults.map(|fault| fault["count"].as_u64().unwrap()).sum();
        assert_eq!(sent, answered + lost + unanswered, "{place}");
        let headline = summary.text("headline");
        if trouble == StopsAndGoesOn && !judged {
            // Late, and nothing else: all responses came. On a busy machine it continues after the load's end, when the
            // slots that waited for a connection have missed it.
            assert!(status == 0 || status == 4 || count("missed") > 0, "{place}");
            assert_eq!(sent, answered, "{place}");
            return;
        }
        // A busy machine makes throng late, and then it judges nothing.
        assert!(status == 1 || status == 4, "exit {status}: {place}");
        assert!(!headline.contains("every"), "{headline}: {place}");
        if trouble != StopsAndGoesOn {
            assert!(lost + unanswered + count("missed") > 0 || trouble == IsKilled, "{place}");
        }
    }

    fn run(&self) -> (Serving, Summary, i32) {
        let knobs: &[&str] = match self.trouble {
            NeverAnswers => &["--stall", "100%"],
            LosesSome => &["--stall", "10%"],
            _ => &[],
        };
        let server = Serving::start(&[&["--threads", "1"], knobs].concat());
        // As fast as it can it would keep both processors from the eleven others of its kind.
        let target = server.url("/delay?for=20ms");
        let timeout = if self.trouble == StopsAndGoesOn { "8s" } else { "700ms" };
        let mut args = vec!["run", &target, "--json", "-", "--live", "line", "--timeout", timeout];
        args.extend(["-c", "4", "--ramp", "0s", "-d", "2900ms"]);
        if self.judged {
            args.extend(["--threshold", THRESHOLD]);
        }
        let mut run = Program::start(&args);
        let second = match self.trouble {
            StopsInTheMiddle | IsKilled | StopsAndGoesOn => Some(1),
            StopsInTheLastSecond => Some(2),
            NeverAnswers | LosesSome => None,
        };
        if let Some(second) = second {
            run.wait_for_second(second);
            let signal = if self.trouble == IsKilled { Signal::KILL } else { Signal::STOP };
            server.program.signal(signal);
        }
        if self.trouble == StopsAndGoesOn {
            // The next line but one: it stalled for a second or more.
            run.wait_for_second(3);
            server.program.signal(Signal::CONT);
        }
        let ended = run.end();
        let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        (server, Summary(json), ended.status.expect("no signal ended it"))
    }
}

#[test]
fn no_trouble_of_a_target_is_a_pass() {
    // All at the same time: most of it is waiting.
    thread::scope(|scope| {
        for (trouble, judged) in ALL.into_iter().flat_map(|trouble| [(trouble, false), (trouble, true)]) {
            scope.spawn(move || Cell { trouble, judged }.check());
        }
    });
}

/// A stop of throng itself is its own lag, and not the target's latency.
#[test]
fn a_stall_of_throng_is_lag() {
    const STOP: Duration = Duration::from_millis(600);
    let server = Serving::start(&["--threads", "1"]);
    // A closed loop of some hundreds a second: faster shows no more.
    let target = server.url("/delay?for=10ms");
    let args = ["run", &target, "--json", "-", "--live", "line", "-d", "2s", "--ramp", "0s", "-c", "8"];
    let mut run = Program::start(&args);
    run.wait_for_second(1);
    run.signal(Signal::STOP);
    // The experiment itself: it is stopped for this long.
    thread::sleep(STOP);
    run.signal(Signal::CONT);
    let ended = run.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    let (latency, lag) = (s.number("latency_us.max"), s.number("lag_us.max"));
    assert!(lag >= 550e3, "lag {lag} us");
    // Were the stop part of it, it would be longer.
    assert!(latency < 550e3 && s.count("latency_us.count") > 100, "latency {latency} us");
    // For outstanding requests the reported latency is a lower bound.
    let (bounds, most) = (s.count("latency_us.stalled.count"), s.number("latency_us.stalled.most"));
    assert!((1..100).contains(&bounds) && most >= 550e3, "{bounds}, {most} us");
    assert_eq!(s.count("requests.sent"), s.count("requests.answered"));
}
