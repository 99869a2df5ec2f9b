//! The layout of the live view: which parts are shown at a given size of the terminal, and where.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use samples::Header;
use units::Count;

use super::{
    charts, compact, help,
    lists::{self, List},
    scene::{Scene, keys, messages, open, progress},
    tables,
    text::{STRONG, bytes_per_s, fit, per_s, plain, quiet},
};

/// Minimum size of the full view, columns and rows; smaller terminals get the compact view.
const FULL: (u16, u16) = (80, 24);
/// Minimum size of the compact view.
const LEAST: (u16, u16) = (24, 6);
/// Minimum width for lists beside the tables.
const WIDE: u16 = 118;
/// Minimum width for two columns of lists.
const TWO_LISTS: u16 = 100;
/// Minimum width for less important parts of the title.
const ROOMY: usize = 100;
/// Minimum height for blank lines.
const HIGH: u16 = 30;
/// Columns between tables and lists.
const GAP: u16 = 4;

/// Whether a terminal of this size has room for at least the compact view.
pub(crate) fn has_room((width, height): (u16, u16)) -> bool {
    width >= LEAST.0 && height >= LEAST.1
}

/// Draws the view into the buffer.
pub(crate) fn draw(scene: &Scene, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.width < FULL.0 || area.height < FULL.1 {
        compact::draw(scene, area, buffer);
    } else {
        full(scene, area, buffer);
    }
    if scene.is_help {
        help::draw(area, buffer);
    }
}

fn full(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let gap = u16::from(area.height >= HIGH);
    let mut page = Page { left: Rect { x: area.x + 1, width: area.width - 2, ..area }, buffer };
    page.lines(1, |width| vec![title(scene, width)]);
    page.lines(1, |width| vec![progress(scene, width)]);
    page.skip(gap);
    page.lines(1, |width| vec![rates(scene, width)]);
    if let Some(agents) = &scene.second.agents {
        page.lines(1, |width| vec![plain(agents.line(width)).into()]);
    }
    page.skip(gap);
    let said = 1 + gap;
    // The curves get the rows that the other parts do not need, and at least two fifths.
    let room = page.left.height.saturating_sub(gap + said + 1);
    let least = (charts::MIN_ROWS * 2).max(if gap > 0 { room * 2 / 5 } else { 0 });
    let below = Below::arrange(scene, page.left.width, room.saturating_sub(least), room, gap);
    let curves = page.take(room.saturating_sub(below.height()));
    charts::draw(scene, curves, page.buffer);
    page.skip(gap);
    below.draw(scene, &mut page);
    page.lines(said, |width| messages(scene, usize::from(said), width));
    page.lines(1, |width| vec![keys(scene, width)]);
}

/// The parts below the curves: tables, and lists beside or below them.
struct Below {
    gap: u16,
    tables: u16,
    /// Lists beside the tables, with their rows, in one or two columns; the first column contains `first` lists.
    beside: Vec<(List, u16)>,
    first: usize,
    beside_height: u16,
    /// Rows of the latency distribution below the last list beside the tables.
    distribution: u16,
    below: Vec<(List, u16)>,
}

impl Below {
    /// Arranges the parts in at most `room` rows, plus what the distribution may take of the curves' share of `room_of_all`.
    fn arrange(scene: &Scene, width: u16, room: u16, room_of_all: u16, gap: u16) -> Below {
        let second = scene.second;
        let tables = tables::latency(second).len() as u16 + gap + tables::COSTS;
        let given = |lists: &[List], width: u16, room: u16| -> Vec<(List, u16)> {
            let rows = lists::share(lists, second, width, room);
            lists.iter().copied().zip(rows).filter(|(_, rows)| *rows > 0).collect()
        };
        if width + 2 < WIDE {
            let order = [List::Statuses, List::Thresholds, List::Populations, List::Faults];
            let below = given(&order, width, room.saturating_sub(tables + gap));
            let beside = Vec::new();
            return Below { gap, tables, beside, first: 0, beside_height: 0, distribution: 0, below };
        }
        let populations = List::Populations.rows(second, width);
        let populations =
            if populations > 0 { populations.min(room.saturating_sub(tables + gap)) } else { 0 };
        let high = room.saturating_sub(populations + gap * u16::from(populations > 0));
        let right = width - tables::WIDTH - GAP;
        let two = right >= TWO_LISTS;
        let column = if two { (right - GAP) / 2 } else { right };
        let (one, other): (&[List], &[List]) = match two {
            true => (&[List::Statuses, List::Thresholds], &[List::Faults]),
            false => (&[List::Statuses, List::Thresholds, List::Faults], &[]),
        };
        let wants = |list: &[List]| list.iter().filter(|own| own.rows(second, column) > 0).count() as u16;
        let blank = |list: &[List]| gap * wants(list).saturating_sub(1);
        let mut beside = given(one, column, high - blank(one).min(high));
        let first = beside.len();
        let height = |lists: &[(List, u16)]| -> u16 {
            lists.iter().map(|(_, rows)| rows + gap).sum::<u16>().saturating_sub(gap)
        };
        let others = given(other, column, high);
        // The distribution gets blank rows, and as many of the curves' rows as leave them half of the screen.
        let column = if two { height(&others) } else { height(&beside) } + gap;
        let most = tables.max(height(&beside)).max((room_of_all / 2).min(high));
        let distribution = second.distribution.rows(most.saturating_sub(column));
        let last = if distribution > 0 { column + distribution } else { 0 };
        let beside_height = height(&beside).max(height(&others)).max(last);
        beside.extend(others);
        let below = given(&[List::Populations], width, populations);
        Below { gap, tables, beside, first, beside_height, distribution, below }
    }

