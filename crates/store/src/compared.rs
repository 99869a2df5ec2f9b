//! Loads stored runs for a comparison: their figures, and their latencies at a load that all of them reached ([`EqualLoad`]).

use rusqlite::params;
use samples::{Latency, TickRecord};
use stats::compare::{EqualLoad, Group, Run};

use crate::{Store, StoreResult, StoredRun};

impl Store {
    /// Loads groups of runs, each with the name that the user gave it. Also returns the load at which all runs can be compared.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn compared(
        &self,
        groups: Vec<(String, Vec<StoredRun>)>,
    ) -> StoreResult<(Vec<Group>, Option<EqualLoad>)> {
        let ids = groups.iter().flat_map(|(_, runs)| runs).map(|run| self.most_open(&run.id));
        let load = EqualLoad::of(ids.collect::<StoreResult<Vec<u64>>>()?);
        let run = |run: StoredRun| {
            let at_load = self.latency_at(&run.id, load)?;
            Ok(Run::new(run.id, run.record, run.summary, &at_load))
        };
        let group = |(name, runs): (String, Vec<StoredRun>)| {
            Ok(Group { name, runs: runs.into_iter().map(run).collect::<StoreResult<_>>()? })
        };
        Ok((groups.into_iter().map(group).collect::<StoreResult<_>>()?, load))
    }

    /// The maximum number of open connections at the end of a tick. SQLite extracts this one number, because a whole record expands
    /// to a megabyte of histograms when it is read.
    fn most_open(&self, id: &str) -> StoreResult<u64> {
        let query = "SELECT max(record->>'$.tick.open') FROM ticks WHERE run = ?1";
        let most = self.db.query_row(query, [id], |row| row.get::<_, Option<i64>>(0));
        Ok(self.check(most)?.unwrap_or(0).max(0) as u64)
    }

    /// All latencies of the ticks at the given load; empty without a load.
    fn latency_at(&self, id: &str, load: Option<EqualLoad>) -> StoreResult<Latency> {
        let mut latency = Latency::default();
        let Some(load) = load else { return Ok(latency) };
        let at_load = "SELECT record FROM ticks WHERE run = ?1 AND record->>'$.tick.open' BETWEEN ?2 AND ?3";
        let mut query = self.check(self.db.prepare(at_load))?;
        let range = params![id, *load.range().start() as i64, *load.range().end() as i64];
        let rows = self.check(query.query_map(range, |row| row.get::<_, String>(0)))?;
        for record in rows {
            load.add(&self.read(TickRecord::from_json(&self.check(record)?))?.tick, &mut latency);
        }
        Ok(latency)
    }
}
