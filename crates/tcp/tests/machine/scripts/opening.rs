//! SYN-SENT and SYN-RECEIVED.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "an earlier connection of the peer is reset, and the SYN follows at once, but once",
        "RFC 9293, 3.5.1 (half-open connections), 3.10.7.3",
        "connect
        out S 0
        in A 7 ack 5000
        out R 5000
        out S 0 mss 1460
        in A 7 ack 5000
        out R 5000
        in SA 0 ack 1
        opened
        out A 1 ack 1
        left 0 0 0",
    ),
    (
        "an earlier connection whose acknowledgement comes after the second SYN is reset only",
        "RFC 9293, 3.10.7.3",
        "connect
        out S 0
        wait 1s
        out S 0
        in A 7 ack 5000
        out R 5000
        in SA 0 ack 1
        opened
        out A 1 ack 1",
    ),
    (
        "a connection opens",
        "blocking/blocking-connect.pkt",
        "connect
        out S 0 mss 1460 scale 5 sackok 1 win 65535
        in SA 0 ack 1 win 5792 mss 1460 scale 2 sackok 1
        opened
        out A 1 ack 1 win 32768
        left 0 0 0",
    ),
    (
        "the acknowledgement of the handshake goes with a request of the same turn",
        "RFC 9293, 3.10.7.3",
        "connect
        out S 0
        in SA 0 ack 1 mss 1460 more
        opened
        send 100
        out PA 1:100 ack 1
        turn
        left 1 0 0
        in A 1 ack 101
        left 0 0 0",
    ),
    (
        "a peer that does not scale, and says no segment size, is taken at its word",
        "RFC 7323, 2.2; RFC 9293, 3.7.1; mss/mss-setsockopt-tcp_maxseg-client.pkt",
        "connect
        out S 0
        in SA 0 ack 1 win 65535 mss 600
        opened
        out A 1 ack 1 win 65535
        send 1500
        out A 1:600
        out A 601:600
        out PA 1201:300",
    ),
    (
        "a SYN is sent six times again, after 1, 2, 4, ... seconds",
        "net.ipv4.tcp_syn_retries; RFC 6298, 5.5",
        "connect
        out S 0
        wait 999ms
        wait 1ms
        out S 0 mss 1460
        wait 1999ms
        wait 1ms
        out S 0
        wait 4s
        out S 0
        wait 8s
        out S 0
        wait 16s
        out S 0
        wait 32s
        out S 0
        wait 63999ms
        wait 1ms
        gone timed out
        left 0 0 0",
    ),
    (
        "refused",
        "RFC 9293, 3.10.7.3",
        "connect
        out S 0
        in RA 0 ack 1
        gone refused
        left 0 0 0",
    ),
    (
        "a reset that does not acknowledge the SYN is not of this connection",
        "RFC 9293, 3.10.7.3; RFC 5961, 3",
        "connect
        out S 0
        in R 0
        in RA 0 ack 0
        in RA 0 ack 2
        in SA 0 ack 1
        opened
        out A 1 ack 1",
    ),
    (
        "an old SYN-ACK is reset, and the connection goes on",
        "RFC 9293, 3.5, figure 9; ts_recent/invalid_ack.pkt",
        "connect
        out S 0
        in SA 0 ack 77
        out R 77
        out S 0
        in A 0 ack 5
        out R 5
        in SA 500 ack 1
        opened
        out A 1 ack 501",
    ),
    (
        "segments without SYN or reset mean nothing yet",
        "RFC 9293, 3.10.7.3",
        "connect
        out S 0
        in A 1 ack 1
        in FA 1 ack 1
        in P 1:10
        reset
        left 0 0 0",
    ),
    (
        "a SYN-ACK that comes again is acknowledged again",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in SA 0 ack 1
        out A 1 ack 1
        in SA 0 ack 1
        out A 1 ack 1",
    ),
    (
        "data and FIN with the SYN-ACK",
        "RFC 9293, 3.10.7.3",
        "connect
        out S 0
        in SFA 0:20 ack 1
        opened
        kept 20
        ended
        out A 1 ack 22
        left 0 0 0",
    ),
    (
        "both dial at the same time",
        "RFC 9293, 3.5, figure 7",
        "connect
        out S 0
        in S 0 mss 1460
        out SA 0 ack 1 scale none mss 1460 win 65535
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 10
        out PA 1:10",
    ),
    (
        "both dial at the same time, and the peer's SYN-ACK is lost",
        "RFC 9293, 3.5, figure 7",
        "connect
        out S 0
        in S 0 mss 1460 scale 3
        out SA 0 ack 1 scale 5
        wait 1s
        out SA 0 ack 1
        in A 1 ack 1
        opened
        left 0 0 0",
    ),
    (
        "in SYN-RECEIVED a reset refuses, and an acknowledgement of something else is reset",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in S 0
        out SA 0
        in A 1 ack 9
        out R 9
        in R 5
        out A 1 ack 1
        in R 1
        gone refused",
    ),
    (
        "closed in SYN-SENT, a SYN-ACK that comes is reset",
        "close/close-on-syn-sent.pkt",
        "connect
        out S 0
        close
        left 0 0 0
        in SA 0 ack 1
        out R 1",
    ),
    (
        "closed in SYN-RECEIVED",
        "RFC 9293, 3.10.4",
        "connect
        out S 0
        in S 0
        out SA 0 ack 1
        close
        out RA 1 ack 1
        left 0 0 0",
    ),
    (
        "what was sent before the connection opened goes out when it does",
        "RFC 9293, 3.10.2",
        "connect
        out S 0
        send 30
        left 1 0 1
        static 40
        in SA 0 ack 1
        opened
        drained
        out A 1:30 ack 1
        out PA 31:40 ack 1
        in A 1 ack 71
        left 0 0 0",
    ),
    (
        "after a SYN that was lost, without a measurement, a time-out is three seconds",
        "RFC 6298, 5.7",
        "connect
        out S 0
        wait 1s
        out S 0
        in SA 0 ack 1 mss 1000
        opened
        out A 1 ack 1
        send 1500
        out A 1:1000
        out PA 1001:500
        wait 2999ms
        wait 1ms
        out A 1:1000",
    ),
    (
        "after a SYN that was lost, what was sent before begins with one segment",
        "RFC 5681, 3.1",
        "connect
        out S 0
        send 1500
        wait 1s
        out S 0
        in SA 0 ack 1 mss 1000
        opened
        out A 1:1000
        in A 1 ack 1001
        drained
        out PA 1001:500",
    ),
];

