//! A separate network namespace for a thread, which ends with the thread.

use std::{io::Write, process::Command};

/// Moves this thread, and the threads and programs that it starts, to a new network namespace with a loopback device. Returns false, and
/// reports it, if the user lacks the permission.
pub(crate) fn enter() -> bool {
    // SAFETY: unshare takes no pointer; the thread has no sockets yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let why = std::io::Error::last_os_error();
        // Written directly to stderr, because the test harness hides the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped, a TUN device needs root: {why}");
        return false;
    }
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("iproute2 is installed");
    assert!(up.success());
    true
}
