//! The picture of a run: connections open, and wanted, over its time.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::{Color, Style},
};
use units::{Count, Nanos};

use super::{
    history::{History, Point},
    text::{QUIET, whole_seconds},
};

/// Eighths of a row, from nothing to all of it.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Fills the area: labels on the left, times in the last row.
pub(crate) fn draw(history: &History, elapsed: Nanos, area: Rect, buffer: &mut Buffer) {
    let top = history.top();
    let label = Count(top).to_string();
    let margin = label.len() as u16 + 2;
    if area.height < 2 || area.width <= margin {
        return;
    }
    let rows = area.height - 1;
    let right = |buffer: &mut Buffer, row: u16, label: &str| {
        let x = area.x + (margin - 1).saturating_sub(label.len() as u16);
        buffer.set_string(x, area.y + row, label, QUIET);
    };
    right(buffer, rows - 1, "0");
    if top > 0 {
        right(buffer, 0, &label);
    }
    // Where half of the top is the lower edge of a row.
    if rows.is_multiple_of(2) && rows >= 6 && top.is_multiple_of(2) && top > 0 {
        right(buffer, rows / 2 - 1, &Count(top / 2).to_string());
    }
    let columns = history.columns(usize::from(area.width - margin));
    for (x, point) in (area.x + margin..).zip(&columns) {
        column(*point, top, Rect { x, y: area.y, width: 1, height: rows }, buffer);
    }
    let (last, until) = (area.y + rows, whole_seconds(elapsed));
    let end = area.x + margin + columns.len() as u16;
    buffer.set_string(area.x + margin, last, "0s", QUIET);
    if columns.len() >= until.len() + 3 {
        buffer.set_string(end - until.len() as u16, last, &until, QUIET);
    }
}

/// One column, from below: what is open, and a line where the plan is.
fn column(point: Point, top: u64, area: Rect, buffer: &mut Buffer) {
    let whole = u64::from(area.height) * 8;
    // Something is never shown as nothing.
    let eighths = |n: u64| {
        let height = (u128::from(n) * u128::from(whole) / u128::from(top.max(1))) as u64;
        height.max(u64::from(n > 0))
    };
    let (open, wanted) = (eighths(point.open), eighths(point.wanted));
    for row in 0..area.height {
        let below = u64::from(row) * 8;
        let filled = open.saturating_sub(below).min(8);
        let (symbol, style) = match (filled, wanted.saturating_sub(below)) {
            (0, line @ 1..=8) => (line_at(line), QUIET),
            // More than the plan requires now.
            (_, 0) => (EIGHTHS[filled as usize], Style::new().fg(Color::Yellow)),
            _ => (EIGHTHS[filled as usize], Style::new().fg(Color::Cyan)),
        };
        let at = Position { x: area.x, y: area.y + area.height - 1 - row };
        buffer[at].set_symbol(symbol).set_style(style);
    }
}

/// A line this many eighths above the lower edge of a cell.
fn line_at(eighths: u64) -> &'static str {
    match eighths {
        0..=2 => "▁",
        3..=5 => "─",
        _ => "▔",
    }
}
