//! Tolerances: how far a figure may differ between two groups of runs, such as `latency.p99 +10%`.

use samples::Figure;
use units::ParseError;

use crate::threshold::Names;

/// A limit on the change of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// As written.
    pub text: String,
    /// The name of the figure, as written.
    pub name: String,
    /// Figure that is compared.
    pub figure: Figure,
    /// Whether growth is limited; otherwise a decrease is.
    pub grows: bool,
    /// Allowed change as a share: 0.1 for `10%`.
    pub share: f64,
}

/// Quantiles of a comparison's latency over the seconds at equal load.
const AT_EQUAL_LOAD: &[&str] = &["p50", "p90", "p95", "p99"];

impl Tolerance {
    /// Parses `FIGURE +N%` (it may grow by that much) or `FIGURE -N%` (it may fall by that much). Figures have the same names as in
    /// thresholds; `equal_load.p99` is available, too. `populations` and `steps` (`users.login`) are those of the runs.
    ///
    /// # Errors
    /// What cannot be parsed, with the fix.
    pub fn parse(text: &str, populations: &[String], steps: &[String]) -> Result<Tolerance, ParseError> {
        let misread = || ParseError::new(text, "a change of a figure", "'latency.p99 +10%'");
        let at = text.rfind(['+', '-']).ok_or_else(misread)?;
        let (name, change) = (text[..at].trim(), &text[at + 1..]);
        let grows = text[at..].starts_with('+');
        let percent = change.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(misread)?;
        if !grows && percent >= 100.0 {
            return Err(ParseError::new(text, "a decrease of less than 100%", format!("'{name} -10%'")));
        }
        let figure = match at_equal_load(name) {
            Some(figure) => figure,
            None => Names::listed(populations, steps).figure(name)?,
        };
        let (text, name) = (text.to_owned(), name.to_owned());
        Ok(Tolerance { text, name, figure, grows, share: percent / 100.0 })
    }
}

fn at_equal_load(name: &str) -> Option<Figure> {
    let quantile = ["equal_load.", "equal_load_us."].iter().find_map(|of| name.strip_prefix(of))?;
    AT_EQUAL_LOAD.contains(&quantile).then(|| Figure::of_comparison(&format!("equal_load_us.{quantile}")))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROWS: bool = true;
    const FALLS: bool = false;

    fn read(text: &str) -> Result<Tolerance, String> {
        let [populations, steps] = [["read-only"], ["read-only.get"]].map(|names| names.map(str::to_owned));
        Tolerance::parse(text, &populations, &steps).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_what_people_write() {
        let check = |text: &str, name: &str, path: &str, grows, share| {
            let read = read(text).unwrap_or_else(|e| panic!("{e}"));
            let found = (read.name.as_str(), read.figure.path(), read.grows, read.share);
            assert_eq!(found, (name, path.to_owned(), grows, share), "{text}");
        };
        check("latency.p99 +10%", "latency.p99", "latency_us.p99", GROWS, 0.1);
        check("requests.per_s -2.5%", "requests.per_s", "requests.per_s", FALLS, 0.025);
        check("held-5 %", "held", "connections.held", FALLS, 0.05);
        check("faults +0%", "faults", "faults", GROWS, 0.0);
        check("equal_load.p99 +10%", "equal_load.p99", "equal_load_us.p99", GROWS, 0.1);
        let of_population = "populations.read-only.latency_us.p99";
        check("read-only.latency.p99 +1%", "read-only.latency.p99", of_population, GROWS, 0.01);
        let of_step = "populations.read-only.steps.get.latency_us.p50";
        check("read-only.get.latency.p50 +1%", "read-only.get.latency.p50", of_step, GROWS, 0.01);
    }

    #[test]
    fn a_mistake_has_its_fix() {
        let check =
            |text: &str, expected: &str| assert!(read(text).unwrap_err().starts_with(expected), "{text}");
        for text in ["latency.p99", "latency.p99 +10", "latency.p99 +ten%", "faults > 0", "faults +-%", ""] {
            check(text, &format!("{text:?} is not a change of a figure; use 'latency.p99 +10%'"));
        }
        check("latncy.p99 +1%", "\"latncy.p99\" is not a figure of the summary; use latency.p99");
        for share in ["100%", "200%"] {
            check(
                &format!("requests.per_s -{share}"),
                &format!(
                    "\"requests.per_s -{share}\" is not a decrease of less than 100%; use 'requests.per_s -10%'"
                ),
            );
        }
        check("faults --1%", "\"faults -\" is not a figure of the summary; use faults");
        check("equal_load.max +1%", "\"equal_load.max\" is not a figure of the summary; use one of:\n");
        check(
            "others.latency.p99 +1%",
            "\"others.latency.p99\" is not a figure of the summary; use one of:\n",
        );
    }

    proptest! {
        /// Whatever is typed: read or refused, no panic.
        #[test]
        fn any_text_is_survived(text in "[a-z_.]{0,12} ?[+-]{0,2} ?[0-9a-z.%]{0,8}|\\PC{0,30}") {
            let _ = read(&text);
        }
    }
}
