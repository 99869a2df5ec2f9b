//! The wires of the simulated network: ends of connections, what is under way between them, and the time.

use std::{collections::VecDeque, io::Read, net::SocketAddr};

use units::Nanos;

use super::{
    Faults,
    ports::{Ports, Tuple},
    transit::{Arrival, Parcel, Payload, Transit},
};
use crate::{
    io::{Close, Done, Gone, What},
    slab::Key,
};

/// The first retransmission of a SYN (RFC 6298, section 2).
const SYN_RETRY: Nanos = Nanos::from_secs(1);
/// Retransmissions of a SYN before the dialler gives up: Linux' default, about 127 s in all.
const SYN_RETRIES: u32 = 6;
/// The retransmission timeout of a segment on a short path: Linux' least.
const RETRY: Nanos = Nanos::from_millis(200);

/// Something for a shard, with the end it is about.
pub(super) struct News {
    pub(super) end: u32,
    pub(super) done: Done,
}

/// How much of a send goes out now.
pub(super) enum Room {
    /// This many bytes.
    For(usize),
    /// The other side is gone, and its FIN or RST is on the way here: what is sent now goes nowhere.
    Nobody,
}

/// One side of a connection.
struct End {
    host: u16,
    key: Key,
    /// The peer; `NOBODY` before it exists and after it is gone or cut off.
    peer: u32,
    /// Nothing sent later may arrive earlier.
    arrives_after: Nanos,
    inbox: VecDeque<u8>,
    /// Bytes sent by the peer and not read here yet, under way included.
    unread: u32,
    /// How the peer ended it, reported once the inbox is empty.
    over: Option<Gone>,
    /// It has been.
    told: bool,
    reading: bool,
    /// In the host's queue of readable ends.
    queued: bool,
    dead: bool,
    used: bool,
    /// The dialler's end holds the 4-tuple.
    owner: bool,
    /// Counts the connections that this place has been an end of.
    life: u32,
    tuple: Tuple,
}

pub(super) const NOBODY: u32 = u32::MAX;

#[derive(Default)]
struct Host {
    /// Reported as they are.
    told: VecDeque<News>,
    /// Ends with something to read, and the life of the end that is meant.
    readable: VecDeque<(u32, u32)>,
    /// Keys that wait for a peer, and peers that wait for a key.
    accepting: VecDeque<Key>,
    backlog: VecDeque<u32>,
    listening: Option<SocketAddr>,
    /// A blocked end of this host may send again.
    roomy: bool,
}

pub(super) struct World {
    pub(super) now: Nanos,
    faults: Faults,
    random: u64,
    hosts: Vec<Host>,
    ports: Ports,
    ends: Vec<End>,
    free: Vec<u32>,
    transit: Transit,
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> World {
        World {
            now: Nanos::ZERO,
            faults,
            random: mixed(seed).max(1),
            hosts: Vec::new(),
            ports: Ports::default(),
            ends: Vec::new(),
            free: Vec::new(),
            transit: Transit::default(),
        }
    }

