//! Cause: a thread of the target ended, and its accept queue is no longer emptied.

use super::*;

/// A thread that ran before the first dial has ended, its process is alive, and connections remain in its accept queue.
pub(crate) struct ThreadEnded {
    pub(crate) name: String,
}

impl Cause for ThreadEnded {
    const ID: &'static str = "thread-ended";
    const OF: (Side, Name) = (Side::Target, Name::Thread);
    const YIELDS_TO: &'static str = "heap logged";
    const FIX: &'static str =
        "check its log for what ended that thread; an accept loop must survive an error on one connection";

    fn find(case: &Case) -> Option<Found<ThreadEnded>> {
        let e = case.evidence;
        let fits = case.is_waiting() || case.kind == Some(Kind::Reset);
        let name = e.threads_gone.first().filter(|_| fits)?.clone();
        let stands = e.unaccepted > 0 || e.stood > 0 || queue::is_full(e);
        // If connections are still accepted, another thread does it.
        if !stands || e.accepts_per_s.is_some() || !case.explains(Sign::Thread) {
            return None;
        }
        let is_named = name.to_ascii_lowercase().contains("accept") || case.logged(LogKind::Error).is_some();
        let at = if e.unaccepted > 0 { case.held() } else { case.served() };
        let certainty = if is_named { Certainty::Seen } else { Certainty::Inferred };
        Some(Found::seen(ThreadEnded { name }, at).certain(certainty).began(Began::Seen(Sign::Thread)))
    }

    fn sentence(&self) -> String {
        format!("the target's thread {:?} exited, and new connections are no longer accepted", self.name)
    }

    fn detail(&self, case: &Case) -> String {
        format!(
            "thread {:?} of process {} has ended while the process is alive, and connections in its accept queue are not accepted",
            self.name,
            case.pid()
        )
    }
}
