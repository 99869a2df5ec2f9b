//! Settings of the machine or of a thread that concern sockets: file limits and file tables, signals, routes and timer precision.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use rustix::{
    net::{AddressFamily, SocketType, connect, getsockname, socket},
    process::{Resource, getrlimit, setrlimit},
    time::Timespec,
};
use units::Nanos;

/// Maximum slots of a table of direct descriptors in io_uring (IORING_MAX_FIXED_FILES).
const MAX_SLOTS: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard limit. Returns the maximum number of entries of one table, either of direct descriptors
/// or of a thread's file table.
///
/// # Errors
/// The error of `setrlimit`.
pub fn raise_open_files() -> io::Result<u32> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.maximum.unwrap_or(MAX_SLOTS).min(MAX_SLOTS) as u32)
}

/// Returns freed memory to the kernel; the allocator otherwise keeps memory that is not at the end of its heap. Takes milliseconds, so
/// it is for use after a peak.
pub(crate) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes no pointer, and locks the allocator itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The first descriptor after standard input, output and error, which stay in every table.
const STREAMS: RawFd = 3;

/// A listener's descriptor in the file table of the thread that owns the listener, to be passed to a thread that it starts.
#[derive(Clone, Copy, Debug)]
pub struct SharedListener(RawFd);

impl SharedListener {
    pub(crate) fn of(listener: &OwnedFd) -> SharedListener {
        SharedListener(listener.as_raw_fd())
    }
}

/// Blocks all signals in the calling thread, except those that its own faults raise; other threads of the process handle signals. Must be
/// called first in a thread that has connections.
///
/// The reason: a signal handler writes to a descriptor (a self-pipe) by a number that is only valid in the file table of the thread that
/// created it. In a thread with another table, that number may be a connection.
pub fn block_signals() {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised before it is read, and outlives the calls; a mask affects only this thread.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT] {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        let failed = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        assert_eq!(failed, 0, "SIG_BLOCK is a way to change a mask");
    }
}

/// Gives the calling thread its own file table, and with it its own limit: RLIMIT_NOFILE is checked per table, not per process. The new
/// table contains only the standard streams and `shared_listener`: any other listener or pipe in it would stay open after the other
/// threads have closed it.
///
/// Must be called first in a newly started thread: files and sockets that the thread has brought along do not exist in the new table, and
/// `shared_listener` must be open in the old table until this returns.
///
/// close_range(2) with CLOSE_RANGE_UNSHARE (Linux 5.9) does it in one call and copies only what is kept. On older kernels unshare(2) is
/// used; the default profiles of containers allow the former and refuse the latter.
///
/// The thread blocks all signals afterwards: see [`block_signals`].
///
/// Returns the shared listener as a descriptor of this thread; the socket stays open until both threads have closed it.
///
/// # Errors
/// Neither call is allowed: the threads share one table and one limit. EBADF: `shared_listener` is not open.
pub fn own_open_files(shared_listener: Option<SharedListener>) -> io::Result<Option<OwnedFd>> {
    block_signals();
    let kept = shared_listener.map_or(STREAMS - 1, |SharedListener(fd)| fd);
    if close_range(kept + 1, RawFd::MAX, libc::CLOSE_RANGE_UNSHARE).is_err() {
        // SAFETY: only descriptor numbers are affected, no memory; the doc comment says which descriptors must not be used.
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_SLOTS).min(MAX_SLOTS);
        close_each(kept + 1, limit as RawFd);
    }
    if kept > STREAMS && close_range(STREAMS, kept - 1, 0).is_err() {
        close_each(STREAMS, kept);
    }
    let Some(SharedListener(fd)) = shared_listener else { return Ok(None) };
    // SAFETY: F_GETFD only reads flags.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the check above shows that the descriptor is open, in a table that only this thread has; nothing else closes this copy.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Closes `first..=last`; with CLOSE_RANGE_UNSHARE, in a new file table that only this thread has.
fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: as for `unshare`; without the flag, only the table that this thread has already unshared is changed.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes `first..end` one by one, in the table that this thread has unshared.
fn close_each(first: RawFd, end: RawFd) {
    for fd in first..end {
        // SAFETY: as in `close_range`. A descriptor that is not open returns EBADF.
        unsafe { libc::close(fd) };
    }
}

/// Checks whether threads may have their own file tables here, by trying it in a short-lived thread.
///
/// # Errors
/// As for [`own_open_files`].
pub fn probe_own_open_files() -> io::Result<()> {
    let trial = std::thread::Builder::new().spawn(|| own_open_files(None).map(drop))?;
    trial.join().unwrap_or_else(|_| Err(io::Error::other("the trial thread panicked")))
}

/// The local address from which the kernel would dial `to`. Nothing is sent: connecting a datagram socket only looks up the route.
///
/// # Errors
/// The error of `connect`: no route.
pub fn route_source(to: SocketAddr) -> io::Result<IpAddr> {
    let from = SocketAddr::try_from(getsockname(routed(to)?)?)
        .map_err(|_| io::Error::other("not an inet socket"))?;
    Ok(from.ip())
}

/// A datagram socket that is connected to `to` and so has the route to it; nothing is sent.
pub(crate) fn routed(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    connect(&socket, &to)?;
    Ok(socket)
}

/// Converts a duration to the kernel's format.
pub(crate) fn timespec(t: Nanos) -> Timespec {
    Timespec { tv_sec: (t.0 / 1_000_000_000) as i64, tv_nsec: (t.0 % 1_000_000_000) as _ }
}

/// Makes this thread's timers precise: by default Linux delays them by up to 50 µs (PR_SET_TIMERSLACK), which would be measured as
/// lag.
pub fn sharpen_timers() {
    // A sandbox may refuse it: then the lag is slightly larger, and is shown.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
