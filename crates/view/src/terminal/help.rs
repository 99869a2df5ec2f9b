//! The help for keys and figures, drawn over the view.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::text::{QUIET, STRONG, plain};

/// A key or figure, its explanation, and a short explanation; an empty entry separates groups.
type Entry = (&'static str, &'static str, &'static str);

const LINES: [Entry; 20] = [
    ("p", "pause: keep connections, start nothing new; again: resume", "pause or resume"),
    ("+ -", "a tenth of the load more or less, up to the plan", "a tenth more or less load"),
    ("d d", "drain: end the load, wait for outstanding responses", "drain"),
    ("q q", "stop immediately; the summary is still written", "stop"),
    ("Ctrl-C", "drain; a second time: stop", "drain, again: stop"),
    ("?", "this help; again or Esc closes it", "close the help"),
    ("", "", ""),
    ("open", "connections open now, of those that the plan wants now", "connections open now"),
    ("missing", "wanted and not open while the load is held: in red", "wanted, not open"),
    ("connects", "connections opened, per second", "opened per second"),
    ("requests", "responses, per second", "responses per second"),
    ("errors", "errors as the summary counts them, per second", "failures per second"),
    ("waiting", "requests sent whose response is awaited", "responses awaited"),
    ("latency", "from when a request was due to its response, last second", "from when a request was due"),
    ("lag", "how late throng sent: its own delay, not the target's", "throng's own delay"),
    ("no response", "the share of requests that no percentile covers", "share outside percentiles"),
    ("faults", "side, stage and kind; red if any in the last second", "by side, stage and kind"),
    ("thresholds", "against all that was measured so far", "so far"),
    ("▔", "in the curve of connections: what the plan wants", "connections wanted"),
    ("curves", "whole run: minimum of open, mean of requests, else maximum", "the whole run"),
];
/// Width of the names in columns.
const NAME: usize = 13;
/// Width of the explanations in columns.
const MEANING: usize = 61;
/// Width and height of the help with its frame.
const SIZE: (u16, u16) = ((NAME + MEANING) as u16 + 4, LINES.len() as u16 + 2);

/// Draws the help in the middle of the screen, or as running text if there is not enough room. The last line with the keys stays
/// visible.
pub(crate) fn draw(area: Rect, buffer: &mut Buffer) {
    let (width, height) = SIZE;
    if area.width < width || area.height <= height {
        return draw_compact(area, buffer);
    }
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - 1 - height) / 2,
        width,
        height,
    };
    let rule = |left: &str, title: &str, right: &str| {
        let rule = "─".repeat(usize::from(width - 2) - title.chars().count());
        Line::from(vec![Span::styled(format!("{left}{title}{rule}{right}"), QUIET)])
    };
    let row = |(name, what, _): &Entry| {
        Line::from(vec![
            Span::styled("│ ", QUIET),
            Span::styled(format!("{name:<NAME$}"), STRONG),
            plain(format!("{what:<MEANING$}")),
            Span::styled(" │", QUIET),
        ])
    };
    let rows = LINES.iter().map(row);
    let lines = [rule("╭", "─ help ", "╮")].into_iter().chain(rows).chain([rule("╰", "", "╯")]);
    buffer.set_style(frame, Style::reset());
    for (y, line) in (frame.y..frame.bottom()).zip(lines) {
        buffer.set_line(frame.x, y, &line, frame.width);
    }
}

/// Draws the help as running text, with short explanations if the long ones do not fit. Keys come first, so that figures are cut off.
fn draw_compact(area: Rect, buffer: &mut Buffer) {
    let (width, rows) = (area.width.saturating_sub(2), area.height.saturating_sub(1));
    if width < 10 || rows < 2 {
        return;
    }
    let long = running(width.into(), |entry| entry.1);
    let has_room =
        long.len() <= usize::from(rows) && long.iter().all(|line| line.width() <= usize::from(width));
    let lines = if has_room { long } else { running(width.into(), |entry| entry.2) };
    let rest = std::iter::repeat(Line::default());
    for (y, line) in (area.y..area.y + rows).zip(lines.into_iter().chain(rest)) {
        buffer.set_string(area.x, y, " ".repeat(area.width.into()), Style::reset());
        buffer.set_line(area.x + 1, y, &line, width);
    }
}

/// All entries as running text, filling each line.
fn running(width: usize, meaning: impl Fn(&Entry) -> &'static str) -> Vec<Line<'static>> {
    const GAP: &str = "   ";
    let mut lines: Vec<Line> = Vec::new();
    for entry in LINES.iter().filter(|(name, ..)| !name.is_empty()) {
        let own = [Span::styled(entry.0, STRONG), plain(format!(" {}", meaning(entry)))];
        let needed: usize = GAP.len() + own.iter().map(Span::width).sum::<usize>();
        match lines.last_mut().filter(|line| line.width() + needed <= width) {
            Some(line) => line.spans.extend([plain(GAP)].into_iter().chain(own)),
            None => lines.push(Line::from(Vec::from(own))),
        }
    }
    lines
}
