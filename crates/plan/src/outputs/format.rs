//! The format of the printed summary, and the population that it describes.

use units::ParseError;

use crate::{Population, nearest::one_of};

/// A format of the summary: `ab`, or `ab:users`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Tool whose format it is.
    pub tool: Tool,
    /// Place in the plan of the population that it covers; `None`: the whole run.
    pub of: Option<u16>,
}

/// The tools whose format the summary can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// throng's format.
    Throng,
    /// wrk's, as with `--latency`.
    Wrk,
    /// `fortio load`'s.
    Fortio,
    /// ApacheBench's.
    Ab,
    /// httperf's.
    Httperf,
}

impl Format {
    /// throng's own format, which covers all populations.
    pub(super) const OWN: Format = Format { tool: Tool::Throng, of: None };

    /// Parses `TOOL` or `TOOL:POPULATION`. The name is not checked if no populations are known, because the plan has mistakes.
    pub(super) fn parse(text: &str, populations: &[Population]) -> Result<Format, String> {
        let (tool_name, name) =
            text.split_once(':').map_or((text, None), |(tool_name, name)| (tool_name, Some(name)));
        let tool = match tool_name {
            "throng" => Tool::Throng,
            "wrk" => Tool::Wrk,
            "fortio" => Tool::Fortio,
            "ab" => Tool::Ab,
            "httperf" => Tool::Httperf,
            _ => {
                let fix = "throng, wrk, fortio, ab or httperf";
                return Err(ParseError::new(text, "a summary format", fix).to_string());
            }
        };
        let Some(name) = name.filter(|_| !populations.is_empty()) else {
            return Ok(Format { tool, of: None });
        };
        if tool == Tool::Throng {
            return Err(format!("throng's own format shows every population; use throng: {text:?}"));
        }
        let Some(at) = populations.iter().position(|own| own.name == name) else {
            let all: Vec<String> =
                populations.iter().map(|own| format!("{tool_name}:{}", own.name)).collect();
            let fix = one_of(all.iter().map(String::as_str));
            return Err(format!("no such population; use {fix}: {text:?}"));
        };
        // A single population is the whole run.
        let of = (populations.len() > 1).then_some(at as u16);
        Ok(Format { tool, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, names: &[&str], expected: Result<(Tool, Option<u16>), &str>) {
        let any = crate::tests::plan(&[]).populations.remove(0);
        let own = |name: &&str| Population { name: (*name).to_owned(), ..any.clone() };
        let populations: Vec<Population> = names.iter().map(own).collect();
        let read = Format::parse(text, &populations).map(|format| (format.tool, format.of));
        assert_eq!(read, expected.map_err(str::to_owned), "{text} of {names:?}");
    }

    #[test]
    fn a_population_is_known_by_its_name() {
        let two = ["desktop", "ab"];
        check("throng", &two, Ok((Tool::Throng, None)));
        check("wrk", &two, Ok((Tool::Wrk, None)));
        check("fortio:desktop", &two, Ok((Tool::Fortio, Some(0))));
        check("ab:ab", &two, Ok((Tool::Ab, Some(1))));
        check("httperf:main", &["main"], Ok((Tool::Httperf, None)));
        check("ab:any", &[], Ok((Tool::Ab, None)));
    }

    #[test]
    fn a_missing_population_is_a_mistake() {
        let two = ["desktop", "ab"];
        let no_such = "no such population; use ";
        check("ab:main", &two, Err(&format!("{no_such}ab:desktop or ab:ab: \"ab:main\"")));
        check("wrk:", &["main"], Err(&format!("{no_such}wrk:main: \"wrk:\"")));
        let own = "throng's own format shows every population; use throng: \"throng:ab\"";
        check("throng:ab", &two, Err(own));
        let no_form = "\"siege:ab\" is not a summary format; use throng, wrk, fortio, ab or httperf";
        check("siege:ab", &two, Err(no_form));
    }
}
