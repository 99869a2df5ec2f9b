//! The idle record: what is stored of a connection between two events, 16 bytes each for a million of them.

use samples::Stage;
use units::Nanos;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No connection at this index.
    None,
    /// Dialled, not connected yet; its exchange has the times.
    Dialling,
    /// Connected; the layer's handshake (TLS) is under way.
    Securing,
    /// Connected; the protocol's session is being opened.
    Upgrading,
    /// Requests are under way.
    Busy,
    /// Open and idle: thinking, or only held. Has a session only while an unsolicited message is incomplete.
    Idle,
    /// Has no socket: it was closed as announced, or lost, and will be dialled again when its next request is due or its back-off
    /// is over.
    Disconnected,
}

impl State {
    pub(super) const COUNT: usize = State::Disconnected as usize + 1;

    /// The states of connections that are not open yet.
    pub(crate) const OPENING: [State; 3] = [State::Dialling, State::Securing, State::Upgrading];

    /// Whether the connection is open.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, State::Busy | State::Idle)
    }

    /// Whether the connection is not open yet.
    pub(crate) fn is_opening(self) -> bool {
        State::OPENING.contains(&self)
    }

    /// The stage of a fault in this state.
    pub(crate) fn stage(self) -> Stage {
        match self {
            State::Dialling => Stage::Dial,
            State::Securing => Stage::Tls,
            State::Upgrading => Stage::Handshake,
            State::Busy => Stage::Exchange,
            State::Idle | State::Disconnected | State::None => Stage::Hold,
        }
    }

    /// Whether the state has exchanges.
    pub(super) fn is_under_way(self) -> bool {
        self.is_opening() || self == State::Busy
    }
}

/// Resolution of the time of the last input, in milliseconds; its range is 14 hours.
const STEP_MS: u64 = 50;
const STEPS: u32 = 1 << (32 - ANNOUNCED_BITS);
/// Bits for the announced timeout: up to 68 minutes.
const ANNOUNCED_BITS: u32 = 12;
const ANNOUNCED: u32 = (1 << ANNOUNCED_BITS) - 1;

/// Servers announce whole seconds, and may start counting before the response arrives.
const EARLY: Nanos = Nanos::from_secs(1);
/// Timer resolution of servers (Apache's event MPM: 100 ms), and of the time of the last input.
const COARSE: Nanos = Nanos::from_millis(200);

/// The idle record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    /// Index of the session, if there is one.
    pub(super) session: u32,
    /// Upper bits: time of the last input, in steps. Lower [`ANNOUNCED_BITS`]: announced idle timeout in seconds, plus 1; 0: none
    /// announced.
    last_input: u32,
    pub(crate) destination: u16,
    /// Index of the next operation.
    pub(crate) at: u16,
    pub(super) state: State,
    /// Number of local addresses tried in this dial.
    pub(crate) tries: u8,
    /// Whether this connection, or the one it replaces, has had a response. Kept after a loss, so that none counts twice.
    pub(crate) served: bool,
}

const _: () = assert!(size_of::<Conn>() <= 16, "the idle record is what a million connections cost");

impl Conn {
    pub(crate) const NONE: Conn = Conn {
        session: crate::pool::NOTHING,
        last_input: 0,
        destination: 0,
        at: 0,
        state: State::None,
        tries: 0,
        served: false,
    };

