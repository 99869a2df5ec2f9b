//! Limits how many timed jobs run at once by the CPU usage.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// How long the CPU usage is measured before a job starts. Jobs start one after the other, so the measurement includes the previous
/// one.
const LOOK: Duration = Duration::from_millis(250);
/// Maximum CPU usage, as a share, at which another job starts. Processes with a positive nice value do not count, since they give
/// way.
const FULL: f64 = 0.8;

/// The running jobs; they start one after the other, while CPU time is left.
#[derive(Default)]
pub(super) struct Room {
    running: AtomicUsize,
    door: Mutex<()>,
}

/// A running job, until this is dropped.
pub(super) struct Taken<'a>(&'a Room);

impl Room {
    /// Waits until CPU time is left for another job, or no other job runs.
    pub(super) fn take(&self) -> Taken<'_> {
        let _next = self.door.lock().expect("no worker panics");
        while self.running.load(Relaxed) > 0 && used() > FULL {}
        self.running.fetch_add(1, Relaxed);
        Taken(self)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

/// The share of CPU time in use during [`LOOK`].
fn used() -> f64 {
    let before = ticks().unwrap_or_default();
    sleep(LOOK);
    let after = ticks().unwrap_or_default();
    share(before, after)
}

fn share(before: [u64; 2], after: [u64; 2]) -> f64 {
    let [busy, all] = [0, 1].map(|at| after[at].saturating_sub(before[at]) as f64);
    busy / all.max(1.0)
}

/// CPU time in use, without that of nice processes, and all CPU time, in ticks (proc_stat(5)).
fn ticks() -> Option<[u64; 2]> {
    read(&fs::read_to_string("/proc/stat").ok()?)
}

fn read(stat: &str) -> Option<[u64; 2]> {
    let fields = stat.lines().next()?.strip_prefix("cpu")?.split_whitespace();
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, waits, irq, soft, steal, ..] = fields[..] else { return None };
    let busy = user + system + irq + soft + steal;
    Some([busy, busy + nice + idle + waits])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nice_processes_do_not_count() {
        let stat =
            |user: u64, nice: u64, idle: u64| format!("cpu  {user} {nice} 30 {idle} 5 1 2 3 9 9\ncpu0 1 1\n");
        let ticks = |user, nice, idle| read(&stat(user, nice, idle)).unwrap();
        assert_eq!(ticks(100, 20, 400), [136, 561]);
        let before = ticks(100, 20, 400);
        assert_eq!(share(before, ticks(200, 20, 400)), 1.0);
        assert_eq!(share(before, ticks(100, 120, 400)), 0.0);
        assert_eq!(share(before, ticks(130, 20, 470)), 0.3);
        assert_eq!((share(before, before), read("intr 5")), (0.0, None));
    }

    #[test]
    fn the_only_job_always_has_room() {
        let (room, ends) = (Room::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
                scope.spawn(|| {
                    while !ends.load(Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            for _ in 0..3 {
                drop(room.take());
            }
            ends.store(true, Relaxed);
        });
        assert_eq!(room.running.load(Relaxed), 0);
    }
}
