//! Where packets go and come from: a TUN device (kernel document `networking/tuntap`): made by its descriptor, and gone with it, even if the process is killed.

use std::{
    fs::OpenOptions,
    io::{self, IoSlice, Write},
    net::IpAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{AddressFamily, SocketType, socket},
};
use tcp::Outgoing;
use units::{Clock, Nanos};

use super::{mtu, route};
use crate::machine::timespec;

/// Carries packets, and has the clock: the kernel's, or another one with another time.
pub trait Device {
    /// The next packet, of at most `into.len()` bytes; none if none is there now.
    fn read(&mut self, into: &mut [u8]) -> Option<Incoming>;
    /// Sends a packet. False: it is lost.
    fn write(&mut self, packet: &Outgoing) -> bool;
    /// Sleeps until a packet is there, at most until then.
    fn wait(&mut self, until: Nanos);
    /// Sleeps whatever happens.
    fn nap(&mut self, time: Nanos);
    /// The time.
    fn now(&self) -> Nanos;
}

/// A packet that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Where in the buffer its IP header begins.
    pub at: usize,
    /// Where it ends.
    pub end: usize,
    /// Its checksums need no verification.
    pub is_trusted: bool,
}

/// Packets that may wait in the device to be read: those of one turn, which the other end produces while this one writes. The
/// kernel drops what is above it. 1 MiB of pointers.
const QUEUE: i32 = 128 * 1024;

/// `struct virtio_net_hdr`, before each packet (VIRTIO 1.2, section 5.1.6).
const HEADER: usize = 10;
/// The TCP checksum is still to be computed, from `csum_start` on: in flags.
const NEEDS_CSUM: u8 = 1;
/// The checksum was verified: in flags.
const DATA_VALID: u8 = 2;
/// `VIRTIO_NET_HDR_GSO_TCPV4` and `VIRTIO_NET_HDR_GSO_TCPV6`: the kernel cuts the packet.
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
/// Of the checksum in a TCP header.
const CHECKSUM_AT: u16 = 16;

/// An open device that is up.
#[derive(Debug)]
pub struct TunDevice {
    file: OwnedFd,
    name: String,
    index: u32,
    clock: Clock,
}

impl TunDevice {
    /// A new device of this network namespace, named `throng` and a free number.
    ///
    /// # Errors
    /// ENOENT: there is no /dev/net/tun. EPERM: no CAP_NET_ADMIN.
    pub fn open(clock: Clock) -> io::Result<TunDevice> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
        let file = OwnedFd::from(file);
        rustix::io::ioctl_fionbio(&file, true)?;
        let mut request = request("throng%d");
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        ioctl(file.as_fd(), libc::TUNSETIFF, &mut request)?;
        let name = name_of(&request);
        // Checksums are not computed twice, and what the other end sends at once stays one packet.
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        // SAFETY: this call takes a number.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let index = set_up(&name)?;
        Ok(TunDevice { file, name, index, clock })
    }

    /// As `ip link` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Routes a network to it: what is sent there by this machine, or through it, arrives here.
    ///
    /// # Errors
    /// EEXIST: there is a route to this network already.
    pub fn route(&self, network: (IpAddr, u8)) -> io::Result<()> {
        route::add(network, self.index)
    }

    /// Allows 127.0.0.0/8 as the other end of its packets; otherwise they are martians (RFC 1812, section 5.3.7).
    ///
    /// # Errors
    /// The file cannot be written, as in most containers.
    pub fn allow_loopback(&self) -> io::Result<()> {
        self.set("ipv4", "route_localnet")
    }

    /// Lets its packets be forwarded to other machines.
    ///
    /// # Errors
    /// As for [`TunDevice::allow_loopback`].
    pub fn allow_forwarding(&self, is_v4: bool) -> io::Result<()> {
        self.set(if is_v4 { "ipv4" } else { "ipv6" }, "forwarding")
    }

    fn set(&self, family: &str, setting: &str) -> io::Result<()> {
        let file = format!("/proc/sys/net/{family}/conf/{}/{setting}", self.name);
        let written = OpenOptions::new().write(true).open(&file).and_then(|mut file| file.write_all(b"1"));
        written.map_err(|e| io::Error::new(e.kind(), format!("{file}: {e}")))
    }
}

