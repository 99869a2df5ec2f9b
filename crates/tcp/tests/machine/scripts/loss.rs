//! ESTABLISHED: retransmission, and congestion control.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "a round trip above the timeout is learnt, though all of it was sent twice",
        "RFC 6298, 3 and 5.7 (Karn's algorithm)",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 5
        out PA 1:5
        wait 200ms
        out PA 1:5
        wait 100ms
        in A 1 ack 6                            # which of the two it acknowledges is not known
        send 5
        out PA 6:5
        wait 300ms                              # the timeout is 400 ms until there is a measurement
        in A 1 ack 11
        send 5
        out PA 11:5
        wait 337ms                              # 37.5 ms, and four times 75 ms
        wait 1ms
        out PA 11:5
        in A 1 ack 16",
    ),
    (
        "what comes behind a gap is acknowledged selectively, the latest first",
        "RFC 2018, 4; sack/sack-route-refresh-ip-tos.pkt",
        "connect
        out S 0
        in SA 0 ack 1 sackok 1
        opened
        out A 1 ack 1 sack none
        in PA 101:100 ack 1
        out A 1 ack 1 sack 101:201
        in PA 301:100 ack 1
        out A 1 ack 1 sack 301:401,101:201
        in PA 201:50 ack 1
        out A 1 ack 1 sack 101:251,301:401
        in PA 501:10 ack 1
        out A 1 ack 1 sack 501:511,101:251,301:401
        in PA 601:10 ack 1
        out A 1 ack 1 sack 601:611,501:511,101:251,301:401
        in PA 701:10 ack 1
        out A 1 ack 1 sack 701:711,601:611,501:511,101:251
        in PA 1:100 ack 1
        bytes 100
        kept 150
        out A 1 ack 251 sack 701:711,601:611,501:511,301:401
        in FPA 711:5 ack 1
        out A 1 ack 251 sack 701:716,601:611,501:511,301:401
        send 5
        out PA 1:5 ack 251 sack none
        in A 251 ack 6 more
        reset
        out RA 6",
    ),
    (
        "a peer that does not take selective acknowledgements gets none",
        "RFC 2018, 2",
        "connect
        out S 0 sackok 1
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in PA 101:100 ack 1
        out A 1 ack 1 sack none
        in PA 1:100 ack 1
        bytes 100
        kept 100
        out A 1 ack 201",
    ),
    (
        "a lost segment is sent again: after the time-out, then twice as long",
        "RFC 6298, 5",
        "connect
        out S 0
        wait 100ms
        in SA 0 ack 1 mss 1000                  # measured: 100 ms, so 300 ms time out
        opened
        out A 1 ack 1
        send 500
        out PA 1:500
        wait 299ms
        wait 1ms
        out PA 1:500
        wait 599ms
        wait 1ms
        out PA 1:500
        wait 1200ms
        out PA 1:500
        in A 1 ack 501
        left 0 0 0",
    ),
    (
        "after fifteen times it is given up",
        "net.ipv4.tcp_retries2",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 5
        out PA 1:5
        wait 200ms
        out PA 1:5
        wait 400ms
        out PA 1:5
        wait 800ms
        out PA 1:5
        wait 1600ms
        out PA 1:5
        wait 3200ms
        out PA 1:5
        wait 6400ms
        out PA 1:5
        wait 12800ms
        out PA 1:5
        wait 25600ms
        out PA 1:5
        wait 51200ms
        out PA 1:5
        wait 102400ms
        out PA 1:5
        wait 120s
        out PA 1:5
        wait 120s
        out PA 1:5
        wait 120s
        out PA 1:5
        wait 120s
        out PA 1:5
        wait 120s
        out PA 1:5
        wait 119s
        left 1 0 0
        wait 1s
        gone timed out
        left 0 0 0",
    ),
    (
        "ten segments at first; two more for an acknowledgement of two",
        "RFC 6928; RFC 3465; slow_start/slow-start-ack-per-2pkt-send-6pkt.pkt",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 60000
        opened
        out A 1 ack 1
        send 20000
        out A 1:1000
        out A 1001:1000
        out A 2001:1000
        out A 3001:1000
        out A 4001:1000
        out A 5001:1000
        out A 6001:1000
        out A 7001:1000
        out A 8001:1000
        out A 9001:1000
        left 1 0 1
        in A 1 ack 2001 win 60000
        out A 10001:1000
        out A 11001:1000
        out A 12001:1000
        out A 13001:1000
        in A 1 ack 8001 win 60000
        drained
        out A 14001:1000
        out A 15001:1000
        out A 16001:1000
        out A 17001:1000
        out A 18001:1000
        out PA 19001:1000
        left 1 0 0
        in A 1 ack 20001
        left 0 0 0",
    ),
    (
        "two duplicates let a segment go each, the third sends the lost one again",
        "RFC 3042; RFC 5681, 3.2; RFC 6582; fast_retransmit/fr-4pkt.pkt, limited_transmit/limited-transmit-no-sack.pkt",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 60000
        opened
        out A 1 ack 1
        send 14000
        out A 1:1000
        out A 1001:1000
        out A 2001:1000
        out A 3001:1000
        out A 4001:1000
        out A 5001:1000
        out A 6001:1000
        out A 7001:1000
        out A 8001:1000
        out A 9001:1000
        in A 1 ack 1 win 60000
        out A 10001:1000
        in A 1 ack 1 win 60000
        out A 11001:1000
        in A 1 ack 1 win 60000
        out A 1:1000
        in A 1 ack 1 win 60000                  # half of twelve and three, and one for each further duplicate
        in A 1 ack 1 win 60000
        in A 1 ack 1 win 60000
        in A 1 ack 3001 win 60000               # partial: the next lost one, at once
        out A 3001:1000
        out A 12001:1000
        in A 1 ack 12001 win 60000
        drained
        out PA 13001:1000
        in A 1 ack 14001 win 60000
        left 0 0 0",
    ),
    (
        "after a time-out all is sent again, as the window grows",
        "RFC 5681, 3.1",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 60000
        opened
        out A 1 ack 1
        send 4000
        out A 1:1000
        out A 1001:1000
        out A 2001:1000
        out PA 3001:1000
        wait 200ms
        out A 1:1000
        in A 1 ack 1001 win 60000
        out A 1001:1000
        out A 2001:1000
        in A 1 ack 4001 win 60000               # the others had come
        left 0 0 0",
    ),
];

