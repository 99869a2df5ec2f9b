//! throng's TCP against the kernel's over a path that loses, repeats, reorders, delays and damages packets: a relay in user space between
//! two TUN devices, each in its own network namespace. Needs root; otherwise the tests are skipped, and report that.
//!
//! ```text
//!  namespace of the near end                                                namespace of the far end
//! ┌──────────────────────────────────────────┐                            ┌────────────────────────────┐
//! │ Shard ── Tun ── throng0 ══ forwards ══ relay │── Relay, from a seed ──│ relay ── TCP of the kernel │
//! └──────────────────────────────────────────┘                            └────────────────────────────┘
//! ```

mod device;
mod far;
mod near;
mod play;
mod relay;
mod way;

use way::Way;

/// Percentages apply to each direction. Each connection carries 2 MiB in total.
#[test]
fn one_of_a_hundred_is_lost() {
    way::play(&Way { lost: 1.0, repeated: 1.0, delayed: 1.0, damaged: 0.1 }, 1);
}

#[test]
fn three_of_a_hundred_are_lost() {
    way::play(&Way { lost: 3.0, repeated: 2.0, delayed: 3.0, damaged: 0.5 }, 2);
}

#[test]
fn five_of_a_hundred_are_lost() {
    way::play(&Way { lost: 5.0, repeated: 5.0, delayed: 5.0, damaged: 1.0 }, 3);
}

/// Nothing is lost: packets that arrive late must not be treated as lost more often than the peer can report.
#[test]
fn packets_overtake_one_another() {
    way::play(&Way { lost: 0.0, repeated: 5.0, delayed: 20.0, damaged: 0.0 }, 4);
}
