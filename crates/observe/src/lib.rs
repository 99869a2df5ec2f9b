//! What is seen of a run beside its own measurements: of the target's processes, of the hosts and their kernels, of throng's own process,
//! and of the network in between.
//!
//! The load's ticks show what a target does: it answers late, loses connections, refuses them. Why it does is often visible only
//! elsewhere: its processes have no CPU time left, its accept queue is full, a router rejects the dials, the address is translated. So one
//! [`Observer`] looks there for the whole run. The code that leads the run calls it: with every tick of a ramp and once a second for a
//! sample, closer when something seems wrong, and at the end while all connections are still open. The results, [`record::observed::Observed`],
//! are facts in the record; what they mean is decided by `judge`. Beside it are the questions that precede a run: what listens here, and
//! which address family of a name is served.
//!
//! Three rules hold everywhere. To observe must not disturb: the cost of a sample does not grow with the number of connections beyond a
//! written limit, and the target gets no traffic for it, with three exceptions that have a reason of their own: a few extra dials where
//! dials are rejected, an echo where only resets were seen, and the queries that `throng serve` and `throng observe` exist for. Samples are
//! aggregated at once, so memory does not depend on the length of the run. What cannot be read is unknown (`None`), never zero, and never
//! ends a run.
//!
//! ```text
//! /proc, /sys (host) ──────────► Observer ─┬─► costs: slopes of memory and CPU time against the load
//! throng observe (host::remote) ─►  ▲      ├─► used, heap: totals of throng and of the target
//! netlink (net) ─► listeners ───────┤      └─► Observed
//!                  both_sides ──────┤
//! ICMP, resets (net) ─► path ───────┘
//! ```

mod both_sides;
mod listeners;
mod observer;
mod path;

pub use both_sides::{Absent, Ends, MAX_COUNTED, Sources};
pub use listeners::{listeners, listeners_at, queues, settle};
pub use observer::{Load, Observer};
pub use path::{Resets, may_be_rejected};
