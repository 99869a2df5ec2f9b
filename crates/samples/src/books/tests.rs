//! Each transition keeps the books balanced, and each missing one is noticed.

use super::*;
use crate::fault::{Kind, Stage};

const ENTRY: Entry = Entry { at_load: true, step: None, row: None, first_byte: Some(Timing::FirstByte) };

fn balance(tick: &Tick, under_way: u64, waiting: u64) -> Imbalance {
    tick.counts.balance(&Standing { under_way, waiting, ..Standing::default() })
}

#[test]
fn each_end_of_a_request_is_an_account() {
    let took = Took { time: Nanos(5), stalled: Nanos::ZERO };
    let fault = Fault::target(Stage::Exchange, Kind::Timeout);
    let check = |end: &dyn Fn(&mut Tick), censored: u64| {
        let mut tick = Tick::default();
        tick.due();
        assert!(balance(&tick, 0, 1).is_none());
        tick.sent(None);
        assert!(balance(&tick, 1, 0).is_none());
        // The request has vanished.
        assert_eq!(balance(&tick, 0, 0), Imbalance { due: 1, sent: 1, ..Imbalance::default() });
        end(&mut tick);
        assert!(balance(&tick, 0, 0).is_none(), "{:?}", tick.counts);
        assert_eq!((tick.latency.censored(), tick.first_byte.censored()), (censored, censored));
    };
    check(&|tick| tick.answered(ENTRY, took, 7), 0);
    check(&|tick| tick.failed(ENTRY, fault), 1);
    check(&|tick| tick.unanswered(ENTRY), 1);
    check(&|tick| tick.revoked(None), 0);
}

#[test]
fn what_is_withdrawn_is_due_again_or_missed() {
    let mut tick = Tick::default();
    tick.due();
    tick.sent(None);
    tick.withdrawn(None);
    assert!(balance(&tick, 0, 1).is_none());
    assert_eq!(balance(&tick, 0, 0).accounts(), [("requests due", 1)]);
    let mut again = tick.clone();
    again.sent(None);
    assert!(balance(&again, 1, 0).is_none());
    assert_eq!((again.counts.due(), again.counts.sent()), (1, 1));
    tick.missed(ENTRY);
    assert!(balance(&tick, 0, 0).is_none());
    assert_eq!((tick.counts.due(), tick.counts.sent(), tick.counts.missed), (1, 0, 1));
}

#[test]
fn dials_and_connections_have_one_end_each() {
    let fault = Fault::target(Stage::Dial, Kind::Refused);
    let mut tick = Tick::default();
    (0..4).for_each(|_| tick.dialled());
    tick.opened(None, true);
    tick.dial_failed(None, fault, false);
    tick.dial_given_up();
    let check = |tick: &Tick, dialling, open, expected: (u64, u64)| {
        let Imbalance { dials, connections, .. } =
            tick.counts.balance(&Standing { dialling, open, ..Standing::default() });
        assert_eq!((dials, connections), expected);
    };
    check(&tick, 1, 1, (0, 0));
    check(&tick, 0, 0, (1, 1));
    tick.ended(None, End::Dropped);
    check(&tick, 1, 0, (0, 0));
    assert_eq!((tick.counts.connection_faults, tick.faults.total()), (1, 1));
}

/// No request was due for the upgrade.
#[test]
fn a_refused_upgrade_is_an_error_of_its_connection() {
    let mut tick = Tick::none();
    tick.dial_failed(None, Fault::target(Stage::Handshake, Kind::WrongStatus), false);
    assert_eq!((tick.counts.connection_faults, tick.counts.failed, tick.counts.wrong), (1, 1, 0));
}

#[test]
fn a_destination_has_what_was_withdrawn_from_it() {
    let mut tick = Tick { destinations: vec![crate::Destination::default()], ..Tick::none() };
    for _ in 0..3 {
        tick.sent(Some(0));
    }
    tick.withdrawn(Some(0));
    tick.revoked(Some(0));
    let shown = crate::DestinationSummary::new(String::new(), String::new(), &tick.destinations[0]);
    assert_eq!((shown.sent, tick.counts.sent()), (1, 1));
}

#[test]
fn a_fault_is_of_a_request_or_of_a_connection() {
    let mut tick = Tick::default();
    let idle = Fault::target(Stage::Hold, Kind::Reset);
    tick.connection_failed(None, idle, false);
    tick.connection_failed(None, idle, true);
    tick.connection_failed(None, Fault::target(Stage::Hold, Kind::MissingValue), false);
    assert_eq!((tick.counts.connection_faults, tick.faults.total()), (1, 3));
}
