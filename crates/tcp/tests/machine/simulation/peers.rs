//! The servers of a simulation, and their programs.

use std::collections::HashMap;
use std::net::SocketAddr;

use units::Random;

use super::network::Network;
use super::program::{Plan, Program, byte};
use crate::segment::{ACK, RST, SYN, Segment};
use crate::server::{Manner, Server, reset};

/// One end of a connection at the server.
pub(crate) struct Peer {
    pub(crate) server: Server,
    sent: usize,
    closed: bool,
    acts_at: u64,
}

/// The servers' ends, by the client's address.
pub(crate) struct Peers {
    pub(crate) all: HashMap<SocketAddr, Peer>,
    order: Vec<SocketAddr>,
    manner: Manner,
    random: Random,
}

impl Peers {
    pub(crate) fn new(manner: Manner, seed: u64) -> Peers {
        Peers { all: HashMap::new(), order: Vec::new(), manner, random: Random::new(seed) }
    }

    pub(crate) fn due(&self) -> u64 {
        let due = |peer: &Peer| match peer.server.is_reset {
            true => u64::MAX,
            false => peer.server.due().min(peer.acts_at),
        };
        self.all.values().map(due).min().unwrap_or(u64::MAX)
    }

    /// Handles a segment of a client, whose program is known.
    pub(crate) fn arrived(&mut self, segment: &Segment, program: &Program, now: u64, network: &mut Network) {
        if program.plan == Plan::FallsSilent && now >= program.until {
            return;
        }
        if program.plan == Plan::Refuses {
            if !segment.has(RST) {
                network.at(now).server_sent(vec![reset(segment)]);
            }
            return;
        }
        let out = match self.all.get_mut(&segment.from) {
            Some(peer) => {
                peer.server.arrived(segment, now);
                std::mem::take(&mut peer.server.out)
            }
            None if segment.flags & (SYN | ACK) == SYN => {
                let manner = Manner { iss: self.random.bits() as u32, ..self.manner.clone() };
                let mut server = Server::accept(manner, segment, now);
                let out = std::mem::take(&mut server.out);
                self.all.insert(segment.from, Peer { server, sent: 0, closed: false, acts_at: now });
                self.order.push(segment.from);
                out
            }
            None if segment.has(RST) => Vec::new(),
            None => vec![reset(segment)],
        };
        network.at(now).server_sent(out);
    }

    /// Runs timers and programs.
    pub(crate) fn act(&mut self, programs: &HashMap<SocketAddr, Program>, now: u64, network: &mut Network) {
        for from in &self.order {
            let peer = self.all.get_mut(from).unwrap();
            let program = &programs[from];
            let is_silent = program.plan == Plan::FallsSilent && now >= program.until;
            if is_silent {
                peer.server.is_reset = true;
                continue;
            }
            if peer.server.due() <= now {
                peer.server.expire(now);
            }
            if peer.acts_at <= now && !peer.server.is_reset {
                peer.act(program, now, &mut self.random);
            }
            network.at(now).server_sent(std::mem::take(&mut peer.server.out));
        }
    }
}

impl Peer {
    fn act(&mut self, program: &Program, now: u64, random: &mut Random) {
        let server = &mut self.server;
        if program.plan == Plan::ServerResets && now >= program.until {
            return server.reset();
        }
        server.read(random.between(1, 8_000));
        if self.sent < program.down {
            let n = random.between(1, 5_000).min((program.down - self.sent) as u64) as usize;
            let bytes: Vec<u8> = (0..n).map(|nth| byte(program.number, false, self.sent + nth)).collect();
            server.send(&bytes, now);
            self.sent += n;
        } else if !self.closed {
            let closes = match program.plan {
                Plan::ServerCloses => true,
                Plan::BothClose => server.input.len() == program.up,
                _ => server.ended,
            };
            if closes {
                server.close(now);
                self.closed = true;
            }
        }
        self.acts_at = if server.is_over() { u64::MAX } else { now + random.between(1, 120) };
    }
}
