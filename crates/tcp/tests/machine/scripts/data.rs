//! ESTABLISHED: data and windows.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "a request and its response: two segments each way",
        "blocking/blocking-read.pkt, blocking-write.pkt",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 100
        out PA 1:100 ack 1
        in PA 1:50 ack 101 more
        bytes 50
        send 60
        out PA 101:60 ack 51
        turn
        in PA 51:50 ack 161
        bytes 50
        out A 161 ack 101
        left 0 0 0",
    ),
    (
        "every second full segment is acknowledged at once, the others at the turn's end",
        "RFC 5681, 4.2; slow_start/slow-start-ack-per-2pkt.pkt from the other end",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000
        opened
        out A 1 ack 1
        in A 1:1000 ack 1 more
        bytes 1000
        in A 1001:1000 ack 1 more
        bytes 1000
        out A 1 ack 2001
        in A 2001:1000 ack 1 more
        bytes 1000
        in A 3001:10 ack 1 more
        bytes 10
        turn
        out A 1 ack 3011
        in A 3011:2000 ack 1 more               # joined by the kernel
        bytes 2000
        out A 1 ack 5011
        turn",
    ),
    (
        "what comes out of order is acknowledged at once, kept, and read in order",
        "RFC 5681, 4.2; epoll/epoll_in_edge.pkt",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000
        opened
        out A 1 ack 1
        in A 201:100 ack 1
        out A 1 ack 1
        in A 401:100 ack 1
        out A 1 ack 1
        in A 401:100 ack 1
        out A 1 ack 1
        in A 301:50 ack 1
        out A 1 ack 1
        in A 1:200 ack 1
        bytes 200
        kept 150
        out A 1 ack 351
        in A 341:80 ack 1
        bytes 70
        kept 80
        out A 1 ack 501
        left 0 0 0",
    ),
    (
        "duplicates are acknowledged and read once, overlaps are trimmed",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in A 1:100 ack 1
        bytes 100
        out A 1 ack 101
        in A 1:100 ack 1
        out A 1 ack 101
        in A 51:100 ack 1
        bytes 50
        out A 1 ack 151",
    ),
    (
        "a keep-alive is answered, with a byte or without",
        "RFC 9293, 3.8.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in A 0 ack 1
        out A 1 ack 1
        in A 0:1 ack 1
        out A 1 ack 1",
    ),
    (
        "segments without ACK, and acknowledgements of what was never sent, are dropped with their data",
        "validate/validate-established-no-flags.pkt; RFC 5961, 5.2",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        in P 1:10
        in PA 1:10 ack 2
        out A 1 ack 1
        in PA 1:10 ack -70000
        out A 1 ack 1
        in PA 1:10 ack -1000                    # old, but it may be
        bytes 10
        out A 1 ack 11",
    ),
    (
        "the peer's window is kept to; closed, it is asked for, more and more rarely",
        "RFC 9293, 3.8.6.1; user_timeout/user-timeout-probe.pkt",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 1500
        opened
        out A 1 ack 1
        send 3000
        out A 1:1000
        in A 1 ack 1001 win 0
        wait 200ms
        out A 1000
        in A 1 ack 1001 win 0
        wait 400ms
        out A 1000
        in A 1 ack 1001 win 0
        wait 799ms
        in A 1 ack 1001 win 1000                # opened
        out A 1001:1000
        in A 1 ack 2001 win 5000
        drained
        out PA 2001:1000
        in A 1 ack 3001 win 5000
        left 0 0 0",
    ),
    (
        "a closed window that stays is asked for as long as the peer answers",
        "RFC 9293, 3.8.6.1",
        "connect
        out S 0
        in SA 0 ack 1 win 0
        opened
        out A 1 ack 1
        send 10
        wait 200ms
        out A 0
        wait 400ms
        out A 0
        in A 1 ack 1 win 0
        wait 120s
        out A 0
        out A 0
        out A 0
        out A 0
        out A 0
        out A 0
        out A 0
        in A 1 ack 1 win 10
        drained
        out PA 1:10
        in A 1 ack 11
        left 0 0 0",
    ),
    (
        "no small segment into a small window, until a timer says so",
        "RFC 9293, 3.8.6.2.1",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 3000
        opened
        out A 1 ack 1
        send 5000
        out A 1:1000
        out A 1001:1000
        out A 2001:1000
        in A 1 ack 3001 win 100
        wait 199ms
        wait 1ms
        out A 3001:100
        in A 1 ack 3101 win 5000
        drained
        out A 3101:1000
        out PA 4101:900",
    ),
    (
        "a window that an older segment says is not taken",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000 win 1000
        opened
        out A 1 ack 1
        send 2000
        out A 1:1000
        in PA 11:10 ack 1001 win 0              # the newer one
        out A 1001 ack 1
        in PA 1:10 ack 1001 win 5000
        bytes 10
        kept 10
        out A 1001 ack 21
        wait 200ms
        out A 1000 ack 21",
    ),
    (
        "held: the window closes as data comes, and opens when it is read",
        "RFC 9293, 3.8.6.2.2",
        "connect
        out S 0
        in SA 0 ack 1 mss 1000                  # without scaling: 65,535 bytes
        opened
        out A 1 ack 1 win 65535
        hold
        in A 1:40000 ack 1
        out A 1 ack 40001 win 25535
        in A 40001:25535 ack 1
        out A 1 ack 65536 win 0
        in A 65536:1 ack 1                      # the peer asks
        out A 1 ack 65536 win 0
        in A 65535 ack 1
        out A 1 ack 65536 win 0
        resume
        kept 65535
        turn
        out A 1 ack 65536 win 65535
        left 0 0 0",
    ),
    (
        "an end while held is reported after the data",
        "RFC 9293, 3.10.8",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        hold
        in FA 1:10 ack 1
        out A 1 ack 12
        resume
        kept 10
        ended",
    ),
    (
        "nothing beyond our window is taken",
        "RFC 9293, 3.10.7.4",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1 win 65535
        in A 60001:10000 ack 1
        out A 1 ack 1
        in A 1:60000 ack 1
        bytes 60000
        kept 5535
        out A 1 ack 65536 win 60000
        out A 1 ack 65536 win 65535
        in A 131071:10 ack 1
        out A 1 ack 65536",
    ),
    (
        "what a router says of an open connection does not end it",
        "RFC 1122, 4.2.3.9",
        "connect
        out S 0
        in SA 0 ack 1
        opened
        out A 1 ack 1
        send 5
        out PA 1:5
        icmp 3 0 0
        in A 1 ack 6
        left 0 0 0",
    ),
];
