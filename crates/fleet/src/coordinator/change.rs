//! What comes out of a coordinator for the run's conductor.

use plan::Role;
use run::Update;
use samples::Tick;

/// What the conductor of the run is to know.
#[derive(Debug)]
pub(crate) enum Change {
    /// What a worker counted.
    Tick(u32, Box<Tick>),
    /// A worker is lost; what comes of it is late.
    Lost(u32),
    /// It was only away.
    Back(u32),
    /// There is one more worker, which does this.
    Joined(Role),
}

impl Change {
    /// As the conductor takes it; a tick is kept in `read` meanwhile.
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