    fn height(&self) -> u16 {
        let upper = self.tables.max(self.beside_height);
        let below = self.below.iter().map(|(_, rows)| rows + self.separation()).sum::<u16>();
        upper + below + if self.beside.is_empty() { self.gap * u16::from(!self.below.is_empty()) } else { 0 }
    }

    /// Blank rows between the tables and the parts below them.
    fn separation(&self) -> u16 {
        if self.beside.is_empty() { 0 } else { self.gap }
    }

    fn draw(&self, scene: &Scene, page: &mut Page) {
        let upper = page.take(self.tables.max(self.beside_height));
        let times = tables::latency(scene.second);
        let costs = Rect { y: upper.y + times.len() as u16 + self.gap, height: tables::COSTS, ..upper };
        page.write(Rect { height: times.len() as u16, ..upper }, times);
        page.write(costs, tables::costs(scene));
        if !self.beside.is_empty() {
            let x = upper.x + tables::WIDTH + GAP;
            let right = upper.right() - x;
            let two = right >= TWO_LISTS;
            let width = if two { (right - GAP) / 2 } else { right };
            let (one, other) = self.beside.split_at(self.first);
            for (lists, x, is_last) in [(one, x, !two), (other, x + width + GAP, two)] {
                let mut y = upper.y;
                for (list, rows) in lists {
                    page.write(Rect { x, y, width, height: *rows }, list.lines(scene, width, *rows));
                    y += rows + self.gap;
                }
                let rows = if is_last { self.distribution } else { 0 };
                let lines = scene.second.distribution.lines(usize::from(width), usize::from(rows));
                page.write(Rect { x, y, width, height: rows }, lines);
            }
        } else if !self.below.is_empty() {
            page.skip(self.gap);
        }
        for (list, rows) in &self.below {
            page.skip(self.separation());
            let area = page.take(*rows);
            let lines = list.lines(scene, area.width, *rows);
            page.write(area, lines);
        }
    }
}

/// The part of the screen that is still free, filled from the top.
struct Page<'a> {
    left: Rect,
    buffer: &'a mut Buffer,
}

impl Page<'_> {
    fn take(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.left.height);
        let taken = Rect { height: rows, ..self.left };
        (self.left.y, self.left.height) = (self.left.y + rows, self.left.height - rows);
        taken
    }

    fn skip(&mut self, rows: u16) {
        self.take(rows);
    }

    fn lines(&mut self, rows: u16, lines: impl FnOnce(usize) -> Vec<Line<'static>>) {
        let area = self.take(rows);
        self.write(area, lines(usize::from(area.width)));
    }

    fn write(&mut self, area: Rect, lines: Vec<Line<'static>>) {
        for (y, line) in (area.y..area.bottom().min(self.buffer.area.bottom())).zip(lines) {
            self.buffer.set_line(area.x, y, &line, area.width);
        }
    }
}

/// The title: the target on the left, and what is needed to repeat the run on the right.
fn title(scene: &Scene, width: usize) -> Line<'static> {
    let Header { target, seed, io, threads, .. } = scene.header;
    let right = match width < ROOMY {
        true => format!("seed {seed}"),
        false => format!("{}  {io}  seed {seed}", Count(u64::from(*threads)).of("thread")),
    };
    let target = fit(target, width.saturating_sub(right.len() + 10));
    spread(vec![Span::styled("throng", STRONG), plain("  "), plain(target)], vec![quiet(right)], width)
}

/// Open connections and rates; less important ones are omitted if they do not fit.
fn rates(scene: &Scene, width: usize) -> Line<'static> {
    let second = scene.second;
    let mut spans = open(scene);
    let connects = format!("{:>7}", per_s(second.opens_per_s));
    // Padded to its usual width, so that the following figures do not move.
    let more = [
        ("connects", connects),
        ("requests", format!("{:>10}", per_s(second.requests_per_s))),
        ("in", format!("{:>11}", bytes_per_s(second.bytes_in_per_s))),
        ("waiting", format!("{:>7}", Count(second.waiting).to_string())),
    ];
    for (name, figure) in more {
        // A figure that is wider than usual needs a separating blank.
        let blank = if figure.starts_with(' ') { "" } else { " " };
        let piece = [plain("   "), quiet(name), plain(blank), plain(figure)];
        let taken = Line::from([spans.clone(), piece.to_vec()].concat());
        if taken.width() > width {
            break;
        }
        spans = taken.spans;
    }
    Line::from(spans)
}

/// A line with one part aligned to the left and one to the right.
fn spread(left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let taken: usize = left.iter().chain(&right).map(Span::width).sum();
    let blank = plain(" ".repeat(width.saturating_sub(taken)));
    Line::from([left, vec![blank], right].concat())
}
