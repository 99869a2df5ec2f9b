//! Whether this machine was suspended.

use rustix::time::{ClockId, clock_gettime};

/// This process was interrupted between two reads that are further apart, nanoseconds.
const APART: i64 = 100_000_000;

/// How far CLOCK_BOOTTIME, which goes on while the machine is suspended, is ahead of CLOCK_MONOTONIC, which stands still then
/// (clock_gettime(2)), nanoseconds; in a time namespace by a constant more or less. `None`: the two were not read at once.
pub fn boot_time_ahead_ns() -> Option<i64> {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let [before, boot, after] = [ClockId::Monotonic, ClockId::Boottime, ClockId::Monotonic].map(read);
    (after - before < APART).then_some(boot - before)
}
