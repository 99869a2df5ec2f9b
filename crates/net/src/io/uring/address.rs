//! Socket addresses in the kernel's layout.

use std::net::SocketAddr;

/// An IPv4 or IPv6 address in the kernel's layout.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Address {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Address {
    /// Converts an address; also returns its length for the kernel.
    pub(super) fn new(at: SocketAddr) -> (Address, libc::socklen_t) {
        match at {
            SocketAddr::V4(at) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: at.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(at.ip().octets()) },
                    sin_zero: [0; 8],
                };
                (Address { v4 }, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(at) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: at.port().to_be(),
                    sin6_flowinfo: at.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: at.ip().octets() },
                    sin6_scope_id: at.scope_id(),
                };
                (Address { v6 }, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        std::ptr::from_ref(self).cast()
    }
}

/// AF_INET or AF_INET6.
pub(super) fn family(at: SocketAddr) -> i32 {
    if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}
