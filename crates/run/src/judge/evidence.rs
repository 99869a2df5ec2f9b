//! What the judge knows besides counts: plain values, so that any case can be made up in a test.

use host::{Fill, NetCounters};
use units::Nanos;

/// What the hosts showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Both ends are on this host: its counters speak of the target too.
    pub(crate) both_ends_here: bool,
    /// TCP events of this network namespace during the run.
    pub(crate) net: NetCounters,
    /// Processes killed for want of memory during the run.
    pub(crate) oom_kills: u64,
    /// Most connections that this host's firewall tracked at once.
    pub(crate) conntrack: Option<Fill>,
    /// Most connections that waited to be accepted by the target at once, and how many may.
    pub(crate) accept_queue: Option<Fill>,
    /// Connections that the target accepted in a second while others waited, if that was steady.
    pub(crate) accepts_per_s: Option<f64>,
    /// The target's process, where it is on this host.
    pub(crate) target: Option<TargetSeen>,
    /// Ourselves at full load, where that was long enough.
    pub(crate) own: Option<OwnSeen>,
    /// Connections open at the end of the hold, here and by the target's host.
    pub(crate) both_sides: Option<BothSides>,
    /// What the losses have in common.
    pub(crate) losses: Pattern,
}

/// A local target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetSeen {
    pub(crate) pid: u32,
    /// It ended before the run did.
    pub(crate) ended: bool,
    /// Most open files, and its limit.
    pub(crate) open_files: Option<Fill>,
    /// Most time over a second that its busiest thread ran or was ready to, where that is known.
    pub(crate) cpu_thread: Option<f64>,
    /// Most CPU over a second as a share of all processors.
    pub(crate) cpu_share: f64,
}

/// Our own process at full load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnSeen {
    /// CPU time as a share of what the shards' threads could have had.
    pub(crate) cpu_share: f64,
    /// The same with the time that they waited for a processor: what they would have used.
    pub(crate) demand: f64,
}

/// The same connections counted at both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BothSides {
    pub(crate) here: u64,
    pub(crate) there: u64,
}

/// What lost connections have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pattern {
    /// All had been silent for so long.
    pub(crate) silence: Option<Nanos>,
    /// All were so old.
    pub(crate) age: Option<Nanos>,
    /// From some number on, whoever was opened was lost, and nobody else.
    pub(crate) is_surplus: bool,
}
