//! The quantity that a search increases.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use plan::Plan;
use search::{Purpose, Range, Search};

use crate::Refusal;

/// Precision of the result, as a fraction of it.
pub(super) const TOLERANCE: f64 = 0.02;
/// The first load: small enough for any server, so that it shows the behaviour of an unloaded one.
const FIRST_CONNECTIONS: u64 = 500;
const FIRST_PER_S: u64 = 100;
/// Growth factor between steps while all pass. Held connections beyond the limit are cheap; requests beyond the capacity queue up.
const GROWTH: u64 = 4;
const GROWTH_PER_S: u64 = 2;
/// Factor by which deciding steps are longer at a rate, see [`By::patience`].
const QUEUES: u64 = 2;

/// The quantity that a search increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum By {
    /// Held connections.
    Connections,
    /// Connections that arrive per second.
    Arrival,
    /// Connections dialled at once.
    Burst,
    /// Requests per second.
    Rate,
    /// A number in the scenario file or in a flag. `None` on agents, which receive the file and the flags of each step.
    Number(#[serde(skip)] Option<&'static Number>),
}

/// A number in a scenario file or in a flag, and the plans with other values for it.
pub struct Number {
    path: String,
    /// The unit of the load.
    unit: String,
    /// The value in the file or flag.
    pub value: u64,
    plans: Mutex<Plans>,
}

/// The plans of a search by a number.
#[derive(Default)]
struct Plans {
    /// Creates a plan; `None` once the search is over.
    make: Option<Box<MakeVariant>>,
    /// Plans created so far: a search has a few dozen loads, and requests the plan of each several times.
    made: BTreeMap<u64, Result<Variant, Refusal>>,
}

/// Creates the plan with this number, or returns why it is not valid.
type MakeVariant = dyn Fn(u64) -> Result<Variant, Refusal> + Send + Sync;

/// A plan with another number.
#[derive(Clone)]
pub struct Variant {
    /// The plan.
    pub plan: Plan,
    /// The text of its scenario file, if that contains the number.
    pub text: Option<String>,
    /// The flag with its value, if the number is in a flag.
    pub flag: Option<(String, String)>,
}

impl By {
    /// A search by the number at this path of a scenario file, or in the flag of that name. `value`: its current value; `unit` may be
    /// empty. The names are never freed, the plans when they are [released](By::release).
    pub fn number(
        path: &str,
        (value, unit): (u64, &str),
        make: impl Fn(u64) -> Result<Variant, Refusal> + Send + Sync + 'static,
    ) -> By {
        let unit = if unit.is_empty() { path.to_owned() } else { format!("{unit} ({path})") };
        let plans = Plans { make: Some(Box::new(make)), ..Plans::default() };
        let (path, plans) = (path.to_owned(), Mutex::new(plans));
        By::Number(Some(Box::leak(Box::new(Number { path, unit, value, plans }))))
    }

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "arrival",
            By::Burst => "burst",
            By::Rate => "rate",
            By::Number(number) => number.map_or("number", |number| &number.path),
        }
    }

    /// The same quantity as the judge of a step names it.
    pub fn judged(self) -> judge::By {
        match self {
            By::Connections => judge::By::Connections,
            By::Arrival => judge::By::Arrival,
            By::Burst => judge::By::Burst,
            By::Rate => judge::By::Rate,
            By::Number(_) => judge::By::Number,
        }
    }

    /// The unit of the load.
    pub fn unit(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "connections/s",
            By::Burst => "connections at once",
            By::Rate => "requests/s",
            By::Number(number) => number.map_or("number", |number| &number.unit),
        }
    }

    /// The plan with `load` as its number; `None` unless the search is by a number.
    ///
    /// # Errors
    /// There is no valid plan with it; contains the reason.
    pub fn variant(self, load: u64) -> Option<Result<Variant, Refusal>> {
        let By::Number(Some(number)) = self else { return None };
        let Plans { make, made } = &mut *number.plans();
        let new =
            || make.as_ref().map_or_else(|| Err("the search is over".to_owned().into()), |make| make(load));
        Some(made.entry(load).or_insert_with(new).clone())
    }

    /// Frees the plans, after the search.
    pub fn release(self) {
        if let By::Number(Some(number)) = self {
            *number.plans() = Plans::default();
        }
    }

    /// The first load.
    pub(super) fn first(self) -> u64 {
        match self {
            By::Connections | By::Burst => FIRST_CONNECTIONS,
            By::Arrival | By::Rate => FIRST_PER_S,
            By::Number(number) => number.map_or(1, |number| number.value.max(1)),
        }
    }

    /// The load of the baseline, at which the target is practically idle, between `least` and `most`.
    fn idle(self, least: u64, most: u64) -> u64 {
        let first = self.first().min(most);
        match self {
            // With fewer requests, a single late response would count as a shortfall.
            By::Rate => least + first / 10,
            // A step has as many arrivals as its time allows: with a single one it would be too short for the probe.
            By::Arrival => (first / 10).max(least),
            By::Connections | By::Burst | By::Number(_) => (first / 100).max(least),
        }
    }

    /// How many times longer a step of this purpose lasts. At an excessive rate a queue builds up, which a short step would not show.
    /// Steps on the way up need not be longer, since later ones correct them.
    pub(super) fn patience(self, purpose: Purpose) -> u64 {
        let decides = matches!(purpose, Purpose::Narrow | Purpose::Confirm);
        if decides && matches!(self, By::Rate | By::Arrival) { QUEUES } else { 1 }
    }

    /// The search between `least` and `most`. If the probe is compared with a baseline, the search begins by measuring that.
    pub(super) fn search(self, plan: &Plan, least: u64, most: u64) -> Search {
        let growth = if matches!(self, By::Connections | By::Burst) { GROWTH } else { GROWTH_PER_S };
        let search = Search::new(Range { least, most }, TOLERANCE).climbing_from(self.first(), growth);
        let search = if self == By::Connections { search.that_holds() } else { search };
        match plan.probe.is_some() && plan.thresholds.is_empty() {
            true => search.with_baseline(self.idle(least, most)),
            false => search,
        }
    }
}

impl Number {
    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.path == other.path
    }
}

impl Eq for Number {}
