//! A TUN device (kernel document `networking/tuntap`): packets are written to and read from its file. The device exists only as long as
//! its descriptor is open, so it disappears even if the process is killed.

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

/// Carries packets and provides the clock: the kernel's, or for tests a simulated one.
pub trait Device {
    /// Reads the next packet, of at most `into.len()` bytes; `None` if there is none now.
    fn read(&mut self, into: &mut [u8]) -> Option<Incoming>;
    /// Sends a packet. False: the packet is lost.
    fn write(&mut self, packet: &Outgoing) -> bool;
    /// Sleeps until a packet is there, at most until `until`.
    fn wait(&mut self, until: Nanos);
    /// Sleeps for `time`, regardless of packets.
    fn nap(&mut self, time: Nanos);
    /// The current time.
    fn now(&self) -> Nanos;
}

/// A packet that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Offset of the IP header in the buffer.
    pub at: usize,
    /// Offset of the end of the packet.
    pub end: usize,
    /// Whether its checksums need no verification.
    pub is_trusted: bool,
}

/// Maximum packets queued in the device for reading: those that the other end produces during one turn, while this end writes. The
/// kernel drops further packets. The queue takes 1 MiB, for pointers.
const QUEUE: i32 = 128 * 1024;

/// Size of `struct virtio_net_hdr`, which precedes each packet (VIRTIO 1.2, section 5.1.6).
const HEADER: usize = 10;
/// Flag: the TCP checksum must still be computed, from `csum_start` on.
const NEEDS_CSUM: u8 = 1;
/// Flag: the checksum was verified.
const DATA_VALID: u8 = 2;
/// `VIRTIO_NET_HDR_GSO_TCPV4` and `VIRTIO_NET_HDR_GSO_TCPV6`: the kernel segments the packet.
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
/// Offset of the checksum in a TCP header.
const CHECKSUM_AT: u16 = 16;

/// An open TUN device that is up.
#[derive(Debug)]
pub struct TunDevice {
    file: OwnedFd,
    name: String,
    index: u32,
    clock: Clock,
}

impl TunDevice {
    /// Creates a device in this network namespace, named `throng` and a free number.
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
        // Checksums are not computed twice, and data that the other end sends at once stays in one packet.
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        // SAFETY: this ioctl takes a number.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let index = set_up(&name)?;
        Ok(TunDevice { file, name, index, clock })
    }

    /// The name, as `ip link` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Routes a network to the device: packets to it from or through this machine arrive here.
    ///
    /// # Errors
    /// EEXIST: there is a route to this network already.
    pub fn route(&self, network: (IpAddr, u8)) -> io::Result<()> {
        route::add(network, self.index)
    }

    /// Allows 127.0.0.0/8 as the other end of its packets, which would otherwise be martians (RFC 1812, section 5.3.7).
    ///
    /// # Errors
    /// The setting cannot be written, as in most containers.
    pub fn allow_loopback(&self) -> io::Result<()> {
        self.set("ipv4", "route_localnet")
    }

    /// Allows its packets to be forwarded to other machines.
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
        // An error is a signal, and 0 is the timeout: the loop continues in either case.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
    }

    fn nap(&mut self, time: Nanos) {
        // A signal may end it early, which is harmless.
        let _ = rustix::thread::nanosleep(&timespec(time));
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// Sets the MTU and the queue length of a device, and brings it up. Returns its interface index.
fn set_up(name: &str) -> io::Result<u32> {
    // These ioctls work on any socket.
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let fd = socket.as_fd();
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu = mtu::USUAL.into();
    ioctl(fd, libc::SIOCSIFMTU as libc::Ioctl, &mut request)?;
    // The field of the queue length is the same union member as that of the MTU.
    request.ifr_ifru.ifru_mtu = QUEUE;
    ioctl(fd, libc::SIOCSIFTXQLEN as libc::Ioctl, &mut request)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    ioctl(fd, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)?;
    ioctl(fd, libc::SIOCGIFINDEX as libc::Ioctl, &mut request)?;
    // SAFETY: SIOCGIFINDEX has written this field.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
}

/// A request for the device with this name.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: ifreq consists of numbers and bytes, for which zero is valid.
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
    // SAFETY: each of these ioctls reads or writes one `ifreq`, which outlives it.
    match unsafe { libc::ioctl(fd.as_raw_fd(), call, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The `virtio_net_hdr` of a packet. The TCP checksum field holds only the sum of the pseudo header: the kernel computes the rest, or
/// trusts the packet if it stays on this machine.
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
