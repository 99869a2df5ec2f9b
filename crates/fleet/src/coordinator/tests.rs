use super::*;
use crate::message::{Assign, EVERY, Incarnation, Ready};

/// Whether the coordinator of one agent, silent for this long, waits for nothing more.
fn is_over_after(silent: Nanos, terms: Terms) -> bool {
    let who = Incarnation { id: "a".to_owned(), nonce: 1 };
    let members = vec![(who, Ready::default(), Assign::default(), None)];
    let began = Began { seed: 1, after: Nanos::ZERO, members };
    let mut coordinator = Coordinator::taking_up("r1".to_owned(), 1, began, terms);
    let mut now = Nanos::ZERO;
    coordinator.lead_from(now, now);
    while now < silent {
        now = now + EVERY;
        coordinator.poll(now);
    }
    coordinator.is_over(now)
}

#[test]
fn a_step_of_a_search_does_not_wait_until_a_lost_agent_may_come_back() {
    for (silent, is_step, expected) in
        [(3, false, false), (5, false, false), (11, false, true), (3, true, false), (5, true, true)]
    {
        let terms = Terms { is_step, ..Terms::default() };
        assert_eq!(is_over_after(Nanos::from_secs(silent), terms), expected, "{silent} s, {is_step}");
    }
}
