//! Draws figures over time as SVG: a line for each server and variant, and dots for published values.

use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color, IntoDrawingArea, LineSeries, Palette, Palette99, PathElement,
    SVGBackend, SeriesLabelPosition, WHITE,
};
use units::Count;

use crate::{
    curve::Interval,
    figure::micros,
    file::{Figure, Plot},
    outcome::Outcome,
};

/// Width and height in pixels.
const SIZE: (u32, u32) = (860, 380);

/// A line in the picture.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    /// Pauses of the server, marked if the figure is a latency.
    marks: Vec<(f64, f64)>,
}

/// The picture; `None` if there is nothing to draw.
pub(crate) fn picture(plot: &Plot, outcomes: &[Outcome]) -> Option<String> {
    let lines = lines(plot, outcomes);
    // At the same connection rate, a fraction of the connections needs that fraction of the time, so published times are scaled too.
    let shown = outcomes.iter().filter(|outcome| plot.experiments.contains(&outcome.subject.experiment));
    let scale = shown.map(|outcome| outcome.subject.scale).reduce(f64::max).unwrap_or(1.0);
    let scale = if plot.figure.is_scaled() { scale } else { 1.0 };
    let then: Vec<(f64, f64)> = plot.then.iter().map(|[at, y]| (*at * scale, y * scale)).collect();
    if lines.is_empty() {
        return None;
    }
    let mut svg = String::new();
    draw(plot.figure, &lines, &then, &mut svg).expect("text takes all that is drawn");
    Some(svg)
}

/// The lines, one for the last outcome of each subject.
fn lines(plot: &Plot, outcomes: &[Outcome]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| plot.experiments.contains(&outcome.subject.experiment)) {
        let point = |interval: &Interval| Some((interval.at_s, plot.figure.of(interval)?));
        let points: Vec<(f64, f64)> = outcome.curve.iter().filter_map(point).collect();
        let subject = &outcome.subject;
        let experiment =
            if plot.experiments.len() > 1 { format!("{} · ", subject.experiment) } else { String::new() };
        let name = format!("{experiment}{}", subject.name());
        let pauses = outcome.pauses.iter().filter(|_| plot.figure == Figure::Longest);
        let marks = pauses.map(|pause| (pause.at_s, pause.ms * 1e3)).collect();
        lines.retain(|line| line.name != name);
        if !points.is_empty() {
            lines.push(Line { name, points, marks });
        }
    }
    lines
}

impl Figure {
    fn of(self, interval: &Interval) -> Option<f64> {
        match self {
            Figure::Open => Some(interval.open),
            Figure::Answers => Some(interval.answers_per_s),
            Figure::P99 => interval.p99_us,
            Figure::Longest => interval.max_us,
        }
    }

    /// Whether the figure is proportional to the scale: numbers of connections and responses are, latencies are not.
    fn is_scaled(self) -> bool {
        matches!(self, Figure::Open | Figure::Answers)
    }

    fn title(self) -> &'static str {
        match self {
            Figure::Open => "connections open",
            Figure::Answers => "responses per second",
            Figure::P99 => "latency p99",
            Figure::Longest => "longest latency",
        }
    }

    fn label(self, y: f64) -> String {
        if self.is_scaled() { Count(y.max(0.0) as u64).to_string() } else { micros(y) }
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(figure: Figure, lines: &[Line], then: &[(f64, f64)], svg: &mut String) -> Drawn {
    let all = || lines.iter().flat_map(|line| line.points.iter().chain(&line.marks)).chain(then);
    let right = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let top = all().map(|(_, y)| *y).fold(1.0, f64::max) * 1.05;
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("seconds since the first dial")
        .y_desc(figure.title())
        .y_label_formatter(&|y| figure.label(*y))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .draw()?;
    for (nth, line) in lines.iter().enumerate() {
        let style = Palette99::pick(nth).stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        if !line.marks.is_empty() {
            let colour = Palette99::pick(nth).to_rgba();
            chart
                .draw_series(line.marks.iter().map(|at| Circle::new(*at, 4, colour.stroke_width(1))))?
                .label(format!("longest garbage collection pauses: {}", line.name))
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.stroke_width(1)));
        }
    }
    if !then.is_empty() {
        let dots = then.iter().map(|at| Circle::new(*at, 3, BLACK.filled()));
        chart
            .draw_series(dots)?
            .label("then, scaled")
            .legend(|(x, y)| Circle::new((x + 9, y), 3, BLACK.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Subject;

    #[test]
    fn lines_are_the_last_of_each_subject() {
        let outcome = |server: &str, open: &[f64]| Outcome {
            subject: Subject {
                experiment: "hold".to_owned(),
                server: server.to_owned(),
                scale: 0.5,
                ..Subject::default()
            },
            curve: open
                .iter()
                .enumerate()
                .map(|(at, open)| Interval { at_s: at as f64, open: *open, ..Interval::default() })
                .collect(),
            ..Outcome::default()
        };
        let other = Outcome {
            subject: Subject { experiment: "other".to_owned(), scale: 1.0, ..Subject::default() },
            ..Outcome::default()
        };
        let outcomes = [other, outcome("a", &[1.0]), outcome("b", &[5.0, 6.0]), outcome("a", &[2.0, 1000.0])];
        let plot =
            Plot { experiments: vec!["hold".to_owned()], figure: Figure::Open, then: vec![[0.5, 4000.0]] };
        let found = lines(&plot, &outcomes);
        assert_eq!(found.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(found[1].points, [(0.0, 2.0), (1.0, 1000.0)]);
        let svg = picture(&plot, &outcomes).unwrap();
        for text in ["connections open", "seconds since the first dial", "then, scaled", "2,000"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let none = Plot { experiments: vec!["other".to_owned()], ..plot };
        assert_eq!(picture(&none, &outcomes), None);
    }
}
