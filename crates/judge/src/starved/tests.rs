use plan::{Load, Text, Think};
use samples::{Destination, UserCommand};
use units::{Rate, Spans};

use super::*;
use record::fixture::{plan, record};

const SAID: &str =
    "92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";

/// For ten seconds, 8 of 100 connections had a response each millisecond, and the others none; `change` varies that.
fn check(change: impl FnOnce(&mut Plan, &mut Record), expected: &[&str]) {
    let (mut plan, mut r) = (plan(&[]), record());
    let measured = &mut r.populations[0];
    measured.at_load = Nanos::from_secs(10);
    measured.totals.served = 8;
    (measured.totals.counts.opened, measured.totals.counts.answered_at_load) = (100, 80_000);
    change(&mut plan, &mut r);
    assert_eq!(reasons(&starved(&plan, &r)), expected);
}

fn steps(plan: &mut Plan) -> (&mut Vec<plan::Step>, &mut Then) {
    let Activity::Steps { steps, then } = &mut plan.populations[0].activity else { panic!("no steps") };
    (steps, then)
}

fn lose(r: &mut Record, fault: Fault, count: u64) {
    (0..count).for_each(|_| r.populations[0].totals.faults.count(fault));
}

#[test]
fn those_without_a_response_are_counted_beside_those_with_many() {
    check(|_, _| {}, &[SAID]);
    // The connections without a response ran into their timeouts.
    check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 92), &[SAID]);
    let named = "users: 92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";
    check(
        |plan, r| {
            let other = plan.populations[0].clone();
            plan.populations[0].name = "users".to_owned();
            plan.populations.push(other);
            r.populations.push(PopulationRecord::default());
        },
        &[named],
    );
}

#[test]
fn slow_responses_and_losses_are_other_things() {
    check(|_, r| r.populations[0].totals.served = 98, &[]);
    check(|_, r| r.populations[0].totals.served = 0, &[]);
    // Eight responses on each connection in ten seconds.
    check(|_, r| r.populations[0].totals.counts.answered_at_load = 64, &[]);
    check(|_, r| r.populations[0].at_load = Nanos::from_millis(900), &[]);
    check(|plan, _| plan.populations[0].timeout = Nanos::from_millis(300), &[]);
    check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Reset), 90), &[]);
    check(|_, r| lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 102), &[]);
    check(|_, r| lose(r, Fault::target(Stage::Tls, Kind::Closed), 90), &[]);
    // Some of the served connections wait as long.
    check(|_, r| r.populations[0].totals.latency.record_n(Nanos::from_secs(6), 102), &[]);
    check(|plan, _| plan.stages[0].hold = plan::Hold::For(Nanos::from_millis(500)), &[]);
    check(|plan, _| steps(plan).0[0].weight = Some(1), &[]);
    check(|plan, _| *steps(plan).1 = Then::Again(1), &[]);
    // Three of 803 connections are too few.
    let few = |_: &mut Plan, r: &mut Record| {
        let totals = &mut r.populations[0].totals;
        (totals.served, totals.counts.opened, totals.counts.answered_at_load) = (800, 803, 8_000_000);
    };
    check(few, &[]);
    check(|_, r| r.commands.push(UserCommand::default()), &[]);
    check(
        |plan, r| {
            let later = plan.stages[0].clone();
            plan.stages.push(later);
            r.interrupted = Some("SIGINT".into());
        },
        &[],
    );
}

#[test]
fn dials_that_failed_were_never_open() {
    check(
        |_, r| {
            r.populations[0].totals.counts.failed = 50;
            lose(r, Fault::target(Stage::Dial, Kind::Refused), 50);
        },
        &[SAID],
    );
}

/// Pauses for a second after each response.
fn pause(plan: &mut Plan) {
    let Act::Request { think, .. } = &mut steps(plan).0[0].act else { panic!("no request") };
    *think = Think::even(Nanos::from_secs(1), Nanos::from_secs(1));
}

#[test]
fn threads_that_have_sent_their_number_make_room_for_others() {
    let in_turns = |requests, threads| {
        let (mut plan, mut r) = (plan(&[]), record());
        plan.populations[0].requests = requests;
        let measured = &mut r.populations[0];
        (measured.at_load, measured.threads) = (Nanos::from_secs(10), threads);
        let totals = &mut measured.totals;
        (totals.served, totals.counts.opened, totals.counts.answered_at_load) = (8, 100, 80_000);
        starved(&plan, &r).first().map(|found| found.in_turns)
    };
    let number = Some(80_000);
    assert_eq!([in_turns(number, 2), in_turns(number, 1), in_turns(None, 2)], [true, false, false].map(Some));
}

