//! Detects that this machine was suspended, by comparing two clocks.

use rustix::time::{ClockId, clock_gettime};

/// Maximum time between the reads of both clocks, in nanoseconds; a longer one means that this process was interrupted.
const APART: i64 = 100_000_000;

/// By how much CLOCK_BOOTTIME, which includes suspensions, is ahead of CLOCK_MONOTONIC, which does not (clock_gettime(2)), in
/// nanoseconds. A time namespace adds a constant. `None`: the process was interrupted between the reads.
pub fn boot_time_ahead_ns() -> Option<i64> {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let [before, boot, after] = [ClockId::Monotonic, ClockId::Boottime, ClockId::Monotonic].map(read);
    (after - before < APART).then_some(boot - before)
}
