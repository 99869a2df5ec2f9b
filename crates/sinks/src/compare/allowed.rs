//! `--fail-if`: whether a group is worse than the base by more than is allowed.

use super::{Change, ComparedFigure, Figure, Group, Side, Standing, names, show};

/// How far a figure may be from the base's.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed {
    /// As the user wrote it.
    pub text: String,
    /// What is compared.
    pub figure: Figure,
    /// It may not grow by more; else it may not fall by more.
    pub grows: bool,
    /// The share that is allowed.
    pub share: f64,
}

/// How a group went by an allowance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// As the user wrote it.
    pub text: String,
    /// The group.
    pub group: String,
    /// Worse than is allowed, and by more than the noise where that is known; or not measured.
    pub failed: bool,
    /// What was seen.
    pub detail: String,
}

/// Each group but the base, by each allowance.
pub(super) fn judge(allowances: &[Allowed], figures: &[ComparedFigure], groups: &[Group]) -> Vec<Judged> {
    let names = names(groups);
    let mut judged = Vec::new();
    for allowed in allowances {
        let compared = figures.iter().find(|compared| compared.figure.path == allowed.figure.path);
        let compared = compared.expect("what is judged is compared");
        let (base, others) = compared.sides.split_first().expect("the base is there");
        for (group, side) in names[1..].iter().zip(others) {
            let (failed, detail) = match (base.mean, side.mean, side.change) {
                (Some(base), Some(own), Some(change)) => {
                    let verdict = verdict(allowed, [base, own], &change);
                    let seen = [&names[0], group].map(String::as_str);
                    (verdict.0, detail(allowed, seen, [base, own], &change, verdict.1))
                }
                _ => (true, format!("not measured in {}", unmeasured(&names[0], base, group, side))),
            };
            judged.push(Judged { text: allowed.text.clone(), group: group.clone(), failed, detail });
        }
    }
    judged
}

fn unmeasured(base_name: &str, base: &Side, group: &str, side: &Side) -> String {
    let sides = [(base_name, base), (group, side)];
    let without: Vec<&str> =
        sides.iter().filter(|(_, side)| side.mean.is_none()).map(|(name, _)| *name).collect();
    without.join(" and ")
}

/// Whether it fails, and why or why not.
fn verdict(allowed: &Allowed, [base, own]: [f64; 2], change: &Change) -> (bool, &'static str) {
    match (is_beyond(allowed, base, own), change.standing) {
        (false, _) => (false, "allowed"),
        (true, Standing::Within) => (false, Standing::Within.words()),
        (true, Standing::Larger) => (true, Standing::Larger.words()),
        (true, Standing::Unknown) => (true, "its noise is not known"),
        (true, Standing::Same | Standing::Differs) => (true, "more than is allowed"),
    }
}

/// What went through logarithms comes back with an error in its last digits.
const ROUNDING: f64 = 1e-9;

fn is_beyond(allowed: &Allowed, base: f64, own: f64) -> bool {
    let grown = own - base;
    let most = (allowed.share + ROUNDING) * base.abs();
    if allowed.grows { grown > most } else { -grown > most }
}

fn detail(
    allowed: &Allowed,
    [base_name, group]: [&str; 2],
    [base, own]: [f64; 2],
    change: &Change,
    why: &str,
) -> String {
    let unit = allowed.figure.unit;
    let changed = change.ratio.map(|ratio| format!(", {}", show::percent(ratio))).unwrap_or_default();
    let interval = change.interval.map(|interval| format!(" ({})", show::interval(interval)));
    format!(
        "{group} {} against {base_name} {}{changed}{}: {why}",
        unit.brief(own),
        unit.brief(base),
        interval.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Unit;

    fn check(grows: bool, share: f64, values: [f64; 2], expected: bool) {
        let figure = Figure { name: "f".to_owned(), path: "f".to_owned(), unit: Unit::Count };
        let allowed = Allowed { text: "f".to_owned(), figure, grows, share };
        assert_eq!(is_beyond(&allowed, values[0], values[1]), expected, "{grows} {share} {values:?}");
    }

    #[test]
    fn a_change_beyond_what_is_allowed_is_seen() {
        check(true, 0.1, [100.0, 111.0], true);
        check(true, 0.1, [100.0, 110.0], false);
        check(true, 0.1, [100.0, 50.0], false);
        check(false, 0.05, [100.0, 94.0], true);
        check(false, 0.05, [100.0, 95.0], false);
        check(false, 0.05, [100.0, 200.0], false);
        check(true, 0.0, [0.0, 0.0], false);
        check(true, 0.0, [0.0, 0.5], true);
        check(true, 0.5, [0.0, 1.0], true);
        check(false, 0.0, [0.0, 1.0], false);
        check(true, 0.0, [200.0, 200.000_000_000_03], false);
    }
}
