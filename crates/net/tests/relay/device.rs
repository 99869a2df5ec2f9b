//! A TUN device whose packets are whole: the kernel has cut them to segments, and computed their checksums.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    process::Command,
};

/// The device's name, in either namespace.
pub(crate) const NAME: &str = "relay";

/// Moves this thread, and those that it starts, to a network namespace of its own, which ends with them. False where this user may not:
/// that is reported.
pub(crate) fn enter() -> bool {
    // SAFETY: it takes no pointer; the thread has no sockets yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let why = std::io::Error::last_os_error();
        // Past the test harness, which shows what is printed only of a test that fails.
        let _ = writeln!(std::io::stderr(), "skipped, a TUN device needs root: {why}");
        return false;
    }
    true
}

/// A new device of this namespace, up. Reading it never blocks.
pub(crate) fn open() -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun").expect("this machine has TUN devices");
    // SAFETY: numbers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.bytes()) {
        *to = from as libc::c_char;
    }
    // One packet at a time, nothing before it.
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: this call reads and writes one `ifreq`, which outlives it.
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(&mut request)) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    ip(&format!("link set {NAME} up"));
    file
}

/// A command line of ip(8), in this namespace.
pub(crate) fn ip(line: &str) {
    let status = Command::new("ip").args(line.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {line}");
}

/// A setting of this namespace.
pub(crate) fn set(file: &str) {
    std::fs::write(format!("/proc/sys/net/{file}"), "1").expect("a namespace of our own has its settings");
}
