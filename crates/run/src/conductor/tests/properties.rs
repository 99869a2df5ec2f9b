//! Properties that hold for any plan, any workers and any commands.

use proptest::{collection::vec, prelude::*};

use super::*;

/// Stages: each with a share in percent, and milliseconds of ramp and hold.
fn stages() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    let stages = vec((0..=100_u32, 0..3_000_u64, 0..4_000_u64), 1..5);
    stages.prop_filter("no stage starts a population", |stages| stages.iter().any(|(to, ..)| *to > 0))
}

/// A population for each load model, in these stages; a stage without a change has no ramp.
fn plan_of(stages: &[(u32, u64, u64)]) -> Plan {
    let mut text = "timeout = \"2s\"\n".to_owned();
    for (name, load) in [
        ("idle", "connections = 40"),
        ("paced", "connections = 10\nrate = \"50/s\""),
        ("visits", "arrive = \"20/s\"\ntotal = 30\ncalls = 1"),
    ] {
        text += &format!("[[population]]\nname = \"{name}\"\n{load}\n");
    }
    let mut before = 0;
    for (to, ramp_ms, hold_ms) in stages {
        let ramp = if *to == before { String::new() } else { format!("ramp = \"{ramp_ms}ms\"\n") };
        text += &format!("[[stage]]\nto = \"{to}%\"\n{ramp}for = \"{hold_ms}ms\"\n");
        before = *to;
    }
    scenario(&text)
}

/// The recipients, effect and time of an order; `None` for orders without a time.
fn effect(order: &Order) -> Option<((u16, &'static str), Nanos)> {
    let (role, control) = match *order {
        Order::Load(nth, _, _, from) => return Some(((nth, "load"), from)),
        Order::Population(nth, control) => (nth, control),
        Order::All(control) => (u16::MAX, control),
        Order::Probe(control) => (u16::MAX - 1, control),
    };
    let (what, at) = match control {
        Control::RateProfile(_, from) => ("tempo", from),
        Control::Hold(from) => ("hold", from),
        Control::Until(at) | Control::HoldUntil(at) => ("until", at),
        _ => return None,
    };
    (at < Nanos::NEVER).then_some(((role, what), at))
}

/// The ticks of one second: for each worker the ends of its ticks, in milliseconds, and their counts.
fn second() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    vec(vec((1..1_000_u64, 0..100_u64), 0..6), 3)
}

/// Ticks of workers that all report the end of each second.
fn ticks(seconds: &[Vec<Vec<(u64, u64)>>]) -> Vec<Vec<Vec<Tick>>> {
    let mut ends = [Nanos::ZERO; 3];
    let of_worker = |end: &mut Nanos, second: u64, own: &Vec<(u64, u64)>| {
        let mut cuts = own.clone();
        cuts.sort_unstable();
        cuts.dedup_by_key(|(ms, _)| *ms);
        cuts.push((1_000, 7));
        let tick = |(ms, n): (u64, u64)| {
            let until = S(second) + MS(ms);
            let mut tick = Tick { from: std::mem::replace(end, until), until, open: n, ..Tick::default() };
            (tick.counts.opened, tick.counts.answered, tick.waiting) = (n, n / 2, n / 3);
            tick.phase = if n % 2 == 0 { Phase::Hold } else { Phase::Ramp };
            tick
        };
        cuts.into_iter().map(tick).collect()
    };
    let of_second = |(second, workers): (u64, &Vec<Vec<(u64, u64)>>)| {
        workers.iter().zip(&mut ends).map(|(own, end)| of_worker(end, second, own)).collect()
    };
    (0..).zip(seconds).map(of_second).collect()
}

