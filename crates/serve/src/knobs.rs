//! How a server misbehaves on purpose, to test a load tester.

use net::{Close, Cx, Io, Key};
use units::{Nanos, Rate};

/// What is switched on; nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knobs {
    /// Maximum of open connections, over all shards; surplus ones are accepted and closed.
    pub most_open: Option<u64>,
    /// Idle timeout after which a connection is closed without notice.
    pub idle_cut: Option<Nanos>,
    /// Time after the accept at which a connection is reset.
    pub reset_after: Option<Nanos>,
    /// Out of a million requests, this many never get a response, evenly spread.
    pub stalls_of_million: u32,
    /// Connections accepted per second, over all shards.
    pub slow_accept: Option<Rate>,
}

/// Time limit of a TLS handshake: a peer that begins one and stops would otherwise keep its memory for ever.
pub(crate) const HANDSHAKE_LIMIT: Nanos = Nanos::from_secs(60);

/// The times of a connection, in milliseconds of the shard's clock.
#[derive(Clone, Copy)]
struct Times {
    opened_ms: u32,
    received_ms: u32,
    /// Whether its handshake is still under way.
    is_securing: bool,
    /// When its response is due; 0: none.
    response_ms: u32,
}

/// The one timer of each connection: for its response, and with some knobs also for its end. Without these it stores nothing per
/// connection.
pub(crate) struct Watch {
    idle_cut: Nanos,
    reset_after: Nanos,
    /// Whether connections begin with a handshake.
    secures: bool,
    times: Vec<Times>,
}

/// What is due on a connection whose timer has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Close(Close),
    Response,
    Nothing,
}

impl Watch {
    pub(crate) fn new(knobs: &Knobs) -> Watch {
        Watch {
            idle_cut: knobs.idle_cut.unwrap_or(Nanos::NEVER),
            reset_after: knobs.reset_after.unwrap_or(Nanos::NEVER),
            secures: false,
            times: Vec::new(),
        }
    }

    /// Connections will begin with a handshake: limits its time.
    pub(crate) fn limit_handshakes(&mut self) {
        self.secures = true;
    }

    /// Whether a knob needs the times of connections.
    fn is_on(&self) -> bool {
        self.idle_cut.min(self.reset_after) != Nanos::NEVER
    }

    /// A connection was accepted at `k`.
    pub(crate) fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.is_on() {
            self.begin(k, cx.now());
            cx.wake_at(k, self.next(k));
        } else if self.secures {
            cx.wake_at(k, cx.now() + HANDSHAKE_LIMIT);
        }
    }

    /// The handshake of a connection is complete.
    pub(crate) fn secured<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.is_on() {
            self.times[k.index as usize].is_securing = false;
            cx.wake_at(k, self.next(k));
        } else {
            cx.let_sleep(k);
        }
    }

    /// Input has arrived on a connection.
    pub(crate) fn received<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.is_on() {
            self.times[k.index as usize].received_ms = ms(cx.now());
            cx.wake_at(k, self.next(k));
        }
    }

    /// The response to a connection is due at `at`.
    pub(crate) fn owes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, at: Nanos) {
        if !self.is_on() {
            return cx.wake_at(k, at);
        }
        self.times[k.index as usize].response_ms = ms(at).max(1);
        cx.wake_at(k, self.next(k));
    }

    /// What is due at `k`, whose timer has fired; sets the timer for what comes next. `is_owed`: the connection awaits its
    /// response.
    pub(crate) fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, is_owed: bool) -> Due {
        if !self.is_on() {
            // Without such a knob the timer is for the response or the handshake.
            return if is_owed { Due::Response } else { Due::Close(Close::Graceful) };
        }
        let due = self.take(k, cx.now());
        if !matches!(due, Due::Close(_)) {
            cx.wake_at(k, self.next(k));
        }
        due
    }

    fn begin(&mut self, k: Key, now: Nanos) {
        let at = k.index as usize;
        let new =
            Times { opened_ms: ms(now), received_ms: ms(now), is_securing: self.secures, response_ms: 0 };
        if at >= self.times.len() {
            self.times.resize(at + 1, new);
        }
        self.times[at] = new;
    }

    /// A reset takes precedence over a cut, and both over a response.
    fn take(&mut self, k: Key, now: Nanos) -> Due {
        let times = self.times[k.index as usize];
        if after(times.opened_ms, self.reset_after) <= now {
            return Due::Close(Close::Reset);
        }
        if after(times.received_ms, self.idle_cut).min(times.handshake_until()) <= now {
            return Due::Close(Close::Graceful);
        }
        if times.response_ms != 0 && Nanos::from_millis(times.response_ms.into()) <= now {
            self.times[k.index as usize].response_ms = 0;
            return Due::Response;
        }
        Due::Nothing
    }

    /// The earliest deadline at `k`.
    fn next(&self, k: Key) -> Nanos {
        let times = self.times[k.index as usize];
        let response = match times.response_ms {
            0 => Nanos::NEVER,
            ms => Nanos::from_millis(ms.into()),
        };
        let (reset, cut) =
            (after(times.opened_ms, self.reset_after), after(times.received_ms, self.idle_cut));
        reset.min(cut).min(times.handshake_until()).min(response)
    }
}

