//! What goes wrong, drawn from a seed.

use units::{Nanos, Random};

use crate::coordinator::OnLost;

/// What goes wrong in a run.
#[derive(Clone, Debug)]
pub(super) struct Chaos {
    /// Of a thousand messages as many are lost, and as many arrive twice.
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// A message arrives within this time, in any order.
    pub(super) delay: Nanos,
    /// Of a thousand entries, how many are not stored, and how many acknowledgements are lost.
    pub(super) unstored: u64,
    pub(super) unheard: u64,
    pub(super) on_lost: OnLost,
    /// What happens, each from its time on.
    pub(super) events: Vec<(Nanos, Event)>,
}

/// Something that happens to a process or a link, for a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// An agent neither sends nor receives.
    Cut(usize, Nanos),
    /// An agent's process stops, and continues.
    Freeze(usize, Nanos),
    /// An agent's process dies; another begins.
    Kill(usize, Nanos),
    /// An agent's user stops it.
    Stop(usize),
    /// An agent's machine has no room for more than it has.
    Full(usize),
    /// The target resets all connections, and those that are opened later.
    Reset,
    /// The carrier is away; it keeps what it has stored.
    Outage(Nanos),
    /// The carrier's wall clock is set: this is what it shows more than the world's.
    Set(Nanos),
    /// The coordinator's process stops, and continues.
    Pause(Nanos),
    /// The coordinator's process dies; another begins.
    Restart(Nanos),
}

impl Chaos {
    pub(super) fn none() -> Chaos {
        Chaos {
            lost: 0,
            doubled: 0,
            delay: Nanos::from_millis(2),
            unstored: 0,
            unheard: 0,
            on_lost: OnLost::Continue,
            events: Vec::new(),
        }
    }

    /// A carrier that loses a little, repeats and reorders.
    pub(super) fn carrier_only() -> Chaos {
        let delay = Nanos::from_millis(20);
        Chaos { lost: 20, doubled: 50, delay, unstored: 20, unheard: 50, ..Chaos::none() }
    }

    pub(super) fn drawn(seed: u64) -> Chaos {
        let mut random = Random::new(seed ^ 0x0063_6861_6f73);
        let mut of = |values: &[u64]| values[random.below(values.len() as u64) as usize];
        let (lost, doubled) = (of(&[0, 20, 200]), of(&[0, 50, 300]));
        let delay = Nanos::from_millis(of(&[2, 20, 300]));
        let (unstored, unheard) = (of(&[0, 100]), of(&[0, 100, 300]));
        let events = (0..of(&[0, 1, 1, 2, 3])).map(|_| {
            let at = Nanos::from_millis(1_500 + random.below(9_000));
            let agent = random.below(5) as usize;
            let longest = [2_000, 6_000, 14_000][random.below(3) as usize];
            let span = Nanos::from_millis(200 + random.below(longest));
            let event = match random.below(6) {
                0 => Event::Cut(agent, span),
                1 => Event::Freeze(agent, span),
                2 => Event::Kill(agent, span),
                3 => Event::Outage(Nanos(span.0 / 2)),
                4 => Event::Pause(span),
                _ => Event::Restart(span),
            };
            (at, event)
        });
        let events = events.collect();
        let on_lost = [OnLost::Continue, OnLost::Reassign][seed as usize / 5 % 2];
        Chaos { lost, doubled, delay, unstored, unheard, on_lost, events }
    }

    /// One in fifty agents is cut off, stands still or dies, each at a time of its own; and the broker is away, or the coordinator dies.
    pub(super) fn of_many(seed: u64, agents: u32) -> Chaos {
        let mut random = Random::new(seed ^ 0x6d61_6e79);
        let mut time = |from: u64, until: u64| Nanos::from_millis(from + random.below(until - from));
        let (at, span) = (time(8_000, 34_000), time(500, 6_000));
        let middle = [Event::Restart(span), Event::Outage(span)][seed as usize / 2 % 2];
        let mut events = vec![(at, middle)];
        for nth in 0..agents / 50 {
            let (at, span) = (time(8_000, 26_000), time(500, 14_000));
            // No two are the same.
            let agent = (nth * 50) as usize + seed as usize % 50;
            let event = match nth % 3 {
                0 => Event::Cut(agent, span),
                1 => Event::Freeze(agent, span),
                _ => Event::Kill(agent, span),
            };
            events.push((at, event));
        }
        let on_lost = [OnLost::Continue, OnLost::Reassign][seed as usize % 2];
        Chaos { on_lost, events, ..Chaos::carrier_only() }
    }

    /// Whether a coordinator notices that an agent is away, and sees it back.
    pub(super) fn has_absence(&self) -> bool {
        self.events.iter().any(|(_, event)| match event {
            Event::Cut(_, span) | Event::Freeze(_, span) => *span >= Nanos::from_secs(5),
            _ => false,
        })
    }

    pub(super) fn has_restart(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Restart(_)))
    }
}