    /// xorshift64 (Marsaglia 2003): the simulator's own randomness, apart from the programs'.
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
    }

    fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.draw(1_000_000) < u64::from(per_million)
    }

    fn delay(&mut self) -> Nanos {
        let (least, most) = self.faults.delay;
        Nanos(least.0 + self.draw(most.0 - least.0 + 1))
    }

    pub(super) fn add_host(&mut self) -> u16 {
        self.hosts.push(Host::default());
        (self.hosts.len() - 1) as u16
    }

    pub(super) fn listen(&mut self, host: u16, at: SocketAddr) -> SocketAddr {
        let at = self.ports.listen(host, at);
        self.hosts[usize::from(host)].listening = Some(at);
        at
    }

    pub(super) fn unlisten(&mut self, host: u16) {
        let h = &mut self.hosts[usize::from(host)];
        let Some(at) = h.listening.take() else { return };
        let gone = What::Gone(Gone::Other(libc::EINVAL));
        h.told.extend(h.accepting.drain(..).map(|key| News { end: NOBODY, done: Done { key, what: gone } }));
        let backlog = std::mem::take(&mut h.backlog);
        self.ports.unlisten(host, at);
        for end in backlog {
            self.close(end, Close::Reset);
        }
    }

    pub(super) fn kill(&mut self, host: u16) {
        self.unlisten(host);
        for end in 0..self.ends.len() as u32 {
            let e = &self.ends[end as usize];
            if e.used && e.host == host {
                self.close(end, Close::Graceful);
            }
        }
        self.hosts[usize::from(host)] = Host::default();
    }

    /// Takes back an accept, whether a peer has been found for it or not.
    pub(super) fn withdraw(&mut self, host: u16, k: Key) {
        let h = &mut self.hosts[usize::from(host)];
        h.accepting.retain(|key| *key != k);
        if let Some(at) = h.told.iter().position(|news| news.done.key == k)
            && let Some(News { end, .. }) = h.told.remove(at)
            && end != NOBODY
        {
            self.close(end, Close::Graceful);
        }
    }

    pub(super) fn accept(&mut self, host: u16, k: Key) {
        let h = &mut self.hosts[usize::from(host)];
        if h.listening.is_none() {
            let gone = What::Gone(Gone::Other(libc::EINVAL));
            return h.told.push_back(News { end: NOBODY, done: Done { key: k, what: gone } });
        }
        match h.backlog.pop_front() {
            Some(end) => self.tell_accepted(host, k, end),
            None => h.accepting.push_back(k),
        }
    }

    fn tell_accepted(&mut self, host: u16, k: Key, end: u32) {
        self.ends[end as usize].key = k;
        let done = Done { key: k, what: What::Accepted };
        self.hosts[usize::from(host)].told.push_back(News { end, done });
    }

    fn new_end(&mut self, host: u16, key: Key, peer: u32, tuple: Tuple) -> u32 {
        let mut end = End {
            host,
            key,
            peer,
            arrives_after: self.now,
            inbox: VecDeque::new(),
            unread: 0,
            over: None,
            told: false,
            reading: false,
            queued: false,
            dead: false,
            used: true,
            owner: false,
            life: 0,
            tuple,
        };
        match self.free.pop() {
            Some(at) => {
                end.life = self.ends[at as usize].life + 1;
                self.ends[at as usize] = end;
                at
            }
            None => {
                self.ends.push(end);
                (self.ends.len() - 1) as u32
            }
        }
    }

    pub(super) fn dial(&mut self, host: u16, k: Key, from: SocketAddr, to: SocketAddr) -> u32 {
        let Some(tuple) = self.ports.take(from, to) else {
            let end = self.new_end(host, k, NOBODY, (from, to));
            self.arrive_in(Nanos::ZERO, end, Parcel::Answer(Err(Gone::AddressInUse(libc::EADDRINUSE))));
            return end;
        };
        let end = self.new_end(host, k, NOBODY, tuple);
        self.ends[end as usize].owner = true;
        let delay = self.delay();
        self.arrive_in(delay, end, Parcel::Syn { retries: 0 });
        end
    }

    fn arrive_in(&mut self, delay: Nanos, end: u32, what: Parcel) {
        self.arrive_at(self.now + delay, end, what);
    }

    fn arrive_at(&mut self, at: Nanos, end: u32, what: Parcel) {
        let life = self.ends[end as usize].life;
        self.transit.send(at, Arrival { end, life, what });
    }

    /// How much the peer's window takes of a send on `end`.
    pub(super) fn room(&self, end: u32) -> Room {
        match self.ends[end as usize].peer {
            NOBODY => Room::Nobody,
            peer => Room::For(self.faults.window.saturating_sub(self.ends[peer as usize].unread as usize)),
        }
    }

    /// Sends what there is [`Room`] for.
    pub(super) fn send(&mut self, end: u32, payload: Payload) {
        let (peer, len) = (self.ends[end as usize].peer, payload.as_slice().len());
        if peer == NOBODY || len == 0 {
            return;
        }
        // What is sent to a lost peer fills the window too: it is never read.
        self.ends[peer as usize].unread += len as u32;
        if self.ends[end as usize].dead {
            return;
        }
        if self.happens(self.faults.reset) {
            return self.cut(end, peer);
        }
        if self.faults.split && len > 1 {
            let at = 1 + self.draw(len as u64 - 1) as usize;
            let mut first = payload.into_vec();
            let second = first.split_off(at);
            self.in_order(end, peer, Parcel::Data(Payload::Owned(first)));
            self.in_order(end, peer, Parcel::Data(Payload::Owned(second)));
        } else {
            self.in_order(end, peer, Parcel::Data(payload));
        }
    }

    /// Resets a connection from the middle of the network. Nothing sent later may arrive behind the reset.
    fn cut(&mut self, end: u32, peer: u32) {
        self.in_order(end, end, Parcel::Rst);
        self.in_order(end, peer, Parcel::Rst);
        self.ends[end as usize].peer = NOBODY;
        self.ends[peer as usize].peer = NOBODY;
    }

    /// In transit to `to`, after whatever `from` has sent before.
    fn in_order(&mut self, from: u32, to: u32, what: Parcel) {
        let mut delay = self.delay();
        while self.happens(self.faults.loss) {
            delay = delay + RETRY;
        }
        let at = (self.now + delay).max(self.ends[from as usize].arrives_after);
        self.ends[from as usize].arrives_after = at;
        self.arrive_at(at, to, what);
    }

    pub(super) fn set_reading(&mut self, end: u32, on: bool) {
        self.ends[end as usize].reading = on;
        if on {
            self.queue_if_readable(end);
        }
    }

    fn queue_if_readable(&mut self, end: u32) {
        let e = &mut self.ends[end as usize];
        if e.reading && !e.queued && (!e.inbox.is_empty() || e.over.is_some()) {
            e.queued = true;
            self.hosts[usize::from(e.host)].readable.push_back((end, e.life));
        }
    }

    pub(super) fn close(&mut self, end: u32, how: Close) {
        let e = &self.ends[end as usize];
        let (peer, dead, unread) = (e.peer, e.dead, !e.inbox.is_empty());
        if peer != NOBODY {
            // As Linux does: a close with unread input is a reset.
            let what = if how == Close::Reset || unread { Parcel::Rst } else { Parcel::Fin };
            if !dead {
                self.in_order(end, peer, what);
            }
            self.ends[peer as usize].peer = NOBODY;
        }
        self.free_end(end);
    }

    fn free_end(&mut self, end: u32) {
        let e = &mut self.ends[end as usize];
        if e.owner {
            self.ports.give_back(e.tuple);
        }
        e.used = false;
        e.inbox = VecDeque::new();
        self.free.push(end);
    }

    pub(super) fn has_news(&self, host: u16) -> bool {
        let h = &self.hosts[usize::from(host)];
        !h.told.is_empty() || !h.readable.is_empty() || h.roomy
    }

    /// Whether blocked ends of this host may have room; true once for each time that room is made.
    pub(super) fn take_room(&mut self, host: u16) -> bool {
        std::mem::take(&mut self.hosts[usize::from(host)].roomy)
    }

    /// How many ends of this host have something to read.
    pub(super) fn readable(&self, host: u16) -> usize {
        self.hosts[usize::from(host)].readable.len()
    }

    /// The next event for a shard; bytes are copied into `into`, and not reported without it.
    pub(super) fn take_news(&mut self, host: u16, into: Option<&mut [u8]>) -> Option<News> {
        if let Some(news) = self.hosts[usize::from(host)].told.pop_front() {
            return Some(news);
        }
        let into = into?;
        loop {
            let (end, life) = self.hosts[usize::from(host)].readable.pop_front()?;
            // The place may have a new life by now, on another host.
            if self.ends[end as usize].life != life {
                continue;
            }
            self.ends[end as usize].queued = false;
            if let Some(what) = self.read(end, into) {
                return Some(News { end, done: Done { key: self.ends[end as usize].key, what } });
            }
        }
    }

    fn read(&mut self, end: u32, into: &mut [u8]) -> Option<What> {
        let e = &mut self.ends[end as usize];
        if !e.used || !e.reading {
            return None;
        }
        if e.inbox.is_empty() {
            let over = e.over.take().map(What::Gone);
            e.told |= over.is_some();
            // Reading no longer reports the end of a blocked send.
            self.hosts[usize::from(e.host)].roomy |= e.told;
            return over;
        }
        let len = e.inbox.len().min(into.len());
        e.inbox.read_exact(&mut into[..len]).expect("so much is there");
        if e.inbox.is_empty() {
            e.inbox = VecDeque::new();
        }
        e.unread -= len as u32;
        let peer = e.peer;
        self.queue_if_readable(end);
        if peer != NOBODY {
            let host = self.ends[peer as usize].host;
            self.hosts[usize::from(host)].roomy = true;
        }
        Some(What::Bytes { region: 0, len: len as u32 })
    }

    /// Whether the loop will yet read of this end's end.
    pub(super) fn will_be_told(&self, end: u32) -> bool {
        let e = &self.ends[end as usize];
        e.reading && !e.told
    }

    /// Moves the time on to the next arrival, at most to `until`, and lets arrive what does by then.
    pub(super) fn advance(&mut self, until: Nanos) {
        self.now = self.now.max(self.transit.next_at().min(until));
        while let Some(arrival) = self.transit.take(self.now) {
            self.arrive(arrival);
        }
    }

    /// Parcels sent so far.
    pub(super) fn carried(&self) -> u64 {
        self.transit.carried()
    }

    fn arrive(&mut self, Arrival { end, life, what }: Arrival) {
        if !self.ends[end as usize].used || self.ends[end as usize].life != life {
            return;
        }
        match what {
            Parcel::Syn { retries } => self.syn(end, retries),
            Parcel::Answer(answer) => {
                let e = &mut self.ends[end as usize];
                let what = answer.map_or_else(What::Gone, |()| What::Dialled);
                let news = News { end, done: Done { key: e.key, what } };
                self.hosts[usize::from(e.host)].told.push_back(news);
            }
            Parcel::Data(payload) => {
                let e = &mut self.ends[end as usize];
                e.inbox.extend(payload.as_slice());
                self.queue_if_readable(end);
            }
            Parcel::Fin => self.ended(end, Gone::Ended),
            // What came before can still be read, as on Linux.
            Parcel::Rst => self.ended(end, Gone::Reset),
        }
    }

    fn ended(&mut self, end: u32, why: Gone) {
        let e = &mut self.ends[end as usize];
        e.over = Some(why);
        // A send that is stuck learns of it too.
        self.hosts[usize::from(e.host)].roomy = true;
        self.queue_if_readable(end);
    }

    fn syn(&mut self, end: u32, retries: u32) {
        let found = self.ports.listener(self.ends[end as usize].tuple);
        let Some(host) = found.filter(|_| !self.happens(self.faults.refuse)) else {
            let delay = self.delay();
            return self.arrive_in(delay, end, Parcel::Answer(Err(Gone::Refused)));
        };
        let h = &self.hosts[usize::from(host)];
        let full = h.accepting.is_empty() && h.backlog.len() >= self.faults.backlog;
        if full || self.happens(self.faults.loss) {
            let later = Nanos(SYN_RETRY.0 << retries);
            let what = match retries {
                SYN_RETRIES => Parcel::Answer(Err(Gone::TimedOut)),
                _ => Parcel::Syn { retries: retries + 1 },
            };
            return self.arrive_in(later, end, what);
        }
        self.establish(end, host);
    }

    fn establish(&mut self, end: u32, host: u16) {
        let tuple = self.ends[end as usize].tuple;
        let nobody = Key { index: u32::MAX, turn: 0 };
        let peer = self.new_end(host, nobody, end, (tuple.1, tuple.0));
        self.ends[end as usize].peer = peer;
        let dead = self.happens(self.faults.half_open);
        self.ends[end as usize].dead = dead;
        self.ends[peer as usize].dead = dead;
        self.in_order(peer, end, Parcel::Answer(Ok(())));
        match self.hosts[usize::from(host)].accepting.pop_front() {
            Some(k) => self.tell_accepted(host, k, peer),
            None => self.hosts[usize::from(host)].backlog.push_back(peer),
        }
    }
}

/// One step of splitmix64 (Steele, Lea and Flood 2014), so that neighbouring seeds begin far apart.
fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
