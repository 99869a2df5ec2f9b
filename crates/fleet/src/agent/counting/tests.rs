//! The workers' ticks contain all counts of their shards, and show the same full load as if each shard were a worker, as in a single
//! process.

use std::collections::VecDeque;

use engine::Control;
use plan::{Environment, Flags, Part, Plan, Role, flag};
use run::{Conductor, Order, Update, Workers};
use samples::Summary;

use super::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// Time step; each connection has a response in each.
const STEP: Nanos = Nanos::from_millis(10);
/// Length of a thread's ticks.
const PERIOD: Nanos = Nanos::from_millis(200);
const THREADS: u32 = 6;

/// A tick of a shard, in milliseconds, with this many responses.
fn tick(from: u64, until: u64, phase: Phase, answered: u64) -> Tick {
    let mut tick = Tick { from: MS(from), until: MS(until), phase, open: 5, ..Tick::default() };
    (tick.counts.sent, tick.counts.answered) = (answered, answered);
    tick
}

/// The begin, end, phase and responses of workers' ticks.
fn seen(ticks: &[Tick]) -> Vec<(Nanos, Nanos, Phase, u64)> {
    ticks.iter().map(|tick| (tick.from, tick.until, tick.phase, tick.counts.answered)).collect()
}

#[test]
fn a_tick_of_a_worker_ends_where_its_load_does() {
    use Phase::{Drain, Hold};
    let mut counting = Counting::new(2, &[0, 0, 1]);
    for shard in 0..3 {
        counting.take(shard, &tick(0, 1_000, Hold, 1));
    }
    let second = counting.poll(false).expect("all have counted a second");
    assert_eq!(seen(&second), [(MS(0), MS(1_000), Hold, 2), (MS(0), MS(1_000), Hold, 1)]);
    // The load of the first worker ends at 1,470, in its first shard at 1,450.
    counting.take(0, &tick(1_000, 1_450, Drain, 10));
    counting.take(0, &tick(1_450, 1_600, Drain, 20));
    counting.take(2, &tick(1_000, 1_600, Hold, 40));
    assert_eq!(counting.poll(false), None);
    counting.take(1, &tick(1_000, 1_470, Drain, 80));
    counting.take(1, &tick(1_470, 1_600, Drain, 160));
    let end = counting.poll(false).expect("the load of a worker has ended");
    assert_eq!(seen(&end), [(MS(1_000), MS(1_470), Drain, 90), (MS(1_000), MS(1_000), Hold, 0)]);
    assert_eq!(end.iter().map(|tick| tick.open).collect::<Vec<_>>(), [10, 5]);
    assert_eq!(counting.poll(false), None, "once");
    for (shard, phase) in [(0, Drain), (1, Drain), (2, Hold)] {
        counting.take(shard, &tick(1_600, 2_000, phase, 1_000));
    }
    let rest = counting.poll(false).expect("all have counted a second");
    assert_eq!(seen(&rest), [(MS(1_450), MS(2_000), Drain, 2_180), (MS(1_000), MS(2_000), Hold, 1_040)]);
    // The reports equal the counts.
    let mut sums = vec![Sums::default(); 2];
    for ticks in [&second, &end, &rest] {
        sums.iter_mut().zip(ticks).for_each(|(sums, tick)| sums.add(tick));
    }
    assert_eq!((sums, counting.poll(true)), (counting.take_sums(), None));
}

