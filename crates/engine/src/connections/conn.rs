//! What a connection is between two events. A million of these are held: 16 bytes each.

use samples::Stage;
use units::Nanos;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No connection lives at this index.
    None,
    /// Dialled, not connected yet; its exchange keeps the times.
    Dialling,
    /// Connected; the layer's handshake is under way.
    Securing,
    /// Connected; its session is being opened.
    Upgrading,
    /// Requests are under way.
    Busy,
    /// Connected and idle: thinking, or only held. Has a session only while an unsolicited message is incomplete.
    Idle,
    /// closed with an announcement or lost, to be dialled again when its next request is due, or its back-off is over. Has
    /// no socket.
    Disconnected,
}

impl State {
    pub(super) const COUNT: usize = State::Disconnected as usize + 1;

    /// Those of connections that are not open yet.
    pub(crate) const OPENING: [State; 3] = [State::Dialling, State::Securing, State::Upgrading];

    /// Whether it is connected.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, State::Busy | State::Idle)
    }

    /// Whether it is not open yet.
    pub(crate) fn is_opening(self) -> bool {
        State::OPENING.contains(&self)
    }

    /// The stage that a fault belongs to.
    pub(crate) fn stage(self) -> Stage {
        match self {
            State::Dialling => Stage::Dial,
            State::Securing => Stage::Tls,
            State::Upgrading => Stage::Handshake,
            State::Busy => Stage::Exchange,
            State::Idle | State::Disconnected | State::None => Stage::Hold,
        }
    }

    /// Whether its exchanges are what it does.
    pub(super) fn is_under_way(self) -> bool {
        self.is_opening() || self == State::Busy
    }
}

/// Resolution of the time of the last input, in milliseconds; range 14 hours.
const STEP_MS: u64 = 50;
const STEPS: u32 = 1 << (32 - ANNOUNCED_BITS);
/// Room for an announcement of up to 68 minutes.
const ANNOUNCED_BITS: u32 = 12;
const ANNOUNCED: u32 = (1 << ANNOUNCED_BITS) - 1;

/// Servers announce whole seconds, and may count from before the response arrives.
const EARLY: Nanos = Nanos::from_secs(1);
/// Resolution of the timers of servers (Apache's event MPM: 100 ms), and of the time of the last input.
const COARSE: Nanos = Nanos::from_millis(200);

/// The idle record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    /// Index of the session while there is one.
    pub(super) session: u32,
    /// Time of the last input, in steps, above the announced idle timeout: [`ANNOUNCED_BITS`] of 1 + seconds; 0: none
    /// announced.
    last_input: u32,
    pub(crate) destination: u16,
    /// The operation that comes next.
    pub(crate) at: u16,
    pub(super) state: State,
    /// Local addresses tried in this dial.
    pub(crate) tries: u8,
    /// Whether it, or the one whose place it takes, has had a response; also after a loss, so that none counts twice.
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

    /// One that is to be dialled, or waits for that, and continues with the operation `at`.
    pub(crate) fn new(destination: u16, at: u16, state: State) -> Conn {
        Conn { destination, at, state, ..Conn::NONE }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Input arrived `now`, with `Keep-Alive: timeout=N` or without.
    pub(crate) fn received(&mut self, now: Nanos, timeout_s: Option<u32>) {
        // Longer than there is room for is never reached: better a close that counts as a loss than the reverse.
        let announced = timeout_s.map_or(0, |s| s.min(ANNOUNCED - 1) + 1);
        self.last_input = (step(now) << ANNOUNCED_BITS) | announced;
    }

    /// Time since the last input.
    pub(crate) fn silent_for(&self, now: Nanos) -> Nanos {
        let steps = step(now).wrapping_sub(self.last_input >> ANNOUNCED_BITS) % STEPS;
        Nanos::from_millis(u64::from(steps) * STEP_MS)
    }

    /// Whether the server has announced that it closes the connection about now: from a second before its timeout on, or half of that.
    pub(crate) fn is_announced(&self, now: Nanos) -> bool {
        self.timeout().is_some_and(|timeout| {
            let early = EARLY.min(Nanos(timeout.0 / 2));
            self.silent_for(now) >= timeout.since(early)
        })
    }

    /// Whether a request `sent` on it, which has no response when it is closed `now`, met the close that the server had announced: it
    /// was sent when that was about due, and the close came when it was due, not because of the request.
    pub(crate) fn has_met_announced(&self, sent: Nanos, now: Nanos) -> bool {
        let is_due = |timeout: Nanos| self.silent_for(now) >= Nanos(timeout.0.saturating_sub(COARSE.0));
        self.is_announced(sent) && self.timeout().is_some_and(is_due)
    }

    /// The idle timeout that was announced.
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
            // Across the place where the steps begin again.
            (52_428_700, None, 52_431_800, 3_100),
        ] {
            let mut conn = Conn::NONE;
            conn.received(Nanos::from_millis(received_ms), timeout_s);
            let silent = conn.silent_for(Nanos::from_millis(now_ms));
            assert_eq!(silent, Nanos::from_millis(expected_ms), "{received_ms} {timeout_s:?} {now_ms}");
        }
    }
}
