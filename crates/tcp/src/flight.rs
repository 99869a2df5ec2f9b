//! The part of a connection's state that is needed only while something is in flight: a handshake, unacknowledged or unsent data, data
//! out of order or on hold, or a FIN. Also congestion control: NewReno (RFC 5681, RFC 6582).

use units::Nanos;

use crate::inbound::Inbound;
use crate::send_queue::SendQueue;
use crate::seq::{after, before, later};

mod timers;

use timers::Timers;

/// Initial congestion window, in segments (RFC 6928), also after an idle period (RFC 5681, section 4.1).
const INITIAL_SEGMENTS: u32 = 10;
/// Number of duplicate acknowledgements that indicate a loss (RFC 5681, section 3.2).
const DUPLICATES: u8 = 3;

/// The state of a connection that has something in flight.
#[derive(Default)]
pub(crate) struct Flight {
    /// The number of its connection.
    pub(crate) owner: u32,
    /// The first unacknowledged sequence number (SND.UNA).
    pub(crate) una: u32,
    /// The next sequence number to send; after a timeout it is before data that was already sent.
    pub(crate) next: u32,
    /// The sequence number of the segment that last updated the peer's window (SND.WL1).
    pub(crate) window_seq: u32,
    /// The largest window that the peer has advertised.
    pub(crate) most_window: u32,
    /// The end of the receive window that was last advertised to the peer.
    pub(crate) advertised: u32,
    /// Congestion window and slow-start threshold, in bytes.
    pub(crate) cwnd: u32,
    ssthresh: u32,
    /// Loss recovery ends when this sequence number is acknowledged.
    recover: u32,
    /// Consecutive duplicate acknowledgements.
    duplicates: u8,
    /// Whether fast recovery is in progress, after a loss was detected by duplicates.
    is_recovering: bool,
    /// Whether a SYN is unacknowledged: its number is `una`, and the queue begins after it.
    pub(crate) syn: bool,
    /// Whether a FIN follows the queue.
    pub(crate) fin: bool,
    /// Whether a part of the queue was never sent; the program has seen the connection as blocked.
    pub(crate) is_blocked: bool,
    /// Number of retransmissions or window probes in a row without a response.
    pub(crate) tries: u8,
    /// Number of doublings of the retransmission timeout.
    pub(crate) backoff: u8,
    /// The last ICMP error meanwhile, as errno; 0 if there was none.
    pub(crate) soft_errno: i32,
    /// The segment whose round trip is measured: its end, and when it was sent.
    timed: Option<(u32, Nanos)>,
    pub(crate) out: SendQueue,
    pub(crate) inbound: Inbound,
    /// The time of the next retransmission or probe; [`Nanos::NEVER`] if none is due.
    pub(crate) deadline: Nanos,
}

const _: () = assert!(size_of::<Flight>() <= 256, "a dial that is under way costs this");

impl Flight {
    /// Resets a flight: everything before `nxt` is acknowledged, and nothing is in flight. The queues are empty and keep their memory.
    fn begin(&mut self, nxt: u32, mss: u32) {
        (self.una, self.next, self.recover) = (nxt, nxt, nxt);
        (self.cwnd, self.ssthresh) = (INITIAL_SEGMENTS * mss, u32::MAX);
        (self.syn, self.fin, self.is_blocked, self.is_recovering) = (false, false, false, false);
        (self.duplicates, self.tries, self.backoff, self.soft_errno) = (0, 0, 0, 0);
        self.timed = None;
        self.deadline = Nanos::NEVER;
    }

    /// The sequence number of the first byte in the queue.
    pub(crate) fn queue_start(&self) -> u32 {
        self.una.wrapping_add(u32::from(self.syn))
    }

    /// The sequence number after the last byte in the queue, which is that of the FIN if there is one.
    pub(crate) fn queue_end(&self) -> u32 {
        self.queue_start().wrapping_add(self.out.len() as u32)
    }

    /// The sequence number after everything that there is to send.
    pub(crate) fn end(&self) -> u32 {
        self.queue_end().wrapping_add(u32::from(self.fin))
    }

    /// Bytes sent and not acknowledged; after a timeout, only those sent again since.
    pub(crate) fn under_way(&self) -> u32 {
        self.next.wrapping_sub(self.una)
    }

