//! ICMP messages from a socket's error queue (ip(7), `IP_RECVERR`): type, code and sender.

use std::net::IpAddr;

use crate::diag;

/// Size of `struct cmsghdr`: a length, then level and type.
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Size of `struct sock_extended_err` (linux/errqueue.h).
const ERROR: usize = 16;

/// An ICMP error message in response to a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// The sender; `None` if the kernel does not report it.
    pub by: Option<IpAddr>,
    /// Whether it is an ICMPv6 message.
    pub is_v6: bool,
    /// The ICMP type.
    pub kind: u8,
    /// The ICMP code.
    pub code: u8,
}

/// The first ICMP message among a socket's control messages.
pub(crate) fn first(mut control: &[u8]) -> Option<Icmp> {
    while control.len() >= HEADER {
        let length = usize::from_ne_bytes(control[..size_of::<usize>()].try_into().ok()?);
        let number = |at: usize| control[at..at + 4].try_into().map(i32::from_ne_bytes);
        let (level, kind) = (number(HEADER - 8).ok()?, number(HEADER - 4).ok()?);
        let value = control.get(HEADER..length)?;
        if let (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) = (level, kind)
            && let Some(icmp) = extended(value)
        {
            return Some(icmp);
        }
        control = control.get(length.next_multiple_of(size_of::<usize>())..)?;
    }
    None
}

/// Reads `struct sock_extended_err`, which is followed by the sender's address. `None` if the error is not from ICMP.
fn extended(value: &[u8]) -> Option<Icmp> {
    /// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` (linux/errqueue.h).
    const ICMP: u8 = 2;
    const ICMP6: u8 = 3;
    let error = value.get(..ERROR)?;
    let (origin, kind, code) = (error[4], error[5], error[6]);
    let by = offender(&value[ERROR..]);
    matches!(origin, ICMP | ICMP6).then_some(Icmp { by, is_v6: origin == ICMP6, kind, code })
}

/// Reads `struct sockaddr_in` or `sockaddr_in6`.
fn offender(address: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes([*address.first()?, *address.get(1)?]).try_into().ok()?;
    let place = if family == diag::AF_INET { 4..8 } else { 8..24 };
    diag::address(family, address.get(place)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    /// A control message with an error of this origin, type and code, from this address.
    fn control(level: i32, name: i32, error: [u8; 3], address: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + ERROR + address.len()).to_ne_bytes().to_vec();
        bytes.resize(HEADER - 8, 0);
        bytes.extend([level.to_ne_bytes(), name.to_ne_bytes()].concat());
        bytes.extend([113, 0, 0, 0, error[0], error[1], error[2]]);
        bytes.resize(HEADER + ERROR, 0);
        bytes.extend(address);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn address4(bytes: [u8; 4]) -> Vec<u8> {
        [&(libc::AF_INET as u16).to_ne_bytes()[..], &[0, 0], &bytes, &[0; 8]].concat()
    }

    #[test]
    fn a_message_is_read_with_its_sender() {
        let router = Some([10, 88, 0, 1].into());
        let prohibited = control(libc::IPPROTO_IP, libc::IP_RECVERR, [2, 3, 13], &address4([10, 88, 0, 1]));
        let read = first(&prohibited).expect("it is one");
        assert_eq!(read, Icmp { by: router, is_v6: false, kind: 3, code: 13 });
        // The message follows another control message.
        let other = control(libc::SOL_SOCKET, 1, [2, 3, 1], &[]);
        assert_eq!(first(&[other.clone(), prohibited].concat()), Some(read));
        assert_eq!(first(&other), None);
        let mut six = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        six.extend([0; 6]);
        six.extend("fd77::1".parse::<Ipv6Addr>().unwrap().octets());
        six.extend([0; 4]);
        let rejected = first(&control(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, [3, 1, 1], &six));
        let by = Some("fd77::1".parse().unwrap());
        assert_eq!(rejected, Some(Icmp { by, is_v6: true, kind: 1, code: 1 }));
        // A local error is not an ICMP message.
        assert_eq!(first(&control(libc::IPPROTO_IP, libc::IP_RECVERR, [1, 3, 13], &address4([0; 4]))), None);
    }

    proptest! {
        /// No input causes a panic or an endless loop.
        #[test]
        fn any_control_message_is_survived(bytes in proptest::collection::vec(0u8..60, 0..200)) {
            let _ = first(&bytes);
        }
    }
}
