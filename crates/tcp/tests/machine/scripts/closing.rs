//! Closing from ESTABLISHED, and resets.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "closed here first: FIN-WAIT-1, FIN-WAIT-2, TIME-WAIT for a minute",
        "close/close-local-close-then-remote-fin.pkt",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1 ack 1
        left 1 1 0
        in A 1 ack 2
        left 0 1 0
        in FA 1 ack 2
        out A 2 ack 2
        wait 59s
        left 0 1 0
        in FA 1 ack 2                           # the last acknowledgement was lost: the minute begins again
        out A 2 ack 2
        wait 59s
        left 0 1 0
        wait 1s
        left 0 0 0
        in FA 1 ack 2
        out R 2",
    ),
    (
        "closed by the peer first: CLOSE-WAIT, LAST-ACK",
        "close/close-remote-fin-then-close.pkt",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in FA 1 ack 1
        ended
        out A 1 ack 2
        close
        out FA 1 ack 2
        in A 2 ack 2
        left 0 0 0
        in A 2 ack 2
        out R 2",
    ),
    (
        "data may still be sent to a peer that closed its side",
        "RFC 9293, 3.6; shutdown/shutdown-wr-close.pkt from the other end",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in FA 1:5 ack 1
        bytes 5
        ended
        out A 1 ack 7
        send 50
        out PA 1:50 ack 7
        in A 7 ack 51
        in FA 1:5 ack 51
        out A 51 ack 7
        close
        out FA 51 ack 7
        wait 200ms
        out FA 51 ack 7
        in A 7 ack 52
        left 0 0 0",
    ),
    (
        "both close at the same time",
        "RFC 9293, 3.6, figure 13",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1 ack 1
        in FA 1 ack 1
        out A 2 ack 2
        left 1 1 0
        in A 2 ack 2
        left 0 1 0
        wait 60s
        left 0 0 0",
    ),
    (
        "FIN and the acknowledgement of ours in one segment",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1 ack 1
        in FA 1 ack 2
        out A 2 ack 2
        left 0 1 0
        wait 60s
        left 0 0 0",
    ),
    (
        "the FIN goes with the last data, after what is blocked",
        "RFC 9293, 3.10.4; shutdown/shutdown-rdwr-write-queue-close.pkt",
        "connect
        out S 0
        in SA 0 ack 1 win 1000 mss 1000
        opened
        out A 1 ack 1
        send 1500
        out A 1:1000
        left 1 0 1
        close
        left 1 1 0
        in A 1 ack 1001 win 1000
        out FPA 1001:500
        in A 1 ack 1502
        in FA 1 ack 1502
        out A 1502 ack 2
        wait 60s
        left 0 0 0",
    ),
    (
        "a FIN that is lost is sent again; after eight times nobody waits any more",
        "RFC 9293, 3.8.1; net.ipv4.tcp_orphan_retries",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1
        wait 200ms
        out FA 1
        wait 400ms
        out FA 1
        wait 800ms
        out FA 1
        wait 1600ms
        out FA 1
        wait 3200ms
        out FA 1
        wait 6400ms
        out FA 1
        wait 12800ms
        out FA 1
        wait 25600ms
        out FA 1
        left 1 1 0
        wait 51200ms
        left 0 0 0",
    ),
    (
        "a peer that never closes its side is waited for a minute",
        "net.ipv4.tcp_fin_timeout",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1
        in A 1 ack 2
        wait 59s
        left 0 1 0
        wait 1s
        left 0 0 0",
    ),
    (
        "data for a connection that was closed is reset",
        "RFC 9293, 3.6.1; shutdown/shutdown-rdwr-close.pkt",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1
        in A 1 ack 2
        in PA 1:10 ack 2
        out RA 2
        left 0 0 0",
    ),
    (
        "data that was not read makes a close a reset",
        "RFC 1122, 4.2.2.13",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        hold
        in PA 1:10 ack 1
        out A 1 ack 11
        close
        out RA 1 ack 11
        left 0 0 0",
    ),
    (
        "a close by reset",
        "RFC 9293, 3.10.5",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 10
        out PA 1:10
        reset
        out RA 11 ack 1
        left 0 0 0
        in A 1 ack 11
        out R 11",
    ),
    (
        "reset by the peer",
        "ts_recent/reset_tsval.pkt",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 10
        out PA 1:10
        in R 1
        gone reset
        left 0 0 0
        send 10
        close",
    ),
    (
        "a reset with the number of the peer's FIN",
        "as Linux has it (tcp_reset_check)",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 5
        out PA 1:5
        in FA 1 ack 1
        ended
        out A 6 ack 2
        in R 1
        gone reset
        left 0 0 0",
    ),
    (
        "a reset in the window, but not at its begin, is asked about",
        "RFC 5961, 3.2",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in R 2
        out A 1 ack 1
        in R 60000
        out A 1 ack 1
        in R 0                                  # outside
        in R 2000000
        in RA 1 ack 1
        gone reset",
    ),
    (
        "a SYN on a connection is asked about, wherever it lies",
        "RFC 5961, 4.2",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in S 1
        out A 1 ack 1
        in S 5000
        out A 1 ack 1
        in S 900000000
        out A 1 ack 1
        in S -500
        out A 1 ack 1
        left 0 0 0",
    ),
    (
        "a reset does not end TIME-WAIT, FIN in it is acknowledged",
        "RFC 1337",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        close
        out FA 1
        in FA 1 ack 2
        out A 2 ack 2
        in R 2
        left 0 1 0
        in S 2
        out A 2 ack 2
        wait 60s
        left 0 0 0",
    ),
    (
        "a FIN that came before data counts when the data has come",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in FA 101:10 ack 1
        out A 1 ack 1
        in A 1:100 ack 1
        bytes 100
        kept 10
        ended
        out A 1 ack 111
        out A 1 ack 112
        left 0 0 0",
    ),
    (
        "segments of no connection are reset, if they come from a destination",
        "RFC 9293, 3.10.7.1",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        reset
        out RA 1
        in PA 1:10 ack 1
        out R 1
        in P 1:10
        out RA zero ack 11
        in S 7
        out RA zero ack 8
        in R 7
        in PA 1:10 ack 1 from 81",
    ),
];
