//! The few things about sockets that are asked of the machine as a whole.

use std::{io, net::IpAddr, net::SocketAddr};

use rustix::{
    net::{AddressFamily, SocketType, connect, getsockname, socket},
    process::{Resource, getrlimit, setrlimit},
};

/// Most slots that io_uring takes in one table (IORING_MAX_FIXED_FILES).
const MOST_SLOTS: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard one. Returns what a table of direct descriptors may have.
///
/// # Errors
/// What `setrlimit` says.
pub fn raise_open_files() -> io::Result<u32> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.maximum.unwrap_or(MOST_SLOTS).min(MOST_SLOTS) as u32)
}

/// The local address from which the kernel would dial `to`. Nothing is sent: connecting a datagram socket only
/// looks up the route.
///
/// # Errors
/// What `connect` says: no route.
pub fn route_source(to: SocketAddr) -> io::Result<IpAddr> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    connect(&socket, &to)?;
    let from =
        SocketAddr::try_from(getsockname(&socket)?).map_err(|_| io::Error::other("not an inet socket"))?;
    Ok(from.ip())
}

/// Lets this thread's timers fire when they are due: by default Linux puts them off by up to 50 µs
/// (PR_SET_TIMERSLACK), which would pass for lag.
pub fn sharpen_timers() {
    // Refused by a sandbox, at worst: then the lag is a little larger, and shown.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
