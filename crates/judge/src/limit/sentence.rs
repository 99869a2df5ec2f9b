//! What limited a run, with its numbers; the words are in `sentences.rs`.

use samples::SlowPart;
use units::{Nanos, Rate};

use crate::starved::Starved;

/// How many of them one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HowMany {
    /// The only one.
    One,
    All,
    NearlyAll,
}

/// What limited a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sentence {
    /// The address, empty where there are several.
    NothingListens {
        address: String,
    },
    RefusedByOthers {
        address: String,
    },
    StoppedListening {
        accepted: u64,
    },
    /// Dials that were refused before any was accepted, and until when.
    StartedLate {
        dials: u64,
        until: Nanos,
    },
    Exited {
        at: u64,
    },
    /// One of its processes.
    WorkerExited {
        lost: u64,
    },
    /// One of several destinations.
    Deserted {
        address: String,
    },
    OomKilled {
        at: u64,
    },
    SocketMemory {
        is_ours: bool,
        aborted: u64,
    },
    OpenFiles {
        used: u64,
        limit: u64,
    },
    LoggedOpenFiles {
        at: u64,
    },
    LoggedThreads {
        at: u64,
    },
    LoggedMemory {
        at: u64,
    },
    LoggedConnections {
        at: u64,
    },
    Heap {
        at: u64,
    },
    HeapOf {
        used: u64,
        limit: u64,
        collecting: f64,
    },
    ThreadEnded {
        name: String,
    },
    /// What is wrong; and what is known of it besides, in parentheses.
    Tls {
        handshakes: u64,
        what: &'static str,
        detail: String,
    },
    TlsExpected {
        connections: u64,
    },
    MuteClose {
        connections: u64,
    },
    /// Statuses with their counts, the most frequent first.
    UnexpectedStatus {
        statuses: Vec<(u16, u64)>,
    },
    /// The same of upgrades, with the likely reason.
    UpgradeRefused {
        statuses: Vec<(u16, u64)>,
        reason: &'static str,
    },
    /// How it was wrong; and what it broke, empty where nothing is known of that.
    UnexpectedResponse {
        what: &'static str,
        rule: String,
        count: u64,
    },
    ClosedMute {
        count: u64,
        how: &'static str,
    },
    Closed {
        count: u64,
        how: &'static str,
        when: &'static str,
    },
    /// The same while a response was due, and how many requests were sent.
    ClosedInstead {
        count: u64,
        how: &'static str,
        sent: u64,
    },
    /// The peer announced the end of connections with an error, in this frame: `GOAWAY`, `Close`.
    SessionsEnded {
        count: u64,
        frame: &'static str,
        code: String,
    },
    /// The peer ended requests, and kept their connections.
    StreamsReset {
        count: u64,
        /// The code, where it is an error.
        code: Option<String>,
    },
    /// It did not act on requests. Whether their connections stayed open.
    StreamsRefused {
        count: u64,
        stayed: bool,
    },
    IdleTimeout {
        time: Nanos,
        count: u64,
    },
    RequestTimeout {
        time: Nanos,
        count: u64,
    },
    AgeLimit {
        time: Nanos,
        count: u64,
    },
    RequestsPerConnection {
        responses: u64,
    },
    MakesRoom {
        /// None where how many are left is accidental.
        keeps: Option<u64>,
        count: u64,
    },
    /// Whether new or old ones were closed is not known.
    KeepsNoMore {
        keeps: u64,
        count: u64,
    },
    /// Beyond these, and those that the probe keeps, only new connections of the probe were turned away.
    TurnsAway {
        beyond: u64,
        has_probe: bool,
    },
    /// The same by responding to them with this status.
    TurnsAwayWith {
        beyond: u64,
        status: String,
    },
    QueueOverflowed {
        backlog: u64,
        times: u64,
    },
    QueueUnaccepted {
        count: u64,
    },
    /// `count`: none where the connections take turns, and `served` is the most that it may be.
    QueueStanding {
        served: u64,
        count: Option<u64>,
    },
    /// Connections that had no response while the others had many, and how many of them wait in the accept queue.
    QueueStarved {
        most: Starved,
        queued: u64,
    },
    /// Connections per second, and those that arrive, where they do at a rate.
    SlowAccept {
        per_s: f64,
        arrive: Option<f64>,
    },
    /// Of several populations, that with the most of them. Some of the probe's requests had a response, too.
    Starved {
        most: Starved,
        has_probe: bool,
    },
    /// New connections of the probe, and responses on those that it keeps.
    StarvedProbe {
        new: u64,
        served: u64,
    },
    /// Those that waited for a response at the end of arrivals.
    Outrun {
        count: u64,
    },
    /// Those that were in the accept queue then, the ones that throng had given up among them.
    Queued {
        count: u64,
        given_up: u64,
    },
    /// Requests by a rate that waited at its end, for a connection or a response.
    RateBacklog {
        count: u64,
        connections: u64,
    },
    /// The share of the time; and the connections that use up the CPU, where these are known.
    CpuOfThread {
        share: f64,
        from: Option<u64>,
    },
    CpuOfProcess {
        share: f64,
        from: Option<u64>,
    },
    DialsTimedOut {
        count: u64,
        timeout: Nanos,
    },
    /// `what`: `request`, `handshake`, `TLS handshake`.
    TimedOut {
        what: &'static str,
        count: u64,
        timeout: Nanos,
    },
    /// Requests whose bodies the peer had no window for.
    WindowClosed {
        count: u64,
        timeout: Nanos,
    },
    /// Requests, where many responses took nearly as long.
    TookLonger {
        count: u64,
        timeout: Nanos,
    },
    /// Responses that began, and did not end.
    Unended {
        count: u64,
        timeout: Nanos,
    },
    /// What the target lacks; and on how many connections, where it has it on others.
    NoHttp2 {
        what: &'static str,
        connections: Option<u64>,
    },
    Acknowledged {
        what: &'static str,
        count: u64,
        /// Where others had responses; else zero.
        timeout: Nanos,
    },
    /// Beside another sentence, statuses of about as many other requests.
    BesideStatus {
        sentence: Box<Sentence>,
        statuses: Vec<(u16, u64)>,
    },
    /// Beside wrong responses of the most frequent kind, those of others: what is wrong with them, and their counts.
    WithOthers {
        sentence: Box<Sentence>,
        others: Vec<(&'static str, u64)>,
    },
    /// The step, or the population, that has nearly all of it: `step look`.
    Whose {
        sentence: Box<Sentence>,
        place: String,
        how_many: HowMany,
    },
    /// Beside another sentence, a hint at a well-known number.
    NearKnownLimit {
        sentence: Box<Sentence>,
        held: u64,
        what: &'static str,
    },
    /// Of several populations, the one whose connections had no response.
    Silent {
        of: Option<String>,
        seconds: f64,
        state: &'static str,
    },
    Stopped {
        from_s: f64,
        until_s: f64,
    },
    ThrongStopped {
        /// Throng itself, or an agent.
        who: String,
        seconds: f64,
    },
    /// Why throng's own figures do not describe the target.
    ThrongTooSlow {
        why: String,
    },
    SharedProcessors {
        list: String,
    },
    ForeignSource {
        dials: u64,
    },
    NoFreePort {
        dials: u64,
    },
    NoMemoryHere {
        sockets: u64,
    },
    NoFilesHere {
        sockets: u64,
    },
    DialsFailedHere {
        dials: u64,
        error: String,
    },
    /// A finding of the preflight check: what, how much there is, and how much is needed.
    RefusedHere {
        what: String,
    },
    Conntrack {
        owner: &'static str,
        used: u64,
        limit: u64,
    },
    NotPermitted {
        operations: u64,
    },
    BlockedHere {
        dials: u64,
    },
    NoSynAck {
        dials: u64,
    },
    /// The same of dials from a network that is routed to this machine.
    NoSynAckToSources {
        dials: u64,
    },
    NoSynAckSince {
        opened: u64,
    },
    Unacknowledged {
        connections: u64,
        of: u64,
    },
    /// `by`: what may have dropped them.
    SynsAgain {
        count: u64,
        p99_s: f64,
        by: &'static str,
    },
    RejectedHere {
        dials: u64,
    },
    NoHost {
        dials: u64,
    },
    Rejected {
        dials: u64,
        by: Option<String>,
    },
    RejectedOrSilent {
        dials: u64,
    },
    /// Requests per second that they carried, and that were due.
    TooFewConnections {
        held: u64,
        carried: f64,
        due: f64,
    },
    /// Of requests by a rate, or of connections that arrive at it; the bytes of each, where those are judged.
    AllAnswered {
        rate: Rate,
        arrives: bool,
        each: Option<String>,
    },
    /// The same where more connections do not help.
    Saturated {
        answered: f64,
        due: f64,
    },
    NothingUsedUp,
    /// The same, and responses of two kinds.
    SlowPart(SlowPart),
    /// And why.
    SlowWhileCollecting(SlowPart),
}