/// One of its shards finishes long before the other, and an agent that was suspended counts many seconds at once.
#[test]
fn the_load_of_a_worker_ends_with_that_of_its_last_shard() {
    use Phase::{Drain, Hold};
    let mut counting = Counting::new(1, &[0, 0]);
    counting.take(0, &tick(0, 300, Drain, 1));
    counting.take(0, &tick(300, 1_100, Drain, 2));
    counting.take(1, &tick(0, 1_000, Hold, 4));
    let first = counting.poll(false).expect("both have counted a second");
    assert_eq!(seen(&first), [(MS(0), MS(1_100), Hold, 7)]);
    counting.take(0, &tick(1_100, 9_000, Drain, 8));
    counting.take(1, &tick(1_000, 7_030, Drain, 16));
    counting.take(1, &tick(7_030, 9_000, Drain, 32));
    let end = counting.poll(false).expect("its load has ended");
    assert_eq!(seen(&end), [(MS(1_000), MS(7_030), Drain, 16)]);
    let rest = counting.poll(false).expect("both have counted the seconds");
    assert_eq!(seen(&rest), [(MS(1_100), MS(9_000), Drain, 40)]);
    assert_eq!(counting.poll(true), None);
    // An additional worker has not reported yet, and has not reached its load.
    counting.add(1, &[0]);
    counting.take(0, &tick(9_000, 10_000, Drain, 0));
    counting.take(1, &tick(9_000, 10_000, Drain, 0));
    assert_eq!(counting.poll(false), None);
    let last = counting.poll(true).expect("there is something");
    assert_eq!((last.len(), last[1].ramped_at, last[1].phase), (2, Nanos::NEVER, Phase::Ramp));
}

/// Its threads were suspended from 1,300 on.
#[test]
fn what_an_agent_counted_before_it_stood_still_is_a_tick_of_its_own() {
    use Phase::Hold;
    let mut counting = Counting::new(1, &[0, 0]);
    (0..2).for_each(|shard| counting.take(shard, &tick(0, 1_000, Hold, 1)));
    assert!(counting.poll(false).is_some());
    (0..2).for_each(|shard| counting.take(shard, &tick(1_000, 1_200, Hold, 2)));
    counting.take(0, &tick(1_200, 1_300, Hold, 4));
    assert_eq!(counting.poll(false), None);
    (0..2).for_each(|shard| counting.take(shard, &tick(1_300, 8_700, Hold, 8)));
    let before = counting.poll(false).expect("they stood still");
    assert_eq!(seen(&before), [(MS(1_000), MS(1_300), Hold, 8)]);
    let after = counting.poll(false).expect("both have counted that second");
    assert_eq!(seen(&after), [(MS(1_300), MS(8_700), Hold, 16)]);
    assert_eq!((counting.poll(false), run::second_of(&after[0])), (None, 9));
    (0..2).for_each(|shard| counting.take(shard, &tick(8_700, 9_000, Hold, 1)));
    assert!(counting.poll(false).is_some());
}

/// Also of connections that were open within a thread's period, but not at its end.
#[test]
fn the_most_connections_at_once_are_those_of_any_period() {
    let mut counting = Counting::new(1, &[0, 0]);
    let mut take = |shard, from: u64, open, most_open| {
        let tick = Tick { open, most_open, ..tick(from, from + 500, Phase::Hold, 0) };
        counting.take(shard, &tick);
    };
    take(0, 0, 0, 3);
    take(1, 0, 2, 2);
    take(0, 500, 0, 4);
    take(1, 500, 0, 2);
    let second = counting.poll(false).expect("both have counted a second");
    assert_eq!((second[0].open, second[0].most_open), (0, 6));
    (0..2).for_each(|shard| counting.take(shard, &tick(1_000, 2_000, Phase::Hold, 0)));
    assert_eq!(counting.poll(false).map(|second| second[0].most_open), Some(10), "of the next second alone");
}

/// Threads that apply their orders at once, each as a worker; or threads of agents, all of one agent as a worker.
struct Load {
    now: Nanos,
    threads: Vec<Thread>,
    /// `None` in a single process.
    agents: Vec<Counting>,
    came: VecDeque<(u32, Tick)>,
    read: Tick,
    is_stopped: bool,
}

struct Thread {
    part: Part,
    /// How much later its load ends than that of the first one.
    lag: Nanos,
    tick: Tick,
    open: u64,
    wanted: u64,
    there_at: Nanos,
    ramped_at: Nanos,
    hold_from: Nanos,
    until: Nanos,
    is_draining: bool,
}

