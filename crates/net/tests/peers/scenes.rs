//! The scenes: each is a case and the events that it must show.

use net::{Close, Gone};

use crate::{
    script::{
        Case, Conduct,
        Event::{Bytes, Closed, Gone as GoneBy, Opened},
        Order,
        Say::{self, Body, Nothing, Out, Pieces, Static},
        Step::*,
        Take::{self, All, Echo, Hoard, Requests, Units},
        Way,
    },
    stage::{Over, check, check_over},
};

const fn ours(say: Say, take: Take) -> Conduct {
    Conduct::new(say, take)
}

const ENDED: crate::script::Event = GoneBy(Gone::Ended);
const RESET: crate::script::Event = GoneBy(Gone::Reset);

#[test]
fn a_small_echo() {
    let case = Case::new("echo", ours(Nothing, Echo), &[Send(100), Expect(100), Send(7), Expect(7), Close]);
    check(case, &[Opened, Bytes(107), ENDED]);
}

#[test]
fn data_sent_at_the_opening_arrives() {
    let case = Case::new("static", ours(Static(1000), All), &[Expect(1000), Close]);
    check(case, &[Opened, ENDED]);
    let case = Case::new("out", ours(Out(1000), All), &[Expect(1000), Send(3), Close]);
    check(case, &[Opened, Bytes(3), ENDED]);
}

#[test]
fn data_sent_in_pieces_arrives_in_order() {
    let case = Case::new("pieces", ours(Pieces(1000), All), &[Expect(1000), Send(3), Close]);
    check(case, &[Opened, Bytes(3), ENDED]);
    // More than the output buffer holds, so that it is submitted and reused in the middle of a call.
    let case = Case::new("many pieces", ours(Pieces(20_000), All), &[Expect(20_000), Close]);
    let case = Case { count: 120, places: 120, ..case };
    check(case, &[Opened, ENDED]);
}

#[test]
fn many_segments() {
    let case = Case::new("segments", ours(Nothing, All), &[Trickle(400, 25), Close]);
    check(case, &[Opened, Bytes(10_000), ENDED]);
    let case = Case::new("segments back", ours(Nothing, Echo), &[Trickle(400, 25), Expect(10_000), Close]);
    check(case, &[Opened, Bytes(10_000), ENDED]);
}

#[test]
fn the_end_right_after_the_bytes() {
    let case = Case::new("bytes and FIN", ours(Nothing, All), &[Send(10), Close]);
    check(case, &[Opened, Bytes(10), ENDED]);
    // More than a region, and exactly one.
    let case = Case::new("regions and FIN", ours(Nothing, All), &[Send(100_000), Close]);
    check(case, &[Opened, Bytes(100_000), ENDED]);
    let case = Case::new("one region and FIN", ours(Nothing, All), &[Send(net::io::REGION), Close]);
    check(case, &[Opened, Bytes(net::io::REGION), ENDED]);
}

#[test]
fn the_end_without_a_byte() {
    check(Case::new("FIN", ours(Nothing, All), &[Close]), &[Opened, ENDED]);
    check(Case::new("FIN later", ours(Nothing, All), &[Pause(20), Close]), &[Opened, ENDED]);
}

#[test]
fn a_reset() {
    check(Case::new("RST", ours(Nothing, All), &[Pause(20), Reset]), &[Opened, RESET]);
    let case = Case::new("bytes, RST", ours(Nothing, Echo), &[Send(10), Expect(10), Reset]);
    check(case, &[Opened, Bytes(10), RESET]);
    // Data that arrived before the reset is still reported.
    let case = Case::new("bytes and RST at once", ours(Out(1), All), &[Expect(1), Send(10), Reset]);
    check(case, &[Opened, Bytes(10), RESET]);
    let case = Case::new("regions and RST", ours(Out(1), All), &[Expect(1), Send(20_000), Reset]);
    // Over a TUN device the peer's first window is ten segments (RFC 6928), and a reset discards data that had to wait.
    for over in Over::ALL {
        check_over(over, case, &[Opened, Bytes(20_000), RESET]);
    }
}

#[test]
fn we_close() {
    for (how, end) in [(Close::Graceful, End), (Close::Reset, Cut)] {
        let conduct = Conduct { close_after: Some((10, how)), ..ours(Nothing, All) };
        let steps: &'static [_] = match end {
            End => &[Send(10), End],
            _ => &[Send(10), Cut],
        };
        check(Case::new("we close", conduct, steps), &[Opened, Bytes(10), Closed]);
        let conduct = Conduct { take: Echo, ..conduct };
        let steps: &'static [_] = match end {
            End => &[Send(10), Expect(10), End],
            // A reset may overtake the data sent before it; the connection is lost in either case.
            _ => continue,
        };
        check(Case::new("we answer and close", conduct, steps), &[Opened, Bytes(10), Closed]);
    }
}

const MUCH: usize = 4 << 20;

