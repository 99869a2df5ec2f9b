//! `--fail-if`: whether a group is worse than the base beyond a tolerance.

use super::{
    Change, Group, Named, Run, Side, Standing,
    change::{self, ROUNDING},
    compared, names,
};

/// A limit for the change of a figure from the base.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureTolerance {
    /// As the user wrote it.
    pub text: String,
    /// The figure.
    pub named: Named,
    /// Whether growth is limited; otherwise the decrease is.
    pub grows: bool,
    /// The maximum change, as a share.
    pub share: f64,
}

/// The result of a tolerance for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The tolerance, as the user wrote it.
    pub text: String,
    /// Name of the group.
    pub group: String,
    /// Whether the change exceeds the tolerance and, if known, the noise; also set if the figure was not measured, or the result is
    /// void.
    pub failed: bool,
    /// The base or the group has no valid run, so there is nothing to judge.
    pub void: bool,
    /// The numbers on which the result is based.
    pub detail: String,
}

/// Judges each group except the base by each tolerance. Invalid runs are left out, because their figures were limited by throng
/// itself.
pub(super) fn judge(tolerances: &[FigureTolerance], groups: &[Group]) -> Vec<Judged> {
    let names = names(groups);
    let valid: Vec<Group> = groups.iter().map(valid_runs).collect();
    let mut judged = Vec::new();
    for tolerance in tolerances {
        let compared = compared(tolerance.named.clone(), &valid, Named::judged);
        for nth in 1..groups.len() {
            let [base, own] = [0, nth].map(|at| (names[at].as_str(), &valid[at], &compared.sides[at]));
            let void = without_valid([(base.0, base.1), (own.0, own.1)]);
            let unbound = [base, own].iter().find_map(|(_, group, _)| without_bound(&tolerance.named, group));
            let is_void = void.is_some();
            let (failed, mut detail) = match (void.or(unbound), base.2.mean, own.2.mean, own.2.change) {
                (Some(why), ..) => (true, why),
                (None, Some(before), Some(after), Some(change)) => {
                    let (failed, why) = verdict(tolerance, [before, after], &change);
                    let runs = base.1.runs.len().min(own.1.runs.len());
                    let few = too_few(tolerance, &change, runs).filter(|_| !failed).unwrap_or_default();
                    let detail = detail(tolerance, [base.0, own.0], [before, after], &change, why);
                    (failed, detail + &few)
                }
                _ => (true, format!("not measured in {}", unmeasured(base.0, base.2, own.0, own.2))),
            };
            for at in [0, nth].into_iter().filter(|_| !is_void) {
                detail += &left_out(&names[at], groups[at].runs.len(), valid[at].runs.len());
            }
            let (text, group) = (tolerance.text.clone(), names[nth].clone());
            judged.push(Judged { text, group, failed, void: is_void, detail });
        }
    }
    judged
}

/// The group with only its valid runs, possibly none.
fn valid_runs(group: &Group) -> Group {
    let runs = group.runs.iter().filter(|run| run.is_valid()).cloned().collect();
    Group { name: group.name.clone(), runs }
}

/// The note that some runs of a group were left out; empty if none was.
fn left_out(name: &str, runs: usize, valid: usize) -> String {
    match valid {
        valid if valid == runs => String::new(),
        1 => format!("; 1 of {runs} runs of {name} is valid"),
        valid => format!("; {valid} of {runs} runs of {name} are valid"),
    }
}

/// The reason if groups have no valid run.
fn without_valid(groups: [(&str, &Group); 2]) -> Option<String> {
    let void: Vec<&str> =
        groups.into_iter().filter(|(_, group)| group.runs.is_empty()).map(|(name, _)| name).collect();
    (!void.is_empty()).then(|| format!("no valid run in {}", void.join(" and ")))
}

/// The reason if a run's figure lies among requests without a response: then the mean of the other runs would not represent the
/// group.
fn without_bound(named: &Named, group: &Group) -> Option<String> {
    let lacks = |run: &&Run| {
        named.figure.censored_share(&run.summary).is_some() && named.judged(&run.summary).is_none()
    };
    let run = group.runs.iter().find(lacks)?;
    Some(format!("it falls among the requests without a response in run {}", run.id))
}

