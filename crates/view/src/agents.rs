//! A line about the agents of a fleet in one second.

use ratatui::text::Span;
use samples::{AgentShare, AgentTicks, Tick};
use units::Count;

use crate::summary::{cores, time};

/// Maximum length of the line: the width of the narrowest usual terminal.
pub(crate) const COLUMNS: usize = 80;
/// Minimum width of a name in columns; a longer one is shortened to its end.
const MIN_NAME: usize = 4;

/// The number of agents that reported in a second, and the agents with the highest CPU usage and the highest lag.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Agents {
    all: usize,
    /// Number of agents that reported and are not lost.
    up: usize,
    lost: usize,
    /// The agent with the highest CPU usage: name, share of its processors (0 to 1), and number of processors used.
    max_cpu: Option<(String, f64, f64)>,
    /// The agent with the highest lag: name, and 99th percentile in microseconds.
    max_lag: Option<(String, u64)>,
}

impl Agents {
    /// `None` for a run on one machine.
    pub(crate) fn of(agents: &[AgentShare], tick: &Tick) -> Option<Agents> {
        if agents.is_empty() {
            return None;
        }
        let none = AgentTicks::default();
        let columns = tick.agents.as_deref().unwrap_or(&none);
        let of = |column: &[u64], place: usize| AgentTicks::value(column, place);
        let seconds = tick.until.since(tick.from).secs_f64();
        let mut seen = Agents { all: agents.len(), ..Agents::default() };
        for (place, AgentShare { id, cores: available, .. }) in agents.iter().enumerate() {
            let reports = of(&columns.reports, place);
            if of(&columns.lost.0, place) > 0 {
                seen.lost += 1;
            } else if reports > 0 {
                seen.up += 1;
            }
            // A late report includes the usage of the seconds before.
            let used = of(&columns.cpu_ms, place) as f64 / 1e3 / seconds.max(reports as f64);
            let share = used / f64::from(*available);
            let is_most = seen.max_cpu.as_ref().is_none_or(|(_, max, _)| share > *max);
            if reports > 0 && *available > 0 && is_most {
                seen.max_cpu = Some((id.clone(), share, used));
            }
            let lag = of(&columns.lag_p99_us.0, place);
            if lag > 0 && seen.max_lag.as_ref().is_none_or(|(_, max)| lag > *max) {
                seen.max_lag = Some((id.clone(), lag));
            }
        }
        Some(seen)
    }

    /// The line `agents 2 of 3 up, 1 lost  max cpu load-2 1.86 cores, lag load-1 1.2 ms`. Long names are shortened to their ends, in
    /// which the names of a fleet differ.
    pub(crate) fn line(&self, width: usize) -> String {
        let lost = if self.lost > 0 { format!(", {} lost", Count(self.lost as u64)) } else { String::new() };
        let counts = format!("agents {} of {} up{lost}", Count(self.up as u64), Count(self.all as u64));
        let cpu = self.max_cpu.as_ref().map(|(name, _, used)| ("cpu ", name, format!(" {}", cores(*used))));
        let lag =
            self.max_lag.as_ref().map(|(name, us)| ("lag ", name, format!(" {}", time(*us as f64, false))));
        let figures: Vec<_> = [cpu, lag].into_iter().flatten().collect();
        if figures.is_empty() {
            return counts;
        }
        let fixed: usize = figures.iter().map(|(what, _, figure)| columns(what) + columns(figure)).sum();
        let fixed = columns(&counts) + "  max ".len() + fixed + ", ".len() * (figures.len() - 1);
        let mut room = width.saturating_sub(fixed);
        let mut texts = Vec::new();
        for (place, (what, name, figure)) in figures.iter().enumerate() {
            // Room that a short name does not use is available to the next one.
            let name = end(name, (room / (figures.len() - place)).max(MIN_NAME));
            room = room.saturating_sub(columns(&name));
            texts.push(format!("{what}{name}{figure}"));
        }
        format!("{counts}  max {}", texts.join(", "))
    }
}

fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// The end of a name, in at most this many columns.
fn end(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    let mut rest = name;
    while columns(rest) >= width {
        let mut chars = rest.chars();
        if chars.next().is_none() {
            break;
        }
        rest = chars.as_str();
    }
    format!("…{rest}")
}

#[cfg(test)]
mod tests;
