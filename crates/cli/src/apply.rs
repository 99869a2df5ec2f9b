//! Runs a plan with its live view, and stores it in the run store.

use fleet::Fleet;
use host::Root;
use plan::{Flags, Live, Plan};
use run::Interrupt;
use samples::{RunRecord, Sink, Sinks, Summary};
use store::{StoreWriter, StoredAs};
use view::{Classic, Line, Messages, Terminal};

use crate::{
    Failure,
    again::{WithSearches, with_searches},
    message, runs,
};

/// The result of a run.
pub(crate) struct Applied {
    pub(crate) summary: Summary,
    /// Where the run was stored; `None` if it was not.
    pub(crate) kept: Option<StoredAs>,
}

/// A plan with the flags that the user typed, which complete the commands that the summary suggests.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) flags: &'a Flags,
}

/// Runs a plan on this machine or on a fleet, with its live view, and stores it. `sinks` are further sinks.
pub(crate) fn apply(
    Typed { plan, flags }: Typed,
    fleet: Option<&mut Fleet>,
    live: Live,
    record: RunRecord,
    interrupt: &Interrupt,
    sinks: &mut [&mut dyn Sink],
) -> Result<Applied, Failure> {
    let mut line = Line::new(Messages::default());
    let mut classic = Classic::new(Messages::default());
    let mut terminal = Terminal::default();
    let view: Option<&mut dyn Sink> = match live {
        Live::Tui => Some(&mut terminal),
        Live::Auto if Terminal::has_room() => Some(&mut terminal),
        Live::Auto | Live::Line => Some(&mut line),
        Live::Classic => Some(&mut classic),
        Live::Off => None,
    };
    let mut store_writer = runs::store_writer(&runs::on(fleet.as_deref(), record));
    let kept = store_writer.as_mut().map(|store_writer| store_writer as &mut dyn Sink);
    let others = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink);
    // The store is last, so that it also stores a failure of another sink at the end.
    let mut sinks: Vec<&mut dyn Sink> = view.into_iter().chain(others).chain(kept).collect();
    let mut completed = WithSearches { flags, sinks: Sinks::new(&mut sinks) };
    let (root, sinks) = (Root::real(), &mut [&mut completed as &mut dyn Sink]);
    let summary = match fleet {
        None => run::run(plan, &root, sinks, interrupt, &runs::calibrations(), &mut message),
        Some(fleet) => Ok(fleet.run(plan, &root, sinks, interrupt)),
    };
    let kept = store_writer.and_then(StoreWriter::end);
    if let Some(kept) = kept.as_ref().filter(|_| live != Live::Off) {
        message(&runs::kept(kept));
    }
    let summary = summary.map_err(Failure::machine)?;
    Ok(Applied { summary: with_searches(summary, flags), kept })
}
