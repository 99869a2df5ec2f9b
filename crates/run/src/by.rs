//! The quantity that a search increases.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use plan::Plan;

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
    made: BTreeMap<u64, Result<Variant, String>>,
}

/// Creates the plan with this number, or returns why it is not valid.
type MakeVariant = dyn Fn(u64) -> Result<Variant, String> + Send + Sync;

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
        make: impl Fn(u64) -> Result<Variant, String> + Send + Sync + 'static,
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
    pub fn variant(self, load: u64) -> Option<Result<Variant, String>> {
        let By::Number(Some(number)) = self else { return None };
        let Plans { make, made } = &mut *number.plans();
        let new = || make.as_ref().map_or_else(|| Err("the search is over".to_owned()), |make| make(load));
        Some(made.entry(load).or_insert_with(new).clone())
    }

    /// Frees the plans, after the search.
    pub fn release(self) {
        if let By::Number(Some(number)) = self {
            *number.plans() = Plans::default();
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
