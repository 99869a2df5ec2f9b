//! The maximum length of accept queues.

use crate::Root;

/// `net.core.somaxconn` of this network namespace.
pub fn somaxconn(root: &Root) -> Option<u64> {
    root.number("proc/sys/net/core/somaxconn")
}
