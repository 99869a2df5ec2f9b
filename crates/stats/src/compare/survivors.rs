//! Warnings for percentiles that cover responses only, although some requests had no response.

use samples::censored_share;
use units::percent;

use super::{ComparedFigure, Figure, Group, Run};

/// One warning for each percentile of a run that requests without a response would change.
pub(super) fn warnings(figures: &[ComparedFigure], groups: &[Group]) -> Vec<String> {
    let mut found = Vec::new();
    for ComparedFigure { figure, .. } in figures {
        for run in groups.iter().flat_map(|group| &group.runs) {
            let line = warning(figure, run);
            found.extend(line.filter(|line| !found.contains(line)));
        }
    }
    found
}

fn warning(figure: &Figure, run: &Run) -> Option<String> {
    let (value, judged) = figure.survivors_only(&run.figures)?;
    let share = percent(censored_share(&run.figures, &figure.path)?);
    let unit = figure.unit;
    let instead = judged.map_or("is unknown".to_owned(), |judged| format!("is {}", unit.brief(judged)));
    let (without, with) = match figure.path.contains("connect_us") {
        true => ("dials led to no connection", "connections"),
        false => ("requests had no response", "responses"),
    };
    Some(format!(
        "{} {} covers {with} only, but {share} of the {without}; counting those as longer than all others \
        it {instead}: run {}",
        figure.name,
        unit.brief(value),
        run.id,
    ))
}
