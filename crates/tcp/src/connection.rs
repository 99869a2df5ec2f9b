//! What is kept of a connection on which nothing is under way.

use crate::event::Why;

/// RFC 9293, section 3.3.2, and two more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No connection.
    Free,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    /// No connection any more, but why was not reported yet.
    Dead,
}

const STATES: [State; 16] = {
    let mut states = [State::Free; 16];
    let all = [
        State::Free,
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
        State::Dead,
    ];
    let mut at = 0;
    while at < all.len() {
        states[all[at] as usize] = all[at];
        at += 1;
    }
    states
};

impl State {
    /// Whether both ends have said their sequence numbers.
    pub(crate) fn is_synchronized(self) -> bool {
        !matches!(self, State::Free | State::SynSent | State::SynReceived | State::Dead)
    }

    /// Whether its program may send.
    pub(crate) fn sends(self) -> bool {
        matches!(self, State::Established | State::CloseWait)
    }

    /// Whether nothing but time ends it.
    pub(crate) fn waits(self) -> bool {
        matches!(self, State::FinWait2 | State::TimeWait)
    }
}

/// An acknowledgement is owed, at the end of the turn at the latest.
pub(crate) const OWES_ACK: u8 = 1;
/// It is in the list of those that owe one.
pub(crate) const IN_ACK_LIST: u8 = 2;
/// It is in the list of those with events.
pub(crate) const IN_EVENT_LIST: u8 = 4;
/// To be reported: it is open.
pub(crate) const OPENED: u8 = 8;
/// To be reported: what was left over has been sent.
pub(crate) const DRAINED: u8 = 16;
/// To be reported, after all data: the peer closed its side.
pub(crate) const ENDED: u8 = 32;
/// Its program reads nothing now.
pub(crate) const HELD: u8 = 64;
/// The peer takes selective acknowledgements (RFC 2018).
pub(crate) const SACKS: u8 = 128;

const NONE: u32 = u32::MAX;
/// As the shift of the peer's window: neither side scales. The largest shift is 14.
const UNSCALED: u8 = 15;

/// A connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// The lower 32 bits of the local address; the others, and the peer, are the path's.
    pub(crate) local: u32,
    pub(crate) local_port: u16,
    pub(crate) path: u16,
    /// The next number to send; nothing that was sent lies beyond it.
    pub(crate) snd_nxt: u32,
    /// The next number that is expected.
    pub(crate) rcv_nxt: u32,
    /// Which flight it has; or when it is over, where it only waits for that; or why it is no more.
    extra: u32,
    /// The peer's window, as it says it: not scaled.
    pub(crate) window: u16,
    /// The state in the lower four bits, the shift of the peer's window in the upper ones.
    state_and_scale: u8,
    /// Flags, of the constants above.
    flags: u8,
}

const _: () = assert!(size_of::<Connection>() == 24, "an idle connection costs this");

impl Connection {
    pub(crate) const FREE: Connection = Connection {
        local: 0,
        local_port: 0,
        path: 0,
        snd_nxt: 0,
        rcv_nxt: 0,
        extra: NONE,
        window: 0,
        state_and_scale: State::Free as u8 | UNSCALED << 4,
        flags: 0,
    };

    pub(crate) fn state(&self) -> State {
        STATES[usize::from(self.state_and_scale & 15)]
    }

    pub(crate) fn set_state(&mut self, state: State) {
        self.state_and_scale = self.state_and_scale & !15 | state as u8;
    }

    /// Of what is to be done for it, only acknowledgements are left: its program is gone.
    pub(crate) fn keep_ack_only(&mut self) {
        self.flags &= OWES_ACK;
    }

    /// The peer shifts its window by this from now on (RFC 7323), as we do ours; none of both scales without.
    pub(crate) fn set_scale(&mut self, scale: Option<u8>) {
        self.state_and_scale = self.state_and_scale & 15 | scale.unwrap_or(UNSCALED) << 4;
    }

    /// Whether both sides scale their windows.
    pub(crate) fn is_scaled(&self) -> bool {
        self.state_and_scale >> 4 != UNSCALED
    }

    fn peer_shift(&self) -> u8 {
        if self.is_scaled() { self.state_and_scale >> 4 } else { 0 }
    }

    /// A window that was said without a shift, as in a SYN.
    pub(crate) fn set_window_unscaled(&mut self, window: u16) {
        self.window = window >> self.peer_shift();
    }

    /// Bytes that the peer takes.
    pub(crate) fn peer_window(&self) -> u32 {
        u32::from(self.window) << self.peer_shift()
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }

    pub(crate) fn clear(&mut self, flag: u8) {
        self.flags &= !flag;
    }

    /// Number of the flight, where something is under way.
    pub(crate) fn flight(&self) -> Option<u32> {
        let has = self.extra != NONE && !self.state().waits() && self.state() != State::Dead;
        has.then_some(self.extra)
    }

    pub(crate) fn set_flight(&mut self, flight: Option<u32>) {
        self.extra = flight.unwrap_or(NONE);
    }

    /// When it is over; of one that [waits](State::waits).
    pub(crate) fn over_at_ms(&self) -> u32 {
        self.extra
    }

    /// Only waits from now on.
    pub(crate) fn wait(&mut self, state: State, over_at_ms: u32) {
        self.set_state(state);
        self.extra = over_at_ms;
    }

    /// It is no more. What is still to be reported of before stays.
    pub(crate) fn die(&mut self, why: Why) {
        self.set_state(State::Dead);
        self.flags &= OPENED | IN_EVENT_LIST | IN_ACK_LIST;
        self.extra = match why {
            Why::Reset => 0,
            Why::Refused => 1,
            Why::TimedOut => 2,
            Why::Unreachable(errno) => 3 + errno as u32,
        };
    }

    /// Why a dead one is.
    pub(crate) fn why(&self) -> Why {
        match self.extra {
            0 => Why::Reset,
            1 => Why::Refused,
            2 => Why::TimedOut,
            more => Why::Unreachable((more - 3) as i32),
        }
    }
}
