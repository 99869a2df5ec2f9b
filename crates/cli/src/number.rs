//! `--by PATH` and `--by streams`: a number of the scenario file, or of a flag, that a search makes larger.

use plan::{Flags, Mistake, Plan, flag, scenario::Number};
use run::{By, Variant};
use units::Count;

use crate::plans;

/// Makes the plans of a search: of files of this machine, or of what a request has.
pub(crate) trait Plans: Send + Sync + 'static {
    /// The text of this scenario file.
    ///
    /// # Errors
    /// It cannot be read, with the reason.
    fn scenario(&self, file: &str) -> Result<String, String>;

    /// The plan of these flags; of the scenario file that they name, where that has this text.
    ///
    /// # Errors
    /// There can be none, with the first reason.
    fn plan(&self, flags: &Flags, scenario: Option<(&str, &str)>) -> Result<Plan, String>;
}

/// Of a command line: its scenario, and what that names, are files of this machine.
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

/// The number at this path of the scenario file that the flags name.
///
/// # Errors
/// There is none, with the place and those that there are.
pub(crate) fn read(path: &str, file: &str, flags: &Flags, plans: impl Plans) -> Result<By, String> {
    let text = plans.scenario(file)?;
    let number = Number::find(file, &text, path).map_err(|mistake| mistake.to_string())?;
    let (value, unit) = (number.value, number.unit.clone());
    // A step lasts as long as the search says.
    let (file, flags) = (file.to_owned(), flags.clone().without(&flag::DURATION));
    let make = move |load| {
        let text = number.replaced(&text, load);
        let plan = plans.plan(&flags, Some((&file, &text)))?;
        Ok(Variant { plan, text: Some(text), flag: None })
    };
    Ok(By::number(path, (value, &unit), make))
}

/// Streams of a connection (`--streams`) where there is no scenario file; `flags` are those of a step.
pub(crate) fn streams(flags: Flags, plans: impl Plans) -> By {
    let given = flags.get(&flag::STREAMS).and_then(|n| Count::parse(n).ok());
    let flags = flags.without(&flag::STREAMS);
    let make = move |load| {
        let plan = plans.plan(&flags.clone().with(&flag::STREAMS, load), None)?;
        Ok(Variant { plan, text: None, flag: Flags::default().with(&flag::STREAMS, load).pairs().pop() })
    };
    By::number(flag::STREAMS.name, (given.map_or(1, |Count(n)| n), ""), make)
}
