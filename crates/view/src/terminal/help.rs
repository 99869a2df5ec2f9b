//! What keys and figures mean, over the view.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::text::{QUIET, STRONG, fit, plain};

/// A key or a figure, and its meaning; a blank line between groups.
const LINES: [(&str, &str); 20] = [
    ("p", "pause: keep connections, start nothing new; again: resume"),
    ("+ -", "a tenth of the load more or less, up to the plan"),
    ("d d", "drain: end the load, wait for outstanding responses"),
    ("q q", "stop immediately; the summary is still written"),
    ("Ctrl-C", "drain; a second time: stop"),
    ("?", "this help; again or Esc closes it"),
    ("", ""),
    ("open", "connections open now, of those that the plan wants now"),
    ("missing", "wanted and not open while the load is held: in red"),
    ("connects", "connections opened, per second"),
    ("requests", "responses, per second"),
    ("errors", "faults and requests missed, per second"),
    ("waiting", "requests sent whose response is awaited"),
    ("latency", "from when a request was due to its response, last second"),
    ("lag", "how late throng sent: its own delay, not the target's"),
    ("no response", "the share of requests that no percentile covers"),
    ("faults", "side, stage and kind; red if any in the last second"),
    ("thresholds", "against all that was measured so far"),
    ("▔", "in the curve of connections: what the plan wants"),
    ("curves", "the whole run: minimum of open, mean of requests, maximum of others"),
];
/// Columns of the first words.
const NAME: usize = 13;
/// Columns in all, without the frame.
const WIDTH: u16 = 74;

/// In the middle of the screen.
pub(crate) fn draw(area: Rect, buffer: &mut Buffer) {
    // The keys' line stays.
    let (width, height) =
        ((WIDTH + 4).min(area.width), (LINES.len() as u16 + 2).min(area.height.saturating_sub(1)));
    if width < 12 || height < 3 {
        return;
    }
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - 1 - height) / 2,
        width,
        height,
    };
    let inside = usize::from(width - 2);
    let rule = |left: &str, title: &str, right: &str| {
        let rule = "─".repeat(inside.saturating_sub(title.chars().count()));
        Line::from(vec![Span::styled(format!("{left}{title}{rule}{right}"), QUIET)])
    };
    let row = |(name, what): &(&str, &str)| {
        let name = format!("{name:<NAME$}");
        let what = fit(what, inside.saturating_sub(NAME + 2));
        let blank = " ".repeat(inside.saturating_sub(2 + NAME + what.chars().count()));
        Line::from(vec![
            Span::styled("│ ", QUIET),
            Span::styled(name, STRONG),
            plain(what + &blank),
            Span::styled(" │", QUIET),
        ])
    };
    let rows = LINES.iter().take(usize::from(height - 2)).map(row);
    let lines = [rule("╭", "─ help ", "╮")].into_iter().chain(rows).chain([rule("╰", "", "╯")]);
    buffer.set_style(frame, Style::reset());
    for (y, line) in (frame.y..frame.bottom()).zip(lines) {
        buffer.set_line(frame.x, y, &line, frame.width);
    }
}
