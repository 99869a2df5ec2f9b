//! The MTU of the path to the destinations. The device's own MTU does not show it: packets are forwarded to another device, which drops
//! those that are too large for it.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use crate::machine::routed;

/// The MTU of the path to most servers. A packet handed to the kernel may be larger: the kernel segments it (TSO), and joins received ones.
pub(super) const USUAL: u16 = 1500;
/// The minimum that each host must accept (RFC 791, section 3.1; RFC 8200, section 5).
const LEAST_V4: u16 = 576;
const LEAST_V6: u16 = 1280;

/// The smallest MTU of this machine's routes to these destinations, at most 1,500 bytes; those without a route do not count.
pub fn mtu_to(destinations: &[SocketAddr]) -> u16 {
    let hosts: BTreeSet<IpAddr> = destinations.iter().map(SocketAddr::ip).collect();
    let known = hosts.into_iter().filter_map(|host| of_route(host).ok());
    known.min().unwrap_or(USUAL).min(USUAL)
}

/// The MTU of the route to a host, as a connected socket reports it (ip(7), `IP_MTU`; ipv6(7), `IPV6_MTU`).
fn of_route(host: IpAddr) -> io::Result<u16> {
    let (level, option, least) = match host {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU, LEAST_V4),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU, LEAST_V6),
    };
    // Any port: the route is the same.
    let mtu = number(&routed(SocketAddr::new(host, 9))?, level, option)?;
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX).max(least))
}

fn number(socket: &OwnedFd, level: libc::c_int, option: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let at = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the option is a number, which fits in `value`, and both arguments outlive the call.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, at, &mut len) } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_an_mtu_and_the_usual_one_is_enough() {
        let to = |host: &str| SocketAddr::new(host.parse().unwrap(), 80);
        assert!(of_route(to("127.0.0.1").ip()).unwrap() > USUAL);
        assert_eq!((mtu_to(&[to("127.0.0.1")]), mtu_to(&[])), (USUAL, USUAL));
        // Without a route the MTU is unknown.
        assert!(of_route(to("255.255.255.255").ip()).is_err());
        assert_eq!(mtu_to(&[to("255.255.255.255"), to("127.0.0.9")]), USUAL);
    }
}
