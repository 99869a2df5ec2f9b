//! A TUN device that delivers complete packets: the kernel has segmented them and computed their checksums.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    process::Command,
};

/// The name of the device in both namespaces.
pub(crate) const NAME: &str = "relay";

/// Moves this thread, and the threads that it starts, to a new network namespace, which ends with them. Returns false, and reports it, if
/// the user lacks the permission.
pub(crate) fn enter() -> bool {
    // SAFETY: unshare takes no pointer; the thread has no sockets yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let why = std::io::Error::last_os_error();
        // Written directly to stderr, because the test harness hides the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped, a TUN device needs root: {why}");
        return false;
    }
    true
}

/// Creates a device in this namespace and brings it up. Reading from it never blocks.
pub(crate) fn open() -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun").expect("this machine has TUN devices");
    // SAFETY: ifreq consists of numbers and bytes, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.bytes()) {
        *to = from as libc::c_char;
    }
    // One packet at a time, without a header before it.
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: this ioctl reads and writes one `ifreq`, which outlives it.
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(&mut request)) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    ip(&format!("link set {NAME} up"));
    file
}

/// Runs ip(8) with these arguments in this namespace.
pub(crate) fn ip(line: &str) {
    let status = Command::new("ip").args(line.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {line}");
}

/// Sets a setting of this namespace to 1.
pub(crate) fn set(file: &str) {
    std::fs::write(format!("/proc/sys/net/{file}"), "1").expect("a namespace of our own has its settings");
}