    /// A connection that is dialled, or will be, and continues with the operation `at`.
    pub(crate) fn new(destination: u16, at: u16, state: State) -> Conn {
        Conn { destination, at, state, ..Conn::NONE }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Notes input at `now`; `timeout_s`: its `Keep-Alive: timeout=N`, if any.
    pub(crate) fn received(&mut self, now: Nanos, timeout_s: Option<u32>) {
        // A longer timeout than fits counts as never reached: better a close that is counted as a loss than the reverse.
        let announced = timeout_s.map_or(0, |s| s.min(ANNOUNCED - 1) + 1);
        self.last_input = (step(now) << ANNOUNCED_BITS) | announced;
    }

    /// Time since the last input, in steps of 50 ms.
    pub(crate) fn silent_for(&self, now: Nanos) -> Nanos {
        let steps = step(now).wrapping_sub(self.last_input >> ANNOUNCED_BITS) % STEPS;
        Nanos::from_millis(u64::from(steps) * STEP_MS)
    }

    /// Whether the server's announced close is due about now: from a second before its timeout, or half the timeout if that is
    /// shorter.
    pub(crate) fn is_announced(&self, now: Nanos) -> bool {
        self.timeout().is_some_and(|timeout| {
            let early = EARLY.min(Nanos(timeout.0 / 2));
            self.silent_for(now) >= timeout.since(early)
        })
    }

    /// Whether a request without a response met the announced close: it was `sent` when the close was about due, and the close
    /// came `now` because it was due, not because of the request.
    pub(crate) fn has_met_announced(&self, sent: Nanos, now: Nanos) -> bool {
        let is_due = |timeout: Nanos| self.silent_for(now) >= Nanos(timeout.0.saturating_sub(COARSE.0));
        self.is_announced(sent) && self.timeout().is_some_and(is_due)
    }

    /// The announced idle timeout.
    fn timeout(&self) -> Option<Nanos> {
        let announced = self.last_input & ANNOUNCED;
        (1..ANNOUNCED).contains(&announced).then(|| Nanos::from_secs(u64::from(announced) - 1))
    }
}

fn step(now: Nanos) -> u32 {
    (now.millis() / STEP_MS % u64::from(STEPS)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (timeout announced at 10 s, close at, announced)
    fn check(timeout_s: Option<u32>, close_ms: u64, announced: bool) {
        let mut conn = Conn::NONE;
        conn.received(Nanos::from_secs(10), timeout_s);
        let got = conn.is_announced(Nanos::from_millis(close_ms));
        assert_eq!(got, announced, "timeout {timeout_s:?}, closed at {close_ms} ms");
    }

    #[test]
    fn a_close_is_announced_from_a_second_before_the_timeout_on() {
        check(Some(5), 13_999, false);
        check(Some(5), 14_000, true);
        check(Some(5), 60_000, true);
        check(None, 60_000, false);
        check(Some(0), 10_000, true);
        check(Some(u32::MAX), u64::from(u32::MAX) - 1, false);
    }

    #[test]
    fn a_request_meets_an_announced_close_when_that_is_due() {
        for (timeout_s, sent_ms, closed_ms, expected) in [
            (5, 14_950, 15_050, true),
            (5, 14_950, 19_000, true),
            // Sent in time; closed because of it.
            (5, 14_200, 14_300, false),
            (5, 12_000, 15_050, false),
            (1, 10_300, 10_400, false),
            (1, 10_300, 11_000, false),
            (1, 10_500, 11_000, true),
            (0, 10_000, 10_100, true),
        ] {
            let mut conn = Conn::NONE;
            conn.received(Nanos::from_secs(10), Some(timeout_s));
            let [sent, closed] = [sent_ms, closed_ms].map(Nanos::from_millis);
            assert_eq!(conn.has_met_announced(sent, closed), expected, "{timeout_s} {sent_ms} {closed_ms}");
        }
    }

    #[test]
    fn silence_is_reported_whatever_was_announced() {
        for (received_ms, timeout_s, now_ms, expected_ms) in [
            (0, None, 0, 0),
            (10_000, Some(5), 12_340, 2_300),
            (10_000, Some(u32::MAX), 10_049, 0),
            (50_000_000, Some(60), 60_000_000, 10_000_000),
            // Across the wrap-around of the steps.
            (52_428_700, None, 52_431_800, 3_100),
        ] {
            let mut conn = Conn::NONE;
            conn.received(Nanos::from_millis(received_ms), timeout_s);
            let silent = conn.silent_for(Nanos::from_millis(now_ms));
            assert_eq!(silent, Nanos::from_millis(expected_ms), "{received_ms} {timeout_s:?} {now_ms}");
        }
    }
}