#[test]
fn a_slow_reader_gets_everything_in_order() {
    let case = Case::new("clogged", ours(Static(MUCH), All), &[Pause(50), Expect(MUCH), Send(5), Close]);
    for way in [Way::WeDial, Way::TheyDial] {
        for (over, log) in check(Case { way, ..case }, &[Opened, Bytes(5), ENDED]) {
            assert_eq!(log.blocked_max, 6, "all six must have felt the slow reader over {over:?}");
        }
    }
}

#[test]
fn a_slow_reader_gets_the_fin_last() {
    let conduct = Conduct { finish: true, ..ours(Static(MUCH), All) };
    for (over, log) in check(Case::new("finish", conduct, &[Pause(50), Expect(MUCH), End]), &[Opened, ENDED])
    {
        assert_eq!(log.blocked_max, 6, "all six must have felt the slow reader over {over:?}");
    }
    let conduct = Conduct { finish: true, ..ours(Out(10), All) };
    check(Case::new("finish at once", conduct, &[Expect(10), End]), &[Opened, ENDED]);
}

#[test]
fn a_body_goes_out_in_pieces_whoever_reads_it() {
    let body = ours(Body(MUCH), All);
    check(Case::new("body", body, &[Expect(MUCH), Send(5), Close]), &[Opened, Bytes(5), ENDED]);
    let slow = Case::new("slow body", body, &[Pause(50), Expect(MUCH), Send(5), Close]);
    for (over, log) in check(slow, &[Opened, Bytes(5), ENDED]) {
        assert_eq!(log.blocked_max, 6, "all six must have felt the slow reader over {over:?}");
    }
    let finish = Conduct { finish: true, ..body };
    check(Case::new("body, then FIN", finish, &[Pause(50), Expect(MUCH), End]), &[Opened, ENDED]);
}

#[test]
fn a_response_before_a_reset_is_read_whatever_is_being_sent() {
    // A peer that closes with unread input resets the connection.
    let steps = &[Expect(10), Send(2_000), Close];
    let case = Case::new("413, RST", ours(Body(MUCH), All), steps);
    let case = Case { order: Order::OneByOne, count: 60, places: 60, ..case };
    for _ in 0..10 {
        check(case, &[Opened, Bytes(2_000), RESET]);
    }
}

#[test]
fn an_echo_that_is_stuck_loses_and_reorders_nothing() {
    // By default a socket buffer grows to 4 MiB (tcp_wmem). This is more, and the pause gives the buffer time to fill.
    const MORE: usize = 5 << 20;
    let case = Case::new("echo stuck", ours(Nothing, Echo), &[Post(MORE), Pause(300), Expect(MORE), Close]);
    for (over, log) in check(case, &[Opened, Bytes(MORE), ENDED]) {
        assert_eq!(log.blocked_max, 6, "all six must have felt the slow reader over {over:?}");
    }
}

#[test]
fn input_left_where_it_is_holds_the_peer() {
    const LEFT: usize = 64 * 1024;
    let case = Case::new("hoard", ours(Nothing, Hoard(LEFT)), &[Send(2_000_000), Close]);
    for (over, log) in check(case, &[Opened, Bytes(2_000_000), ENDED]) {
        // Data received in the same turn may exceed the limit.
        assert!(log.offered_max < LEFT + 16 * net::io::REGION, "not held over {over:?}: {}", log.offered_max);
    }
}

#[test]
fn a_bulk_transfer_of_units_that_end_anywhere() {
    // One byte more than a region, so that each receive leaves something over; a TLS record; longer than what is joined.
    for size in [7, net::io::REGION + 1, 16_406, 40_000, 60_000] {
        let all = 2_000_000 / size * size;
        let steps = Box::leak(Box::new([Send(all), Close]));
        check(Case::new("units", ours(Nothing, Units(size)), steps), &[Opened, Bytes(all), ENDED]);
    }
}

#[test]
fn several_requests_in_one_segment() {
    let case = Case::new("requests", ours(Nothing, Requests(100)), &[Send(5_000), Expect(5_000), Close]);
    check(case, &[Opened, Bytes(5_000), ENDED]);
    let steps = &[Send(150), Expect(100), Send(50), Expect(100), Close];
    check(Case::new("a part", ours(Nothing, Requests(100)), steps), &[Opened, Bytes(200), ENDED]);
}

#[test]
fn accepted_peers() {
    let case = Case::new("accepted", ours(Nothing, Echo), &[Send(100), Expect(100), Close]);
    check(Case { way: Way::TheyDial, ..case }, &[Opened, Bytes(100), ENDED]);
}

#[test]
fn a_full_table_loses_no_peer() {
    let case = Case::new("more peers than places", ours(Nothing, Echo), &[Send(100), Expect(100), Close]);
    let case = Case { way: Way::TheyDial, order: Order::OneByOne, count: 60, places: 7, ..case };
    check(case, &[Opened, Bytes(100), ENDED]);
}

#[test]
fn two_thousand_at_once() {
    let steps = &[Send(1_000), Expect(1_000), Send(1_000), Expect(1_000), Close];
    let case = Case::new("two thousand", ours(Nothing, Echo), steps);
    check(Case { count: 2_000, places: 2_000, ..case }, &[Opened, Bytes(2_000), ENDED]);
}
