//! What a connection is between two events. A million of these are held: 12 bytes each.

use units::Nanos;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No connection lives at this index.
    None,
    /// Dialled, not connected yet; its exchange keeps the times.
    Dialling,
    /// Connected; the answer to its upgrade is awaited.
    Upgrading,
    /// A request is under way.
    Busy,
    /// Connected, nothing asked: thinking, or only held. Has an exchange only while a message of the server's own
    /// has come in part.
    Idle,
    /// Closed by announcement or lost, to be dialled again when its next request is due, or its back-off is over. Has
    /// no socket.
    Resting,
    /// The probe lane's: its record there, at `exchange`, says the rest.
    Probe,
}

/// The idle record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    /// Index of the exchange while there is one.
    pub(crate) exchange: u32,
    /// From this millisecond of the run on, a close by the server is one that it has announced; 0: none is.
    pub(crate) closes_from_ms: u32,
    pub(crate) destination: u16,
    pub(crate) state: State,
    /// Local addresses tried in this dial; then whether the connection counted as opened.
    pub(crate) tries: u8,
}

const _: () = assert!(size_of::<Conn>() <= 12, "the idle record is what a million connections cost");

impl Conn {
    pub(crate) const NONE: Conn =
        Conn { exchange: u32::MAX, closes_from_ms: 0, destination: 0, state: State::None, tries: 0 };

    /// The server said `Keep-Alive: timeout=N` in an answer that came `now`: a close from a second before that on
    /// is announced (servers count whole seconds, and start before the answer is here).
    pub(crate) fn announce(&mut self, now: Nanos, timeout_s: Option<u32>) {
        self.closes_from_ms = timeout_s.map_or(0, |s| {
            let ms = now.millis() + u64::from(s.saturating_sub(1)) * 1000;
            u32::try_from(ms).unwrap_or(u32::MAX).max(1)
        });
    }

    /// Whether the server has announced that it closes the connection about now.
    pub(crate) fn is_announced(&self, now: Nanos) -> bool {
        self.closes_from_ms != 0 && now.millis() >= u64::from(self.closes_from_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (timeout announced at 10 s, close at, announced)
    fn check(timeout_s: Option<u32>, close_ms: u64, announced: bool) {
        let mut conn = Conn::NONE;
        conn.announce(Nanos::from_secs(10), timeout_s);
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
}
