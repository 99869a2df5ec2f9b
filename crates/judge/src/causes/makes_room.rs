//! Cause: the target closes connections to make room for new ones.

use super::*;

/// Connections were closed after a response while others opened, although others had been idle for longer: it makes room (nginx at
/// `worker_connections`). Or, beyond a certain number, as many were closed as others opened, and these had been open for a while.
pub(crate) struct MakesRoom {
    /// How many it keeps; none where how many are left is accidental.
    pub(crate) keeps: Option<u64>,
    pub(crate) count: u64,
    /// How long they had been silent, and the longest silence of the others; none where that says nothing.
    pub(crate) silences: Option<(Nanos, Nanos)>,
}

impl Cause for MakesRoom {
    const ID: &'static str = "makes-room";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const YIELDS_TO: &'static str = "requests-per-connection worker-ended";

    fn find(case: &Case) -> Option<Found<MakesRoom>> {
        let (losses, held) = (case.evidence.losses, case.held());
        let may_be = is_unannounced(case) && case.kind == Some(Kind::Closed) && !is_in_use(case);
        let evicted = losses.evicted.filter(|_| may_be);
        // A server that closes many at a time, like nginx, is left with an accidental number of connections.
        let keeps = Some(held).filter(|held| case.peak().saturating_sub(*held) <= case.peak() / 20);
        let found = match evicted {
            Some(silence) => MakesRoom { keeps, count: case.count, silences: Some((silence, losses.others)) },
            None if super::turns_away::surplus(case) == Some(Some(true)) => {
                MakesRoom { keeps: Some(held), count: case.count, silences: None }
            }
            None => return None,
        };
        Some(Found::inferred(found, held))
    }

    fn sentence(&self) -> String {
        let keeps = self.keeps.map_or(String::new(), |keeps| format!(", and keeps about {}", Count(keeps)));
        format!("the target closed {} to admit new ones{keeps}", some(self.count, "idle connection"))
    }

    fn detail(&self, case: &Case) -> String {
        let (were, how) = (Count(self.count).were("connection"), case.kind.map_or("closed", how));
        match self.silences {
            Some((silence, others)) => {
                let about = self.keeps.map_or(String::new(), |n| format!(", and keeps about {}", Count(n)));
                format!(
                    "{were} closed as others opened, after {} of inactivity, while others were inactive for {}: the target makes room for \
                    new ones{about}",
                    tenths(silence),
                    tenths(others)
                )
            }
            None => format!(
                "{were} {how} as others opened, after a time of inactivity: beyond {} open ones the target makes room",
                Count(case.held())
            ),
        }
    }

    fn fix(&self, _: &Case) -> String {
        match self.silences {
            Some(_) => "raise its limit on connections (worker_connections, maxconn)".to_owned(),
            None => RAISE.to_owned(),
        }
    }
}
