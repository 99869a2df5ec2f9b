//! Figures by destination, and the destinations that most faults belong to.

use plan::Plan;
use samples::{Cause, DestinationSummary, Limit, Side, Tick};
use units::Count;

use record::{rows::rows, tolerances::NEARLY_ALL};

/// The summaries of a plan's destinations, in its order; empty with only one destination.
pub(super) fn summaries(plan: &Plan, totals: &Tick) -> Vec<DestinationSummary> {
    let counted = totals.destinations.iter();
    rows(plan).zip(counted).map(|((first, last), own)| DestinationSummary::new(first, last, own)).collect()
}

/// The fewest destinations with nearly all faults, and the others. `None` if they are more than half of all (unless no connection to them
/// was opened), or if the others serve nothing.
pub(super) fn at_fault(
    all: &[DestinationSummary],
) -> Option<(Vec<&DestinationSummary>, Vec<&DestinationSummary>)> {
    let total: u64 = all.iter().map(DestinationSummary::fault_count).sum();
    let mut sorted: Vec<&DestinationSummary> = all.iter().collect();
    sorted.sort_by_key(|own| std::cmp::Reverse(own.fault_count()));
    let mut sum = 0;
    let n = sorted.iter().position(|own| {
        sum += own.fault_count();
        sum as f64 >= NEARLY_ALL * total as f64
    })? + 1;
    let rest = sorted.split_off(n);
    let (few, serve) = (n * 2 <= all.len(), rest.iter().any(|own| own.opened > 0));
    let are_clear = few || sorted.iter().all(|own| own.opened == 0);
    (total > 0 && are_clear && serve).then_some((sorted, rest))
}

/// Maximum number of destinations that are named individually.
const MAX_NAMED: usize = 3;

/// Adds the destinations with nearly all faults to a limit, if the others serve.
pub(super) fn name(limit: &mut Limit, all: &[DestinationSummary]) {
    let Some((bad, rest)) = at_fault(all) else { return };
    let names = match bad.len() {
        0..=MAX_NAMED => bad.iter().map(|own| own.name()).collect::<Vec<_>>().join(", "),
        n => format!("{} and {}", bad[0].name(), Count(n as u64 - 1).of("other destination")),
    };
    let faults: u64 = bad.iter().map(|own| own.fault_count()).sum();
    let total: u64 = all.iter().map(DestinationSummary::fault_count).sum();
    let serves: u64 = rest.iter().map(|own| own.opened).sum();
    if (limit.side, limit.cause) == (Side::Target, Cause::Refused) && bad.iter().all(|own| own.opened == 0) {
        let (dials, serves) = (Count(faults).of("dial"), Count(serves));
        let were = Count(faults).one_or("was", "were");
        let others = format!("the other destinations accepted {serves}");
        limit.detail = format!("{dials} to {names} {were} refused: nothing is listening there; {others}");
        limit.sentence = format!("connection refused: nothing listens on {names}");
        limit.fix = format!("start the server at {names}, or check the address and port");
        return;
    }
    let share =
        if faults == total { "all".to_owned() } else { format!("{} of {}", Count(faults), Count(total)) };
    limit.detail = format!("{}; {share} faults are at {names}", limit.detail);
    limit.fix = format!("at {names}: {}", limit.fix);
}
