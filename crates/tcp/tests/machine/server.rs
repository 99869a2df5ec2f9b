//! A server's TCP for tests, written independently of the machine under test and in a different way: absolute 64-bit positions, a map of
//! pieces, all sent data kept forever, one simple timer. It is slow and simple.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::segment::{ACK, FIN, PSH, RST, SYN, Segment};

/// Initial timeout, in milliseconds of virtual time; it doubles up to [`MOST_RTO`].
const RTO: u64 = 300;
const MOST_RTO: u64 = 5_000;

/// The behaviour of one end.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) iss: u32,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    /// Maximum number of bytes received and not read: the window.
    pub(crate) buffer: u64,
    /// Maximum number of segments in flight.
    pub(crate) burst: u64,
    /// Acknowledges every second segment at once, others after this many milliseconds; 0: all at once.
    pub(crate) delay: u64,
    /// Whether it accepts selective acknowledgements.
    pub(crate) sacks: bool,
}

/// One connection. Positions count from the SYN, which is 0; the first byte is at 1, and the FIN follows the last.
pub(crate) struct Server {
    manner: Manner,
    here: SocketAddr,
    peer: SocketAddr,
    irs: u32,
    peer_mss: u64,
    peer_scale: u8,
    is_scaled: bool,
    pub(crate) is_open: bool,
    /// All bytes to send, from position 1.
    output: Vec<u8>,
    /// Whether a FIN follows the output.
    ends: bool,
    acked: u64,
    next: u64,
    furthest: u64,
    window: u64,
    window_at: (u64, u64),
    /// Selectively acknowledged ranges, from and until. They are trusted for good, and never sent again.
    sacked: BTreeMap<u64, u64>,
    takes_sacks: bool,
    /// Number of SACK blocks received.
    pub(crate) blocks: u64,
    timer: Option<u64>,
    rto: u64,
    /// All bytes received in order.
    pub(crate) input: Vec<u8>,
    /// How many bytes of `input` were read.
    read: u64,
    pieces: BTreeMap<u64, Vec<u8>>,
    fin: Option<u64>,
    /// Whether the peer's FIN and everything before it have arrived.
    pub(crate) ended: bool,
    owes: Option<u64>,
    pub(crate) is_reset: bool,
    pub(crate) out: Vec<Segment>,
}

impl Server {
    /// Accepts a peer that has sent a SYN.
    pub(crate) fn accept(manner: Manner, syn: &Segment, now: u64) -> Server {
        let mut server = Server {
            here: syn.to,
            peer: syn.from,
            irs: syn.seq,
            peer_mss: u64::from(syn.mss.unwrap_or(536)),
            is_scaled: manner.scale.is_some() && syn.scale.is_some(),
            peer_scale: syn.scale.filter(|_| manner.scale.is_some()).unwrap_or(0),
            takes_sacks: manner.sacks && syn.sack_permitted,
            sacked: BTreeMap::new(),
            blocks: 0,
            is_open: false,
            output: Vec::new(),
            ends: false,
            acked: 0,
            next: 0,
            furthest: 1,
            window: u64::from(syn.window),
            window_at: (0, 0),
            timer: None,
            rto: RTO,
            input: Vec::new(),
            read: 0,
            pieces: BTreeMap::new(),
            fin: None,
            ended: false,
            owes: None,
            is_reset: false,
            out: Vec::new(),
            manner,
        };
        server.send_more(now);
        server
    }

    pub(crate) fn send(&mut self, bytes: &[u8], now: u64) {
        self.output.extend(bytes);
        self.send_more(now);
    }

    /// Sends a FIN after all output.
    pub(crate) fn close(&mut self, now: u64) {
        self.ends = true;
        self.send_more(now);
    }

    pub(crate) fn reset(&mut self) {
        self.is_reset = true;
        self.emit(self.furthest, RST | ACK, &[]);
    }

    /// The program reads up to `n` more bytes.
    pub(crate) fn read(&mut self, n: u64) {
        let before = self.free();
        self.read = (self.read + n).min(self.input.len() as u64);
        // Announces the window only if it has opened by enough.
        if self.free() - before >= (self.manner.buffer / 2).min(1000) && self.is_open && !self.is_reset {
            self.emit(self.furthest, ACK, &[]);
        }
    }

