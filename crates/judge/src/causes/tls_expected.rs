//! Cause: the target expects TLS on connections with plain text.

use super::*;
use record::tolerances::CONFIGURED;

/// The target replied to plain-text requests with a TLS alert, or with its error page for that case (nginx, Apache, Go, Tomcat). Or no byte was
/// ever received, connections were closed in response to what was sent on them, and one extra connection after the load received a TLS record
/// in reply to a ClientHello (a guess, where that was not possible, and the target closed immediately).
pub(crate) struct TlsExpected {
    pub(crate) count: u64,
    pub(crate) how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Rejected,
    ClosedAndSpeaksTls,
    ClosedAtOnce,
}

impl Cause for TlsExpected {
    const ID: &'static str = "tls-expected";
    const OF: (Side, Name) = (Side::Target, Name::TlsExpected);
    const YIELDS_TO: &'static str = "ended oom-killed";

    fn find(case: &Case) -> Option<Found<TlsExpected>> {
        let e = case.evidence;
        let found = |how| TlsExpected { count: case.count, how };
        if case.kind == Some(Kind::TlsExpected) {
            return Some(Found::seen(found(How::Rejected), case.left()));
        }
        let is_closed =
            case.trouble == Trouble::Lost && matches!(case.stage, Some(Stage::Exchange | Stage::Handshake));
        let at_once = e.losses.silence.is_none_or(|time| time < CONFIGURED);
        let (certainty, how) = match e.speaks_tls.filter(|_| is_closed && e.is_mute) {
            Some(true) => (Certainty::Seen, How::ClosedAndSpeaksTls),
            None if is_closed && e.is_mute && e.speaks_tls.is_none() && at_once => {
                (Certainty::Guess, How::ClosedAtOnce)
            }
            _ => return None,
        };
        Some(Found::seen(found(how), case.left()).certain(certainty))
    }

    fn sentence(&self) -> String {
        let (n, their) = (connections(self.count), Count(self.count).one_or("its", "their"));
        match self.how {
            How::Rejected => format!("the target expects TLS: it rejected {n} in plain text"),
            How::ClosedAndSpeaksTls | How::ClosedAtOnce => {
                format!("the target expects TLS: it closed {n} at {their} first request, sending nothing")
            }
        }
    }

    fn detail(&self, _: &Case) -> String {
        let n = Count(self.count);
        match self.how {
            How::Rejected => format!("the target speaks TLS: {} rejected", n.were("plain-text connection")),
            How::ClosedAndSpeaksTls => format!(
                "the target speaks TLS: {} closed without a byte in reply, and a TLS ClientHello received a reply",
                n.were("plain-text connection")
            ),
            How::ClosedAtOnce => format!(
                "{} closed at {} first request, without a byte in reply: perhaps the target expects TLS",
                n.were("connection"),
                n.one_or("its", "their")
            ),
        }
    }

    fn fix(&self, _: &Case) -> String {
        let fix = match self.how {
            How::ClosedAtOnce => {
                "try https:// (wss://, tls://) in the target, or openssl s_client -connect HOST:PORT"
            }
            How::Rejected | How::ClosedAndSpeaksTls => {
                "use https:// (wss://, grpcs://, tls://) in the target, or a port without TLS"
            }
        };
        fix.to_owned()
    }
}
