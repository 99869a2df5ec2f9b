//! Cause: a connection is closed if its response takes a certain time.

use super::*;

/// All lost connections had waited for a response for the same time, 0.9 s or more.
pub(crate) struct RequestTimeout {
    pub(crate) time: Nanos,
    pub(crate) count: u64,
    pub(crate) by: By,
}

impl Cause for RequestTimeout {
    const ID: &'static str = "request-timeout";
    const OF: (Side, Name) = (Side::Target, Name::RequestTimeout);
    const YIELDS_TO: &'static str = "requests-per-connection worker-ended tls-expected";

    fn find(case: &Case) -> Option<Found<RequestTimeout>> {
        let time = super::idle_timeout::silence(case).filter(|_| case.stage == Some(Stage::Exchange))?;
        let found = RequestTimeout { time, count: case.count, by: By::of(case) };
        Some(Found::inferred(found, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        let (time, n) = (tenths(self.time), Count(self.count));
        format!("{} closes connections {time} after a request, without a response ({n} closed)", self.by)
    }

    fn detail(&self, case: &Case) -> String {
        let (were, how) = (Count(self.count).were("connection"), case.kind.map_or("closed", how));
        format!("{were} {how} {} after a request, without a response", tenths(self.time))
    }

    fn fix(&self, _: &Case) -> String {
        let time = tenths(self.time);
        format!("look for a request timeout of {time}, in the target and in any proxy before it")
    }
}