impl Thread {
    fn turn(&mut self, now: Nanos) -> Option<Tick> {
        let mut has_news = now.0.is_multiple_of(PERIOD.0);
        if !self.is_draining {
            let at_load = (self.hold_from..self.until).contains(&now);
            let counts = &mut self.tick.counts;
            counts.sent += self.open;
            counts.answered += self.open;
            counts.answered_at_load += if at_load { self.open } else { 0 };
            (0..self.open).filter(|_| at_load).for_each(|_| self.tick.latency.record(STEP));
            if now >= self.until {
                (self.is_draining, has_news) = (true, true);
            }
        }
        if now >= self.there_at {
            self.tick.counts.opened += self.wanted - self.open;
            (self.open, self.there_at, self.ramped_at, has_news) = (self.wanted, Nanos::NEVER, now, true);
        }
        has_news.then(|| self.flush(now))
    }

    fn flush(&mut self, now: Nanos) -> Tick {
        let mut tick = std::mem::replace(&mut self.tick, Tick::starting(now));
        (tick.until, tick.open, tick.ramped_at) = (now, self.open, self.ramped_at);
        tick.waiting = if self.is_draining { 0 } else { self.open };
        tick.phase = match (self.is_draining, now >= self.hold_from) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        tick
    }
}

impl Load {
    /// `lag`: how much later the load of each thread ends than that of the previous one.
    fn new(plan: &Plan, agents: u32, lag: Nanos) -> Load {
        let thread = |(nth, part): (u64, Part)| Thread {
            part,
            lag: Nanos(nth * lag.0),
            tick: Tick::default(),
            open: 0,
            wanted: 0,
            there_at: Nanos::NEVER,
            ramped_at: Nanos::NEVER,
            hold_from: Nanos::NEVER,
            until: Nanos::NEVER,
            is_draining: false,
        };
        let of_agent = |agent| vec![0_u32; (agent..THREADS).step_by(agents.max(1) as usize).count()];
        Load {
            now: Nanos::ZERO,
            threads: (0..).zip(plan.parts(|_| THREADS)).map(thread).collect(),
            agents: (0..agents).map(|agent| Counting::new(1, &of_agent(agent))).collect(),
            came: VecDeque::new(),
            read: Tick::default(),
            is_stopped: false,
        }
    }

    fn hand_over(&mut self, nth: usize, tick: Tick) {
        match self.agents.len() {
            0 => self.came.push_back((nth as u32, tick)),
            agents => self.agents[nth % agents].take((nth / agents) as u32, &tick),
        }
    }

