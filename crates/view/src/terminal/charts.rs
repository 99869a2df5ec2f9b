//! Four curves over the duration of the run: connections, requests, latency and errors.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};
use units::{Count, Nanos};

use super::{
    curve::{self, Column},
    history::Point,
    scene::Scene,
    text::{QUIET, STRONG, per_s, plain, quiet, time, whole_seconds},
};

/// Minimum number of rows of a curve with its title.
pub(crate) const MIN_ROWS: u16 = 3;
/// Minimum number of rows for a time axis below the lowest curves.
const WITH_TIMES: u16 = 6;
/// Minimum width for two curves side by side.
const TWO: u16 = 72;
/// Columns between two curves.
const GAP: u16 = 2;
/// Minimum width of a scale in columns: most labels fit, so that a curve does not move when its scale changes.
const MIN_SCALE: usize = 7;

/// A curve, with how to draw it.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The value of the last second as text, and its style.
    pub(crate) now: String,
    pub(crate) now_style: Style,
    style: Style,
    figure: fn(&Point) -> Option<f64>,
    label: fn(f64) -> String,
    /// The value at the upper end of the scale.
    top: f64,
}

/// The four curves, in the order on the screen.
pub(crate) fn all(scene: &Scene) -> [Chart; 4] {
    let second = scene.second;
    let colour = |colour| Style::new().fg(colour);
    let count: fn(f64) -> String = |n| Count(n.round() as u64).to_string();
    let chart = |title, now, figure: fn(&Point) -> Option<f64>, label, fg| Chart {
        title,
        now,
        now_style: STRONG,
        style: colour(fg),
        figure,
        label,
        top: curve::scale(scene.history.top(|point| figure(point).unwrap_or(0.0))),
    };
    let open = Count(second.open).to_string();
    let p99 = time(second.latency.map(|latency| latency.p99));
    let mut all = [
        chart("connections", open, |point| Some(point.open as f64), count, Color::Cyan),
        chart("requests", per_s(second.requests_per_s), |p| Some(p.requests_per_s()), rate, Color::Green),
        chart("latency p99", p99, |p| p.p99.map(|p99| p99.0 as f64), nanos, Color::Magenta),
        chart("errors", rate(second.errors_per_s), |point| Some(point.errors_per_s), rate, Color::Red),
    ];
    // The scale of connections ends at the plan.
    all[0].top = scene.history.top(|point| point.open.max(point.wanted) as f64);
    if second.is_short() {
        all[0].now_style = STRONG.fg(Color::Red);
    }
    if second.errors_per_s > 0.0 {
        all[3].now_style = STRONG.fg(Color::Red);
    }
    all
}

/// A rate; low ones with a decimal.
fn rate(per_s: f64) -> String {
    if per_s > 0.0 && per_s < 9.95 { format!("{per_s:.1}/s") } else { super::text::per_s(per_s) }
}

fn nanos(n: f64) -> String {
    Nanos(n.round() as u64).brief().to_string()
}

/// Draws all curves, two side by side if there is room.
pub(crate) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let across = if area.width >= TWO { 2 } else { 1 };
    let down = 4 / across;
    let width = (area.width - GAP * (across - 1)) / across;
    let charts = all(scene);
    let times = area.height / down >= WITH_TIMES;
    let rows = area.height - u16::from(times);
    // Scales in the same column of curves have the same width, so that their time axes are aligned.
    let margin = |column: u16| {
        let own = charts.iter().skip(usize::from(column)).step_by(usize::from(across));
        own.map(|chart| (chart.label)(chart.top).chars().count()).fold(MIN_SCALE, usize::max) as u16 + 1
    };
    let mut y = area.y;
    for (row, charts) in (0..down).zip(charts.chunks(usize::from(across))) {
        // Remaining rows go to the upper curves.
        let height = rows / down + u16::from(row < rows % down);
        for (column, chart) in (0..across).zip(charts) {
            let x = area.x + column * (width + GAP);
            // The last column of curves extends to the right edge.
            let width = if column + 1 == across { area.right() - x } else { width };
            let with_times = times && row + 1 == down;
            let height = height + u16::from(with_times);
            draw_one(scene, chart, margin(column), with_times, Rect { x, y, width, height }, buffer);
        }
        y += height;
    }
}

/// Draws a curve: its title, the scale on the left, and the time axis below.
fn draw_one(scene: &Scene, chart: &Chart, margin: u16, with_times: bool, area: Rect, buffer: &mut Buffer) {
    buffer.set_line(area.x, area.y, &title(chart, usize::from(area.width)), area.width);
    let rows = (area.height - 1).saturating_sub(u16::from(with_times));
    let curve =
        Rect { x: area.x + margin, y: area.y + 1, width: area.width.saturating_sub(margin), height: rows };
    let right = |buffer: &mut Buffer, row: u16, label: &str| {
        let x = curve.x - 1 - (label.chars().count() as u16).min(margin - 1);
        buffer.set_string(x, curve.y + row, label, QUIET);
    };
    if rows > 0 {
        right(buffer, rows - 1, "0");
    }
    if chart.top > 0.0 && rows > 1 {
        right(buffer, 0, &(chart.label)(chart.top));
    }
    // Labels half of the scale, if that is at the edge of a row.
    if chart.top > 1.0 && rows >= 6 && rows.is_multiple_of(2) {
        right(buffer, rows / 2 - 1, &(chart.label)(chart.top / 2.0));
    }
    let columns = columns(scene, chart, usize::from(curve.width));
    curve::draw(&columns, chart.top, curve, buffer);
    if chart.top <= 0.0 && rows > 0 {
        buffer.set_string(curve.x, curve.y + (rows - 1) / 2, "none so far", QUIET);
    }
    if with_times {
        let (y, until) = (curve.bottom(), whole_seconds(scene.second.elapsed));
        buffer.set_string(curve.x, y, "0s", QUIET);
        if columns.len() >= until.len() + 3 {
            buffer.set_string(curve.x + (columns.len() - until.len()) as u16, y, &until, QUIET);
        }
    }
}

/// The curve in at most `width` columns.
pub(crate) fn columns(scene: &Scene, chart: &Chart, width: usize) -> Vec<Column> {
    let is_plan = chart.title == "connections";
    let column = |point: &Point| {
        let style = match is_plan {
            true if point.is_short => Style::new().fg(Color::Red),
            // More than the plan requires now.
            true if point.open > point.wanted && point.wanted > 0 => Style::new().fg(Color::Yellow),
            _ => chart.style,
        };
        let line = is_plan.then_some(point.wanted as f64);
        Column { value: (chart.figure)(point), line, style }
    };
    scene.history.columns(width).iter().map(column).collect()
}

/// Draws the curve in one row.
pub(crate) fn spark(scene: &Scene, chart: &Chart, area: Rect, buffer: &mut Buffer) {
    curve::draw(&columns(scene, chart, usize::from(area.width)), chart.top, area, buffer);
}

/// The title of a curve: `── requests ─────── 12,345/s ──`.
fn title(chart: &Chart, width: usize) -> Line<'static> {
    // Two rules of two columns, and four blanks.
    let fixed = 8 + chart.title.len() + chart.now.chars().count();
    let rule = "─".repeat(width.saturating_sub(fixed));
    Line::from(vec![
        quiet("── "),
        Span::styled(chart.title.to_owned(), chart.style.patch(STRONG)),
        plain(" "),
        quiet(rule),
        plain(" "),
        Span::styled(chart.now.clone(), chart.now_style),
        quiet(" ──"),
    ])
}
