//! The orders of a conductor, and its handling of ticks, in virtual time: with modelled workers that apply orders, and with generated
//! ticks.

mod early;
mod handover;
mod late;
mod model;
mod properties;
mod ramp;
mod unaccepted;
mod void;

use proptest::{collection::vec, prelude::*};
use samples::{Command, Latency};

use super::*;
use model::{Model, Target};
use record::fixture::scenario;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const S: fn(u64) -> Nanos = Nanos::from_secs;

/// The course of a run.
struct Ran {
    record: Record,
    lines: Vec<Tick>,
    model: Model,
    /// When the end of the load was ordered, and when the run was over.
    drained: Nanos,
    over: Nanos,
    /// When it was first known that the end takes long, and what was waited for.
    waits: Option<(Nanos, (Awaited, Nanos))>,
}

/// Runs a plan to its end; commands are given at their times.
fn play(plan: &Plan, mut model: Model, mut commands: &[(Nanos, Command)]) -> Ran {
    let mut conductor = Conductor::new(plan, &model, Nanos::ZERO, model.notice());
    let (mut lines, mut drained, mut waits) = (Vec::new(), Nanos::NEVER, None);
    conductor.give_orders(&mut model);
    loop {
        assert!(conductor.gather(&mut model).is_some(), "no worker ends without its order");
        let now = model.now();
        while let Some((&(_, command), later)) = commands.split_first().filter(|((at, _), _)| now >= *at) {
            conductor.handle_command(command, now);
            commands = later;
        }
        lines.extend(conductor.poll_line(now));
        let step = conductor.step(now);
        conductor.give_orders(&mut model);
        drained = if step.drains { now } else { drained };
        waits = waits.or_else(|| Some((now, conductor.waiting_for(now)?)));
        if step.is_over {
            crate::stop(&mut model, |update| conductor.handle(update));
            let (last, record) = conductor.finish();
            lines.push(last);
            return Ran { record, lines, model, drained, over: now, waits };
        }
    }
}

#[test]
fn a_run_is_the_same_with_any_number_of_workers() {
    let plan = scenario("connections = 10\nduration = \"5s\"");
    // Workers share the same load. Remote ones receive an order later, and report less often.
    for (workers, notice, period) in [(1, 120, 200), (3, 120, 200), (3, 1_500, 200), (2, 700, 500)] {
        let model = Model::new(&plan, workers, MS(notice), MS(period))
            .facing(Target { takes: MS(300), ..Target::GOOD });
        let Ran { record, model, drained, .. } = play(&plan, model, &[]);
        let measured = &record.populations[0];
        assert_eq!((measured.held, measured.peak, measured.totals.counts.opened), (10, 10, 10));
        assert_eq!((record.started, measured.began), (MS(notice), Some(MS(notice))));
        // The end of the ramp is reported at once, and full load begins when all workers have applied the order.
        let hold_from = MS(notice) + MS(300) + MS(notice);
        assert_eq!((measured.at_load, record.ended), (S(5), hold_from + S(5)), "{notice} {period}");
        assert_eq!(model.of_all(), ["Until", "Drain", "Stop"]);
        assert!(drained >= record.ended && drained.since(record.ended) <= MS(100), "{drained}");
        assert_eq!((record.interrupted.as_deref(), record.threads), (None, workers));
    }
}

#[test]
fn lines_are_seconds_and_sum_up_to_the_run() {
    let plan = scenario("connections = 10\nduration = \"5s\"");
    let ran = play(
        &plan,
        Model::new(&plan, 3, MS(120), MS(200)).facing(Target { takes: MS(300), ..Target::GOOD }),
        &[],
    );
    let ends: Vec<Nanos> = ran.lines.iter().map(|line| line.until).collect();
    assert_eq!(ends[..5], [S(1), S(2), S(3), S(4), S(5)]);
    assert_eq!(ran.lines.iter().map(|line| line.counts.opened).collect::<Vec<_>>()[..3], [10, 0, 0]);
    let first = &ran.lines[0];
    assert_eq!((first.open, first.wanted, first.phase), (10, 10, Phase::Hold));
    // They were open for 580 ms of it, and count as opened in the middle of a tick.
    let open_ms = first.open_ns / u128::from(MS(1).0);
    assert!((5_800..=6_800).contains(&open_ms), "{open_ms}");
    assert_eq!(ran.lines[2].open_ns, u128::from(10 * S(1).0));
}

