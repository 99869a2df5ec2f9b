//! Causes in the load itself.

use samples::PopulationSummary;

use super::*;

#[test]
fn of_several_populations_the_one_that_missed_requests_has_too_few_connections() {
    let population = |held, sent, missed| {
        let mut own = PopulationSummary::default();
        (own.connections.held, own.connections.wanted) = (held, held);
        (own.requests.sent, own.requests.missed, own.duration_s) = (sent, missed, 10.0);
        own
    };
    let mut s = stopped(1_010, Vec::new());
    (s.requests.sent, s.requests.missed, s.duration_s) = (6_000, 1_000, 10.0);
    s.populations.insert("idle".to_owned(), population(1_000, 5_000, 0));
    s.populations.insert("api".to_owned(), population(10, 1_000, 1_000));
    let found = limit(&s, &Evidence::default()).expect("something stopped it");
    assert_eq!((found.cause, found.at_connections), (Cause::TooFewConnections, 10));
    let seen = "too few connections: 10 carried 100 of the 200 requests that were due each second";
    assert_eq!(found.sentence, seen);
    assert!(found.fix.starts_with("give api 20 connections or more"), "{}", found.fix);
}
