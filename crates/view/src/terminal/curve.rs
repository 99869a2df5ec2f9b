//! Draws a curve with block characters: a column per point in time, with a resolution of an eighth of a row.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Style,
};

use super::text::QUIET;

/// Blocks from 0 to 8 eighths of a row.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Upper ends of scales, relative to a power of ten.
const STEPS: [f64; 11] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];

/// A column of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    /// `None` if nothing was measured.
    pub(crate) value: Option<f64>,
    /// Height of a thin line for the planned value.
    pub(crate) line: Option<f64>,
    /// Colour of the value.
    pub(crate) style: Style,
}

/// Draws columns from the left over the full height of the area; `top` is the value at its upper edge.
pub(crate) fn draw(columns: &[Column], top: f64, area: Rect, buffer: &mut Buffer) {
    for (x, column) in (area.x..area.right()).zip(columns) {
        draw_column(column, top, Rect { x, width: 1, ..area }, buffer);
    }
}

/// The curve as text, upper line first.
pub(crate) fn lines(columns: &[Column], top: f64, rows: u16) -> Vec<String> {
    let area = Rect::new(0, 0, columns.len() as u16, rows);
    let mut buffer = Buffer::empty(area);
    draw(columns, top, area, &mut buffer);
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
    (0..rows).map(line).collect()
}

/// Draws a column from below: the value, and a line for the plan.
fn draw_column(column: &Column, top: f64, area: Rect, buffer: &mut Buffer) {
    let whole = f64::from(area.height) * 8.0;
    // A value above 0 is always visible.
    let eighths =
        |n: f64| if n > 0.0 && top > 0.0 { (n / top * whole).min(whole).max(1.0) as u32 } else { 0 };
    let (value, line) = (eighths(column.value.unwrap_or(0.0)), eighths(column.line.unwrap_or(0.0)));
    for row in 0..area.height {
        let below = u32::from(row) * 8;
        let filled = value.saturating_sub(below).min(8);
        let (symbol, style) = match (filled, line.saturating_sub(below)) {
            (0, line @ 1..=8) => (line_at(line), QUIET),
            _ => (EIGHTHS[filled as usize], column.style),
        };
        let at = Position { x: area.x, y: area.y + area.height - 1 - row };
        buffer[at].set_symbol(symbol).set_style(style);
    }
}

/// The character for a line this many eighths above the lower edge of a cell.
fn line_at(eighths: u32) -> &'static str {
    match eighths {
        0..=2 => "▁",
        3..=5 => "─",
        _ => "▔",
    }
}

/// A round upper end for a scale that must include `most`. It rarely changes: 12,345 is shown on a scale up to 15,000.
pub(crate) fn scale(most: f64) -> f64 {
    if most <= 0.0 {
        return 0.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let step = STEPS.iter().find(|step| most <= **step * power * (1.0 + 1e-9));
    step.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_ends_at_a_round_number() {
        for (most, expected) in [
            (0.0, 0.0),
            (1.0, 1.0),
            (1.01, 1.2),
            (12_345.0, 15_000.0),
            (9.9e6, 1e7),
            (0.3, 0.3),
            (800.0, 800.0),
        ] {
            let end = scale(most);
            assert!((end - expected).abs() <= expected * 1e-9, "{most}: {end}");
        }
    }

    /// Compares the drawn rows, upper row first.
    fn check(columns: &[(Option<f64>, Option<f64>)], top: f64, rows: u16, expected: &[&str]) {
        let columns: Vec<Column> =
            columns.iter().map(|&(value, line)| Column { value, line, style: Style::new() }).collect();
        assert_eq!(lines(&columns, top, rows), expected);
    }

    #[test]
    fn heights_are_shares_of_the_top() {
        let full = [0.0, 25.0, 50.0, 75.0, 100.0].map(|n| (Some(n), None));
        check(&full, 100.0, 1, &[" ▂▄▆█"]);
        check(&full, 100.0, 2, &["   ▄█", " ▄███"]);
        // Small values are visible, and values above the top are cut off.
        check(&[(Some(0.01), None), (None, None), (Some(300.0), None)], 100.0, 1, &["▁ █"]);
        check(&[(Some(5.0), None)], 0.0, 1, &[" "]);
        check(
            &[(Some(0.0), Some(100.0)), (Some(100.0), Some(50.0)), (None, Some(50.0))],
            100.0,
            2,
            &["▔█ ", " █▔"],
        );
    }
}