#[test]
fn a_line_waits_for_all_but_not_long() {
    let plan = scenario("connections = 10\nduration = \"5s\"");
    let model = Model::new(&plan, 2, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    let tick = Tick { from: Nanos::ZERO, until: S(1), ..Tick::default() };
    conductor.handle_tick(0, &tick);
    assert!(conductor.poll_line(MS(999)).is_none(), "the second is not over");
    assert!(conductor.poll_line(MS(1_001)).is_none(), "one has not reported it");
    conductor.handle_tick(1, &tick);
    assert!(conductor.poll_line(MS(1_002)).is_some());
    assert!(conductor.poll_line(MS(1_003)).is_none(), "once");
    assert!(conductor.poll_line(MS(2_199)).is_none());
    assert!(conductor.poll_line(MS(2_200)).is_some(), "nobody has reported, and it was waited for");
}

#[test]
fn responses_are_waited_for_and_not_for_ever() {
    let plan = scenario("connections = 10\nduration = \"2s\"\ntimeout = \"3s\"");
    let played = |waiting, commands: &[(Nanos, Command)]| {
        let model = Model::new(&plan, 2, MS(120), MS(200)).facing(Target { waiting, ..Target::GOOD });
        let ran = play(&plan, model, commands);
        (ran.over.since(ran.drained), ran.record.interrupted)
    };
    assert_eq!(played(0, &[]).0, Nanos::ZERO);
    let (cut, _) = played(1, &[]);
    assert!((MS(3_600)..MS(3_625)).contains(&cut), "{cut}");
    // A stop waits for less time, and may follow a drain.
    let (short, by) = played(1, &[(S(1), Command::Stop)]);
    assert!((MS(400)..MS(425)).contains(&short) && by.as_deref() == Some("a command"), "{short} {by:?}");
    let (later, by) = played(1, &[(S(1), Command::Drain), (S(2), Command::Stop)]);
    assert!((S(1)..MS(1_025)).contains(&later) && by.as_deref() == Some("a command"), "{later} {by:?}");
    // After the load has ended on its own, a stop counts only if it cuts something short.
    let (of_whole, by) = played(1, &[(MS(3_200), Command::Stop)]);
    assert!(of_whole < MS(1_500) && by.as_deref() == Some("a command"), "{of_whole} {by:?}");
    assert_eq!(played(0, &[(MS(3_200), Command::Stop)]), (Nanos::ZERO, None));
}

#[test]
fn what_is_waited_for_is_known_where_it_takes_long() {
    let plan = scenario("connections = 10\nduration = \"2s\"\ntimeout = \"3s\"");
    let played = |waiting| {
        let model = Model::new(&plan, 2, MS(120), MS(200)).facing(Target { waiting, ..Target::GOOD });
        let ran = play(&plan, model, &[]);
        let ends: Vec<&str> = ran.model.of_all();
        let waits =
            ran.waits.map(|(at, (awaited, left))| (at.since(ran.drained), awaited, left, ran.over.since(at)));
        (waits, ends.contains(&"Release"), ends.last() == Some(&"Stop"))
    };
    assert_eq!(played(0), (None, false, true));
    // Connections with a response are closed, to make room for the others.
    let (waits, true, true) = played(3) else { panic!("connections are to be released") };
    let (after, awaited, left, lasted) = waits.expect("there are responses to wait for");
    assert!((MS(600)..MS(625)).contains(&after), "{after}");
    assert_eq!(awaited.to_string(), "outstanding responses (6)");
    // Compared with the actual time.
    assert!(
        (MS(2_975)..=S(3)).contains(&left) && left <= lasted && lasted < left + MS(25),
        "{left} {lasted}"
    );
}

#[test]
fn commands_are_kept_with_their_times() {
    let plan = scenario("connections = 10\nduration = \"8s\"");
    let commands = [
        (S(2), Command::Pause),
        (MS(2_100), Command::Pause),
        (S(3), Command::Resume),
        (S(5), Command::Down),
        (S(7), Command::Drain),
        (MS(7_010), Command::Up),
    ];
    let ran = play(&plan, Model::new(&plan, 2, MS(120), MS(200)), &commands);
    let recorded: Vec<(f64, &str)> =
        ran.record.commands.iter().map(|command| (command.at_s.round(), command.what.as_str())).collect();
    assert_eq!(recorded, [(2.0, "paused"), (3.0, "resumed"), (5.0, "load 90 %"), (7.0, "drained")]);
    assert_eq!(ran.record.interrupted.as_deref(), Some("a command"));
    // All were open when the command changed the load.
    assert_eq!((ran.record.populations[0].held, ran.record.populations[0].peak), (10, 10));
    assert!(ran.lines.iter().any(|line| line.phase == Phase::Pause));
}

#[test]
fn a_signal_ends_the_run_beside_other_commands() {
    let plan = scenario("connections = 10\nduration = \"8s\"");
    let model = Model::new(&plan, 1, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    conductor.poll_orders();
    assert!(!conductor.step(MS(500)).drains);
    assert!(conductor.handle_command(Command::Drain, MS(500)));
    conductor.handle_signal();
    assert!(conductor.step(MS(520)).drains && !conductor.step(MS(540)).drains);
    assert_eq!(conductor.poll_orders(), [Order::All(Control::Drain)]);
    assert!(!conductor.handle_command(Command::Pause, MS(560)), "it ends");
    assert_eq!(conductor.finish().1.interrupted.as_deref(), Some("a signal"));
}

#[test]
fn a_run_on_agents_goes_on_without_one_that_is_lost() {
    let plan = scenario("connections = 9\nduration = \"5s\"");
    for lost_at in [100, 1_000, 3_000, 5_200] {
        let model = Model::new(&plan, 3, MS(400), S(1)).losing(1, MS(lost_at));
        let Ran { record, lines, .. } = play(&plan, model.on_agents(), &[]);
        let measured = &record.populations[0];
        assert_eq!(
            (record.interrupted.as_deref(), measured.held, measured.at_load),
            (None, 6, S(5)),
            "{lost_at}"
        );
        let opened: u64 = lines.iter().map(|line| line.counts.opened).sum();
        assert!((6..=9).contains(&opened) && opened == measured.totals.counts.opened, "{lost_at}: {opened}");
    }
    // A worker of this machine is not an agent: the run ends without it.
    let Ran { record, .. } = play(&plan, Model::new(&plan, 3, MS(400), S(1)).losing(1, S(3)), &[]);
    assert_eq!(record.interrupted.as_deref(), Some("a lost worker"));
}

#[test]
fn a_worker_that_never_reports_its_end_is_lost() {
    let plan = scenario("connections = 9\nduration = \"5s\"\ntimeout = \"2s\"");
    let silenced = || Model::new(&plan, 3, MS(400), S(1)).silencing(1, S(3));
    let Ran { record, over, drained, .. } = play(&plan, silenced().on_agents(), &[]);
    let measured = &record.populations[0];
    assert_eq!((record.interrupted.as_deref(), measured.held, measured.at_load), (None, 6, S(5)));
    assert!(record.ended <= drained && over.since(drained) >= S(2), "{} {drained} {over}", record.ended);
    let Ran { record, .. } = play(&plan, silenced(), &[]);
    assert_eq!((record.interrupted.as_deref(), record.populations[0].held), (Some("a lost worker"), 6));
}

/// The tick of a worker for one second, with these counts.
fn counted(second: u64, open: u64, answered: u64) -> Tick {
    let mut tick =
        Tick { from: S(second - 1), until: S(second), open, phase: Phase::Hold, ..Tick::default() };
    (tick.counts.sent, tick.counts.answered) = (answered, answered);
    (0..answered).for_each(|_| tick.latency.record(MS(1)));
    tick
}

#[test]
fn what_a_lost_worker_counted_is_late_and_one_that_is_back_goes_on() {
    let plan = scenario("connections = 9\nduration = \"60s\"");
    let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    let line = |conductor: &mut Conductor, second: u64| conductor.poll_line(S(second) + S(1)).unwrap();
    for worker in 0..2 {
        conductor.handle_tick(worker, &counted(1, 4, 10));
    }
    assert_eq!((line(&mut conductor, 1).counts.answered, conductor.open()), (20, 8));
    conductor.handle_lost(1);
    conductor.handle_tick(0, &counted(3, 4, 10));
    let third = line(&mut conductor, 3);
    assert_eq!((third.counts.answered, third.open, conductor.open()), (10, 4, 4));
    // It counts in the totals, and changes neither the open connections nor the next line.
    conductor.handle_tick(1, &counted(2, 4, 7));
    conductor.handle_tick(1, &counted(3, 4, 5));
    let late = conductor.take_late();
    assert_eq!(late, [counted(2, 4, 7), counted(3, 4, 5)]);
    assert_eq!((conductor.open(), conductor.sum(|tick| tick.counts.answered)), (4, 42));
    conductor.handle_back(1);
    conductor.handle_tick(0, &counted(5, 4, 10));
    conductor.handle_tick(1, &counted(5, 3, 1));
    let fifth = line(&mut conductor, 5);
    assert_eq!((fifth.counts.answered, fifth.open, conductor.open()), (11, 7, 7));
    let (_, record) = conductor.finish();
    let counts = [&record.totals, &record.populations[0].totals].map(|totals| totals.counts.answered);
    assert_eq!((counts, record.totals.latency.count()), ([53, 53], 53));
}

#[test]
fn workers_that_are_all_lost_are_waited_for_until_none_can_come_back() {
    let plan = scenario("connections = 8\nduration = \"60s\"");
    let mut model = Model::new(&plan, 2, MS(400), S(1)).losing(0, S(3)).losing(1, S(4)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    (0..2).for_each(|worker| conductor.handle_tick(worker, &counted(2, 4, 10)));
    (0..2).for_each(|worker| conductor.handle_lost(worker));
    assert!(!conductor.step(S(7)).drains);
    conductor.handle_back(1);
    assert!(!conductor.step(S(7)).drains, "it has not ended its load");
    conductor.handle_tick(1, &counted(8, 4, 10));
    assert!(!conductor.step(S(8)).drains && conductor.open() == 4);
    conductor.handle_lost(1);
    assert!(!conductor.step(S(12)).drains);
    while conductor.gather(&mut model).is_some() {}
    let step = conductor.step(S(18));
    assert!(step.drains && step.has_ended);
    assert_eq!(conductor.finish().1.ended, S(8), "its load ended with the last report");
}

#[test]
fn workers_that_are_back_have_what_they_report_next() {
    let plan = scenario("connections = 8\nduration = \"5s\"");
    let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    for (second, phase) in [(2, Phase::Hold), (7, Phase::Drain)] {
        let tick = Tick { ramped_at: S(1), phase, ..counted(second, 4, 10) };
        (0..2).for_each(|worker| conductor.handle_tick(worker, &tick));
        assert!(phase == Phase::Drain || !conductor.step(S(second)).drains);
        (0..2).for_each(|worker| conductor.handle_lost(worker));
        (0..2).for_each(|worker| conductor.handle_back(worker));
        let step = conductor.step(S(second));
        // A load that had ended stays ended.
        assert_eq!(step.drains, phase == Phase::Drain);
    }
}

#[test]
fn full_load_without_a_lost_worker_is_noted() {
    let plan = scenario("connections = 8\nduration = \"60s\"");
    let began = |lost: bool, open: u64| {
        let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
        let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
        let ramped = Tick { ramped_at: S(1), ..counted(2, open, 10) };
        conductor.handle_tick(0, &ramped);
        match lost {
            true => conductor.handle_lost(1),
            false => conductor.handle_tick(1, &ramped),
        }
        conductor.step(S(2));
        assert!(conductor.is_holding());
        conductor.handle_back(1);
        conductor.handle_tick(1, &counted(4, 4, 10));
        conductor.step(S(4));
        conductor.finish().1.began_short
    };
    assert_eq!((began(true, 4), began(false, 4)), (Some((4, 8)), None));
    // The remaining workers do not have all connections either: the cause is that the target accepted no more.
    assert_eq!(began(false, 3), None);
}

#[test]
fn reports_that_do_not_arrive_are_waited_for_but_not_for_ever() {
    let patience = |disconnected: &[u64], stops: bool| {
        let mut patience = patience::Patience::of(S(4));
        disconnected.iter().for_each(|second| patience.handle_disconnected(S(*second)));
        assert!(!stops || patience.shorten(S(2)));
        (30..).find(|second| patience.ends(S(30), S(*second)))
    };
    assert_eq!((patience(&[], false), patience(&[12, 29], false)), (Some(34), Some(34)));
    assert_eq!(patience(&[12, 35], false), Some(39), "from when reports arrive again");
    assert_eq!(patience(&[500], false), Some(94), "a minute, and what is waited for without that");
    assert_eq!(patience(&[500], true), Some(32), "a user who stops it waits no longer");
}

#[test]
fn where_all_are_lost_for_good_nothing_is_waited_for() {
    let lost = |more: &str| {
        let plan = scenario(&format!("connections = 10\nduration = \"60s\"\n{more}"));
        let model = Model::new(&plan, 2, MS(120), MS(200)).facing(Target { loses_at: S(3), ..Target::GOOD });
        let ran = play(&plan, model, &[]);
        assert_eq!((ran.record.populations[0].held, ran.record.populations[0].peak), (0, 10), "{more}");
        assert_eq!(ran.record.losses.lost, 10);
        ran.drained
    };
    assert!((S(3)..MS(3_300)).contains(&lost("")));
    assert!(lost("reconnect = \"100ms..1s\"") >= S(60), "they may come back");
}

#[test]
fn those_held_are_counted_where_the_most_were_wanted() {
    let stages = "[[stage]]\nto = \"100%\"\nramp = \"0s\"\nfor = \"2s\"\n\
                  [[stage]]\nto = \"10%\"\nramp = \"0s\"\nfor = \"2s\"";
    let plan = scenario(&format!("connections = 100\n{stages}"));
    let ran = play(&plan, Model::new(&plan, 3, MS(120), MS(200)), &[]);
    let measured = &ran.record.populations[0];
    assert_eq!((measured.held, measured.peak, measured.wanted), (100, 100, 100));
    assert_eq!((measured.totals.counts.finished, ran.lines.last().map(|line| line.open)), (90, Some(10)));
}

#[test]
fn the_probe_is_no_part_of_the_load() {
    let plan = scenario("connections = 10\nduration = \"5s\"\nprobe = \"10/s\"");
    let model = Model::new(&plan, 2, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    // Two workers of the population, then the probe's fresh and kept connections.
    for (worker, answered) in [(0, 7), (1, 8), (2, 30), (3, 20)] {
        let mut tick = Tick { until: S(1), open: 5, resolved: 5, waiting: 1, ..Tick::default() };
        (tick.counts.opened, tick.counts.sent, tick.counts.answered) = (5, answered + 1, answered);
        tick.counts.due = tick.counts.sent;
        (0..answered).for_each(|_| tick.latency.record(MS(answered)));
        conductor.handle_tick(worker, &tick);
    }
    assert_eq!((conductor.open(), conductor.resolved(), conductor.waiting()), (10, 10, (4, 2)));
    assert_eq!(conductor.awaited(), 4, "its requests are waited for as well");
    let (line, record) = conductor.finish();
    let counts = &record.populations[0].totals.counts;
    assert_eq!((counts.opened, counts.answered, record.peak), (10, 15, 10));
    for tick in [&line, &record.totals] {
        let c = &tick.counts;
        assert_eq!((c.opened, c.sent, c.answered, tick.latency.count()), (10, 17, 15, 15));
        assert_eq!((tick.open, tick.waiting), (10, 2));
        let probe = tick.probe.as_ref().expect("there is one");
        assert_eq!((probe.sent, probe.answered), (52, 50));
        let times = [&probe.fresh, &probe.kept, &probe.held].map(Latency::count);
        assert_eq!(times, [30, 20, 50]);
    }
}

#[test]
fn a_step_of_a_search_leaves_its_load() {
    let plan = scenario("connections = 40\nduration = \"2s\"");
    let mut model = Model::new(&plan, 2, MS(120), MS(200));
    for (held, opened) in [(0, 40), (40, 0)] {
        let mut conductor = Conductor::going_on(&plan, &model, &[held]);
        let began = model.now();
        conductor.give_orders(&mut model);
        let over = loop {
            assert!(conductor.gather(&mut model).is_some());
            let step = conductor.step(model.now());
            conductor.give_orders(&mut model);
            if step.is_over {
                break model.now();
            }
        };
        let (last, record) = conductor.finish();
        assert_eq!((last.open, record.populations[0].held, record.totals.counts.opened), (40, 40, opened));
        assert_eq!((record.started, record.populations[0].at_load), (began, S(2)));
        assert!(over.since(began) < S(3), "{over}");
    }
    assert!(!model.of_all().contains(&"Drain"));
}

/// A generated tick: worker, counts, state and end.
fn made_up() -> impl Strategy<Value = (u32, u64, u64, u64, u64)> {
    (0..3_u32, 1..400_u64, 0..50_u64, 0..50_u64, 0..9_u64)
}

proptest! {
    // Each case is a whole run.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever arrives, and whenever a line is requested, nothing is lost or counted twice.
    #[test]
    fn lines_hold_all_that_came(ticks in vec((made_up(), any::<bool>()), 0..60)) {
        let plan = scenario("connections = 100\nduration = \"1h\"");
        let model = Model::new(&plan, 3, MS(120), MS(200));
        let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
        let (mut ends, mut states, mut lines) = ([Nanos::ZERO; 3], [0; 3], Vec::new());
        let (mut opened, mut answered, mut peak) = (0, 0, 0);
        for ((worker, ms, open, more, faults), commands) in ticks {
            let at = worker as usize;
            let mut tick = Tick { from: ends[at], until: ends[at] + MS(ms), open, ..Tick::default() };
            (tick.counts.opened, tick.counts.answered, tick.counts.dropped) = (more, faults, faults / 2);
            (ends[at], states[at]) = (tick.until, open);
            (opened, answered) = (opened + more, answered + faults);
            conductor.handle_tick(worker, &tick);
            peak = peak.max(states.iter().sum());
            prop_assert_eq!(conductor.open(), states.iter().sum::<u64>());
            prop_assert_eq!(conductor.sum(|tick| tick.counts.opened), opened);
            if commands {
                lines.extend(conductor.poll_line(ends.iter().copied().max().unwrap_or_default()));
            }
        }
        let (last, record) = conductor.finish();
        lines.push(last);
        prop_assert!(lines.windows(2).all(|pair| pair[1].from <= pair[0].until), "no time is left out");
        prop_assert_eq!(lines.iter().map(|line| line.counts.opened).sum::<u64>(), opened);
        prop_assert_eq!(lines.iter().map(|line| line.counts.answered).sum::<u64>(), answered);
        prop_assert_eq!(lines.last().map(|line| line.open), Some(states.iter().sum()));
        prop_assert_eq!((record.totals.counts.opened, record.peak), (opened, peak));
        prop_assert_eq!(record.populations[0].totals.counts.answered, answered);
    }

    /// Whatever is commanded or lost, a run ends in time, is drained once, and gives no orders afterwards except to release connections
    /// that have their response.
    #[test]
    fn a_run_has_one_end(
        (workers, notice, period, takes) in (1..4_u32, 1..1_000_u64, 20..1_000_u64, 0..2_000_u64),
        lost_at in 0..9_000_u64,
        waiting in 0..2_u64,
        commands in vec((0..10_000_u64, 0..6_usize), 0..6),
    ) {
        let plan = scenario("connections = 50\nduration = \"4s\"\ntimeout = \"2s\"\nreconnect = \"never\"");
        let all = [Command::Pause, Command::Resume, Command::Up, Command::Down, Command::Drain, Command::Stop];
        let mut commands: Vec<(Nanos, Command)> = commands.iter().map(|(at, n)| (MS(*at), all[*n])).collect();
        // A pause is followed by a resume.
        commands.push((S(10), Command::Resume));
        commands.sort_by_key(|(at, _)| *at);
        let target = Target { takes: MS(takes), loses_at: MS(lost_at), waiting };
        let model = Model::new(&plan, workers, MS(notice), MS(period)).facing(target);
        let ran = play(&plan, model, &commands);
        prop_assert!(ran.over <= S(10) + S(4) + S(2) + S(30), "{}", ran.over);
        let ends: Vec<&str> = ran.model.of_all();
        prop_assert_eq!(ends.iter().filter(|what| **what == "Drain").count(), 1, "{:?}", ends);
        let mut orders: Vec<Order> = ran.model.orders.iter().map(|(_, order)| *order).collect();
        orders.retain(|order| *order != Order::All(Control::Release));
        let drain = orders.iter().position(|order| *order == Order::All(Control::Drain));
        prop_assert_eq!(drain, Some(orders.len() - 2), "{:?}", ran.model.orders);
        let c = &ran.record.totals.counts;
        let open = ran.lines.last().map_or(0, |line| line.open);
        prop_assert_eq!(c.opened, open + c.dropped + c.finished);
        let measured = &ran.record.populations[0];
        prop_assert!(measured.held <= ran.record.peak && ran.record.peak <= 50);
        prop_assert!(ran.record.ended <= ran.over);
    }
}
