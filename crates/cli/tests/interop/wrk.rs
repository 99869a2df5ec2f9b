//! `throng serve` under wrk.

use crate::{
    curl::{stats, stats_once_alone},
    program::{Ended, Program, Serving, Signal, until},
    server::{program, source},
};

/// What wrk reports of a run in which it saw no error.
pub(crate) struct Report {
    /// Requests with a response.
    pub(crate) answered: u64,
    /// How long it ran.
    seconds: f64,
}

/// Runs wrk with these arguments until one of its threads has had 200 responses.
pub(crate) fn wrk(args: &[&str]) -> Report {
    let script = source("enough.lua");
    let mut wrk =
        Program::from(program("wrk", &[&["-d", "50s", "--timeout", "50s", "-s", &script], args].concat()));
    until("enough responses", || {
        let ended = wrk.is_ended();
        ended || wrk.stdout().contains("enough")
    });
    wrk.signal(Signal::INT);
    report(&wrk.end())
}

fn report(ended: &Ended) -> Report {
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    for error in ["Socket errors", "Non-2xx"] {
        assert!(!ended.stdout.contains(error), "{}", ended.stdout);
    }
    let line = ended.stdout.lines().find_map(|line| line.split_once(" requests in ")).expect("a total");
    let (time, _) = line.1.split_once("s,").expect("seconds");
    let seconds = match time.strip_suffix('m') {
        Some(millis) => millis.parse::<f64>().unwrap() / 1e3,
        None => time.parse().unwrap(),
    };
    Report { answered: line.0.trim().parse().unwrap(), seconds }
}

/// wrk's load on 50 connections of a server: all were kept, and the server's counters are as wrk's.
pub(crate) fn check_kept(url: &str, stats_url: &str) {
    const CONNECTIONS: u64 = 50;
    let (before, _) = stats_once_alone(stats_url);
    let Report { answered, .. } = wrk(&["-t2", "-c50", url]);
    let (after, asked) = stats_once_alone(stats_url);
    // wrk ends with a request outstanding on each connection.
    let seen = after("requests") - before("requests") - asked;
    assert!((answered..=answered + CONNECTIONS).contains(&seen), "{seen} here, {answered} at wrk");
    // Before it begins it tries the address, with one more connection.
    let dialled = after("accepted") - before("accepted") - asked;
    assert!((CONNECTIONS..=CONNECTIONS + 1).contains(&dialled), "{dialled} connections");
    assert!(answered > 2 * CONNECTIONS, "hardly kept: {answered}");
    assert_eq!((after("errors"), after("refused")), (0, 0), "{url}");
    assert!(after("peak") >= CONNECTIONS);
}

#[test]
fn connections_are_kept_and_counters_agree() {
    let server = Serving::start(&[]);
    for path in ["/", "/?length=10240"] {
        check_kept(&server.url(path), &server.url("/stats"));
    }
}

#[test]
fn a_response_that_takes_its_time_is_no_error() {
    let server = Serving::start(&[]);
    let Report { answered, seconds } = wrk(&["-t1", "-c20", &server.url("/delay?for=100ms")]);
    let most = 20.0 * (seconds + 0.01) / 0.1;
    assert!(
        (200..=most as u64).contains(&answered),
        "{answered} responses of 100 ms in {seconds} s on 20 connections"
    );
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let server = Serving::start(&[]);
    let args = ["-t1", "-c1", "-d1s", "-s", &source("pipeline.lua"), &server.url("/")];
    let Report { answered, .. } = report(&Program::from(program("wrk", &args)).end());
    // If the second response waited for the acknowledgement of the first, there would be 75: three every 40 ms.
    assert!(answered > 150, "{answered}");
    assert_eq!(stats(&server)("errors"), 0);
}
