//! What is under way on a connection: a handshake, unacknowledged or unsent data, data out of order or on hold, a FIN.

use units::Nanos;

use crate::inbound::Inbound;
use crate::send_queue::SendQueue;
use crate::seq::{after, before, later};

mod timers;

use timers::Timers;

/// Segments that may be sent before the first acknowledgement (RFC 6928), also after a pause (RFC 5681, section 4.1).
const INITIAL_SEGMENTS: u32 = 10;
/// Acknowledgements without progress that mean a loss (RFC 5681, section 3.2).
const DUPLICATES: u8 = 3;

/// What is under way.
#[derive(Default)]
pub(crate) struct Flight {
    /// Number of its connection.
    pub(crate) owner: u32,
    /// The first number that is not acknowledged.
    pub(crate) una: u32,
    /// The next number to send: before what was sent already, after a timeout.
    pub(crate) next: u32,
    /// The number of the segment that last said the peer's window.
    pub(crate) window_seq: u32,
    /// The largest window that the peer has said.
    pub(crate) most_window: u32,
    /// The end of the window that the peer knows of us.
    pub(crate) advertised: u32,
    /// Congestion window and slow-start threshold, in bytes.
    pub(crate) cwnd: u32,
    ssthresh: u32,
    /// Recovery from a loss ends when this number is acknowledged.
    recover: u32,
    /// Acknowledgements without progress, in a row.
    duplicates: u8,
    /// A loss was noticed by duplicates, and not all that was sent before is acknowledged.
    is_recovering: bool,
    /// A SYN is not acknowledged: it takes number `una`, and the queue begins behind it.
    pub(crate) syn: bool,
    /// After the queue comes a FIN.
    pub(crate) fin: bool,
    /// A part of the queue was never sent, and the program was told so.
    pub(crate) is_blocked: bool,
    /// Times that what is due was sent again, or the peer's window was asked for, without a response.
    pub(crate) tries: u8,
    /// By how much the interval has grown.
    pub(crate) backoff: u8,
    /// What ICMP has said meanwhile: an errno, or 0.
    pub(crate) soft_errno: i32,
    /// A segment whose acknowledgement is timed: the number behind it, and when it was sent.
    timed: Option<(u32, Nanos)>,
    pub(crate) out: SendQueue,
    pub(crate) inbound: Inbound,
    /// When something is due; [`Nanos::NEVER`] if nothing is.
    pub(crate) deadline: Nanos,
}

const _: () = assert!(size_of::<Flight>() <= 256, "a dial that is under way costs this");

impl Flight {
    /// Everything before `nxt` is acknowledged, and nothing is under way. What the queues hold stays: they are empty, with their memory.
    fn begin(&mut self, nxt: u32, mss: u32) {
        (self.una, self.next, self.recover) = (nxt, nxt, nxt);
        (self.cwnd, self.ssthresh) = (INITIAL_SEGMENTS * mss, u32::MAX);
        (self.syn, self.fin, self.is_blocked, self.is_recovering) = (false, false, false, false);
        (self.duplicates, self.tries, self.backoff, self.soft_errno) = (0, 0, 0, 0);
        self.timed = None;
        self.deadline = Nanos::NEVER;
    }

    /// The number of the first byte in the queue.
    pub(crate) fn queue_start(&self) -> u32 {
        self.una.wrapping_add(u32::from(self.syn))
    }

    /// The number behind the last byte in the queue; a FIN has it.
    pub(crate) fn queue_end(&self) -> u32 {
        self.queue_start().wrapping_add(self.out.len() as u32)
    }

    /// The number behind all that there is to send.
    pub(crate) fn end(&self) -> u32 {
        self.queue_end().wrapping_add(u32::from(self.fin))
    }

    /// Bytes under way, as far as is known.
    pub(crate) fn under_way(&self) -> u32 {
        self.next.wrapping_sub(self.una)
    }

    /// Bytes that may be under way now: the first duplicates let one segment more go each (RFC 3042).
    pub(crate) fn congestion_window(&self, mss: u32) -> u32 {
        let limited = if self.is_recovering { 0 } else { u32::from(self.duplicates.min(DUPLICATES - 1)) };
        self.cwnd.saturating_add(limited * mss)
    }

    /// Times the segment that ends at `end`, unless another is timed.
    pub(crate) fn time(&mut self, end: u32, now: Nanos) {
        self.timed.get_or_insert((end, now));
    }

    /// What is sent again tells nothing of the round trip (Karn's algorithm; RFC 6298, section 3).
    pub(crate) fn untime(&mut self) {
        self.timed = None;
    }

