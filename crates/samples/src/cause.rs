//! The cause of a limit, as one word.

use serde::{Deserialize, Serialize};

use crate::{sample::LogKind, words::words};

words! {
    /// What stopped it. The side is separate: `memory` is the target's, or this machine's.
    #[derive(Default)]
    Cause {
        /// A queue of connections that wait to be accepted.
        AcceptQueue = "accept-queue",
        /// Connections that were closed.
        Closed = "closed",
        /// A number of connections that it does not go beyond.
        ConnectionLimit = "connection-limit",
        /// The firewall's table of connections.
        Conntrack = "conntrack",
        /// Processors.
        Cpu = "cpu",
        /// Dials are not let out.
        Denied = "denied",
        /// Its process has ended.
        Ended = "ended",
        /// A managed heap.
        Heap = "heap",
        /// Connections are closed that were idle for a time.
        IdleCut = "idle-cut",
        /// Memory.
        Memory = "memory",
        /// SYNs get no reply.
        NoSynAck = "no-syn-ack",
        /// Open files.
        OpenFiles = "open-files",
        /// Local ports.
        Ports = "ports",
        /// Nothing is listening.
        Refused = "refused",
        /// Connections are closed that have not sent a complete request in a time.
        RequestTimeout = "request-timeout",
        /// Connections are closed after a certain number of responses.
        RequestsPerConnection = "requests-per-connection",
        /// Connections are closed that have been open for so long.
        ResetAfter = "reset-after",
        /// More is due than it serves, and no resource is seen to be used up.
        Saturated = "saturated",
        /// The rate at which connections are accepted.
        SlowAccept = "slow-accept",
        /// It stalled.
        Stall = "stall",
        /// SYNs are dropped, and connections wait until they are sent again.
        SynLoss = "syn-loss",
        /// A thread of it has ended.
        Thread = "thread",
        /// No thread can be started.
        Threads = "threads",
        /// Nothing came in time.
        Timeout = "timeout",
        /// TLS cannot be set up with it.
        Tls = "tls",
        /// It expects TLS.
        TlsExpected = "tls-expected",
        /// Connections that wait for a response when the next request is due.
        TooFewConnections = "too-few-connections",
        /// What was sent is not acknowledged.
        Unacknowledged = "unacknowledged",
        /// Not known.
        #[default]
        Unknown = "unknown",
        /// Dials are rejected on the way.
        Unreachable = "unreachable",
        /// Responses that are not as expected.
        WrongAnswer = "wrong-answer",
    }
}

impl Cause {
    /// The kinds of lines in the target's log that prove it, the most telling first.
    pub fn log_kinds(self) -> &'static [LogKind] {
        PROVED_BY.iter().find(|(cause, _)| *cause == self).map_or(&[], |(_, kinds)| kinds)
    }
}

/// The kinds of lines that may explain a failure with many possible reasons.
const ANY_FAILURE: &[LogKind] = &[LogKind::Heap, LogKind::Error, LogKind::Memory];

/// Causes that a log may prove.
const PROVED_BY: &[(Cause, &[LogKind])] = &[
    (Cause::AcceptQueue, ANY_FAILURE),
    (Cause::Closed, ANY_FAILURE),
    (Cause::ConnectionLimit, &[LogKind::Connections]),
    (Cause::Ended, ANY_FAILURE),
    (Cause::Heap, &[LogKind::Heap]),
    (Cause::Memory, &[LogKind::Memory, LogKind::Heap]),
    (Cause::OpenFiles, &[LogKind::OpenFiles]),
    (Cause::Ports, &[LogKind::Ports]),
    (Cause::Refused, ANY_FAILURE),
    (Cause::Stall, ANY_FAILURE),
    (Cause::Thread, ANY_FAILURE),
    (Cause::Threads, &[LogKind::Threads]),
    (Cause::Timeout, ANY_FAILURE),
    (Cause::WrongAnswer, &[LogKind::Connections, LogKind::Error]),
];