    /// Bytes that may be in flight now. The first two duplicates each allow one more segment (limited transmit, RFC 3042).
    pub(crate) fn congestion_window(&self, mss: u32) -> u32 {
        let limited = if self.is_recovering { 0 } else { u32::from(self.duplicates.min(DUPLICATES - 1)) };
        self.cwnd.saturating_add(limited * mss)
    }

    /// Measures the round trip of the segment that ends at `end`, unless another measurement is in progress.
    pub(crate) fn time(&mut self, end: u32, now: Nanos) {
        self.timed.get_or_insert((end, now));
    }

    /// Stops the measurement: the round trip of a retransmitted segment is ambiguous (Karn's algorithm; RFC 6298, section 3).
    pub(crate) fn untime(&mut self) {
        self.timed = None;
    }

    /// Handles an acknowledgement of new data, everything before `ack`. Returns the round-trip time, if it was measured, and whether the
    /// first unacknowledged segment must be sent again, because a partial acknowledgement has shown another gap.
    pub(crate) fn acknowledge(&mut self, ack: u32, mss: u32, now: Nanos) -> (Option<Nanos>, bool) {
        let rtt = self.timed.filter(|(end, _)| !before(ack, *end)).map(|(_, sent)| now.since(sent));
        if rtt.is_some() {
            self.timed = None;
        }
        let start = self.queue_start();
        if after(ack, start) {
            let acked = ack.wrapping_sub(start).min(self.out.len() as u32);
            self.out.consume(acked as usize);
        }
        let acked = ack.wrapping_sub(self.una);
        self.syn = false;
        // The caller clears `fin` if the FIN was acknowledged: `una` is then after it.
        self.una = ack;
        if before(self.next, ack) {
            self.next = ack;
        }
        // The peer responds, so an earlier ICMP error would not be the reason to give up.
        (self.tries, self.backoff, self.soft_errno) = (0, 0, 0);
        (rtt, self.grow(acked, mss))
    }

    /// Handles an unacceptable acknowledgement during the handshake. Returns whether it was the first, and the SYN was not sent again yet.
    pub(crate) fn is_first_stray(&mut self) -> bool {
        let is_first = self.duplicates == 0 && self.tries == 0;
        self.duplicates = 1;
        self.untime();
        is_first
    }

    /// Handles the end of the handshake. After a lost SYN the network is assumed to be congested (RFC 5681, section 3.1).
    pub(crate) fn open(&mut self, mss: u32, syn_was_lost: bool) {
        self.cwnd = if syn_was_lost { mss } else { INITIAL_SEGMENTS * mss };
        self.recover = self.una;
    }

    /// Grows the congestion window (RFC 5681, section 3.1; RFC 6582, section 3.2). Returns whether the first segment must be sent again.
    fn grow(&mut self, acked: u32, mss: u32) -> bool {
        self.duplicates = 0;
        if self.is_recovering {
            if !before(self.una, self.recover) {
                self.is_recovering = false;
                self.cwnd = self.ssthresh.min(self.under_way().max(mss) + mss);
                return false;
            }
            // A partial acknowledgement: the window shrinks by the data that left the network, except one segment.
            self.cwnd = self.cwnd.saturating_sub(acked).max(mss);
            if acked >= mss {
                self.cwnd = self.cwnd.saturating_add(mss);
            }
            return true;
        }
        // Moves `recover` along, so that it never falls 2^31 behind, where it would compare as ahead.
        self.recover = later(self.recover, self.una);
        let more = match self.cwnd < self.ssthresh {
            // At most two segments per acknowledgement (RFC 3465).
            true => acked.min(2 * mss),
            false => (u64::from(mss) * u64::from(acked.min(self.cwnd)) / u64::from(self.cwnd.max(1))) as u32,
        };
        self.cwnd = self.cwnd.saturating_add(more.max(1));
        false
    }

    /// Handles a duplicate acknowledgement. Returns whether the first segment must be sent again.
    pub(crate) fn duplicate(&mut self, sent: u32, mss: u32) -> bool {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.is_recovering {
            self.cwnd = self.cwnd.saturating_add(mss);
            return false;
        }
        if self.duplicates != DUPLICATES || before(self.una, self.recover) {
            return false;
        }
        self.is_recovering = true;
        self.recover = sent;
        self.halve(sent, mss);
        self.cwnd = self.ssthresh + u32::from(DUPLICATES) * mss;
        self.untime();
        true
    }

