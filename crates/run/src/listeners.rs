//! Who listens on this machine.

use host::{Listener, Root};

/// From the kernel by netlink; where that is forbidden, from `/proc`, which is slow with millions of sockets
/// and has no backlogs.
pub(crate) fn listeners(root: &Root) -> Vec<Listener> {
    let Ok(listening) = net::listening() else { return host::listeners(root) };
    let told = |l: net::Listening| Listener {
        address: l.address.ip(),
        port: l.address.port(),
        inode: l.inode,
        backlog: Some(l.backlog.into()),
    };
    listening.into_iter().map(told).collect()
}
