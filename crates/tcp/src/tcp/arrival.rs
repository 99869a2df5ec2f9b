//! Arriving segments (RFC 9293, section 3.10.7.4, with RFC 5961), including those that belong to no connection.

use units::Nanos;

use super::{CHALLENGES_PER_SECOND, Tcp};
use crate::connection::State;
use crate::event::{Event, Why};
use crate::link::Link;
use crate::packet::{ACK, FIN, Header, RST, SYN, Segment};
use crate::seq::{after, before};

impl Tcp {
    /// Handles a segment of connection `id`. Returns the event whose bytes are in the packet.
    pub(super) fn arrived(
        &mut self,
        id: u32,
        segment: &Segment,
        packet: &[u8],
        now: Nanos,
        link: &mut impl Link,
    ) -> Option<Event> {
        let connection = *self.table.get(id);
        let state = connection.state();
        if state == State::SynSent {
            return self.answered(id, segment, packet, now, link);
        }
        let mut segment = *segment;
        let is_second_syn = state == State::SynReceived
            && segment.flags & (SYN | ACK) == SYN | ACK
            && segment.seq == connection.rcv_nxt.wrapping_sub(1);
        if is_second_syn {
            // The peer's SYN again, now with an acknowledgement: a simultaneous open.
            segment.seq = connection.rcv_nxt;
            segment.flags &= !SYN;
        }
        // A peer has nothing to send after its FIN, so some reset with the FIN's sequence number; Linux accepts it too.
        let is_behind_fin = matches!(state, State::CloseWait | State::Closing | State::LastAck)
            && segment.has(RST)
            && segment.seq == connection.rcv_nxt.wrapping_sub(1);
        if is_behind_fin {
            self.gone(id, Why::Reset);
            return None;
        }
        if !self.is_acceptable(id, &segment, link, now) {
            return None;
        }
        if segment.has(RST) {
            self.reset_arrived(id, &segment, now, link);
            return None;
        }
        if segment.has(SYN) {
            self.challenge(id, now, link);
            return None;
        }
        if !segment.has(ACK) {
            return None;
        }
        if state == State::SynReceived {
            if segment.ack != connection.snd_nxt {
                self.reset_stray(&segment, link);
                return None;
            }
            self.open(id, segment.ack, now);
        }
        if !self.acknowledged(id, &segment, now, link) {
            return None;
        }
        let event = self.text(id, &segment, packet, link);
        if is_second_syn {
            self.owe(id, link);
        }
        self.fin(id, &segment, now, link);
        self.transmit_settle(id, now, link);
        event
    }

    /// Whether at least a part of a segment is in the window. Other segments are acknowledged, so that the peer learns the expected number.
    fn is_acceptable(&mut self, id: u32, segment: &Segment, link: &mut impl Link, now: Nanos) -> bool {
        let connection = *self.table.get(id);
        let window = self.window(id);
        let end = connection.rcv_nxt.wrapping_add(window);
        let room = segment.room();
        let acceptable = match (room, window) {
            // As in Linux, the number at the window's end is valid: a peer that has filled the window sends its acknowledgements with it.
            (0, _) => !before(segment.seq, connection.rcv_nxt) && !after(segment.seq, end),
            // With a zero window no data fits, but the segment's acknowledgement and flags still count.
            (_, 0) => segment.seq == connection.rcv_nxt,
            _ => before(segment.seq, end) && after(segment.seq.wrapping_add(room), connection.rcv_nxt),
        };
        if acceptable || segment.has(RST) {
            return acceptable;
        }
        if room > 0 {
            self.counts.duplicates += 1;
        }
        if connection.state() == State::TimeWait && segment.has(FIN) {
            self.wait(id, State::TimeWait, now);
        }
        // Each acknowledgement here responds to a segment that the peer's timer sent: data or FIN again, or a keep-alive (RFC 9293, section
        // 3.8.4).
        let is_keep_alive = segment.seq == connection.rcv_nxt.wrapping_sub(1);
        if room > 0 || is_keep_alive {
            self.acknowledge_now(id, link);
        } else {
            self.challenge(id, now, link);
        }
        false
    }

    /// Handles a reset. Only one with the next expected number is valid (RFC 5961, section 3); another may be forged and is challenged.
    fn reset_arrived(&mut self, id: u32, segment: &Segment, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(id);
        if segment.seq != connection.rcv_nxt {
            return self.challenge(id, now, link);
        }
        match connection.state() {
            // The reset would end TIME-WAIT too early (RFC 1337).
            State::TimeWait => {}
            State::SynReceived => self.gone(id, Why::Refused),
            _ => self.gone(id, Why::Reset),
        }
    }

    /// Sends a challenge ACK, to which the genuine peer responds with a valid segment; rate-limited.
    pub(super) fn challenge(&mut self, id: u32, now: Nanos, link: &mut impl Link) {
        let second = now.0 / Nanos::from_secs(1).0;
        if self.challenges.0 != second {
            self.challenges = (second, 0);
        }
        if self.challenges.1 == CHALLENGES_PER_SECOND {
            self.counts.challenges_withheld += 1;
            return;
        }
        self.challenges.1 += 1;
        self.counts.challenges += 1;
        self.acknowledge_now(id, link);
    }

    /// Resets a segment of no connection here (RFC 9293, section 3.10.7.1), if it comes from a destination that is dialled.
    pub(super) fn stray(&mut self, segment: &Segment, link: &mut impl Link) {
        self.counts.not_ours += 1;
        if !segment.has(RST) && self.table.paths.knows(&segment.tuple) {
            self.reset_stray(segment, link);
        }
    }

    /// Sends a reset with the numbers that the segment itself implies.
    pub(super) fn reset_stray(&mut self, segment: &Segment, link: &mut impl Link) {
        let (seq, ack, flags) = match segment.has(ACK) {
            true => (segment.ack, 0, RST),
            false => (0, segment.seq.wrapping_add(segment.room()), RST | ACK),
        };
        let header = Header { seq, ack, flags, ..Header::of(segment.tuple) };
        self.counts.packets_out += 1;
        header.send(&[], None, link);
    }
}
