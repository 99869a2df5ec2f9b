//! Warnings for percentiles that cover responses only, although some requests had no response.

use units::percent;

use super::{ComparedFigure, Group, Named, Run};

/// One warning for each percentile of a run that requests without a response would change.
pub(super) fn warnings(figures: &[ComparedFigure], groups: &[Group]) -> Vec<String> {
    let mut found = Vec::new();
    for ComparedFigure { named, .. } in figures {
        for run in groups.iter().flat_map(|group| &group.runs) {
            let line = warning(named, run);
            found.extend(line.filter(|line| !found.contains(line)));
        }
    }
    found
}

fn warning(named: &Named, run: &Run) -> Option<String> {
    let (value, judged) = named.survivors_only(&run.summary)?;
    let figure = &named.figure;
    let (share, unit) = (percent(figure.censored_share(&run.summary)?), figure.unit);
    let instead = judged.map_or("is unknown".to_owned(), |judged| format!("is {}", unit.brief(judged)));
    let (without, with) = match figure.times() == Some("connect_us") {
        true => ("dials led to no connection", "connections"),
        false => ("requests had no response", "responses"),
    };
    Some(format!(
        "{} {} covers {with} only, but {share} of the {without}; counting those as longer than all others \
        it {instead}: run {}",
        named.name,
        unit.brief(value),
        run.id,
    ))
}