    /// Handles a retransmission timeout: everything is sent again, starting at the first unacknowledged byte (RFC 5681, section 3.1).
    pub(crate) fn time_out(&mut self, sent: u32, mss: u32) {
        if self.tries == 0 {
            self.halve(sent, mss);
        }
        self.cwnd = mss;
        self.next = self.una;
        self.recover = sent;
        self.is_recovering = false;
        self.duplicates = 0;
        self.count_try();
        self.untime();
    }

    pub(crate) fn count_try(&mut self) {
        self.tries = self.tries.saturating_add(1);
        self.backoff = self.backoff.saturating_add(1);
    }

    fn halve(&mut self, sent: u32, mss: u32) {
        self.ssthresh = (sent.wrapping_sub(self.una) / 2).max(2 * mss);
    }
}

/// The flights of a shard. Free ones keep their memory for reuse, up to a limit.
pub(crate) struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
    timers: Timers,
    /// Memory of free flights, in bytes.
    kept: usize,
    /// Memory of the flights in use for received data that could not be reported, in bytes.
    inbound: usize,
}

/// Maximum memory that free flights keep, in bytes.
const MOST_KEPT: usize = 32 * 1024 * 1024;
/// Maximum memory of all connections for received data that could not be reported, in bytes; beyond it, data out of order is dropped. The
/// kernel has such a limit too (`net.ipv4.tcp_mem`).
const MOST_INBOUND: usize = 512 * 1024 * 1024;

impl Flights {
    pub(crate) fn new() -> Flights {
        Flights { all: Vec::new(), free: Vec::new(), timers: Timers::default(), kept: 0, inbound: 0 }
    }

    /// Number of flights in use.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Begins a flight of the connection `owner`, on which everything before `nxt` is acknowledged.
    pub(crate) fn begin(&mut self, owner: u32, nxt: u32, mss: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(Flight::default());
            self.all.len() as u32 - 1
        });
        let flight = &mut self.all[number as usize];
        self.kept -= flight.out.capacity() + flight.inbound.capacity();
        self.inbound += flight.inbound.capacity();
        flight.owner = owner;
        flight.begin(nxt, mss);
        number
    }

    /// Ends a flight, so that it can be reused.
    pub(crate) fn end(&mut self, number: u32) {
        let flight = &mut self.all[number as usize];
        let kept = flight.out.capacity() + flight.inbound.capacity();
        self.inbound -= flight.inbound.capacity();
        let release = self.kept + kept > MOST_KEPT;
        flight.out.reset(release);
        flight.inbound.reset(release);
        flight.deadline = Nanos::NEVER;
        self.kept += flight.out.capacity() + flight.inbound.capacity();
        self.free.push(number);
    }

    /// Keeps bytes that cannot be reported yet, see [`Inbound::keep`]; if they are out of order, only within the limit. Returns whether
    /// they were kept.
    pub(crate) fn keep(&mut self, number: u32, seq: u32, bytes: &[u8], next: u32) -> bool {
        if seq != next && self.inbound > MOST_INBOUND {
            return false;
        }
        let inbound = &mut self.all[number as usize].inbound;
        let before = inbound.capacity();
        let is_kept = inbound.keep(seq, bytes, next);
        self.inbound += inbound.capacity() - before;
        is_kept
    }

    /// All flights, in use and free, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Flight)> {
        (0..).zip(&self.all)
    }

    pub(crate) fn get(&self, number: u32) -> &Flight {
        &self.all[number as usize]
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Flight {
        &mut self.all[number as usize]
    }

    /// Sets the deadline of a flight.
    pub(crate) fn arm(&mut self, number: u32, deadline: Nanos) {
        self.all[number as usize].deadline = deadline;
        self.timers.arm(number, deadline);
    }

    /// The time of the next deadline, or earlier.
    pub(crate) fn wakes_at(&self) -> Nanos {
        self.timers.next()
    }

    /// Takes a flight whose deadline is at or before `now`; it has no deadline afterwards.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u32> {
        let all = &mut self.all;
        let number = self.timers.due(now, |number| all[number as usize].deadline)?;
        all[number as usize].deadline = Nanos::NEVER;
        Some(number)
    }
}
