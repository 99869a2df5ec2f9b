//! Settings and queries about sockets that concern the machine or a thread as a whole.

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

/// Most slots that io_uring takes in one table (IORING_MAX_FIXED_FILES).
const MAX_SLOTS: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard one. Returns what one table may have, of direct descriptors or of
/// a thread's own.
///
/// # Errors
/// The error of `setrlimit`.
pub fn raise_open_files() -> io::Result<u32> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.maximum.unwrap_or(MAX_SLOTS).min(MAX_SLOTS) as u32)
}

/// Returns freed memory to the kernel. The allocator keeps what is not at the end of its heap, in case it is needed again. Takes
/// milliseconds: for after a peak.
pub(crate) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and locks the allocator itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Standard input, output and error stay in every table.
const STREAMS: RawFd = 3;

/// A listener's descriptor in the table of the thread that owns it, for a thread started by that one.
#[derive(Clone, Copy, Debug)]
pub struct SharedListener(RawFd);

impl SharedListener {
    pub(crate) fn of(listener: &OwnedFd) -> SharedListener {
        SharedListener(listener.as_raw_fd())
    }
}

/// Blocks all signals in the calling thread, except those that its own faults raise: they are for the threads of the
/// process that wait for them. To be called first in a thread that has connections.
///
/// A handler writes to a descriptor (a self-pipe), by a number that is only valid in the file table of the thread that
/// created it: in a thread with its own table that number may be a connection.
pub fn block_signals() {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is read, and outlives the calls; a mask affects nothing but this thread.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT] {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        let failed = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        assert_eq!(failed, 0, "SIG_BLOCK is a way to change a mask");
    }
}

/// Gives the calling thread its own file table, and with it its own limit: RLIMIT_NOFILE is checked per table, not per
/// process. The new table has the standard streams and what `shared_listener` names, and nothing else: a listener or a pipe that it
/// kept would stay open after the others have closed it.
///
/// To be called first in a thread that others started: files and sockets that it has brought along do not exist in
/// the new table, and `shared_listener` must be open in the old one until this returns.
///
/// One call of close_range(2) with CLOSE_RANGE_UNSHARE (Linux 5.9) does it, and copies no more than is kept. On older
/// kernels unshare(2) does; containers' default profiles allow the first and refuse the second.
///
/// The thread blocks all signals from here on: see [`block_signals`].
///
/// Returns the shared listener, as a descriptor of this thread: it stays open until both have closed it.
///
/// # Errors
/// Neither is allowed: the threads share a table and a limit. EBADF: `shared_listener` is not open.
pub fn own_open_files(shared_listener: Option<SharedListener>) -> io::Result<Option<OwnedFd>> {
    block_signals();
    let kept = shared_listener.map_or(STREAMS - 1, |SharedListener(fd)| fd);
    if close_range(kept + 1, RawFd::MAX, libc::CLOSE_RANGE_UNSHARE).is_err() {
        // SAFETY: only numbers of descriptors are affected, no memory; see above for who must not use them.
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
    // SAFETY: a query.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, as just checked, in a table that only this thread has; nothing else closes this
    // copy of it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Closes `first..=last`, in a table of this thread's own with CLOSE_RANGE_UNSHARE.
fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: as for `unshare`; without the flag only the table that this thread has made its own is changed.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes `first..end` one by one, in the table that this thread has made its own.
fn close_each(first: RawFd, end: RawFd) {
    for fd in first..end {
        // SAFETY: as above. A descriptor that is not open returns EBADF.
        unsafe { libc::close(fd) };
    }
}

/// Whether threads may have tables of their own here; tried in a thread that ends again.
///
/// # Errors
/// As for [`own_open_files`].
pub fn probe_own_open_files() -> io::Result<()> {
    let trial = std::thread::Builder::new().spawn(|| own_open_files(None).map(drop))?;
    trial.join().unwrap_or_else(|_| Err(io::Error::other("the trial thread panicked")))
}

/// The local address from which the kernel would dial `to`. Nothing is sent: connecting a datagram socket only
/// looks up the route.
///
/// # Errors
/// The error of `connect`: no route.
pub fn route_source(to: SocketAddr) -> io::Result<IpAddr> {
    let from = SocketAddr::try_from(getsockname(routed(to)?)?)
        .map_err(|_| io::Error::other("not an inet socket"))?;
    Ok(from.ip())
}

/// A socket that has the route to `to`; nothing is sent.
pub(crate) fn routed(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    connect(&socket, &to)?;
    Ok(socket)
}

/// As the kernel has a length of time.
pub(crate) fn timespec(t: Nanos) -> Timespec {
    Timespec { tv_sec: (t.0 / 1_000_000_000) as i64, tv_nsec: (t.0 % 1_000_000_000) as _ }
}

/// Lets this thread's timers fire when they are due: by default Linux puts them off by up to 50 µs
/// (PR_SET_TIMERSLACK), which would pass for lag.
pub fn sharpen_timers() {
    // Refused by a sandbox, at worst: then the lag is a little larger, and shown.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
