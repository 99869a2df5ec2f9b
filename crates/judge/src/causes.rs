//! All causes. A new one: its file here, its line in the list, and its records in `corpus/`.

use samples::{Cause as Name, Certainty, Detail, Kind, LogKind, Side, Stage};
use units::{Count, Nanos};

use crate::{
    case::Case,
    cause::{Began, Cause, Entry, Found},
    closes::{By, RAISE, how, is_in_use, is_unannounced, outlast},
    queue,
    say::{FIREWALLS, ONE_OF_SOME, connections, nth, some, tenths},
    signs::Sign,
    trouble::Trouble,
};

macro_rules! causes {
    ($($file:ident :: $cause:ident),* $(,)?) => {
        $(pub(crate) mod $file;)*

        /// In any order.
        pub(crate) static CAUSES: &[Entry] = &[$(Entry::of::<$file::$cause>()),*];
    };
}

causes! {
    age_limit::AgeLimit,
    blocked_here::BlockedHere,
    busy_connections::BusyConnections,
    collecting::Collecting,
    conntrack::Conntrack,
    cpu::Cpu,
    cpu_quota::CpuQuota,
    cut_off::CutOff,
    deserted::Deserted,
    ended::Ended,
    falls_behind::FallsBehind,
    few_at_a_time::FewAtATime,
    full::Full,
    heap::Heap,
    idle_timeout::IdleTimeout,
    logged::Logged,
    logged_connections::LoggedConnections,
    makes_room::MakesRoom,
    no_http2::NoHttp2,
    no_room_here::NoRoomHere,
    no_syn_ack::NoSynAck,
    oom_killed::OomKilled,
    open_files::OpenFiles,
    probe_starved::ProbeStarved,
    probe_turned_away::ProbeTurnedAway,
    queue_overflowed::QueueOverflowed,
    queue_slowed_dials::QueueSlowedDials,
    queue_standing::QueueStanding,
    queue_unaccepted::QueueUnaccepted,
    rejected::Rejected,
    rejected_in_part::RejectedInPart,
    request_timeout::RequestTimeout,
    requests_per_connection::RequestsPerConnection,
    saturated::Saturated,
    shared_processors::SharedProcessors,
    silent::Silent,
    slow_accept::SlowAccept,
    socket_memory::SocketMemory,
    starved::Starved,
    stranded::Stranded,
    syn_loss::SynLoss,
    target_stopped::TargetStopped,
    thread_ended::ThreadEnded,
    throng_stopped::ThrongStopped,
    throng_too_slow::ThrongTooSlow,
    tls::Tls,
    tls_expected::TlsExpected,
    too_few_connections::TooFewConnections,
    turns_away::TurnsAway,
    unacknowledged::Unacknowledged,
    worker_ended::WorkerEnded,
}

/// What raises a limit of each source address.
const BY_SOURCE: &str = "raise its limit on connections of one source address (limit_conn, src_conn_cnt), or dial from several (--sources)";
/// What needs less memory.
const FEWER: &str = "hold fewer connections";
const MORE_MEMORY: &str = "give it more memory (MemoryMax= of its unit)";
const WORKERS: &str = "check the number of its workers or threads, and what they wait for: locks, or what it calls (gdb -p, jstack)";
const WAY: &str =
    "check that the target's host responds (ping, mtr), then the routers and firewalls on the path";

#[cfg(test)]
mod tests;
