//! The record of a connection: 24 bytes, all that an idle connection keeps.

use crate::event::Why;

/// The states of RFC 9293, section 3.3.2 (without LISTEN), and `Dead`.
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
    /// The connection has ended, but the reason was not reported yet.
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
    /// Whether both ends know each other's initial sequence numbers.
    pub(crate) fn is_synchronized(self) -> bool {
        !matches!(self, State::Free | State::SynSent | State::SynReceived | State::Dead)
    }

    /// Whether the program may send data.
    pub(crate) fn sends(self) -> bool {
        matches!(self, State::Established | State::CloseWait)
    }

    /// Whether the connection has nothing left to send and ends after a time; in FIN-WAIT-2 it still expects the peer's FIN.
    pub(crate) fn waits(self) -> bool {
        matches!(self, State::FinWait2 | State::TimeWait)
    }
}

/// Flag: an acknowledgement is owed, at the latest by the end of the turn.
pub(crate) const OWES_ACK: u8 = 1;
/// Flag: the connection is in the list of those that may owe an acknowledgement.
pub(crate) const IN_ACK_LIST: u8 = 2;
/// Flag: the connection is in the list of those that may have events.
pub(crate) const IN_EVENT_LIST: u8 = 4;
/// Flag: `Opened` must be reported.
pub(crate) const OPENED: u8 = 8;
/// Flag: `Drained` must be reported.
pub(crate) const DRAINED: u8 = 16;
/// Flag: `Ended` must be reported, after all data.
pub(crate) const ENDED: u8 = 32;
/// Flag: the program does not read at present.
pub(crate) const HELD: u8 = 64;
/// Flag: the peer accepts selective acknowledgements (RFC 2018).
pub(crate) const SACKS: u8 = 128;

const NONE: u32 = u32::MAX;
/// Value of the window shift if neither side scales; the largest valid shift is 14.
const UNSCALED: u8 = 15;

/// The record of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// The lower 32 bits of the local address; the path has the other bits and the remote address.
    pub(crate) local: u32,
    pub(crate) local_port: u16,
    pub(crate) path: u16,
    /// The next sequence number to send; nothing was sent beyond it.
    pub(crate) snd_nxt: u32,
    /// The next sequence number expected from the peer.
    pub(crate) rcv_nxt: u32,
    /// Depends on the state: the number of the flight, the time at which a waiting connection ends (ms), or the reason why it is dead.
    extra: u32,
    /// The peer's window as received, not scaled.
    pub(crate) window: u16,
    /// The state in the lower four bits, the shift of the peer's window in the upper four.
    state_and_scale: u8,
    /// Flags, from the constants above.
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

    /// Clears all flags except the owed acknowledgement, because the program has closed the connection.
    pub(crate) fn keep_ack_only(&mut self) {
        self.flags &= OWES_ACK;
    }

    /// Sets the shift of the peer's window (RFC 7323). `None`: neither side scales.
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

    /// Stores a window that was sent unscaled, as in a SYN.
    pub(crate) fn set_window_unscaled(&mut self, window: u16) {
        self.window = window >> self.peer_shift();
    }

    /// Bytes that the peer can take.
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

    /// The number of the flight; `None` if nothing is in flight.
    pub(crate) fn flight(&self) -> Option<u32> {
        let has = self.extra != NONE && !self.state().waits() && self.state() != State::Dead;
        has.then_some(self.extra)
    }

    pub(crate) fn set_flight(&mut self, flight: Option<u32>) {
        self.extra = flight.unwrap_or(NONE);
    }

    /// When the connection ends, in milliseconds; only for one that [waits](State::waits).
    pub(crate) fn over_at_ms(&self) -> u32 {
        self.extra
    }

    /// Enters a [waiting](State::waits) state.
    pub(crate) fn wait(&mut self, state: State, over_at_ms: u32) {
        self.set_state(state);
        self.extra = over_at_ms;
    }

    /// Ends the connection. An `Opened` that was not reported yet stays pending.
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

    /// Why a dead connection ended.
    pub(crate) fn why(&self) -> Why {
        match self.extra {
            0 => Why::Reset,
            1 => Why::Refused,
            2 => Why::TimedOut,
            more => Why::Unreachable((more - 3) as i32),
        }
    }
}