fn go_by_rate(plan: &mut Plan) {
    plan.populations[0].load = Load::Rate { connections: 100, rate: Rate::per_s(10_000) };
}

/// Sends a message at this interval.
fn ping(plan: &mut Plan, every: Nanos) {
    plan.populations[0].activity = Activity::Ping { every, text: Text::default() };
}

#[test]
fn those_that_pause_have_as_many_and_wait_as_long() {
    check(|plan, _| pause(plan), &[SAID]);
    let said =
        "92 of 100 connections had no response by the end of the load, while the other 8 had 80 at full load";
    let few = |r: &mut Record, each: u64| {
        let totals = &mut r.populations[0].totals;
        totals.counts.answered_at_load = 8 * each;
        totals.latency.record_n(Nanos::from_millis(40), 8 * each);
    };
    check(
        |plan, r| {
            pause(plan);
            few(r, 10);
        },
        &[said],
    );
    check(
        |plan, r| {
            pause(plan);
            few(r, 9);
        },
        &[],
    );
    check(|_, r| few(r, 9), &[]);
    check(
        |plan, r| {
            ping(plan, Nanos::from_secs(1));
            few(r, 10);
        },
        &[said],
    );
    // The load lasts hardly longer than the interval, in which the first messages are spread.
    check(
        |plan, r| {
            ping(plan, Nanos::from_millis(9_500));
            few(r, 10);
        },
        &[],
    );
    // Responses take a second each.
    check(
        |plan, r| {
            pause(plan);
            r.populations[0].totals.latency.record_n(Nanos::from_millis(1_100), 80_000);
        },
        &[],
    );
    // Connections that a later stage adds may not have sent a request yet.
    check(
        |plan, _| {
            pause(plan);
            let later = plan.stages[0].clone();
            plan.stages.push(later);
        },
        &[],
    );
}

#[test]
fn a_target_that_is_busy_with_the_first_of_all_serves_all() {
    check(
        |plan, r| {
            pause(plan);
            let totals = &mut r.populations[0].totals;
            (totals.served, totals.counts.opened) = (1_000, 10_000);
            totals.ramp_latency.record_n(Nanos::from_secs(6), 500);
            lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 9_000);
        },
        &[],
    );
}

#[test]
fn by_a_rate_the_others_wait_for_no_connection() {
    let silent = |r: &mut Record, answered: u64| {
        let totals = &mut r.populations[0].totals;
        (totals.counts.answered, totals.counts.unanswered) = (answered, 92);
        totals.latency.record_n(Nanos::from_secs(6), 40_000);
    };
    check(
        |plan, r| {
            go_by_rate(plan);
            silent(r, 80_008);
        },
        &[SAID],
    );
    // As many as responses that are slow now and then could explain.
    check(
        |plan, r| {
            go_by_rate(plan);
            silent(r, 80_100);
        },
        &[],
    );
    check(
        |plan, r| {
            go_by_rate(plan);
            plan.populations[0].reconnect = Reconnect::OnDemand { idle: 2 };
            lose(r, Fault::target(Stage::Exchange, Kind::Timeout), 92);
        },
        &[],
    );
}

#[test]
fn a_handshake_that_none_comes_to_is_no_response() {
    let shake = |r: &mut Record, kind| {
        let counts = &mut r.populations[0].totals.counts;
        (counts.opened, counts.failed) = (8, 92);
        lose(r, Fault::target(Stage::Handshake, kind), 92);
    };
    check(|_, r| shake(r, Kind::Timeout), &[SAID]);
    check(|_, r| shake(r, Kind::Reset), &[]);
    check(
        |_, r| {
            shake(r, Kind::Timeout);
            r.populations[0].totals.handshake.record_n(Nanos::from_secs(6), 4);
        },
        &[],
    );
}

#[test]
fn a_destination_that_hangs_is_another_thing() {
    let at = |answered: u64| Destination { sent: 100, answered, ..Destination::default() };
    check(|_, r| r.populations[0].totals.destinations = vec![at(900), at(1)], &[SAID]);
    check(|_, r| r.populations[0].totals.destinations = vec![at(900), at(0)], &[]);
}