    /// All before `ack` is acknowledged, for the first time; returns the round trip, if it was measured. The queue and the congestion
    /// window follow. Whether the first segment is to be sent again, as another gap has shown.
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
        // A FIN that is acknowledged is no more to be sent: `una` lies behind it.
        self.una = ack;
        if before(self.next, ack) {
            self.next = ack;
        }
        // The peer is there: what a router has said before is not why it would be given up.
        (self.tries, self.backoff, self.soft_errno) = (0, 0, 0);
        (rtt, self.grow(acked, mss))
    }

    /// An acknowledgement of something else came during the handshake. Whether it was the first, with nothing sent again before.
    pub(crate) fn is_first_stray(&mut self) -> bool {
        let is_first = self.duplicates == 0 && self.tries == 0;
        self.duplicates = 1;
        self.untime();
        is_first
    }

    /// The handshake is over. After a lost SYN the network is taken to be full (RFC 5681, section 3.1).
    pub(crate) fn open(&mut self, mss: u32, syn_was_lost: bool) {
        self.cwnd = if syn_was_lost { mss } else { INITIAL_SEGMENTS * mss };
        self.recover = self.una;
    }

    /// RFC 5681, section 3.1; RFC 6582, section 3.2.
    fn grow(&mut self, acked: u32, mss: u32) -> bool {
        self.duplicates = 0;
        if self.is_recovering {
            if !before(self.una, self.recover) {
                self.is_recovering = false;
                self.cwnd = self.ssthresh.min(self.under_way().max(mss) + mss);
                return false;
            }
            // A partial acknowledgement: the window shrinks by what left the network, but for one segment.
            self.cwnd = self.cwnd.saturating_sub(acked).max(mss);
            if acked >= mss {
                self.cwnd = self.cwnd.saturating_add(mss);
            }
            return true;
        }
        // Not left behind by half of the numbers, where it would lie ahead again.
        self.recover = later(self.recover, self.una);
        let more = match self.cwnd < self.ssthresh {
            // Two segments for an acknowledgement that covers two (RFC 3465).
            true => acked.min(2 * mss),
            false => (u64::from(mss) * u64::from(acked.min(self.cwnd)) / u64::from(self.cwnd.max(1))) as u32,
        };
        self.cwnd = self.cwnd.saturating_add(more.max(1));
        false
    }

    /// An acknowledgement without progress. Whether the first segment is to be sent again.
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

    /// Nothing was acknowledged in time: all is sent again, from the first on (RFC 5681, section 3.1).
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

/// The flights of a shard. Those that are free keep their memory for the next, within a limit.
pub(crate) struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
    timers: Timers,
    /// Bytes of memory that free ones keep.
    kept: usize,
    /// Bytes of memory that those in use have for what came and could not be reported.
    inbound: usize,
}

/// Bytes that free flights keep in all.
const MOST_KEPT: usize = 32 * 1024 * 1024;
/// Bytes of that, of all connections, from which on what comes too early is as if it were lost. The kernel has such a limit too
/// (`net.ipv4.tcp_mem`).
const MOST_INBOUND: usize = 512 * 1024 * 1024;

impl Flights {
    pub(crate) fn new() -> Flights {
        Flights { all: Vec::new(), free: Vec::new(), timers: Timers::default(), kept: 0, inbound: 0 }
    }

    /// How many are in use.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// A flight of the connection `owner`, on which everything before `nxt` is acknowledged.
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

    /// It is over.
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

    /// Keeps bytes that cannot be reported yet, as [`Inbound::keep`] does; too early ones only within a limit.
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

    /// All that there ever were, also those that are over, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Flight)> {
        (0..).zip(&self.all)
    }

    pub(crate) fn get(&self, number: u32) -> &Flight {
        &self.all[number as usize]
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Flight {
        &mut self.all[number as usize]
    }

    /// Something is due on it at `deadline`.
    pub(crate) fn arm(&mut self, number: u32, deadline: Nanos) {
        self.all[number as usize].deadline = deadline;
        self.timers.arm(number, deadline);
    }

    /// When something may be due next, or earlier.
    pub(crate) fn wakes_at(&self) -> Nanos {
        self.timers.next()
    }

    /// A flight on which something is due by `now`; it is armed no more.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u32> {
        let all = &mut self.all;
        let number = self.timers.due(now, |number| all[number as usize].deadline)?;
        all[number as usize].deadline = Nanos::NEVER;
        Some(number)
    }
}
