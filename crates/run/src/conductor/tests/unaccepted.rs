//! Connections that the target's process does not have.

use super::*;
use observe::Absent;

const POPULATIONS: &str = "duration = \"2s\"\n[[population]]\nname = \"a\"\nconnections = 30\n\
                           [[population]]\nname = \"b\"\nconnections = 20";

/// For each population: connections that had a response, answered requests, and connections closed after the end of the load. All are
/// open at its end, and have sent a request.
#[derive(Clone, Copy, Default)]
struct Served {
    served: [u64; 2],
    answered: [u64; 2],
    ended_after: u64,
}

/// The connections held by both populations, the unaccepted ones, and how many of these cannot be attributed to a population.
fn finish(of: Served, handle: impl Fn(&mut Conductor)) -> ([u64; 2], Option<u64>, u64) {
    let plan = scenario(POPULATIONS);
    let model = Model::new(&plan, 1, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    for (nth, measured) in conductor.record.populations.iter_mut().enumerate() {
        measured.held = [30, 20][nth];
        measured.totals.served = of.served[nth];
        let counts = &mut measured.totals.counts;
        (counts.opened, counts.sent, counts.answered) = (measured.held, measured.held, of.answered[nth]);
        counts.ended_after = of.ended_after;
    }
    handle(&mut conductor);
    let record = conductor.finish().1;
    let held = [record.populations[0].held, record.populations[1].held];
    assert_eq!(record.held(), held[0] + held[1] - record.unattributed);
    (held, record.unaccepted, record.unattributed)
}

#[test]
fn listed_ones_are_not_held() {
    let finish = |unaccepted: [u64; 2], all| {
        let absent = unaccepted.map(|unaccepted| Absent { unaccepted, missing: 0 });
        finish(Served::default(), |conductor| conductor.handle_unaccepted(all, Some(&absent)))
    };
    assert_eq!(finish([0, 0], 0), ([30, 20], Some(0), 0));
    assert_eq!(finish([1, 2], 3), ([29, 18], Some(3), 0));
    assert_eq!(finish([99, 99], 198), ([0, 0], Some(50), 0), "no more than there are");
    // Some have only just arrived in the queue: they can be attributed if there is one population, but not with several.
    assert_eq!(finish([0, 5], 3), ([30, 17], Some(3), 0));
    assert_eq!(finish([2, 5], 3), ([30, 20], Some(3), 3));
    assert_eq!(finish([2, 5], 0), ([30, 20], Some(0), 0));
}

#[test]
fn those_that_are_not_listed_are_the_ones_that_were_never_served() {
    let finish = |served, all| {
        let of = Served { served, ..Served::default() };
        finish(of, |conductor| conductor.handle_unaccepted(all, None))
    };
    assert_eq!(finish([30, 18], 2), ([30, 18], Some(2), 0));
    assert_eq!(finish([29, 18], 3), ([29, 18], Some(3), 0));
    assert_eq!(finish([30, 20], 0), ([30, 20], Some(0), 0));
    // Others have no response although they are accepted, or had one before they were redialled.
    assert_eq!(finish([10, 10], 3), ([30, 20], Some(3), 3));
    assert_eq!(finish([30, 20], 3), ([30, 20], Some(3), 3));
    assert_eq!(finish([0, 0], 99), ([30, 20], Some(50), 50), "no more than there are");
}

#[test]
fn those_that_were_served_later_are_held() {
    let absent = [Absent { unaccepted: 30, missing: 0 }, Absent { unaccepted: 5, missing: 0 }];
    let finish_after = |answered_by_a, ended_after, served| {
        let of = Served { served: [served, 0], answered: [answered_by_a, 0], ended_after };
        finish(of, |conductor| conductor.handle_unaccepted(35, Some(&absent)))
    };
    assert_eq!(finish_after(10, 0, 0), ([0, 15], Some(35), 0));
    assert_eq!(finish_after(30, 0, 0), ([30, 15], Some(5), 0), "all requests of the one were answered");
    assert_eq!(finish_after(30, 8, 8), ([0, 15], Some(35), 0), "others had to be closed before");
    assert_eq!(finish_after(30, 8, 30), ([30, 15], Some(5), 0), "it had served each of them");
    // They cannot be attributed, since all were served.
    let all_served = |answered| {
        finish(Served { answered, ..Served::default() }, |conductor| conductor.handle_unaccepted(3, None))
    };
    assert_eq!(all_served([30, 19]), ([30, 20], Some(3), 3));
    assert_eq!(all_served([30, 20]), ([30, 20], Some(0), 0));
}

#[test]
fn those_that_only_throng_has_are_not_held() {
    let plan = scenario(POPULATIONS);
    let finish = |missing: [u64; 2], answered| {
        let model = Model::new(&plan, 1, MS(120), MS(200));
        let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
        (conductor.record.populations[0].held, conductor.record.populations[1].held) = (30, 20);
        let counts = &mut conductor.record.populations[1].totals.counts;
        (counts.sent, counts.answered) = (20, answered);
        conductor.handle_missing(&missing.map(|missing| Absent { unaccepted: 0, missing }));
        let record = conductor.finish().1;
        (record.populations[0].held, record.populations[1].held, record.missing)
    };
    assert_eq!(finish([0, 0], 0), (30, 20, Some(0)));
    assert_eq!(finish([4, 9], 11), (26, 11, Some(13)));
    assert_eq!(finish([99, 0], 0), (0, 20, Some(30)), "no more than there are");
    assert_eq!(finish([4, 9], 20), (26, 20, Some(4)), "what throng sent completed the handshakes in the end");
}
