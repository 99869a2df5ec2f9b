//! The listeners of this machine.

use host::{Listener, Root};

/// From the kernel by netlink; where that is forbidden, from `/proc`, which is slow with millions of sockets
/// and has no backlogs.
pub fn listeners(root: &Root) -> Vec<Listener> {
    query().unwrap_or_else(|_| host::listeners(root))
}

/// The same with what waits in their queues, from netlink alone: cheap enough for each second, and empty where that is
/// forbidden.
pub fn queues() -> Vec<Listener> {
    query().unwrap_or_default()
}

fn query() -> std::io::Result<Vec<Listener>> {
    let listener = |l: net::Listening| Listener {
        address: l.address.ip(),
        port: l.address.port(),
        inode: l.inode,
        backlog: Some(l.backlog.into()),
        waiting: Some(l.waiting.into()),
    };
    Ok(net::listening()?.into_iter().map(listener).collect())
}