impl Device for TunDevice {
    fn read(&mut self, into: &mut [u8]) -> Option<Incoming> {
        let end = rustix::io::read(&self.file, &mut *into).ok().filter(|len| *len > HEADER)?;
        Some(Incoming { at: HEADER, end, is_trusted: into[0] & (NEEDS_CSUM | DATA_VALID) != 0 })
    }

    fn write(&mut self, packet: &Outgoing) -> bool {
        let header = header(packet);
        let parts = [&header[..], packet.head, packet.payload].map(IoSlice::new);
        rustix::io::writev(&self.file, &parts).is_ok()
    }

    fn wait(&mut self, until: Nanos) {
        let at_most = until.since(self.clock.now());
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        // A signal or the timeout: the loop continues in either case.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
    }

    fn nap(&mut self, time: Nanos) {
        // Ended by a signal, at worst.
        let _ = rustix::thread::nanosleep(&timespec(time));
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// Mtu, length of the queue, and up. Returns the device's number.
fn set_up(name: &str) -> io::Result<u32> {
    // Any socket serves for these calls.
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let fd = socket.as_fd();
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu = mtu::USUAL.into();
    ioctl(fd, libc::SIOCSIFMTU as libc::Ioctl, &mut request)?;
    // The kernel has one field for both.
    request.ifr_ifru.ifru_mtu = QUEUE;
    ioctl(fd, libc::SIOCSIFTXQLEN as libc::Ioctl, &mut request)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    ioctl(fd, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)?;
    ioctl(fd, libc::SIOCGIFINDEX as libc::Ioctl, &mut request)?;
    // SAFETY: that call has written this field.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
}

/// A request about the device of this name.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: numbers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()).take(libc::IFNAMSIZ - 1) {
        *to = from as libc::c_char;
    }
    request
}

fn name_of(request: &libc::ifreq) -> String {
    let bytes = request.ifr_name.iter().take_while(|byte| **byte != 0);
    bytes.map(|byte| char::from(*byte as u8)).collect()
}

fn ioctl(fd: BorrowedFd, call: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: each of these calls reads or writes one `ifreq`, which outlives it.
    match unsafe { libc::ioctl(fd.as_raw_fd(), call, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel computes the TCP checksum from the pseudo header's sum that is in its place, or, within this machine, takes it for right.
fn header(packet: &Outgoing) -> [u8; HEADER] {
    let kind = match packet.segment_size {
        None => 0,
        Some(_) if packet.head[0] >> 4 == 4 => GSO_TCP4,
        Some(_) => GSO_TCP6,
    };
    let mut header = [0; HEADER];
    header[0] = NEEDS_CSUM;
    header[1] = kind;
    let size = packet.segment_size.unwrap_or(0);
    let numbers = [packet.head.len() as u16, size, packet.ip_len as u16, CHECKSUM_AT];
    for (to, number) in header[2..].chunks_exact_mut(2).zip(numbers) {
        to.copy_from_slice(&number.to_ne_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_where_the_checksum_goes() {
        let (four, six) = ([0x45; 40], [0x60; 64]);
        let header = |head: &[u8], segment_size| {
            header(&Outgoing {
                head,
                ip_len: if head[0] == 0x45 { 20 } else { 40 },
                payload: &[],
                segment_size,
            })
        };
        let bytes = |kind: u8, numbers: [u16; 4]| {
            [[NEEDS_CSUM, kind].to_vec(), numbers.map(u16::to_ne_bytes).concat()].concat()
        };
        assert_eq!(header(&four, None)[..], bytes(0, [40, 0, 20, 16]));
        assert_eq!(header(&four, Some(1460))[..], bytes(1, [40, 1460, 20, 16]));
        assert_eq!(header(&six, Some(1440))[..], bytes(4, [64, 1440, 40, 16]));
    }
}
