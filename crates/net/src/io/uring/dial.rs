//! Dialling and listening.
//!
//! A dial is one linked chain of operations. Where the kernel lacks some of them (`bind` came to io_uring with
//! Linux 6.11, `setsockopt` with 6.7) the socket is made by ordinary system calls instead.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use io_uring::{opcode, squeue};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

use super::{Address, ONE, Op, SKIP, Uring, address::family, user_data};
use units::Nanos;

use crate::{
    io::{Gone, What},
    slab::Key,
};

/// The accept queue asked for; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

fn stream(at: SocketAddr) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listening socket that shares its port with the listeners of the other shards.
pub(super) fn listener(at: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = stream(at)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    let bound =
        SocketAddr::try_from(getsockname(&socket)?).map_err(|_| io::Error::other("not an inet socket"))?;
    Ok((socket, bound))
}

fn bound_socket(from: SocketAddr, to: SocketAddr, share: bool) -> io::Result<OwnedFd> {
    let socket = stream(to)?;
    if share {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if from.port() != 0 || !from.ip().is_unspecified() {
        bind(&socket, &from)?;
    }
    Ok(socket)
}

impl Uring {
    /// Socket, bind and connect as one chain into a direct slot.
    pub(super) fn dial_linked(&mut self, k: Key, from: SocketAddr, to: SocketAddr, share: bool) {
        let (_, fd) = self.place(k);
        let (from_address, from_len) = Address::new(from);
        let (to_address, to_len) = Address::new(to);
        let at = self.addresses.len();
        self.addresses.extend([from_address, to_address]);
        let prepare = user_data(Op::Prepare, 0, k);
        let linked = |e: squeue::Entry| e.flags(squeue::Flags::IO_LINK | SKIP).user_data(prepare);
        let socket = opcode::Socket::new(family(to), libc::SOCK_STREAM, 0);
        let mut chain = [const { None }; 4];
        chain[0] = Some(linked(socket.file_index(Some(self.slot(k))).build()));
        if share {
            let value = std::ptr::from_ref(&ONE).cast();
            let reuse =
                opcode::SetSockOpt::new(fd, libc::SOL_SOCKET as u32, libc::SO_REUSEADDR as u32, value, 4);
            chain[1] = Some(linked(reuse.build()));
        }
        if from.port() != 0 || !from.ip().is_unspecified() {
            chain[2] = Some(linked(opcode::Bind::new(fd, self.addresses[at].as_ptr(), from_len).build()));
        }
        let connect = opcode::Connect::new(fd, self.addresses[at + 1].as_ptr(), to_len).build();
        chain[3] = Some(connect.user_data(user_data(Op::Connect, 0, k)));
        let mut entries: [squeue::Entry; 4] = std::array::from_fn(|_| opcode::Nop::new().build());
        let mut used = 0;
        for entry in chain.into_iter().flatten() {
            entries[used] = entry;
            used += 1;
        }
        self.places[k.index as usize].opening = true;
        // SAFETY: the addresses stay in place until `settle`, which submits first; the option is static.
        unsafe { self.push(k, &entries[..used]) };
    }

    /// Socket and bind as system calls, the socket put into its direct slot, and only the connect left to the
    /// ring: the ordinary descriptor is closed again at once.
    pub(super) fn dial_by_hand(&mut self, k: Key, from: SocketAddr, to: SocketAddr, share: bool) {
        let (ring, fd) = self.place(k);
        // The predecessor's close may still be queued: it must not close what is installed here.
        self.rings[ring].submit();
        let installed = bound_socket(from, to, share)
            .and_then(|socket| self.rings[ring].install(fd.0, socket.as_raw_fd()));
        if let Err(e) = installed {
            return self.tell(k, What::Gone(Gone::from_errno(e.raw_os_error().unwrap_or(libc::EIO))));
        }
        let (to_address, to_len) = Address::new(to);
        let at = self.addresses.len();
        self.addresses.push(to_address);
        let entry = opcode::Connect::new(fd, self.addresses[at].as_ptr(), to_len)
            .build()
            .user_data(user_data(Op::Connect, 0, k));
        self.places[k.index as usize].opening = true;
        // SAFETY: the address stays in place until `settle`, which submits first.
        unsafe { self.push(k, &[entry]) };
    }

    /// Takes back a dial or an accept that is not answered yet, and waits for the answer. The links of a dial run
    /// one after the other as deferred work, and look at the slot only then: left alone, the rest of the chain
    /// would run on the successor's socket. A cancellation finds only the link that runs, so it is repeated.
    pub(super) fn give_up_opening(&mut self, k: Key) {
        let (ring, _) = self.place(k);
        while self.places[k.index as usize].opening {
            for op in [Op::Connect, Op::Accept] {
                let cancel = opcode::AsyncCancel::new(user_data(op, 0, k)).build();
                // SAFETY: the entry points to nothing.
                unsafe { self.push(k, &[cancel.flags(SKIP).user_data(user_data(Op::Quiet, 0, k))]) };
            }
            self.rings[ring].submit_and_sleep(Nanos::from_micros(50), Nanos::ZERO);
            self.reap();
        }
    }
}