#[test]
fn a_path_takes_smaller_packets() {
    use crate::script::{check_v4, check_v6};
    let script = |message: &str, mss: u32| {
        let rest = 1400 - mss;
        format!(
            "connect
            out S 0
            in SA 0 ack 1 mss 1400 win 60000
            opened
            out A 1 ack 1
            send 2800
            out A 1:1400
            icmp {message}
            out A 1:{mss}
            out A {}:{mss}
            out PA {}:{}
            in A 1 ack 2801
            send 1400
            out A 2801:{mss}
            out PA {}:{rest}
            in A 1 ack 4201",
            1 + mss,
            1 + 2 * mss,
            2800 - 2 * mss,
            2801 + mss,
        )
        .replace(
            "out A 1:1400\n            icmp",
            "out A 1:1400\n            out PA 1401:1400\n            icmp",
        )
    };
    // RFC 1191: the MTU that the router reports.
    check_v4("next hop", &script("3 4 1200", 1160));
    // Never below what every host accepts, and not larger than before.
    check_v6("next hop", &script("2 0 1280", 1220));
    check_v6("a lie", &script("2 0 500", 1220));
}

#[test]
fn what_a_router_has_said_is_why_it_is_given_up() {
    use crate::script::{check_v4, check_v6};
    // The error alone does not end the connection (RFC 1122, section 4.2.3.9).
    let script = |message: &str, event: &str| {
        format!(
            "connect
            out S 0
            in SA 0 ack 1
            opened
            out A 1 ack 1
            send 5
            out PA 1:5
            icmp {message}
            wait 1000s
            skip 15
            {event}
            left 0 0 0"
        )
    };
    for (message, event) in
        [("3 0 0", "gone 101"), ("3 13 0", "gone 113"), ("3 3 0", "gone 111"), ("8 0 0", "gone timed out")]
    {
        check_v4(message, &script(message, event));
    }
    check_v6("unreachable", &script("1 0 0", "gone 101"));
    check_v6("echo", &script("128 0 0", "gone timed out"));
}

#[test]
fn icmp_of_what_is_not_under_way_is_not_believed() {
    use crate::script::check_v4;
    check_v4(
        "an old segment",
        "connect
        out S 0
        in SA 0 ack 1 mss 1400
        opened
        out A 1 ack 1
        send 100
        out PA 1:100
        in A 1 ack 101
        icmp 3 4 600
        send 1400
        out PA 101:1400",
    );
}