    /// Whether all output is acknowledged, including the FIN.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acked == self.last()
    }

    /// Whether both sides have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.ends && self.is_acknowledged()
    }

    fn last(&self) -> u64 {
        1 + self.output.len() as u64 + u64::from(self.ends)
    }

    fn free(&self) -> u64 {
        self.manner.buffer - (self.input.len() as u64 - self.read)
    }

    /// The position that is expected next.
    fn expected(&self) -> u64 {
        1 + self.input.len() as u64 + u64::from(self.ended)
    }

    fn emit(&mut self, at: u64, flags: u8, payload: &[u8]) {
        let is_syn = flags & SYN != 0;
        let shift = if self.is_scaled && !is_syn { self.manner.scale.unwrap_or(0) } else { 0 };
        self.owes = None;
        self.out.push(Segment {
            from: self.here,
            to: self.peer,
            seq: self.manner.iss.wrapping_add(at as u32),
            ack: self.irs.wrapping_add(self.expected() as u32),
            flags,
            window: (self.free() >> shift).min(65_535) as u16,
            mss: self.manner.mss.filter(|_| is_syn),
            scale: self.manner.scale.filter(|_| is_syn && self.is_scaled),
            sack_permitted: is_syn && self.takes_sacks,
            sacks: Vec::new(),
            payload: payload.to_vec(),
        });
    }

    /// Sends what the window allows.
    fn send_more(&mut self, now: u64) {
        if self.is_reset {
            return;
        }
        if self.next == 0 {
            self.emit(0, SYN | ACK, &[]);
            self.next = 1;
        }
        let mss = self.peer_mss.min(u64::from(self.manner.mss.unwrap_or(536)));
        let most = self.window.min(self.manner.burst * mss);
        while self.is_open && self.next < self.last() {
            let ahead = self.sacked.iter().find(|(_, until)| **until > self.next);
            if let Some((&from, &until)) = ahead
                && from <= self.next
            {
                self.next = until;
                continue;
            }
            let gap = ahead.map_or(u64::MAX, |(from, _)| from - self.next);
            let from = (self.next - 1) as usize;
            let room = most.saturating_sub(self.next - self.acked).min(gap);
            let len = (self.output.len().saturating_sub(from) as u64).min(mss).min(room);
            let has_fin = self.ends && from as u64 + len == self.output.len() as u64 && room > len;
            if len == 0 && !has_fin {
                break;
            }
            let bytes = self.output[from.min(self.output.len())..][..len as usize].to_vec();
            let flags = ACK | if has_fin { FIN } else { 0 } | if len > 0 { PSH } else { 0 };
            self.emit(self.next, flags, &bytes);
            self.next += len + u64::from(has_fin);
        }
        self.furthest = self.furthest.max(self.next);
        if self.acked < self.last() {
            self.timer.get_or_insert(now + self.rto);
        }
    }

    /// When the next timer expires.
    pub(crate) fn due(&self) -> u64 {
        if self.is_reset {
            return u64::MAX;
        }
        self.timer.unwrap_or(u64::MAX).min(self.owes.unwrap_or(u64::MAX))
    }

    pub(crate) fn expire(&mut self, now: u64) {
        if self.owes.is_some_and(|at| at <= now) {
            self.emit(self.furthest, ACK, &[]);
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.rto = (self.rto * 2).min(MOST_RTO);
            if self.acked < self.last() {
                let had = self.out.len();
                self.next = self.acked;
                self.send_more(now);
                if self.out.len() == had {
                    // Nothing fits in the window: probes with one byte, as in RFC 9293, or with an old number if there is no byte.
                    let byte = self.output.get((self.acked.max(1) - 1) as usize).copied();
                    match byte.filter(|_| self.acked > 0) {
                        Some(byte) => {
                            self.emit(self.acked, ACK | PSH, &[byte]);
                            self.furthest = self.furthest.max(self.acked + 1);
                            self.next = self.acked + 1;
                        }
                        None => self.emit(self.acked.max(1) - 1, ACK, &[]),
                    }
                    self.timer = Some(now + self.rto);
                }
            }
        }
    }

    /// Handles a segment of the peer.
    pub(crate) fn arrived(&mut self, segment: &Segment, now: u64) {
        if self.is_reset {
            if !segment.has(RST) {
                self.out.push(reset(segment));
            }
            return;
        }
        let expected = self.expected();
        let offset = i64::from(segment.seq.wrapping_sub(self.irs.wrapping_add(expected as u32)) as i32);
        let at = expected as i64 + offset;
        if segment.has(RST) {
            // Ignored in TIME-WAIT (RFC 1337).
            if self.is_over() {
                return;
            }
            // Only the expected number is valid (RFC 5961).
            if offset == 0 {
                self.is_reset = true;
            } else if offset > 0 && offset <= self.free() as i64 {
                self.emit(self.furthest, ACK, &[]);
            }
            return;
        }
        if segment.has(SYN) {
            // The same SYN again, or one that must be challenged.
            return if self.is_open {
                self.emit(self.furthest, ACK, &[])
            } else {
                self.emit(0, SYN | ACK, &[])
            };
        }
        assert!(segment.has(ACK), "everything but a SYN or a reset acknowledges: {segment:?}");
        self.acknowledged(segment, at, now);
        let len = segment.payload.len() as u64 + u64::from(segment.has(FIN));
        if at < expected as i64 && len == 0 {
            // An old number is a window probe.
            self.emit(self.furthest, ACK, &[]);
        }
        if len > 0 {
            self.take(segment, at, now);
        }
        self.send_more(now);
    }

    fn acknowledged(&mut self, segment: &Segment, at: i64, now: u64) {
        let base = self.manner.iss.wrapping_add(self.acked as u32);
        let acked = self.acked as i64 + i64::from(segment.ack.wrapping_sub(base) as i32);
        assert!(acked <= self.furthest as i64, "it acknowledges what was never sent: {segment:?}");
        if acked < self.acked as i64 {
            return;
        }
        self.sacks(segment, acked);
        let place = (at.max(0) as u64, acked as u64);
        if place >= self.window_at {
            let shift = if self.is_scaled { self.peer_scale } else { 0 };
            self.window = u64::from(segment.window) << shift;
            self.window_at = place;
        }
        if acked as u64 > self.acked {
            self.acked = acked as u64;
            self.is_open = true;
            self.next = self.next.max(self.acked);
            self.rto = RTO;
            self.timer = (self.acked < self.last()).then_some(now + RTO);
        }
    }

    fn sacks(&mut self, segment: &Segment, acked: i64) {
        assert!(segment.sacks.is_empty() || self.takes_sacks, "nobody asked for it: {segment:?}");
        for &(from, until) in &segment.sacks {
            let at = |number: u32| acked + i64::from(number.wrapping_sub(segment.ack) as i32);
            let (from, until) = (at(from), at(until));
            assert!(acked < from && from < until && until <= self.furthest as i64, "a block: {segment:?}");
            let known = self.sacked.entry(from as u64).or_default();
            *known = until.max(*known as i64) as u64;
            self.blocks += 1;
        }
    }

    fn take(&mut self, segment: &Segment, at: i64, now: u64) {
        let expected = self.expected() as i64;
        let end = expected + self.free() as i64;
        if segment.has(FIN) {
            self.fin = Some((at + segment.payload.len() as i64) as u64);
        }
        let mut bytes = &segment.payload[..];
        let mut from = at;
        if from < expected {
            bytes = &bytes[((expected - from) as usize).min(bytes.len())..];
            from = expected;
        }
        assert!(from + bytes.len() as i64 <= end.max(from), "beyond the window: {segment:?}, until {end}");
        let is_next = from == expected && !bytes.is_empty();
        if !bytes.is_empty() && !self.ended {
            let kept = self.pieces.entry(from as u64).or_default();
            if kept.len() < bytes.len() {
                *kept = bytes.to_vec();
            }
        }
        while let Some((&from, _)) = self.pieces.first_key_value()
            && from <= self.expected()
        {
            let bytes = self.pieces.remove(&from).unwrap();
            let known = (1 + self.input.len() as u64 - from) as usize;
            self.input.extend(bytes.get(known..).unwrap_or_default());
        }
        if self.fin == Some(self.expected()) {
            self.ended = true;
        }
        let is_second = self.owes.is_some();
        if self.manner.delay == 0 || !is_next || is_second || segment.has(FIN) || !self.pieces.is_empty() {
            self.emit(self.furthest, ACK, &[]);
        } else {
            self.owes = Some(now + self.manner.delay);
        }
    }
}

/// The reset for a segment of no connection (RFC 9293, section 3.10.7.1).
pub(crate) fn reset(segment: &Segment) -> Segment {
    let room = segment.payload.len() as u32 + u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
    let (seq, ack, flags) = match segment.has(ACK) {
        true => (segment.ack, 0, RST),
        false => (0, segment.seq.wrapping_add(room), RST | ACK),
    };
    Segment {
        from: segment.to,
        to: segment.from,
        seq,
        ack,
        flags,
        window: 0,
        mss: None,
        scale: None,
        sack_permitted: false,
        sacks: Vec::new(),
        payload: Vec::new(),
    }
}
