//! What only some loads keep for each connection, by its index: a load that does not need a value has no memory for it.

use units::Nanos;

use super::keep_alive::Alive;
use crate::job::Job;

/// A value for each connection, or nothing if the load does not need it.
pub(super) struct Column<T> {
    values: Vec<T>,
    /// The value with which a connection begins; `None` if the load does not need one.
    first: Option<T>,
}

impl<T: Copy> Column<T> {
    fn new(is_needed: bool, first: T) -> Column<T> {
        Column { values: Vec::new(), first: is_needed.then_some(first) }
    }

    /// Whether the load needs this value.
    pub(super) fn is_kept(&self) -> bool {
        self.first.is_some()
    }

    /// A connection begins at this index.
    pub(super) fn begin(&mut self, index: u32) {
        let Some(first) = self.first else { return };
        let at = index as usize;
        self.values.resize(self.values.len().max(at + 1), first);
        self.values[at] = first;
    }

    pub(super) fn get(&self, index: u32) -> Option<T> {
        self.values.get(index as usize).copied()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.values.get_mut(index as usize)
    }
}

/// The columns of a shard.
pub(super) struct Columns {
    /// If a connection has more than one timer (a protocol timeout, heartbeats or keep-alive PINGs): when the client itself is due
    /// on it.
    pub(super) timers: Column<Nanos>,
    /// If messages overlap (sent at intervals without awaiting earlier replies): when the next one is due.
    pub(super) pings: Column<Nanos>,
    /// With a heartbeat: when the next one is due.
    pub(super) beats: Column<Nanos>,
    /// With keep-alive PINGs: their state.
    pub(super) alive: Column<Alive>,
    /// With a fixed number of calls per connection: how many are still to be sent.
    pub(super) calls_left: Column<u32>,
    /// With a back-off: number of consecutive failures.
    pub(super) failures: Column<u8>,
}

impl Columns {
    pub(super) fn new(job: &Job) -> Columns {
        let (has_heartbeat, has_keep_alive) = (job.heartbeat.is_some(), job.keep_alive.is_some());
        let has_timers = job.protocol.properties().has_timeouts || has_heartbeat || has_keep_alive;
        let has_back_off = matches!(job.reconnect, plan::Reconnect::Backoff(_));
        Columns {
            timers: Column::new(has_timers, Nanos::NEVER),
            pings: Column::new(job.overlapping().is_some(), Nanos::NEVER),
            beats: Column::new(has_heartbeat, Nanos::NEVER),
            alive: Column::new(has_keep_alive, Alive::CLOSED),
            calls_left: Column::new(job.calls.is_some(), job.calls.unwrap_or(0)),
            failures: Column::new(has_back_off, 0),
        }
    }

    /// A new connection begins at this index.
    pub(super) fn begin(&mut self, index: u32) {
        let Columns { timers, pings, beats, alive, calls_left, failures } = self;
        [timers, pings, beats].into_iter().for_each(|column| column.begin(index));
        alive.begin(index);
        calls_left.begin(index);
        failures.begin(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_begins_with_the_first_value() {
        let mut kept = Column::new(true, 7);
        assert_eq!((kept.is_kept(), kept.get(2)), (true, None));
        kept.begin(2);
        *kept.get_mut(2).unwrap() = 1;
        assert_eq!([1, 2, 3].map(|index| kept.get(index)), [Some(7), Some(1), None]);
        kept.begin(2);
        assert_eq!(kept.get(2), Some(7));
        let mut none = Column::new(false, 7);
        none.begin(2);
        assert_eq!((none.is_kept(), none.get(2), none.get_mut(2)), (false, None, None));
    }
}