proptest! {
    // Each case is a whole run.
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever the stages, the delay to the workers and the length of their ticks: each stage ends in time, orders for a population are
    /// sorted by their times, and none follows the end.
    #[test]
    fn stages_end_and_orders_are_monotone(
        stages in stages(),
        (workers, notice, period, takes) in (1..4_u32, 1..1_500_u64, 100..2_000_u64, 0..1_000_u64),
    ) {
        let plan = plan_of(&stages);
        let model = Model::new(&plan, workers, MS(notice), MS(period))
            .facing(Target { takes: MS(takes), ..Target::GOOD });
        let ran = play(&plan, model, &[]);
        let planned: u64 = stages.iter().map(|(_, ramp_ms, hold_ms)| ramp_ms + hold_ms).sum();
        // A stage is pending until its last order has been applied and reported; then it begins for all populations at once.
        let more = (2 * notice + takes + period + 100) * stages.len() as u64 + 2 * notice;
        let held: u64 = stages.iter().map(|(_, _, hold_ms)| hold_ms).sum();
        prop_assert!(ran.record.ended >= MS(held), "{} of {held}", ran.record.ended);
        prop_assert!(ran.record.ended <= MS(planned + more), "{} of {planned} and {more}", ran.record.ended);
        prop_assert!(ran.over >= ran.record.ended && ran.over <= ran.record.ended + MS(period + 200));
        let mut last = std::collections::HashMap::new();
        for (given, order) in &ran.model.orders {
            let Some((what, at)) = effect(order) else { continue };
            // A stage may begin slightly before its order is given, but not before the conductor was due to act.
            prop_assert!(at + ACTS_EVERY_AT_LOAD + MS(period) >= *given, "{given}: {order:?}");
            let before = last.insert(what, at).unwrap_or_default();
            prop_assert!(before <= at, "{given}: {order:?} after one for {before}");
        }
        prop_assert_eq!(&ran.model.of_all()[ran.model.of_all().len() - 2..], ["Drain", "Stop"]);
        prop_assert_eq!(ran.model.orders.last().map(|(_, order)| *order), Some(Order::All(Control::Stop)));
        let drained = ran.model.orders.iter().position(|(_, order)| *order == Order::All(Control::Drain));
        prop_assert_eq!(drained, Some(ran.model.orders.len() - 2));
        let phases = ran.lines.iter().map(|line| line.phase == Phase::Drain);
        prop_assert!(phases.is_sorted(), "the drain is the end");
    }

    /// If a worker is lost at any time, the run ends in time, with the reports of the others.
    #[test]
    fn a_lost_worker_ends_the_run(
        stages in stages(),
        (workers, notice, period, takes) in (2..4_u32, 1..1_500_u64, 100..2_000_u64, 0..1_000_u64),
        (worker, lost_at) in (any::<u32>(), 0..20_000_u64),
    ) {
        let plan = plan_of(&stages);
        let target = Target { takes: MS(takes), ..Target::GOOD };
        let model = Model::new(&plan, workers, MS(notice), MS(period)).facing(target);
        let ran = play(&plan, model.losing(worker, MS(lost_at)), &[]);
        let is_cut = ran.record.interrupted.is_some();
        prop_assert_eq!(ran.record.interrupted.as_deref(), is_cut.then_some("a lost worker"));
        prop_assert!(is_cut || ran.drained <= MS(lost_at) + MS(period), "{}", ran.drained);
        if is_cut {
            let drained = MS(lost_at)..=MS(lost_at) + ACTS_EVERY_AT_LOAD;
            prop_assert!(drained.contains(&ran.drained), "{} of {lost_at}", ran.drained);
        }
        prop_assert!(ran.over <= ran.drained + MS(2_000 + 3 * notice.max(period) + 100), "{}", ran.over);
        prop_assert!(ran.record.ended <= ran.over);
        let ends = ran.model.of_all();
        prop_assert_eq!(&ends[ends.len() - 2..], ["Drain", "Stop"]);
        let opened: u64 = ran.record.totals.counts.opened;
        prop_assert_eq!(ran.lines.iter().map(|line| line.counts.opened).sum::<u64>(), opened);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The order in which ticks of several workers arrive does not matter.
    #[test]
    fn any_interleaving_makes_the_same_lines(seconds in vec(second(), 1..4), seed in any::<u64>()) {
        let plan = scenario("connections = 100\nduration = \"1h\"");
        let lines = |next: &mut dyn FnMut() -> usize| {
            let model = Model::new(&plan, 3, MS(120), MS(200));
            let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
            let mut lines = Vec::new();
            for (second, workers) in (1..).zip(ticks(&seconds)) {
                let mut left: Vec<_> = workers.into_iter().map(std::collections::VecDeque::from).collect();
                loop {
                    let open: Vec<usize> = (0..left.len()).filter(|nth| !left[*nth].is_empty()).collect();
                    if open.is_empty() {
                        break;
                    }
                    let nth = open[next() % open.len()];
                    let tick = left[nth].pop_front().expect("it is not empty");
                    conductor.handle_tick(nth as u32, &tick);
                }
                lines.extend(conductor.poll_line(S(second)));
            }
            let (last, record) = conductor.finish();
            lines.push(last);
            (lines, record.totals, record.populations.into_iter().map(|measured| measured.totals).collect::<Vec<_>>())
        };
        let one_by_one = lines(&mut || 0);
        let mut random = units::Random::new(seed);
        prop_assert_eq!(&one_by_one, &lines(&mut || random.bits() as usize));
        prop_assert_eq!(one_by_one.0.len(), seconds.len() + 1);
    }
}
