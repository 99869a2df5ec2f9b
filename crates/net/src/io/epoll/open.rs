//! Opens connections: dials them, and accepts peers from the listener.

use std::{io, net::SocketAddr, os::fd::OwnedFd};

use rustix::{
    event::epoll::{self, EventData, EventFlags},
    io::Errno,
    net::{SocketFlags, accept_with, connect, sockopt},
};
use units::Nanos;

use super::{ACCEPT_PAUSE, Epoll, LISTENER, OPENING, READ, READ_AND_WRITE, WRITES, data};
use crate::{
    io::{Gone, What, socket},
    slab::Key,
};

impl Epoll {
    pub(super) fn begin_dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        let socket = socket::bound(from, to, SocketFlags::NONBLOCK)?;
        if let Some(bytes) = self.max_segment {
            socket::limit_segments(&socket, bytes)?;
        }
        let connected = match connect(&socket, &to) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(e) => return Err(e.into()),
        };
        // Registered only now, because a socket that was never connected signals a hang-up.
        self.register(&socket, k, READ_AND_WRITE)?;
        self.begin(k, Some(socket), if connected { WRITES } else { WRITES | OPENING });
        if connected {
            self.report(k, What::Dialled);
        }
        Ok(())
    }

    fn register(&self, socket: &OwnedFd, k: Key, signals: EventFlags) -> io::Result<()> {
        Ok(epoll::add(self.poll.fd(), socket, EventData::new_u64(data(k)), signals)?)
    }

    /// Handles the first event of a dial; returns whether it is connected. `over`: the connection has already ended, or the dial failed.
    pub(super) fn finish_dial(&mut self, k: Key, over: bool) -> bool {
        self.place(k).flags &= !OPENING;
        let error = match self.socket(k) {
            Some(socket) if over => sockopt::socket_error(socket).unwrap_or_else(Err),
            _ => Ok(()),
        };
        match error {
            Ok(()) => {}
            // Without a listener the dial would have been refused, so this one was accepted and reset before the check. Its input can still
            // be read; the query has consumed the error, so its end would look like a FIN.
            Err(Errno::CONNRESET | Errno::PIPE) => self.end(k, Gone::Reset),
            Err(e) => {
                self.report(k, What::failed(&e.into()));
                return false;
            }
        }
        self.report(k, What::Dialled);
        true
    }

    /// Registers the level-triggered listener only while an accept is pending.
    pub(super) fn update_listener(&mut self) {
        if self.accept_paused_until != Nanos::ZERO && self.clock.now() >= self.accept_paused_until {
            self.accept_paused_until = Nanos::ZERO;
        }
        let Some(listener) = &self.listener else { return };
        let wanted = !self.waiting.is_empty() && self.accept_paused_until == Nanos::ZERO;
        if wanted == self.listening {
            return;
        }
        let done = if wanted {
            epoll::add(self.poll.fd(), listener, EventData::new_u64(LISTENER), EventFlags::IN)
        } else {
            epoll::delete(self.poll.fd(), listener)
        };
        match done {
            Ok(()) => self.listening = wanted,
            Err(e) => self.fail_accept(&e.into()),
        }
    }

    /// Accepts for the waiting slots, as long as there are peers.
    pub(super) fn take_peers(&mut self) {
        while let (Some(&k), Some(listener)) = (self.waiting.front(), &self.listener) {
            match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    self.waiting.pop_front();
                    let registered = self.register(&socket, k, READ);
                    self.begin(k, Some(socket), 0);
                    self.report(k, registered.map_or_else(|e| What::failed(&e), |()| What::Accepted));
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(e) => return self.fail_accept(&e.into()),
            }
        }
    }

    /// Fails one pending accept. If descriptors or memory are short, accepting pauses: the peers stay in the kernel's queue, and the
    /// level-triggered listener would signal them continuously.
    fn fail_accept(&mut self, e: &io::Error) {
        let Some(k) = self.waiting.pop_front() else { return };
        self.begin(k, None, 0);
        let what = What::failed(e);
        self.report(k, what);
        if let What::Gone(Gone::OpenFiles(_) | Gone::NoMemory(_) | Gone::Other(libc::ENOSPC)) = what {
            self.accept_paused_until = self.clock.now() + ACCEPT_PAUSE;
        }
    }
}
