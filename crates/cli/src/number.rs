//! `--by PATH` and `--by streams`: a number of the scenario file, or of a flag, that a search makes larger.

use plan::{Flags, flag, scenario::Number};
use run::{By, Variant};
use units::Count;

use crate::plans;

/// The number at this path of the scenario file that the flags name.
///
/// # Errors
/// There is none, with the place and those that there are.
pub(crate) fn read(path: &str, flags: &Flags) -> Result<By, String> {
    let file = plans::scenario_file(flags).unwrap_or_default().to_owned();
    let text = plans::scenario_text(&file)?;
    let number = Number::find(&file, &text, path).map_err(|mistake| mistake.to_string())?;
    // A step lasts as long as the search says.
    let (value, unit) = (number.value, number.unit.clone());
    let flags = flags.clone().without(&flag::DURATION);
    let make = move |load| {
        let text = number.replaced(&text, load);
        let plan = plans::read_text(&file, &text, &flags)
            .map_err(|mistakes| mistakes.first().map(ToString::to_string).unwrap_or_default())?;
        Ok(Variant { plan: plans::settled(plan, true), text: Some(text), flag: None })
    };
    Ok(By::number(path, (value, &unit), make))
}

/// Streams of a connection (`--streams`) where there is no scenario file; `flags` are those of a step.
pub(crate) fn streams(flags: Flags) -> By {
    let given = flags.get(&flag::STREAMS).and_then(|n| Count::parse(n).ok());
    let flags = flags.without(&flag::STREAMS);
    let make = move |load| {
        let plan = plans::plan(&flags.clone().with(&flag::STREAMS, load));
        let plan = plan.map_err(|failure| failure.lines.first().cloned().unwrap_or_default())?;
        Ok(Variant { plan, text: None, flag: Flags::default().with(&flag::STREAMS, load).pairs().pop() })
    };
    By::number(flag::STREAMS.name, (given.map_or(1, |Count(n)| n), ""), make)
}