impl Times {
    fn handshake_until(&self) -> Nanos {
        if self.is_securing { after(self.opened_ms, HANDSHAKE_LIMIT) } else { Nanos::NEVER }
    }
}

/// The time in milliseconds, for 49 days since the server's start. Rounded up, so that nothing is due early.
fn ms(now: Nanos) -> u32 {
    u32::try_from(now.0.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

fn after(ms: u32, span: Nanos) -> Nanos {
    Nanos(Nanos::from_millis(ms.into()).0.saturating_add(span.0))
}

/// Which requests never get a response: evenly spread, so that a short test meets its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    of_million: u32,
    sum: u32,
}

impl Stalls {
    pub(crate) fn new(of_million: u32) -> Stalls {
        Stalls { of_million, sum: 0 }
    }

    /// Whether the next request is one of them.
    pub(crate) fn next(&mut self) -> bool {
        self.sum += self.of_million;
        let stalls = self.sum >= 1_000_000;
        if stalls {
            self.sum -= 1_000_000;
        }
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: Key = Key { index: 3, turn: 0 };

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn the_earliest_timer_fires_first() {
        let knobs = Knobs { idle_cut: Some(at(500)), reset_after: Some(at(2000)), ..Knobs::default() };
        let mut watch = Watch::new(&knobs);
        assert!(watch.is_on());
        watch.begin(K, at(100));
        assert_eq!((watch.next(K), watch.take(K, at(599))), (at(600), Due::Nothing));
        assert_eq!(watch.take(K, at(600)), Due::Close(Close::Graceful));
        watch.times[3].received_ms = 590;
        watch.times[3].response_ms = 700;
        assert_eq!((watch.next(K), watch.take(K, at(700))), (at(700), Due::Response));
        assert_eq!((watch.next(K), watch.take(K, at(700))), (at(1090), Due::Nothing));
        watch.times[3].received_ms = 2000;
        assert_eq!(watch.next(K), at(2100));
        assert_eq!(watch.take(K, at(2100)), Due::Close(Close::Reset));
    }

    #[test]
    fn a_handshake_has_a_minute_however_busy_the_peer_is() {
        let mut watch = Watch::new(&Knobs { idle_cut: Some(at(50_000)), ..Knobs::default() });
        watch.limit_handshakes();
        watch.begin(K, at(100));
        watch.times[3].received_ms = 50_000;
        assert_eq!((watch.next(K), watch.take(K, at(60_099))), (at(60_100), Due::Nothing));
        assert_eq!(watch.take(K, at(60_100)), Due::Close(Close::Graceful));
        watch.times[3].is_securing = false;
        assert_eq!((watch.next(K), watch.take(K, at(60_100))), (at(100_000), Due::Nothing));
    }

    #[test]
    fn without_knobs_nothing_is_watched() {
        let watch = Watch::new(&Knobs::default());
        assert!(!watch.is_on());
        assert_eq!(watch.times.len(), 0);
    }

    #[test]
    fn stalls_have_their_share() {
        for (of_million, of_thousand) in [(0, 0), (1_000, 1), (250_000, 250), (1_000_000, 1000)] {
            let mut stalls = Stalls::new(of_million);
            let n = (0..1000).filter(|_| stalls.next()).count();
            assert_eq!(n, of_thousand, "{of_million} of a million");
        }
    }
}
