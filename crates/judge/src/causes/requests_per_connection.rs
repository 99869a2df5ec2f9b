//! Cause: a connection is closed after a certain number of responses.

use super::*;
use record::tolerances::CONFIGURED;

/// All lost connections had received the same number of responses, and were closed, without an announcement, immediately after the last.
pub(crate) struct RequestsPerConnection {
    pub(crate) responses: u64,
    pub(crate) by: By,
}

impl RequestsPerConnection {
    /// With equal pauses connections of one age have had as many responses. One that ends with its only response has the age of that.
    fn age(&self, case: &Case) -> Option<String> {
        let age = case.evidence.losses.age.filter(|age| *age >= CONFIGURED && self.responses > 1);
        age.map(tenths)
    }
}

impl Cause for RequestsPerConnection {
    const ID: &'static str = "requests-per-connection";
    const OF: (Side, Name) = (Side::Target, Name::RequestsPerConnection);

    fn find(case: &Case) -> Option<Found<RequestsPerConnection>> {
        let responses = case.evidence.losses.responses.filter(|_| is_unannounced(case))?;
        let found = RequestsPerConnection { responses, by: By::of(case) };
        Some(Found::inferred(found, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        match self.responses {
            1 => format!("{} closes each connection after its response", self.by),
            n => format!("{} closes each connection after {} responses", self.by, Count(n)),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let age = self.age(case);
        let or = age.map(|age| format!("; each had been open for {age}, which may be the limit"));
        let responses =
            if self.responses == 1 { "its response".to_owned() } else { some(self.responses, "response") };
        let or = or.unwrap_or_default();
        format!("it closes each connection after {responses} without announcing it{or}")
    }

    fn fix(&self, case: &Case) -> String {
        let subject = &case.evidence.subject;
        let fix = match (subject.has_messages, subject.is_http2) {
            (true, _) => {
                "look for a limit on messages per connection, in the target and in any proxy before it"
            }
            (_, true) => {
                "raise its limit on requests per connection (keepalive_requests), or make it announce the close (GOAWAY)"
            }
            (_, false) => {
                "raise its limit on requests per connection (keepalive_requests, MaxKeepAliveRequests), or make it announce the close \
                (Connection: close)"
            }
        };
        let or = self.age(case).map(|age| format!("; or look for a maximum connection age of {age}"));
        format!("{fix}{}", or.unwrap_or_default())
    }
}
