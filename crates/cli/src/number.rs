//! Searches by a number: `--by PATH` varies a number in the scenario file, `--by streams` a flag.

use plan::{Flags, Mistake, Plan, flag, scenario::Number};
use run::{By, Refusal, Variant};
use units::Count;

use crate::plans;

/// Makes the plans of a search. Implementations differ in where files come from: this machine, or a request to the API.
pub(crate) trait Plans: Send + Sync + 'static {
    /// The text of the scenario file.
    ///
    /// # Errors
    /// The scenario file cannot be read.
    fn scenario(&self, file: &str) -> Result<String, String>;

    /// The plan for these flags. `scenario` contains the name and the modified text of the scenario file.
    ///
    /// # Errors
    /// There is a mistake in the flags or in the scenario; the first one is reported.
    fn plan(&self, flags: &Flags, scenario: Option<(&str, &str)>) -> Result<Plan, String>;
}

/// Plans for a command line: the scenario and the files that it names are files of this machine.
pub(crate) struct Files;

impl Plans for Files {
    fn scenario(&self, file: &str) -> Result<String, String> {
        plans::scenario_text(file)
    }

    fn plan(&self, flags: &Flags, scenario: Option<(&str, &str)>) -> Result<Plan, String> {
        let Some((file, text)) = scenario else {
            return plans::plan(flags).map_err(|failure| failure.lines.first().cloned().unwrap_or_default());
        };
        let plan = plans::read_text(file, text, flags);
        let plan = plan.map_err(|mistakes| mistakes.first().map(Mistake::to_string).unwrap_or_default());
        plan.map(|plan| plans::settled(plan, true))
    }
}

/// Finds the number at this path in the scenario file that the flags name.
///
/// # Errors
/// There is no such number; the message contains the position and the existing paths.
pub(crate) fn read(path: &str, file: &str, flags: &Flags, plans: impl Plans) -> Result<By, String> {
    let text = plans.scenario(file)?;
    let number = Number::find(file, &text, path).map_err(|mistake| mistake.to_string())?;
    let (value, unit) = (number.value, number.unit.clone());
    // The search determines the duration of a step.
    let (file, flags) = (file.to_owned(), flags.clone().without(&flag::DURATION));
    let make = move |load| -> Result<Variant, Refusal> {
        let text = number.replaced(&text, load);
        let plan = plans.plan(&flags, Some((&file, &text)))?;
        Ok(Variant { plan, text: Some(text), flag: None })
    };
    Ok(By::number(path, (value, &unit), make))
}

/// Streams per connection (`--streams`), for use without a scenario file; `flags` are those of a step.
pub(crate) fn streams(flags: Flags, plans: impl Plans) -> By {
    let given = flags.get(&flag::STREAMS).and_then(|n| Count::parse(n).ok());
    let flags = flags.without(&flag::STREAMS);
    let make = move |load| -> Result<Variant, Refusal> {
        let plan = plans.plan(&flags.clone().with(&flag::STREAMS, load), None)?;
        Ok(Variant { plan, text: None, flag: Flags::default().with(&flag::STREAMS, load).pairs().pop() })
    };
    By::number(flag::STREAMS.name, (given.map_or(1, |Count(n)| n), ""), make)
}
