//! One simulation.

use std::collections::HashMap;
use std::net::SocketAddr;

use tcp::{Close, Event, Settings, Tcp, What, Why};
use units::{Nanos, Random, nth_seed};

use super::network::{Delivery, Network, Weather};
use super::peers::Peers;
use super::program::{Plan, Program, STATIC, byte};
use crate::segment::{ACK, FIN, RST, SYN, Segment};
use crate::server::Manner;

/// When a client gives up waiting for something that does not arrive, in milliseconds: later than all timeouts.
const PATIENCE: u64 = 1_500_000;
/// A time after which nothing happens.
const END: u64 = 40_000_000;

/// The machine, its programs, the network and the servers.
pub(crate) struct World {
    random: Random,
    now: u64,
    pub(crate) tcp: Tcp,
    pub(crate) network: Network,
    peers: Peers,
    /// All dialled connections, by local address, and which of them occupy the places.
    programs: HashMap<SocketAddr, Program>,
    places: Vec<Option<SocketAddr>>,
    to_dial: usize,
    dialled: usize,
    pub(crate) done: Vec<Program>,
    pub(crate) drained: u64,
    pub(crate) kept: u64,
    is_v6: bool,
    buffer: Vec<u8>,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let one_of =
            |random: &mut Random, choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
        // Some paths are slower than the minimum timeout.
        let low = if random.below(8) == 0 { 250 } else { random.below(30) };
        let weather = Weather {
            lost: one_of(&mut random, &[0, 1, 5, 15]),
            repeated: one_of(&mut random, &[0, 0, 2, 10]),
            damaged: one_of(&mut random, &[0, 0, 2, 5]),
            joined: one_of(&mut random, &[0, 50, 100]),
            delay: (low, low + one_of(&mut random, &[0, 0, 5, 60])),
            offloads: random.below(2) == 0,
        };
        let mtu = one_of(&mut random, &[1280, 1500, 1500, 9000]) as u16;
        let scale = [None, Some(0), Some(3), Some(7)][random.below(4) as usize];
        let manner = Manner {
            iss: 0,
            mss: [None, Some(500), Some(1400), Some(1460), Some(8900)][random.below(5) as usize],
            scale,
            buffer: one_of(&mut random, &[600, 3_000, 20_000, 60_000, 200_000]),
            burst: one_of(&mut random, &[2, 10, 40]),
            delay: one_of(&mut random, &[0, 40, 40]),
            sacks: random.below(3) > 0,
        };
        let places = random.between(1, 3) as usize;
        let settings = Settings {
            places: places as u32,
            secret: [random.bits(), random.bits()],
            mtu,
            lingering: 16,
            window: one_of(&mut random, &[2_000, 30_000, 100_000, 1_000_000]) as u32,
        };
        World {
            now: random.below(100_000),
            tcp: Tcp::new(settings),
            network: Network::new(weather, usize::from(mtu), nth_seed(seed, 1)),
            peers: Peers::new(manner, nth_seed(seed, 2)),
            programs: HashMap::new(),
            places: vec![None; places],
            to_dial: random.between(1, 4) as usize,
            dialled: 0,
            done: Vec::new(),
            drained: 0,
            kept: 0,
            is_v6: random.below(3) == 0,
            buffer: vec![0; random.between(1, 20_000) as usize],
            random,
        }
    }

    fn nanos(&self) -> Nanos {
        Nanos::from_millis(self.now)
    }

    pub(crate) fn run(&mut self) {
        loop {
            self.turn();
            let open = self.places.iter().any(Option::is_some) || self.dialled < self.to_dial;
            if !open && self.tcp.in_flight() == 0 && self.tcp.lingering() == 0 {
                break;
            }
            let dials = self.dialled < self.to_dial && self.places.iter().any(Option::is_none);
            let acts = self.places.iter().flatten().map(|from| self.programs[from].acts_at).min();
            let acts = if dials { Some(self.now) } else { acts };
            let next = [
                self.network.next(),
                self.tcp.wakes_at().0.div_ceil(1_000_000),
                self.peers.due(),
                acts.unwrap_or(u64::MAX),
            ];
            self.now = self.now.max(next.into_iter().min().unwrap());
            let left = (open, self.tcp.in_flight(), self.tcp.lingering(), self.tcp.closing());
            assert!(self.now < END, "it does not end: {left:?}, {:?}", self.programs.values());
        }
        self.judge();
    }

    fn turn(&mut self) {
        let now = self.nanos();
        while let Some(delivery) = self.network.take(self.now) {
            match delivery {
                Delivery::Packet(packet) => self.receive(&packet),
                Delivery::Segment(segment) => {
                    let program = &self.programs[&segment.from];
                    self.peers.arrived(&segment, program, self.now, &mut self.network);
                }
            }
        }
        self.network.at(self.now);
        if self.tcp.wakes_at() <= now {
            self.tcp.expire(now, &mut self.network);
            self.events();
        }
        self.peers.act(&self.programs, self.now, &mut self.network);
        self.network.at(self.now);
        for place in 0..self.places.len() {
            self.act(place);
        }
        self.events();
        self.tcp.flush(now, &mut self.network);
    }

    fn receive(&mut self, packet: &[u8]) {
        let now = self.nanos();
        let event = self.tcp.receive(packet, false, now, self.network.at(self.now));
        if let Some(event) = event {
            let What::Bytes { at, len } = event.what else { panic!("{event:?} from receive") };
            let program = self.at(event);
            program.take(&packet[at as usize..][..len as usize]);
            assert!(!program.is_held, "bytes while on hold");
        }
        self.events();
    }

    fn at(&mut self, event: Event) -> &mut Program {
        let from = self.places[event.place as usize].expect("an event of a connection");
        self.programs.get_mut(&from).unwrap()
    }

    fn events(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.tcp.next_event(&mut buffer) {
            self.drained += u64::from(event.what == What::Drained);
            self.kept += u64::from(matches!(event.what, What::Kept { .. }));
            let program = self.at(event);
            assert!(program.gone.is_none() && !program.is_closed);
            match event.what {
                What::Opened => {
                    assert!(!program.is_open, "it opens once");
                    program.is_open = true;
                }
                What::Bytes { .. } => panic!("the packet is gone"),
                What::Kept { len } => {
                    assert!(!program.is_held, "bytes while on hold");
                    program.take(&buffer[..len as usize]);
                }
                What::Drained => {
                    assert!(program.is_blocked, "what was not blocked does not drain");
                    program.is_blocked = false;
                }
                What::Ended => {
                    assert!(!program.ended && !program.is_held);
                    program.ended = true;
                }
                What::Gone(why) => {
                    program.gone = Some(why);
                    self.places[event.place as usize] = None;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Lets the client at a place act, if it is time.
    fn act(&mut self, place: usize) {
        let now = self.nanos();
        let Some(from) = self.places[place] else { return self.dial(place) };
        let program = self.programs.get_mut(&from).unwrap();
        if program.acts_at > self.now {
            return;
        }
        program.acts_at = self.now + self.random.between(1, 150);
        let link = self.network.at(self.now);
        let place_id = place as u32;
        let resets = program.plan == Plan::ClientResets && self.now >= program.until;
        if resets || self.now > program.began + PATIENCE {
            let how = if resets || self.random.below(2) == 0 { Close::Reset } else { Close::Graceful };
            program.is_closed = true;
            self.places[place] = None;
            return self.tcp.close(place_id, how, now, link);
        }
        let is_early = !program.is_open && self.random.below(3) > 0;
        if !is_early && program.sent < program.up {
            let n = self.random.between(1, 4_000).min((program.up - program.sent) as u64) as usize;
            let own: Vec<u8> = (0..n).map(|nth| byte(program.number, true, program.sent + nth)).collect();
            if is_static(program.number, program.sent) && n >= STATIC.len() {
                self.tcp.send_static(place_id, &STATIC, now, link);
                program.sent += STATIC.len();
            } else {
                self.tcp.send(place_id, &own, now, link);
                program.sent += n;
            }
            program.is_blocked |= self.tcp.is_blocked(place_id);
        }
        match (program.is_held, self.random.below(10)) {
            (false, 0) => {
                program.is_held = true;
                self.tcp.hold(place_id);
            }
            (true, 0..6) => {
                program.is_held = false;
                self.tcp.resume(place_id);
            }
            _ => {}
        }
        let has_all = program.is_open && program.sent == program.up && program.received == program.down;
        let closes = match program.plan {
            Plan::ServerCloses => has_all && program.ended,
            _ => has_all,
        };
        if closes {
            program.is_closed = true;
            self.places[place] = None;
            self.tcp.close(place_id, Close::Graceful, now, link);
        } else if self.now > program.began + 60_000 {
            // It waits for something that does not arrive, so it need not act often.
            program.acts_at = self.now + 20_000;
        }
        let is_open = self.programs[&from].is_open;
        if is_open && self.random.below(20) == 0 {
            self.forge(from);
        }
    }

    fn dial(&mut self, place: usize) {
        if self.dialled == self.to_dial {
            return;
        }
        let program = Program::new(self.dialled, self.is_v6, self.now, &mut self.random);
        self.dialled += 1;
        let now = self.nanos();
        let (from, to) = (program.from, program.to);
        self.tcp.connect(place as u32, from, to, now, self.network.at(self.now)).expect("a new tuple");
        self.places[place] = Some(from);
        self.programs.insert(from, program);
    }

    /// Injects a segment from an attacker who knows the addresses, but not the sequence numbers.
    fn forge(&mut self, to: SocketAddr) {
        let flags = [RST, SYN, ACK, FIN | ACK, SYN | ACK, 0, RST | ACK][self.random.below(7) as usize];
        let segment = Segment {
            from: self.programs[&to].to,
            to,
            seq: self.random.bits() as u32,
            ack: self.random.bits() as u32,
            flags,
            window: self.random.bits() as u16,
            mss: None,
            scale: None,
            sack_permitted: false,
            sacks: Vec::new(),
            payload: vec![0; self.random.below(3) as usize * 50],
        };
        self.network.at(self.now).inject(&segment);
    }

    /// Number of SACK blocks that the servers received.
    pub(crate) fn sacked(&self) -> u64 {
        self.peers.all.values().map(|peer| peer.server.blocks).sum()
    }

    /// Checks that everything happened as scripted.
    fn judge(&mut self) {
        assert_eq!((self.tcp.blocked(), self.tcp.closing()), (0, 0));
        for (from, program) in self.programs.drain() {
            let about =
                format!("{:?} {:?} {} up {} down", program.plan, program.gone, program.up, program.down);
            let peer = self.peers.all.get(&from);
            if let Some(peer) = peer {
                let input = &peer.server.input;
                assert!(input.len() <= program.sent, "{about}: more than was sent");
                let mut at = 0;
                while at < input.len() {
                    // A static piece begins where the program could have sent one, and is recognised by its bytes.
                    let rest = &input[at..];
                    let n = rest.len().min(STATIC.len());
                    if is_static(program.number, at) && rest[..n] == STATIC[..n] {
                        at += n;
                    } else {
                        assert_eq!(
                            rest[0],
                            byte(program.number, true, at),
                            "{about}: byte {at} at the server"
                        );
                        at += 1;
                    }
                }
            }
            match program.plan {
                Plan::ClientCloses | Plan::ServerCloses | Plan::BothClose => {
                    assert_eq!(program.gone, None, "{about}");
                    let server = &peer.expect("it was accepted").server;
                    assert_eq!(server.input.len(), program.up, "{about}: at the server");
                    assert_eq!(program.received, program.down, "{about}");
                    assert!(server.ended && !server.is_reset && server.is_acknowledged(), "{about}");
                }
                Plan::Refuses => assert_eq!(program.gone, Some(Why::Refused), "{about}"),
                Plan::ServerResets => {
                    let refused = !program.is_open && program.gone == Some(Why::Refused);
                    assert!(refused || matches!(program.gone, None | Some(Why::Reset)), "{about}");
                }
                Plan::ClientResets => assert_eq!(program.gone, None, "{about}"),
                Plan::FallsSilent => {
                    assert!(matches!(program.gone, None | Some(Why::TimedOut)), "{about}");
                }
            }
            self.done.push(program);
        }
    }
}

/// Where a program may send static bytes.
fn is_static(number: usize, at: usize) -> bool {
    (at + number).is_multiple_of(3)
}
