//! Updates that a coordinator passes to the run's conductor.

use plan::Role;
use run::Update;
use samples::Tick;

/// An update for the conductor of the run.
#[derive(Debug)]
pub(crate) enum Change {
    /// The counts of a worker.
    Tick(u32, Box<Tick>),
    /// A worker is lost; its later ticks are late.
    Lost(u32),
    /// A lost worker was only disconnected.
    Back(u32),
    /// A worker with this role was added.
    Joined(Role),
}

impl Change {
    /// Converts it for the conductor. A tick is stored in `read`.
    pub(crate) fn read(self, read: &mut Box<Tick>) -> Update<'_> {
        match self {
            Change::Tick(worker, tick) => {
                *read = tick;
                Update::Tick(worker, read)
            }
            Change::Lost(worker) => Update::Lost(worker),
            Change::Back(worker) => Update::Back(worker),
            Change::Joined(role) => Update::Joined(role),
        }
    }
}