#[test]
fn icmp_tells_why() {
    use crate::script::{check_v4, check_v6};
    let dial = "connect\nout S 0\n";
    for (message, event) in [
        ("3 0 0", "gone 101"),
        ("3 1 0", "gone 113"),
        ("3 3 0", "gone refused"),
        ("3 2 0", "gone 92"),
        ("3 10 0", "gone 113"),
        ("3 13 0", "gone 113"),
        ("11 0 0", "gone 113"),
    ] {
        check_v4(message, &format!("{dial}icmp {message}\n{event}\nleft 0 0 0"));
    }
    for (message, event) in [
        ("1 0 0", "gone 101"),
        ("1 1 0", "gone 13"),
        ("1 3 0", "gone 113"),
        ("1 4 0", "gone refused"),
        ("3 0 0", "gone 113"),
    ] {
        check_v6(message, &format!("{dial}icmp {message}\n{event}\nleft 0 0 0"));
    }
    // Messages that are not errors end nothing: echo reply, redirect, packet too big.
    for message in ["0 0 0", "5 1 0", "3 4 1200"] {
        check_v4(message, &format!("{dial}icmp {message}\nin SA 0 ack 1\nopened\nout A 1 ack 1"));
    }
    for message in ["129 0 0", "2 0 1280"] {
        check_v6(message, &format!("{dial}icmp {message}\nin SA 0 ack 1\nopened\nout A 1 ack 1"));
    }
}
