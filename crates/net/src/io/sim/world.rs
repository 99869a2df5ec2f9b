//! The state of the simulated network: hosts, ends of connections, segments in transit, and the time.

use std::{collections::VecDeque, io::Read, net::SocketAddr};

use units::{Nanos, Random};

use super::{
    Faults,
    ends::{Ends, NO_PEER},
    ports::Ports,
    transit::{Arrival, Payload, Segment, Transit},
};
use crate::{
    io::{Close, Done, Gone, What},
    slab::Key,
};

/// The first retransmission of a SYN (RFC 6298, section 2).
const SYN_RETRY: Nanos = Nanos::from_secs(1);
/// Retransmissions of a SYN before the dialler gives up: Linux' default, about 127 s in total.
const SYN_RETRIES: u32 = 6;
/// Retransmission timeout of a segment: Linux' minimum.
const RETRY: Nanos = Nanos::from_millis(200);

/// A completion for a shard, and the end that it concerns.
pub(super) struct Event {
    pub(super) end: u32,
    pub(super) done: Done,
}

/// How much of a send can leave now.
pub(super) enum Room {
    /// This many bytes.
    For(usize),
    /// The peer is gone, and its FIN or RST is on the way here: whatever is sent now is lost.
    NoPeer,
}

#[derive(Default)]
struct Host {
    /// Completions to report, in order.
    events: VecDeque<Event>,
    /// Ends with something to read, each with its generation.
    readable: VecDeque<(u32, u32)>,
    /// Keys that wait for a peer, and (`backlog`) ends that wait for a key.
    accepting: VecDeque<Key>,
    backlog: VecDeque<u32>,
    listening: Option<SocketAddr>,
    /// Whether a blocked end of this host may be able to send.
    may_send: bool,
}

pub(super) struct World {
    pub(super) now: Nanos,
    pub(super) faults: Faults,
    random: Random,
    hosts: Vec<Host>,
    ports: Ports,
    ends: Ends,
    transit: Transit,
    pub(super) dials: u64,
    /// When the firewall's token bucket is full again.
    limited_until: Nanos,
    /// Unread bytes of connections that are gone: those sent to the accepting ends, and those sent to the dialling ends.
    unread: [u64; 2],
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> World {
        World {
            now: Nanos::ZERO,
            faults,
            random: Random::new(seed),
            hosts: Vec::new(),
            ports: Ports::default(),
            ends: Ends::default(),
            transit: Transit::default(),
            dials: 0,
            limited_until: Nanos::ZERO,
            unread: [0; 2],
        }
    }

    fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.random.below(1_000_000) < u64::from(per_million)
    }

    fn delay(&mut self) -> Nanos {
        let (least, most) = self.faults.delay;
        Nanos(self.random.between(least.0, most.0))
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
        h.events
            .extend(h.accepting.drain(..).map(|key| Event { end: NO_PEER, done: Done { key, what: gone } }));
        let backlog = std::mem::take(&mut h.backlog);
        self.ports.unlisten(host, at);
        for end in backlog {
            self.close(end, Close::Reset);
        }
    }

    pub(super) fn kill(&mut self, host: u16) {
        self.unlisten(host);
        for end in self.ends.of(host) {
            self.close(end, Close::Graceful);
        }
        self.hosts[usize::from(host)] = Host::default();
    }

    /// Cancels an accept; a peer that was already assigned to it is closed.
    pub(super) fn withdraw(&mut self, host: u16, k: Key) {
        let h = &mut self.hosts[usize::from(host)];
        h.accepting.retain(|key| *key != k);
        if let Some(at) = h.events.iter().position(|event| event.done.key == k)
            && let Some(Event { end, .. }) = h.events.remove(at)
            && end != NO_PEER
        {
            self.close(end, Close::Graceful);
        }
    }

    pub(super) fn accept(&mut self, host: u16, k: Key) {
        let h = &mut self.hosts[usize::from(host)];
        if h.listening.is_none() {
            let gone = What::Gone(Gone::Other(libc::EINVAL));
            return h.events.push_back(Event { end: NO_PEER, done: Done { key: k, what: gone } });
        }
        match h.backlog.pop_front() {
            Some(end) => self.report_accepted(host, k, end),
            None => h.accepting.push_back(k),
        }
    }

    fn report_accepted(&mut self, host: u16, k: Key, end: u32) {
        self.ends[end].key = k;
        let done = Done { key: k, what: What::Accepted };
        self.hosts[usize::from(host)].events.push_back(Event { end, done });
    }

    pub(super) fn dial(&mut self, host: u16, k: Key, from: SocketAddr, to: SocketAddr) -> u32 {
        let Some(tuple) = self.ports.take(from, to) else {
            let end = self.ends.insert(host, k, NO_PEER, (from, to), self.now);
            self.arrive_in(Nanos::ZERO, end, Segment::DialResult(Err(Gone::AddressInUse(libc::EADDRINUSE))));
            return end;
        };
        let end = self.ends.insert(host, k, NO_PEER, tuple, self.now);
        self.ends[end].owner = true;
        self.dials += 1;
        let delay = self.delay();
        self.arrive_in(delay, end, Segment::Syn { retries: 0 });
        end
    }

    fn arrive_in(&mut self, delay: Nanos, end: u32, what: Segment) {
        self.arrive_at(self.now + delay, end, what);
    }

    fn arrive_at(&mut self, at: Nanos, end: u32, what: Segment) {
        let generation = self.ends[end].generation;
        self.transit.send(at, Arrival { end, generation, what });
    }

    /// How much of a send on `end` the peer's window takes.
    pub(super) fn room(&self, end: u32) -> Room {
        match self.ends[end].peer {
            NO_PEER => Room::NoPeer,
            peer => Room::For(self.faults.window.saturating_sub(self.ends[peer].unread as usize)),
        }
    }

    /// Sends bytes for which there is [`Room`].
    pub(super) fn send(&mut self, end: u32, payload: Payload) {
        let (peer, len) = (self.ends[end].peer, payload.len());
        if peer == NO_PEER {
            self.unread[usize::from(!self.ends[end].owner)] += len as u64;
        }
        if peer == NO_PEER || len == 0 {
            return;
        }
        // Bytes sent to a dead peer fill its window too, since they are never read.
        self.ends[peer].unread += len as u32;
        if self.ends[end].dead {
            return;
        }
        if self.happens(self.faults.reset) {
            return self.cut(end, peer);
        }
        if self.faults.split && len > 1 {
            let at = self.random.between(1, len as u64 - 1) as usize;
            let mut first = payload.into_owned();
            let second = first.split_off(at);
            self.in_order(end, peer, Segment::Data(first.into()));
            self.in_order(end, peer, Segment::Data(second.into()));
        } else {
            self.in_order(end, peer, Segment::Data(payload));
        }
    }

    /// Resets a connection from within the network. Nothing sent later may arrive after the reset.
    fn cut(&mut self, end: u32, peer: u32) {
        self.in_order(end, end, Segment::Rst);
        self.in_order(end, peer, Segment::Rst);
        self.ends[end].peer = NO_PEER;
        self.ends[peer].peer = NO_PEER;
    }

    /// Sends a segment to `to` that arrives after everything that `from` has sent before.
    fn in_order(&mut self, from: u32, to: u32, what: Segment) {
        let mut delay = self.delay();
        while self.happens(self.faults.loss) {
            delay = delay + RETRY;
        }
        let at = (self.now + delay).max(self.ends[from].arrives_after);
        self.ends[from].arrives_after = at;
        self.arrive_at(at, to, what);
    }

    pub(super) fn set_reading(&mut self, end: u32, on: bool) {
        self.ends[end].reading = on;
        if on {
            self.queue_if_readable(end);
        }
    }

    fn queue_if_readable(&mut self, end: u32) {
        let e = &mut self.ends[end];
        if e.reading && !e.queued && (!e.inbox.is_empty() || e.over.is_some()) {
            e.queued = true;
            self.hosts[usize::from(e.host)].readable.push_back((end, e.generation));
        }
    }

    pub(super) fn close(&mut self, end: u32, how: Close) {
        let e = &self.ends[end];
        let (peer, dead, unread) = (e.peer, e.dead, !e.inbox.is_empty());
        if peer != NO_PEER {
            // As on Linux, a close with unread input is a reset.
            let what = if how == Close::Reset || unread { Segment::Rst } else { Segment::Fin };
            if !dead {
                self.in_order(end, peer, what);
            }
            self.ends[peer].peer = NO_PEER;
        }
        self.free_end(end);
    }

    /// Closes the sending side of an end, which then stays until the other end closes. Returns false if half-closing does not apply here.
    pub(super) fn half_close(&mut self, end: u32) -> bool {
        let e = &mut self.ends[end];
        if !self.faults.half_close || e.owner || e.dead || e.peer == NO_PEER {
            return false;
        }
        (e.half_closed, e.reading) = (true, false);
        let peer = e.peer;
        self.in_order(end, peer, Segment::Fin);
        self.discard(end);
        true
    }

    /// Discards the input of an end, which makes room in its window.
    fn discard(&mut self, end: u32) {
        let e = &mut self.ends[end];
        let length = std::mem::take(&mut e.inbox).len();
        e.unread -= length as u32;
        self.unread[usize::from(e.owner)] += length as u64;
        let peer = e.peer;
        if peer != NO_PEER {
            let host = self.ends[peer].host;
            self.hosts[usize::from(host)].may_send = true;
        }
    }

    fn free_end(&mut self, end: u32) {
        let e = &self.ends[end];
        self.unread[usize::from(e.owner)] += u64::from(e.unread);
        if e.owner {
            self.ports.give_back(e.tuple);
        }
        self.ends.remove(end);
    }

    pub(super) fn has_events(&self, host: u16) -> bool {
        let h = &self.hosts[usize::from(host)];
        !h.events.is_empty() || !h.readable.is_empty() || h.may_send
    }

    /// Whether blocked ends of this host may have room again; true once each time that room is made.
    pub(super) fn take_room(&mut self, host: u16) -> bool {
        std::mem::take(&mut self.hosts[usize::from(host)].may_send)
    }

    /// Number of readable ends of this host.
    pub(super) fn readable(&self, host: u16) -> usize {
        self.hosts[usize::from(host)].readable.len()
    }

    /// The next event for a shard. Input is copied into `into`; without it, no input is reported.
    pub(super) fn next_event(&mut self, host: u16, into: Option<&mut [u8]>) -> Option<Event> {
        if let Some(event) = self.hosts[usize::from(host)].events.pop_front() {
            return Some(event);
        }
        let into = into?;
        loop {
            let (end, generation) = self.hosts[usize::from(host)].readable.pop_front()?;
            // By now the slot may belong to another connection, on another host.
            if self.ends[end].generation != generation {
                continue;
            }
            self.ends[end].queued = false;
            if let Some(what) = self.read(end, into) {
                return Some(Event { end, done: Done { key: self.ends[end].key, what } });
            }
        }
    }

    fn read(&mut self, end: u32, into: &mut [u8]) -> Option<What> {
        let e = &mut self.ends[end];
        if !e.used || !e.reading {
            return None;
        }
        if e.inbox.is_empty() {
            let over = e.over.take().map(What::Gone);
            e.end_reported |= over.is_some();
            // Once the end has been reported here, a blocked send has to report its failure itself, so it is retried.
            self.hosts[usize::from(e.host)].may_send |= e.end_reported;
            return over;
        }
        let len = e.inbox.len().min(into.len());
        e.inbox.read_exact(&mut into[..len]).expect("the length is at most what the inbox holds");
        if e.inbox.is_empty() {
            e.inbox = VecDeque::new();
        }
        e.unread -= len as u32;
        let peer = e.peer;
        self.queue_if_readable(end);
        if peer != NO_PEER {
            let host = self.ends[peer].host;
            self.hosts[usize::from(host)].may_send = true;
        }
        Some(What::bytes_in(0, len))
    }

    /// Whether reading will still report that the peer has ended this connection.
    pub(super) fn will_report_end(&self, end: u32) -> bool {
        let e = &self.ends[end];
        e.reading && !e.end_reported
    }

    /// Advances the time to the next arrival, at most to `until`, and delivers all segments that arrive by then.
    pub(super) fn advance(&mut self, until: Nanos) {
        self.now = self.now.max(self.transit.next_at().min(until));
        while let Some(arrival) = self.transit.take(self.now) {
            self.arrive(arrival);
        }
    }

    /// Bytes sent and not read: those sent to the accepting ends, and those sent to the dialling ends.
    pub(super) fn unread(&self) -> [u64; 2] {
        let mut all = self.unread;
        self.ends.used().for_each(|end| all[usize::from(end.owner)] += u64::from(end.unread));
        all
    }

    /// Number of segments sent so far.
    pub(super) fn carried(&self) -> u64 {
        self.transit.carried()
    }

    fn arrive(&mut self, Arrival { end, generation, what }: Arrival) {
        if !self.ends[end].used || self.ends[end].generation != generation {
            return;
        }
        match what {
            Segment::Syn { retries } => self.syn(end, retries),
            Segment::DialResult(result) => {
                let e = &mut self.ends[end];
                let what = result.map_or_else(What::Gone, |()| What::Dialled);
                let event = Event { end, done: Done { key: e.key, what } };
                self.hosts[usize::from(e.host)].events.push_back(event);
            }
            Segment::Data(payload) => {
                let e = &mut self.ends[end];
                e.inbox.extend(payload.iter());
                if e.half_closed { self.discard(end) } else { self.queue_if_readable(end) }
            }
            Segment::Fin | Segment::Rst if self.ends[end].half_closed => self.free_end(end),
            Segment::Fin => self.ended(end, Gone::Ended),
            // Data that arrived before the reset can still be read, as on Linux.
            Segment::Rst => self.ended(end, Gone::Reset),
        }
    }

    fn ended(&mut self, end: u32, why: Gone) {
        let e = &mut self.ends[end];
        e.over = Some(why);
        // A blocked send must be completed too.
        self.hosts[usize::from(e.host)].may_send = true;
        self.queue_if_readable(end);
    }

    /// Whether the firewall passes a SYN: a token bucket in the form of a virtual scheduling algorithm (GCRA, ITU-T I.371, section A).
    fn passes_firewall(&mut self) -> bool {
        let Some((per_s, at_once)) = self.faults.syns else { return true };
        let each = 1_000_000_000 / u64::from(per_s);
        let passes = self.limited_until <= self.now + Nanos(each * u64::from(at_once - 1));
        if passes {
            self.limited_until = self.limited_until.max(self.now) + Nanos(each);
        }
        passes
    }

    fn syn(&mut self, end: u32, retries: u32) {
        if !self.passes_firewall() {
            return self.repeat_syn(end, retries);
        }
        let found = self.ports.listener(self.ends[end].tuple);
        let Some(host) = found.filter(|_| !self.happens(self.faults.refuse)) else {
            let delay = self.delay();
            return self.arrive_in(delay, end, Segment::DialResult(Err(Gone::Refused)));
        };
        let h = &self.hosts[usize::from(host)];
        let full = h.accepting.is_empty() && h.backlog.len() >= self.faults.backlog;
        if full || self.happens(self.faults.loss) {
            return self.repeat_syn(end, retries);
        }
        self.establish(end, host);
    }

    /// Handles a dropped SYN: retransmits it, or fails the dial after the last retry.
    fn repeat_syn(&mut self, end: u32, retries: u32) {
        let what = match retries {
            SYN_RETRIES => Segment::DialResult(Err(Gone::TimedOut)),
            _ => Segment::Syn { retries: retries + 1 },
        };
        self.arrive_in(Nanos(SYN_RETRY.0 << retries), end, what);
    }

    fn establish(&mut self, end: u32, host: u16) {
        let tuple = self.ends[end].tuple;
        let nobody = Key { index: u32::MAX, turn: 0 };
        let peer = self.ends.insert(host, nobody, end, (tuple.1, tuple.0), self.now);
        self.ends[end].peer = peer;
        let dead = self.happens(self.faults.half_open);
        self.ends[end].dead = dead;
        self.ends[peer].dead = dead;
        self.in_order(peer, end, Segment::DialResult(Ok(())));
        match self.hosts[usize::from(host)].accepting.pop_front() {
            Some(k) => self.report_accepted(host, k, peer),
            None => self.hosts[usize::from(host)].backlog.push_back(peer),
        }
    }
}