    fn count(&mut self) {
        for (agent, counting) in (0..).zip(&mut self.agents) {
            while let Some(ticks) = counting.poll(self.is_stopped) {
                self.came.extend(ticks.into_iter().map(|tick| (agent, tick)));
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now + STEP;
        for nth in 0..self.threads.len() {
            if let Some(tick) = self.threads[nth].turn(self.now) {
                self.hand_over(nth, tick);
            }
        }
        self.count();
    }
}

impl Workers for Load {
    fn role(&self) -> Vec<Role> {
        let workers = if self.agents.is_empty() { self.threads.len() } else { self.agents.len() };
        vec![Role::Population(0); workers]
    }

    fn notice(&self) -> Nanos {
        MS(450)
    }

    fn period(&self) -> Nanos {
        if self.agents.is_empty() { PERIOD } else { EVERY }
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn order(&mut self, order: Order) {
        for nth in 0..self.threads.len() {
            let thread = &mut self.threads[nth];
            match order.to(&thread.part) {
                Some(Control::Load { connections, from, .. }) => {
                    (thread.wanted, thread.there_at) = (connections.into(), from + MS(30));
                }
                Some(Control::Hold(from)) => thread.hold_from = from,
                Some(Control::Until(at)) => thread.until = at + thread.lag,
                Some(Control::Stop) if !self.is_stopped => {
                    thread.is_draining = true;
                    let tick = thread.flush(self.now);
                    self.hand_over(nth, tick);
                }
                // They end their load on their own.
                _ => {}
            }
        }
        self.is_stopped |= order == Order::STOP;
        self.count();
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        loop {
            if let Some((worker, tick)) = self.came.pop_front() {
                self.read = tick;
                return Update::Tick(worker, &self.read);
            }
            if self.is_stopped {
                return Update::Ended;
            }
            if self.now >= until {
                return Update::Nothing;
            }
            self.step();
        }
    }
}

fn play(plan: &Plan, mut load: Load) -> Summary {
    let mut conductor = Conductor::new(plan, &load, Nanos::ZERO, load.notice());
    conductor.give_orders(&mut load);
    loop {
        assert!(conductor.gather(&mut load).is_some(), "no thread ends without its order");
        conductor.poll_line(load.now());
        let step = conductor.step(load.now());
        conductor.give_orders(&mut load);
        if step.is_over {
            run::stop(&mut load, |update| conductor.handle(update));
            return run::judge(plan, &conductor.finish().1);
        }
    }
}

#[test]
fn responses_are_awaited_until_each_shard_has_reported_that_none_is_outstanding() {
    let mut counting = Counting::new(1, &[0, 0]);
    let mut awaits = |shard, until, phase, waiting| {
        counting.take(shard, &Tick { waiting, ..tick(until - 200, until, phase, 1) });
        counting.awaits()
    };
    assert!(awaits(0, 200, Phase::Drain, 0), "the other has not ended its load");
    assert!(awaits(1, 200, Phase::Hold, 0));
    assert!(awaits(1, 400, Phase::Drain, 2));
    assert!(!awaits(1, 600, Phase::Drain, 0));
}

#[test]
fn a_request_that_a_part_leaves_behind_is_no_failure_of_the_target() {
    let mut left = tick(0, 200, Phase::Drain, 7);
    (left.counts.sent, left.counts.unanswered, left.counts.withdrawn) = (10, 2, 1);
    let counts = cut_short(&left).counts;
    assert_eq!((counts.sent, counts.answered, counts.unanswered), (10, 7, 0));
    assert_eq!((counts.withdrawn, counts.revoked), (1, 2));
}

/// Wherever in a second of the agents the load begins and ends.
#[test]
fn full_load_on_agents_is_as_long_as_in_one_process() {
    const CONNECTIONS: u64 = 20;
    for (duration, lag) in [(700, 0), (1_000, 0), (1_000, 30), (2_560, 0), (4_000, 0), (4_000, 110)] {
        let flags = Flags::new("http://127.0.0.1:80/").with(&flag::CONNECTIONS, CONNECTIONS);
        let flags = flags.with(&flag::DURATION, format!("{duration}ms"));
        let resolve = |_: &str| Err("no name service".to_owned());
        let plan = plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let figures = |agents: u32| {
            let s = play(&plan, Load::new(&plan, agents, MS(lag)));
            // Threads that end at different times are averaged in one figure only.
            let disagree = s.reasons.iter().any(|reason| reason.contains("disagree"));
            assert!(lag > 0 || !disagree, "{agents} agents, {duration}: {:?}", s.reasons);
            (s.duration_s, s.requests.per_s, s.latency_us.count, s.connections.held)
        };
        let alone = figures(0);
        let longest = MS(duration + u64::from(THREADS - 1) * lag);
        assert_eq!((alone.0, alone.3), (longest.secs_f64(), CONNECTIONS), "{duration} {lag}");
        if lag == 0 {
            // A response every 10 ms.
            assert!((alone.1 - 100.0 * CONNECTIONS as f64).abs() < 1e-6, "{duration}: {}", alone.1);
        }
        for agents in 1..=3 {
            assert_eq!(figures(agents), alone, "{agents} agents, {duration} {lag}");
        }
    }
}
