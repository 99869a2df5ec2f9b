//! `throng serve` under wrk.

use crate::{
    curl::stats,
    program::{Ended, Program, Serving},
    server::program,
};

/// Requests with a response according to wrk, which saw no error.
pub(crate) fn wrk(args: &[&str]) -> u64 {
    let ended: Ended = Program::from(program("wrk", args)).end();
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    for error in ["Socket errors", "Non-2xx"] {
        assert!(!ended.stdout.contains(error), "{}", ended.stdout);
    }
    let line = ended.stdout.lines().find(|line| line.contains(" requests in ")).expect("a total");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn connections_are_kept_and_counters_agree() {
    const CONNECTIONS: u64 = 50;
    let server = Serving::start(&[]);
    for path in ["/", "/?length=10240"] {
        let before = stats(&server);
        let answered = wrk(&["-t2", "-c50", "-d1s", &server.url(path)]);
        let after = stats(&server);
        // wrk ends with a request outstanding on each connection, and the request for the counters is one more.
        let seen = after("requests") - before("requests") - 1;
        assert!((answered..=answered + CONNECTIONS).contains(&seen), "{seen} here, {answered} at wrk");
        // Before it begins it tries the address, with one more connection.
        let dialled = after("accepted") - before("accepted") - 1;
        assert!((CONNECTIONS..=CONNECTIONS + 1).contains(&dialled), "{dialled} connections");
        assert!(answered > 2 * CONNECTIONS, "hardly kept: {answered}");
        assert_eq!((after("errors"), after("refused")), (0, 0), "{path}");
        assert!(after("peak") >= CONNECTIONS);
    }
}

#[test]
fn a_response_that_takes_its_time_is_no_error() {
    let server = Serving::start(&[]);
    let answered = wrk(&["-t1", "-c20", "-d1s", &server.url("/delay?for=100ms")]);
    assert!((20..=200).contains(&answered), "{answered} answers of 100 ms in a second on 20 connections");
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let server = Serving::start(&[]);
    let script = crate::server::source("pipeline.lua");
    let answered = wrk(&["-t1", "-c1", "-d1s", "-s", &script, &server.url("/")]);
    // If the second response waited for the acknowledgement of the first, there would be 75: three every 40 ms.
    assert!(answered > 150, "{answered}");
    assert_eq!(stats(&server)("errors"), 0);
}
