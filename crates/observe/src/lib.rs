//! Observes a run from outside: the target's processes, the hosts and their kernels, throng's own process, and the network in
//! between.
//!
//! The load's ticks show what a target does: it responds late, loses connections, refuses them. The reason is often visible only
//! elsewhere: its processes have no CPU time left, its accept queue is full, a router rejects the dials, the address is translated.
//! So one [`Observer`] looks there for the whole run. The code that controls the run calls it: with every tick of a ramp, once a
//! second for a sample, more often when something seems wrong, and at the end while all connections are still open. The results,
//! [`record::observed::Observed`], are facts in the record; `judge` decides what they mean. This crate also answers the questions
//! that precede a run: what listens here, and which address family of a name is served.
//!
//! Three rules hold everywhere. First, observing must not disturb the run: the cost of a sample does not grow with the number of
//! connections beyond a documented limit, and the target gets no additional traffic, with three exceptions: a few extra dials if
//! dials are rejected, an echo if only resets were seen, and the queries that `throng serve` and `throng observe` exist for.
//! Second, samples are aggregated at once, so memory does not depend on the length of the run. Third, a value that cannot be read
//! is unknown (`None`), never zero, and never ends a run.
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