fn unmeasured(base_name: &str, base: &Side, group: &str, side: &Side) -> String {
    let sides = [(base_name, base), (group, side)];
    let without: Vec<&str> =
        sides.iter().filter(|(_, side)| side.mean.is_none()).map(|(name, _)| *name).collect();
    without.join(" and ")
}

/// Whether the tolerance is exceeded, and the explanation.
fn verdict(tolerance: &FigureTolerance, [base, own]: [f64; 2], change: &Change) -> (bool, &'static str) {
    match (is_beyond(tolerance, base, own), change.standing) {
        (false, _) => (false, "allowed"),
        (true, Standing::Within) => (false, Standing::Within.description()),
        (true, Standing::Larger) => (true, Standing::Larger.description()),
        (true, Standing::Unknown) => (true, "the noise is not known"),
        (true, Standing::Same | Standing::Differs) => (true, "beyond the tolerance"),
    }
}

/// Names of numbers of runs per side that are too few to show a change of a tenth in the usual noise; five runs show it.
static FEW: [&str; 5] = ["no", "one", "two", "three", "four"];

/// A note if the number of runs is too small to show a change as large as the tolerance, because the interval is wider.
fn too_few(tolerance: &FigureTolerance, change: &Change, runs: usize) -> Option<String> {
    let [from, to] = change.interval?;
    let reach = (to / from).sqrt() - 1.0;
    let count = FEW.get(runs)?;
    let percent = (tolerance.share * 1e4).round() / 1e2;
    let is_wide = tolerance.share > 0.0 && reach > tolerance.share;
    is_wide.then(|| format!("; {count} runs a side cannot show {percent} %: use five or more"))
}

fn is_beyond(tolerance: &FigureTolerance, base: f64, own: f64) -> bool {
    let grown = own - base;
    let most = (tolerance.share + ROUNDING) * base.abs();
    if tolerance.grows { grown > most } else { -grown > most }
}

fn detail(
    tolerance: &FigureTolerance,
    [base_name, group]: [&str; 2],
    [base, own]: [f64; 2],
    change: &Change,
    why: &str,
) -> String {
    let unit = tolerance.named.figure.unit;
    let changed = change.ratio.map(|ratio| format!(", {}", change::percent(ratio))).unwrap_or_default();
    let interval = change.interval.map(|interval| format!(" ({})", change::interval(interval)));
    format!(
        "{group} {}, {base_name} {}{changed}{}: {why}",
        unit.brief(own),
        unit.brief(base),
        interval.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> Named {
        Named::usual().remove(0)
    }

    fn check(grows: bool, share: f64, values: [f64; 2], expected: bool) {
        let tolerance = FigureTolerance { text: "f".to_owned(), named: named(), grows, share };
        assert_eq!(is_beyond(&tolerance, values[0], values[1]), expected, "{grows} {share} {values:?}");
    }

    #[test]
    fn two_runs_with_a_wide_interval_show_nothing() {
        let check = |share, interval, runs, expected: Option<&str>| {
            let tolerance = FigureTolerance { text: "f".to_owned(), named: named(), grows: true, share };
            let change = Change { ratio: Some(1.0), interval, standing: Standing::Within };
            assert_eq!(
                too_few(&tolerance, &change, runs).as_deref(),
                expected,
                "{share} {interval:?} {runs}"
            );
        };
        let wide = Some([0.8, 1.25]);
        check(0.1, wide, 2, Some("; two runs a side cannot show 10 %: use five or more"));
        check(0.025, wide, 4, Some("; four runs a side cannot show 2.5 %: use five or more"));
        check(0.1, wide, 5, None);
        check(0.3, wide, 2, None);
        check(0.1, Some([0.95, 1.05]), 2, None);
        check(0.0, wide, 2, None);
        check(0.1, None, 1, None);
    }

    #[test]
    fn a_change_beyond_the_tolerance_fails() {
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
