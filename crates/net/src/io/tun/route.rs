//! Adds a route to a device over rtnetlink(7), because the older ioctl does not refuse a route that already exists.

use std::{io, net::IpAddr, time::Duration};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

/// NETLINK_ROUTE has protocol number 0.
const NETLINK_ROUTE: Option<Protocol> = None;
/// Size of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Size of `struct rtattr`.
const ATTRIBUTE: usize = 4;
/// Timeout of the kernel's reply, which is normally immediate.
const PATIENCE: Duration = Duration::from_secs(5);

/// Routes the network to the device with this interface index.
///
/// # Errors
/// EEXIST: the network has a route already. EPERM: no CAP_NET_ADMIN.
pub(super) fn add(network: (IpAddr, u8), device: u32) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, NETLINK_ROUTE)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    send(&socket, &request(network, device), SendFlags::empty())?;
    let mut reply = [0; 1024];
    let (len, _) = recv(&socket, &mut reply[..], RecvFlags::empty())?;
    match result(&reply[..len]) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
        None => Err(io::Error::other("the kernel's reply to a new route has no result")),
    }
}

fn request((base, prefix): (IpAddr, u8), device: u32) -> Vec<u8> {
    const FLAGS: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let (family, address) = match base {
        IpAddr::V4(base) => (libc::AF_INET as u8, base.octets().to_vec()),
        IpAddr::V6(base) => (libc::AF_INET6 as u8, base.octets().to_vec()),
    };
    // An IPv4 route without a gateway has link scope.
    let scope = if base.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    let mut bytes = vec![0; HEADER];
    bytes[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
    bytes[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    bytes.extend([family, prefix, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
    bytes.extend(0u32.to_ne_bytes());
    for (kind, value) in [(libc::RTA_DST, &address[..]), (libc::RTA_OIF, &device.to_ne_bytes())] {
        bytes.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
    }
    let len = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&len.to_ne_bytes());
    bytes
}

/// The result in a reply: 0, or the negative errno; `None` if the reply has none.
fn result(reply: &[u8]) -> Option<i32> {
    const ERROR: u16 = libc::NLMSG_ERROR as u16;
    let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
    let result = i32::from_ne_bytes(reply.get(HEADER..HEADER + 4)?.try_into().ok()?);
    (kind == ERROR).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_whole_attributes() {
        for (base, prefix, len) in [("198.18.7.0", 24, 4), ("2001:2::7:0", 112, 16)] {
            let bytes = request((base.parse().unwrap(), prefix), 9);
            assert_eq!(bytes.len(), HEADER + 12 + 2 * ATTRIBUTE + len + 4, "{base}");
            assert_eq!(bytes[0..4], (bytes.len() as u32).to_ne_bytes());
            assert_eq!(bytes[HEADER + 1], prefix);
            assert_eq!(bytes[bytes.len() - 4..], 9u32.to_ne_bytes());
        }
    }

    #[test]
    fn a_reply_without_a_result_is_none() {
        assert_eq!(result(&[]), None);
        let mut reply = [0; 36];
        assert_eq!(result(&reply), None);
        reply[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        assert_eq!(result(&reply), Some(0));
        reply[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
        assert_eq!(result(&reply), Some(-libc::EEXIST));
    }
}
