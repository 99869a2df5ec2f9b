//! The view for small terminals: a line for each figure, most important first, with its curve beside it.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use super::{
    charts::{self, Chart},
    lists::List,
    scene::{Scene, colour, keys, messages, open, progress, what_is_left},
    text::{STRONG, fit, plain, quiet, time, whole_seconds},
};

/// Width of a figure's name, and of the figure, in columns.
const NAME: usize = 12;
const FIGURE: usize = 12;
/// Minimum width for a progress bar.
const WITH_BAR: usize = 72;
/// Minimum width of a curve in columns.
const MIN_CURVE: u16 = 8;

/// Draws as many lines as there is room for.
pub(crate) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width < 4 {
        return;
    }
    let inner = Rect { x: area.x + 1, width: area.width - 2, ..area };
    let width = usize::from(inner.width);
    let line = |y: u16, line: &Line, buffer: &mut Buffer| {
        if y < inner.bottom() {
            buffer.set_line(inner.x, y, line, inner.width);
        }
    };
    // The keys are in the last line, and messages above them.
    let last = inner.bottom() - 1;
    line(last, &keys(scene, width), buffer);
    let has_message = scene.message.is_some() || !scene.held_messages.is_empty();
    let said = u16::from(has_message && inner.height > 4);
    if said > 0 {
        messages(scene, 1, width).iter().for_each(|message| line(last - 1, message, buffer));
    }
    let end = last - said;
    let mut y = inner.y;
    let head = if width >= WITH_BAR { progress(scene, width) } else { phase(scene, width) };
    for text in [head, Line::from(open(scene))] {
        if y < end {
            line(y, &text, buffer);
            y += 1;
        }
    }
    // The curves get the rows that the lines below them do not need.
    let below = below(scene, inner.width, end.saturating_sub(y + 4));
    let curves = Rect { y, height: end.saturating_sub(y + below.len() as u16), ..inner };
    draw_curves(scene, curves, buffer);
    for (y, text) in (curves.bottom()..end).zip(&below) {
        line(y, text, buffer);
    }
}

/// The line of the phase: `hold  16 %  50s of 1m left         20s`.
fn phase(scene: &Scene, width: usize) -> Line<'static> {
    let second = scene.second;
    let share = second.progress.map_or(String::new(), |share| format!(" {:.0} %", share * 100.0));
    let name = Span::styled(second.phase.name(), STRONG.fg(colour(second.phase)));
    let elapsed = whole_seconds(second.elapsed);
    let taken = second.phase.name().len() + share.len() + 2 + elapsed.len() + 2;
    let left = fit(&what_is_left(scene), width.saturating_sub(taken));
    let blank = (width + 2).saturating_sub(taken + left.chars().count());
    Line::from(vec![name, plain(share), quiet(format!("  {left}")), plain(" ".repeat(blank)), quiet(elapsed)])
}

/// Draws the curves over the available rows: to the right of their figures, or below their titles.
fn draw_curves(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    if area.height >= 4 * charts::MIN_ROWS {
        charts::draw(scene, area, buffer);
        return;
    }
    // Open connections have a line already, so they get a curve only if there are four rows.
    let charts = charts::all(scene);
    let skip = usize::from(area.height < 4);
    let shown = &charts[skip..];
    let rows = (area.height / shown.len() as u16).max(1);
    for (n, chart) in (0..).zip(shown) {
        let y = area.y + n * rows;
        if y < area.bottom() {
            draw_line(scene, chart, Rect { y, height: rows.min(area.bottom() - y), ..area }, buffer);
        }
    }
}

fn draw_line(scene: &Scene, chart: &Chart, area: Rect, buffer: &mut Buffer) {
    let name = fit(chart.title, NAME);
    let line = Line::from(vec![
        quiet(format!("{name:<NAME$}")),
        Span::styled(format!("{:>FIGURE$}", chart.now), chart.now_style),
    ]);
    buffer.set_line(area.x, area.y, &line, area.width);
    let taken = (NAME + FIGURE + 2) as u16;
    if area.width >= taken + MIN_CURVE {
        let curve = Rect { x: area.x + taken, width: area.width - taken, ..area };
        charts::spark(scene, chart, curve, buffer);
    }
}

/// Percentiles, statuses, thresholds and faults, one line each, as many as there is room for.
fn below(scene: &Scene, width: u16, room: u16) -> Vec<Line<'static>> {
    let columns = usize::from(width);
    let second = scene.second;
    let times = second.latency.map(|l| [("p50", l.p50), ("p90", l.p90), ("p95", l.p95), ("max", l.max)]);
    let mut line = Line::default();
    for (name, own) in times.iter().flatten() {
        let figure = format!(" {}  ", time(Some(*own)));
        if line.width() + name.len() + figure.chars().count() > columns + 2 {
            break;
        }
        line.push_span(quiet(*name));
        line.push_span(plain(figure));
    }
    let has = |list: List| list.rows(second, width) > 0;
    let list = |list: List| list.lines(scene, width, 1).into_iter().next();
    let no_response = second.no_response.map(|share| {
        let text = format!("no response {}", units::percent(share));
        Line::styled(text, super::text::BAD)
    });
    let thresholds = has(List::Thresholds).then(|| list(List::Thresholds)).flatten();
    let statuses = has(List::Statuses).then(|| list(List::Statuses)).flatten();
    let times = times.is_some().then_some(line);
    let faults = list(List::Faults);
    // Selects by importance, then shows in the order of the full view.
    let all = [times, no_response, statuses, thresholds, faults];
    let by_need = [4, 3, 1, 2, 0];
    let mut taken: Vec<usize> =
        by_need.into_iter().filter(|n| all[*n].is_some()).take(usize::from(room)).collect();
    taken.sort_unstable();
    taken.into_iter().filter_map(|n| all[n].clone()).collect()
}