#[test]
fn a_step_counts_what_the_steps_before_have_left() {
    let step = |r: &mut Record| {
        let totals = &mut r.populations[0].totals;
        (totals.served, totals.counts.opened, totals.counts.finished) = (3, 95, 15);
        r.losses.before = 20;
    };
    check(|_, r| step(r), &[SAID]);
    check(
        |_, r| {
            step(r);
            r.populations[0].totals.counts.closed = 1;
        },
        &[],
    );
    check(
        |plan, r| {
            step(r);
            let other = plan.populations[0].clone();
            plan.populations.push(other);
            r.populations.push(PopulationRecord::default());
        },
        &[],
    );
}

/// Adds a second population, with `opened` connections, `served` of them with a response; it acts like the first one, except for `change`.
fn add(plan: &mut Plan, r: &mut Record, (opened, served): (u64, u64), change: impl FnOnce(&mut Population)) {
    let mut other = plan.populations[0].clone();
    other.name = "others".to_owned();
    change(&mut other);
    plan.populations.push(other);
    let mut measured = PopulationRecord { at_load: Nanos::from_secs(10), ..PopulationRecord::default() };
    measured.totals.served = served;
    measured.totals.counts.opened = opened;
    measured.totals.counts.answered_at_load = 10_000 * served;
    r.populations.push(measured);
}

/// Changes the method of the requests.
fn post(population: &mut Population) {
    let Activity::Steps { steps, .. } = &mut population.activity else { panic!("no steps") };
    let Act::Request { request, .. } = &mut steps[0].act else { panic!("no request") };
    request.method = "POST".to_owned();
}

/// Sets how many connections of the first population were opened, and how many of them were served.
fn first(r: &mut Record, (opened, served): (u64, u64)) {
    let totals = &mut r.populations[0].totals;
    (totals.served, totals.counts.opened) = (served, opened);
    totals.counts.answered_at_load = 10_000 * served;
}

#[test]
fn populations_at_one_server_are_judged_together() {
    // All connections of the first population are served.
    let of_both = "main and others: 92 of 100 connections had no response by the end of the load, while the other 8 had 80,000 at full load";
    let all_of_first = |change: fn(&mut Population), expected: &[&str]| {
        check(
            |plan, r| {
                first(r, (8, 8));
                add(plan, r, (92, 0), change);
            },
            expected,
        );
    };
    all_of_first(|_| {}, &[of_both]);
    // Not judged together: its requests may take long by nature, or go to another server.
    all_of_first(post, &[]);
    all_of_first(|other| other.target.destinations = vec![([127, 0, 0, 1], 2).into()], &[]);
    // Each population alone has too few connections without a response, and each has served connections with the same requests.
    let of_each = "main and others: 4 of 8 connections had no response by the end of the load, while the other 4 had 40,000 at full load";
    check(
        |plan, r| {
            first(r, (4, 2));
            add(plan, r, (4, 2), post);
        },
        &[of_each],
    );
    // A served population with other requests does not count.
    let of_one = "main: 6 of 8 connections had no response by the end of the load, while the other 2 had 20,000 at full load";
    check(
        |plan, r| {
            first(r, (8, 2));
            add(plan, r, (50, 50), post);
        },
        &[of_one],
    );
    check(
        |plan, r| {
            first(r, (8, 8));
            add(plan, r, (50, 50), |_| {});
        },
        &[],
    );
}

/// A connection that is dialled again waits for the timeout repeatedly, but no more often than there is time for.
#[test]
fn those_that_are_dialled_again_wait_more_than_once() {
    let check = |dials_again: bool, timed_out, expected: &[&str]| {
        check(
            |plan, r| {
                let second = Nanos::from_secs(1);
                let population = &mut plan.populations[0];
                population.timeout = second;
                if dials_again {
                    population.reconnect = Reconnect::Backoff(Spans { min: second, max: second });
                }
                lose(r, Fault::target(Stage::Exchange, Kind::Timeout), timed_out);
            },
            expected,
        );
    };
    check(true, 92 * 5, &[SAID]);
    check(false, 92 * 5, &[]);
    // With even more timeouts, served connections must have waited as long, too.
    check(true, 92 * 12, &[]);
}
