//! Cause: in a search by connections, the target closes nearly all connections as announced.

use super::*;

/// In a search by connections: nearly all were closed as announced (`Connection: close`, GOAWAY), so none can be held.
pub(crate) struct Stranded {
    pub(crate) count: u64,
}

impl Cause for Stranded {
    const ID: &'static str = "stranded";
    const OF: (Side, Name) = (Side::Target, Name::Closed);

    fn find(case: &Case) -> Option<Found<Stranded>> {
        let is_it = case.trouble == Trouble::None && !case.evidence.stranded.is_empty();
        let count = case.summary.connections.closed;
        is_it.then(|| Found::seen(Stranded { count }, case.peak()))
    }

    fn sentence(&self) -> String {
        format!("the target closed {} after announcing it", connections(self.count))
    }

    fn detail(&self, _: &Case) -> String {
        format!("{} closed as announced, and none was open at the end", Count(self.count).were("connection"))
    }

    fn fix(&self, case: &Case) -> String {
        let fix = match case.evidence.subject.never_redials {
            true => "leave out --reconnect never, with which no others are opened",
            false => {
                "let it keep connections open for longer (idle timeout, maximum age), or send more often"
            }
        };
        fix.to_owned()
    }
}
