//! Cause: the target's log reports that its limit on connections was reached.

use super::*;

/// The target's log says that its own limit on connections was reached (`worker_connections are not enough`, `limiting connections`).
pub(crate) struct LoggedConnections {
    pub(crate) at: u64,
}

impl Cause for LoggedConnections {
    const ID: &'static str = "logged-connections";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const FIX: &'static str =
        "raise its limit on connections (worker_connections, maxconn, MaxRequestWorkers, pm.max_children)";
    // That cause is more specific.
    const YIELDS_TO: &'static str = "makes-room";

    fn find(case: &Case) -> Option<Found<LoggedConnections>> {
        let at = case.held();
        case.logged(LogKind::Connections).filter(|_| case.is_short())?;
        Some(Found::seen(LoggedConnections { at }, at).began(Began::Seen(Sign::Connections)))
    }

    fn sentence(&self) -> String {
        format!("the target reached its own limit on connections at {}, according to its log", Count(self.at))
    }

    fn detail(&self, _: &Case) -> String {
        "its own limit on connections was reached".to_owned()
    }
}
