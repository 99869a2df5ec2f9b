//! A network namespace of a thread's own: it ends with the thread.

use std::{io::Write, process::Command};

/// Moves this thread, and the threads and programs that it starts, to a new network namespace with a loopback. False where this user may
/// not: that is reported.
pub(crate) fn enter() -> bool {
    // SAFETY: it takes no pointer; the thread has no sockets yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let why = std::io::Error::last_os_error();
        // Past the test harness, which shows what is printed only of a test that fails.
        let _ = writeln!(std::io::stderr(), "skipped, a TUN device needs root: {why}");
        return false;
    }
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("iproute2 is installed");
    assert!(up.success());
    true
}
