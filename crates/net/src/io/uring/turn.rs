//! The steps of a turn that concern the rings: sleep and receive.

use io_uring::opcode;
use units::Nanos;

use super::{BULK, HELD, LISTED, Mode, Op, Uring, ring::Ring, user_data};
use crate::{
    io::{REGIONS, Scratch},
    machine::timespec,
    slab::Key,
};

/// How long to wait for a receive that had not completed when its submission returned.
const MOMENT: Nanos = Nanos::from_micros(50);

impl Uring {
    /// Receives from up to [`REGIONS`] readable connections into the scratch.
    pub(super) fn receive(&mut self, scratch: &mut Scratch) {
        let mut region = 0;
        self.bulk = scratch.bulk_regions(self.readable.len());
        for _ in 0..self.readable.len().min(REGIONS) {
            let k = self.readable.pop_front().expect("as many as were counted");
            if !self.is_current(k) {
                continue;
            }
            self.unset(k, LISTED);
            // A held connection is listed again when it is resumed.
            if self.is(k, HELD) {
                continue;
            }
            let (_, fd) = self.place(k);
            let count = self.regions(k);
            let into = scratch.regions(region, count);
            let entry = opcode::Recv::new(fd, into.as_mut_ptr(), into.len() as u32)
                .flags(libc::MSG_DONTWAIT)
                .build()
                .user_data(user_data(Op::Receive, region, k));
            // SAFETY: the scratch outlives this call, each region is used once in it, and this function does not return before all
            // these operations have completed.
            unsafe { self.push(k, &[entry]) };
            self.receiving += 1;
            region += count;
        }
        self.submit();
        self.reap();
        // Normally all have completed: MSG_DONTWAIT ends a receive within the submission, and `reap` reads even overflowed completions.
        while self.receiving > 0 {
            self.sleep(self.clock.now() + MOMENT);
            self.reap();
        }
    }

    /// Number of regions that a receive from `k` may fill in this turn.
    pub(super) fn regions(&self, k: Key) -> u16 {
        if self.is(k, BULK) { self.bulk } else { 1 }
    }

    /// Submits queued entries and sleeps until a completion arrives, at most until `until`.
    pub(super) fn sleep(&mut self, until: Nanos) {
        let at_most = until.since(self.clock.now());
        if self.mode == Mode::Alone {
            self.is_dirty[0] = false;
            self.dirty.clear();
            // Half of the connections, so that a small number of connections does not wait for a large batch.
            let several = (self.settings.connections as usize / 2).clamp(1, REGIONS / 2);
            return self.rings[0].submit_and_sleep(at_most, self.gather, several);
        }
        self.submit();
        for ring in &mut self.rings {
            ring.set_signalling(true);
        }
        // A completion may have arrived before signalling was on.
        if at_most.0 > 0 && !self.rings.iter_mut().any(Ring::has_completions) {
            self.sleep_on_eventfd(at_most);
        }
        for ring in &mut self.rings {
            ring.set_signalling(false);
        }
    }

    fn sleep_on_eventfd(&self, at_most: Nanos) {
        let mut fds = [rustix::event::PollFd::new(&self.eventfd, rustix::event::PollFlags::IN)];
        // An error is a signal, and 0 is the timeout: the loop continues in either case.
        if rustix::event::poll(&mut fds, Some(&timespec(at_most))).is_ok_and(|n| n > 0) {
            let _ = rustix::io::read(&self.eventfd, &mut [0u8; 8]);
        }
    }
}
