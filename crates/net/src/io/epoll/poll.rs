//! The epoll instance and its sleep, in nanoseconds where the kernel supports it.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use units::Nanos;

use crate::{io::REGIONS, machine::timespec};

/// Longest sleep in whole milliseconds: the argument of epoll_wait is an `int`.
const MAX_MILLIS: u64 = i32::MAX as u64;

pub(super) struct Poll {
    epoll: OwnedFd,
    /// Whether to sleep in milliseconds: the kernel lacks epoll_pwait2 (Linux 5.11), or an older sandbox refuses it.
    by_millis: bool,
    /// The events of the last batch: at most as many as connections that one turn can read.
    events: Box<[Event; REGIONS]>,
}

/// The kernel's `__kernel_timespec`: two 64-bit numbers on every architecture.
#[repr(C)]
struct KernelTime {
    secs: i64,
    nanos: i64,
}

impl Poll {
    pub(super) fn new(by_millis: bool) -> io::Result<Poll> {
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        Ok(Poll {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            by_millis,
            events: Box::new([nothing; REGIONS]),
        })
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.epoll
    }

    /// Sleeps until there are events, at most for `at_most`; returns their number.
    pub(super) fn wait(&mut self, at_most: Nanos) -> usize {
        if !self.by_millis {
            match self.wait_nanos(at_most) {
                Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.by_millis = true
                }
                other => return count(other),
            }
        }
        // Rounded up, because the loop would otherwise spin during the last millisecond.
        let millis = at_most.0.div_ceil(1_000_000).min(MAX_MILLIS);
        let waited =
            epoll::wait(&self.epoll, &mut self.events[..], Some(&timespec(Nanos::from_millis(millis))));
        count(waited.map_err(io::Error::from))
    }

    fn wait_nanos(&mut self, at_most: Nanos) -> io::Result<usize> {
        let ts = timespec(at_most);
        let ts = KernelTime { secs: ts.tv_sec, nanos: ts.tv_nsec };
        let (fd, most) = (self.epoll.as_raw_fd(), REGIONS as libc::c_int);
        let (events, no_mask) = (self.events.as_mut_ptr(), std::ptr::null::<libc::sigset_t>());
        // SAFETY: the kernel writes at most `most` events into an array of that length, which has the kernel's layout, and reads the
        // time; both outlive the call.
        let n = unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, events, most, &raw const ts, no_mask, 0) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// Event number `at` of the last batch, with its registration data.
    pub(super) fn signal(&self, at: usize) -> (EventFlags, u64) {
        let Event { flags, data } = self.events[at];
        (flags, data.u64())
    }

    /// Sleeps for `t`, regardless of events.
    pub(super) fn nap(&self, t: Nanos) {
        // A signal may end it early, which is harmless.
        let _ = rustix::thread::nanosleep(&timespec(t));
    }
}

/// The number of events; a signal to the process is not an error.
fn count(waited: io::Result<usize>) -> usize {
    match waited {
        Ok(n) => n,
        Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
        Err(e) => panic!("epoll refuses to wait: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both system calls sleep at least as long as requested.
    #[test]
    fn sleeps_are_never_short() {
        for by_millis in [false, true] {
            let mut poll = Poll::new(by_millis).unwrap();
            for nap in [Nanos::ZERO, Nanos(1), Nanos::from_micros(300), Nanos(2_000_001)] {
                let begun = std::time::Instant::now();
                assert_eq!(poll.wait(nap), 0);
                assert!(begun.elapsed().as_nanos() >= u128::from(nap.0), "{nap:?}, by millis: {by_millis}");
            }
            assert_eq!(poll.by_millis, by_millis, "this kernel has epoll_pwait2");
        }
    }
}
