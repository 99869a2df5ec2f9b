//! One ring: its queues and its table of direct descriptors.

use std::{io, os::fd::RawFd};

use io_uring::{IoUring, Submitter, opcode, register::Restriction, squeue, types};
use units::Nanos;

use super::Settings;

/// How a thread's rings run deferred work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A single ring: deferred work runs when the thread waits on it (SINGLE_ISSUER, DEFER_TASKRUN).
    Alone,
    /// Several rings: any system call of the thread runs the deferred work of all rings (COOP_TASKRUN), and one eventfd signals for all.
    /// Measured with 25 rings: 12 µs of CPU per request instead of 40 with DEFER_TASKRUN.
    Several,
}

pub(super) struct Ring {
    ring: IoUring,
    /// Number of times that the kernel was entered for this ring.
    pub(super) entered: u64,
    min_wait: bool,
}

impl Ring {
    /// Creates a ring with an empty table of direct descriptors. One table may not have more slots than RLIMIT_NOFILE, but several rings
    /// together may.
    pub(super) fn new(settings: &Settings, mode: Mode) -> io::Result<Ring> {
        // Few entries per ring if there are many rings: 62 rings for a million connections, at 64 KiB each, take 4 MiB.
        let (entries, completions) = match (settings.few_entries, mode) {
            (Some(few), _) => (few, few),
            (None, Mode::Alone) => (1024, 8192),
            (None, Mode::Several) => (512, 2048),
        };
        let build = |flags: &dyn Fn(&mut io_uring::Builder)| {
            let mut b = IoUring::builder();
            b.setup_cqsize(completions).setup_submit_all().dontfork();
            if settings.old_kernel {
                b.setup_r_disabled();
            }
            flags(&mut b);
            b.build(entries)
        };
        let wanted = build(&|b| match mode {
            Mode::Alone => {
                b.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            Mode::Several => {
                b.setup_coop_taskrun().setup_taskrun_flag();
            }
        });
        // Kernels before 6.1 refuse these flags with EINVAL; without them everything works, at a higher cost.
        let ring: IoUring = match wanted {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => build(&|_| {})?,
            other => other?,
        };
        ring.submitter().register_files_sparse(settings.slots.min(settings.connections))?;
        if settings.old_kernel {
            restrict(&ring.submitter())?;
        }
        let min_wait = ring.params().is_feature_min_timeout();
        Ok(Ring { ring, entered: 0, min_wait })
    }

    pub(super) fn signal(&self, eventfd: RawFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(eventfd)
    }

    /// Whether the kernel supports this operation.
    pub(super) fn knows(&self, code: u8) -> bool {
        let mut probe = io_uring::Probe::new();
        self.ring.submitter().register_probe(&mut probe).is_ok() && probe.is_supported(code)
    }

    /// Queues entries that belong together; submits first if they do not fit.
    ///
    /// # Safety
    /// The memory that the entries point to must stay valid until [`Ring::submit`] returns, and for operations that may wait (a send
    /// without MSG_DONTWAIT) until their completion.
    pub(super) unsafe fn push(&mut self, entries: &[squeue::Entry]) {
        let (len, capacity) = {
            let queue = self.ring.submission();
            (queue.len(), queue.capacity())
        };
        if len + entries.len() > capacity {
            self.submit();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.ring.submission().push_multiple(entries).expect("room was made above") };
    }

    /// Submits all queued entries. All are started before this returns.
    pub(super) fn submit(&mut self) {
        while !self.ring.submission().is_empty() {
            self.entered += 1;
            match self.ring.submit() {
                Ok(_) => {}
                Err(e) if is_passing(&e) => {}
                Err(e) => panic!("io_uring refuses a submission: {e}"),
            }
        }
    }

    /// Submits queued entries and sleeps until a completion arrives, at most for `at_most`. With a `gather` time, waits up to that time for
    /// `several` completions.
    pub(super) fn submit_and_sleep(&mut self, at_most: Nanos, gather: Nanos, several: usize) {
        let ts =
            types::Timespec::new().sec(at_most.0 / 1_000_000_000).nsec((at_most.0 % 1_000_000_000) as u32);
        let mut args = types::SubmitArgs::new().timespec(&ts);
        let mut want = 1;
        if gather.0 > 0 && self.min_wait {
            args = args.min_wait_usec((gather.0 / 1000) as u32);
            want = several;
        }
        self.entered += 1;
        match self.ring.submitter().submit_with_args(want, &args) {
            Ok(_) => {}
            Err(e) if is_passing(&e) => {}
            Err(e) => panic!("io_uring refuses to wait: {e}"),
        }
        // A signal may have interrupted the call before all entries were submitted.
        self.submit();
    }

    /// Calls `f` with user data, result and flags of every available completion. If the queue overflows, the kernel holds back this and all
    /// later completions until the queue has been read and the kernel is entered again. Therefore this loops until none is held back: a
    /// new batch relies on all completions of the last one having been read.
    pub(super) fn reap(&mut self, mut f: impl FnMut(u64, i32, u32)) {
        loop {
            let mut queue = self.ring.completion();
            for c in &mut queue {
                f(c.user_data(), c.result(), c.flags());
            }
            let dropped = queue.overflow();
            drop(queue);
            assert!(dropped == 0, "out of memory: the kernel has dropped {dropped} completions");
            if !self.ring.submission().cq_overflow() {
                return;
            }
            self.submit_and_sleep(Nanos::ZERO, Nanos::ZERO, 1);
        }
    }

    pub(super) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Sets whether completions signal the eventfd. Off while the loop polls the queues itself.
    pub(super) fn set_signalling(&mut self, on: bool) {
        let queue = self.ring.completion();
        if on { queue.enable_eventfd() } else { queue.disable_eventfd() }
    }

    /// Puts an ordinary descriptor into a slot, which holds its own reference to the file.
    pub(super) fn install(&self, slot: u32, fd: RawFd) -> io::Result<()> {
        self.ring.submitter().register_files_update(slot, &[fd]).map(|_| ())
    }
}

/// Results that are not errors: a timeout, a signal, or a completion queue that must be read first.
fn is_passing(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

/// Enables a ring that was created disabled, restricted to the operations of Linux 5.19.
fn restrict(ring: &Submitter) -> io::Result<()> {
    /// IORING_REGISTER_EVENTFD, IORING_REGISTER_FILES_UPDATE, IORING_REGISTER_PROBE, IORING_REGISTER_ENABLE_RINGS.
    const REGISTRATIONS: [u8; 4] = [4, 6, 8, 12];
    const FLAGS: squeue::Flags = squeue::Flags::SKIP_SUCCESS.union(squeue::Flags::FIXED_FILE);
    let operations = [
        opcode::Accept::CODE,
        opcode::AsyncCancel::CODE,
        opcode::Close::CODE,
        opcode::Connect::CODE,
        opcode::PollAdd::CODE,
        opcode::Recv::CODE,
        opcode::Send::CODE,
        opcode::Timeout::CODE,
    ];
    let mut allowed: Vec<Restriction> = operations.map(Restriction::sqe_op).into();
    allowed.extend(REGISTRATIONS.map(Restriction::register_op));
    allowed.push(Restriction::sqe_flags_allowed(FLAGS.bits()));
    ring.register_restrictions(&mut allowed)?;
    ring.register_enable_rings()
}
