//! All causes. A new cause needs a file here, a line in the table, and records in `corpus/`. Each file says what its cause looks like in
//! the evidence; none refers to the findings of another.

use samples::{Cause as Name, Certainty, Detail, Kind, LogKind, Side, Stage};
use units::{Count, Nanos};

use crate::{
    case::Case,
    cause::{Began, Cause, Entry, Found},
    closes::{By, RAISE, how, is_in_use, is_unannounced, outlast},
    queue,
    say::{FIREWALLS, ONE_OF_SOME, connections, nth, some, tenths},
    trouble::Trouble,
};
use record::signs::Sign;

pub(crate) mod age_limit;
pub(crate) mod black_hole;
pub(crate) mod blocked_here;
pub(crate) mod busy_connections;
pub(crate) mod collecting;
pub(crate) mod conntrack;
pub(crate) mod cpu;
pub(crate) mod cpu_quota;
pub(crate) mod cut_off;
pub(crate) mod deserted;
pub(crate) mod ended;
pub(crate) mod falls_behind;
pub(crate) mod few_at_a_time;
pub(crate) mod forgotten;
pub(crate) mod full;
pub(crate) mod heap;
pub(crate) mod idle_timeout;
pub(crate) mod logged;
pub(crate) mod logged_connections;
pub(crate) mod loses_segments;
pub(crate) mod makes_room;
pub(crate) mod no_http2;
pub(crate) mod no_room_here;
pub(crate) mod no_syn_ack;
pub(crate) mod oom_killed;
pub(crate) mod open_files;
pub(crate) mod paused;
pub(crate) mod probe_starved;
pub(crate) mod probe_turned_away;
pub(crate) mod queue_overflowed;
pub(crate) mod queue_slowed_dials;
pub(crate) mod queue_standing;
pub(crate) mod queue_unaccepted;
pub(crate) mod rejected;
pub(crate) mod rejected_in_part;
pub(crate) mod request_timeout;
pub(crate) mod requests_per_connection;
pub(crate) mod saturated;
pub(crate) mod shared_processors;
pub(crate) mod silent;
pub(crate) mod slow_accept;
pub(crate) mod socket_memory;
pub(crate) mod starved;
pub(crate) mod stranded;
pub(crate) mod syn_loss;
pub(crate) mod target_stopped;
pub(crate) mod thread_ended;
pub(crate) mod throng_stopped;
pub(crate) mod throng_too_slow;
pub(crate) mod tls;
pub(crate) mod tls_expected;
pub(crate) mod too_few_connections;
pub(crate) mod turns_away;
pub(crate) mod unacknowledged;
pub(crate) mod upstream_ports;
pub(crate) mod worker_ended;

/// The order does not matter.
pub(crate) static CAUSES: &[Entry] = &[
    Entry::of::<age_limit::AgeLimit>(),
    Entry::of::<black_hole::BlackHole>(),
    Entry::of::<blocked_here::BlockedHere>(),
    Entry::of::<busy_connections::BusyConnections>(),
    Entry::of::<collecting::Collecting>(),
    Entry::of::<conntrack::Conntrack>(),
    Entry::of::<cpu::Cpu>(),
    Entry::of::<cpu_quota::CpuQuota>(),
    Entry::of::<cut_off::CutOff>(),
    Entry::of::<deserted::Deserted>(),
    Entry::of::<ended::Ended>(),
    Entry::of::<falls_behind::FallsBehind>(),
    Entry::of::<few_at_a_time::FewAtATime>(),
    Entry::of::<forgotten::Forgotten>(),
    Entry::of::<full::Full>(),
    Entry::of::<heap::Heap>(),
    Entry::of::<idle_timeout::IdleTimeout>(),
    Entry::of::<logged::Logged>(),
    Entry::of::<logged_connections::LoggedConnections>(),
    Entry::of::<loses_segments::LosesSegments>(),
    Entry::of::<makes_room::MakesRoom>(),
    Entry::of::<no_http2::NoHttp2>(),
    Entry::of::<no_room_here::NoRoomHere>(),
    Entry::of::<no_syn_ack::NoSynAck>(),
    Entry::of::<oom_killed::OomKilled>(),
    Entry::of::<open_files::OpenFiles>(),
    Entry::of::<paused::Paused>(),
    Entry::of::<probe_starved::ProbeStarved>(),
    Entry::of::<probe_turned_away::ProbeTurnedAway>(),
    Entry::of::<queue_overflowed::QueueOverflowed>(),
    Entry::of::<queue_slowed_dials::QueueSlowedDials>(),
    Entry::of::<queue_standing::QueueStanding>(),
    Entry::of::<queue_unaccepted::QueueUnaccepted>(),
    Entry::of::<rejected::Rejected>(),
    Entry::of::<rejected_in_part::RejectedInPart>(),
    Entry::of::<request_timeout::RequestTimeout>(),
    Entry::of::<requests_per_connection::RequestsPerConnection>(),
    Entry::of::<saturated::Saturated>(),
    Entry::of::<shared_processors::SharedProcessors>(),
    Entry::of::<silent::Silent>(),
    Entry::of::<slow_accept::SlowAccept>(),
    Entry::of::<socket_memory::SocketMemory>(),
    Entry::of::<starved::Starved>(),
    Entry::of::<stranded::Stranded>(),
    Entry::of::<syn_loss::SynLoss>(),
    Entry::of::<target_stopped::TargetStopped>(),
    Entry::of::<thread_ended::ThreadEnded>(),
    Entry::of::<throng_stopped::ThrongStopped>(),
    Entry::of::<throng_too_slow::ThrongTooSlow>(),
    Entry::of::<tls::Tls>(),
    Entry::of::<tls_expected::TlsExpected>(),
    Entry::of::<too_few_connections::TooFewConnections>(),
    Entry::of::<turns_away::TurnsAway>(),
    Entry::of::<unacknowledged::Unacknowledged>(),
    Entry::of::<upstream_ports::UpstreamPorts>(),
    Entry::of::<worker_ended::WorkerEnded>(),
];

/// Raises a limit per source address.
const BY_SOURCE: &str = "raise its limit on connections of one source address (limit_conn, src_conn_cnt), or dial from several (--sources)";
/// Reduces the memory in use.
const FEWER: &str = "hold fewer connections";
const MORE_MEMORY: &str = "give it more memory (MemoryMax= of its unit)";
const WORKERS: &str = "check the number of its workers or threads, and what they wait for: locks, or what it calls (gdb -p, jstack)";
const WAY: &str =
    "check that the target's host responds (ping, mtr), then the routers and firewalls on the path";

#[cfg(test)]
mod tests;
