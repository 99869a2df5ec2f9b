//! What a search makes larger.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use plan::Plan;

/// What is made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum By {
    /// Connections held.
    Connections,
    /// Connections that arrive in a second.
    Arrival,
    /// Connections dialled at once.
    Burst,
    /// Requests a second.
    Rate,
    /// A number in the scenario file, or of a flag. Agents have none here: they get the file and the flags of each step.
    Number(#[serde(skip)] Option<&'static Number>),
}

/// A number in a scenario file, or of a flag, and the plans with others in its place.
pub struct Number {
    path: String,
    /// What a load is counted in.
    unit: String,
    /// As the file has it.
    pub value: u64,
    plans: Mutex<Plans>,
}

/// The plans of a search by a number.
#[derive(Default)]
struct Plans {
    /// None once the search is over.
    make: Option<Box<MakeVariant>>,
    /// Those that were made: a search has some dozens of loads, and asks for each several times.
    made: BTreeMap<u64, Result<Variant, String>>,
}

/// Makes the plan with this number, or says why it cannot be.
type MakeVariant = dyn Fn(u64) -> Result<Variant, String> + Send + Sync;

/// A plan with another number.
#[derive(Clone)]
pub struct Variant {
    /// The plan.
    pub plan: Plan,
    /// The text of its scenario file, if it is in there.
    pub text: Option<String>,
    /// The flag that has it, with its value, if it is one.
    pub flag: Option<(String, String)>,
}

impl By {
    /// The number at this path of a scenario file, or of the flag of that name, where it is `value` of a unit, which may be none. Its names are kept as long as the process lasts,
    /// its plans until it is [released](By::release).
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

    /// The word of the command line and of the JSON.
    pub fn name(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "arrival",
            By::Burst => "burst",
            By::Rate => "rate",
            By::Number(number) => number.map_or("number", |number| &number.path),
        }
    }

    /// As the judge of a step knows it.
    pub fn judged(self) -> judge::By {
        match self {
            By::Connections => judge::By::Connections,
            By::Arrival => judge::By::Arrival,
            By::Burst => judge::By::Burst,
            By::Rate => judge::By::Rate,
            By::Number(_) => judge::By::Number,
        }
    }

    /// What a load is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "connections/s",
            By::Burst => "connections at once",
            By::Rate => "requests/s",
            By::Number(number) => number.map_or("number", |number| &number.unit),
        }
    }

    /// The plan with this load in the place of its number; none where no number is searched.
    ///
    /// # Errors
    /// There can be no plan with it, with the reason.
    pub fn variant(self, load: u64) -> Option<Result<Variant, String>> {
        let By::Number(Some(number)) = self else { return None };
        let Plans { make, made } = &mut *number.plans();
        let new = || make.as_ref().map_or_else(|| Err("the search is over".to_owned()), |make| make(load));
        Some(made.entry(load).or_insert_with(new).clone())
    }

    /// Frees the plans of a number: its search is over.
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
