//! The epoll instance, and how long it sleeps.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use units::Nanos;

use crate::{io::REGIONS, machine::timespec};

/// Longest sleep in whole milliseconds: what fits the old call's argument.
const MAX_MILLIS: u64 = i32::MAX as u64;

pub(super) struct Poll {
    epoll: OwnedFd,
    /// The kernel lacks epoll_pwait2 (Linux 5.11), or an older sandbox refuses it.
    by_millis: bool,
    /// As many as can be received from in a turn.
    events: Box<[Event; REGIONS]>,
}

/// The kernel's `__kernel_timespec`: two 64-bit numbers on every machine.
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

    /// Sleeps until there are signals, at most for `at_most`; returns how many there are.
    pub(super) fn wait(&mut self, at_most: Nanos) -> usize {
        if !self.by_millis {
            match self.wait_nanos(at_most) {
                Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.by_millis = true
                }
                other => return count(other),
            }
        }
        // Rounded up: the loop would turn without end in the last millisecond.
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
        // SAFETY: the kernel writes at most `most` events into our array of as many, which has its layout, and reads
        // the time; both outlive the call.
        let n = unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, events, most, &raw const ts, no_mask, 0) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// The signals number `at` of the last batch, and what they were registered under.
    pub(super) fn signal(&self, at: usize) -> (EventFlags, u64) {
        let Event { flags, data } = self.events[at];
        (flags, data.u64())
    }

    /// Sleeps whatever happens.
    pub(super) fn nap(&self, t: Nanos) {
        // Ended by a signal, at worst.
        let _ = rustix::thread::nanosleep(&timespec(t));
    }
}

/// A signal to the process is no error: the loop continues.
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

    /// Never too early, by either call; in milliseconds rounded up.
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
