//! The live view of an invented run: whole frames against golden files, and single figures.

mod sizes;

use ratatui::backend::TestBackend;
use samples::{
    AgentShare, AgentTicks, Fault, Kind, Mark, MarkKind, Marks, Phase, ProcessSample, Side, Stage,
    TargetSample, books::Entry,
};
use units::Nanos;

use super::{figures::Percentiles, *};

/// The text of a frame at this terminal size.
fn frame(scene: &Scene, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(scene, frame.buffer_mut())).unwrap();
    let cells: Vec<&str> = terminal.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
    let rows = cells.chunks(usize::from(width).max(1)).map(|row| row.concat().trim_end().to_owned() + "\n");
    rows.collect()
}

/// Compares with a golden file.
fn check(name: &str, text: &str) {
    fixtures::check_golden(&format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR")), text);
}

/// The state of the view's thread for a run.
struct Run {
    header: Header,
    figures: Figures,
    second: Second,
    history: History,
    held_messages: Vec<String>,
    cpu_s: f64,
    samples: Samples,
}

impl Run {
    fn of(header: Header) -> Run {
        Run {
            figures: Figures::of(&header),
            second: Second { wanted: header.connections, progress: Some(0.0), ..Second::default() },
            history: History::new(),
            held_messages: Vec::new(),
            cpu_s: 0.0,
            samples: Samples::default(),
            header,
        }
    }

    /// Adds a second, in which throng used 0.4 s of CPU.
    fn tick(&mut self, tick: &Tick) {
        self.cpu_s += 0.4;
        let samples = Samples { own: own(self.cpu_s, 12_163_482), ..self.samples.clone() };
        if let Some(second) = self.figures.tick(tick, &samples) {
            self.history.push(Point::of(&second));
            self.second = second;
        }
    }

    fn scene<'a>(&'a self, message: Option<&'a str>) -> Scene<'a> {
        Scene {
            header: &self.header,
            second: &self.second,
            history: &self.history,
            message,
            held_messages: &self.held_messages,
            is_paused: self.second.phase == Phase::Pause,
            is_ending: self.second.phase == Phase::Drain,
            is_help: false,
        }
    }
}

fn own(cpu_s: f64, rss_bytes: u64) -> Option<ProcessSample> {
    Some(ProcessSample { cpu_user_ns: (cpu_s * 1e9) as u64, rss_bytes, ..ProcessSample::default() })
}

fn header() -> Header {
    Header {
        target: "http://127.0.0.{1..20}:8000/?length={rand 1 4096}&name=one-that-is-rather-long".to_owned(),
        connections: 100_000,
        hold_s: Some(60.0),
        ramp_deadline_s: None,
        seed: 270_321_536_579_897,
        io: "uring".into(),
        threads: 2,
        populations: ["browsers", "a-population-with-quite-a-long-name-that-goes-on", "idle"]
            .map(str::to_owned)
            .to_vec(),
        steps: Vec::new(),
        destinations: Vec::new(),
        agents: Vec::new(),
        thresholds: Vec::new(),
    }
}

/// The `n`th second of a run with this many populations.
fn second(n: u64, phase: Phase, open: u64, populations: u64) -> Tick {
    let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
    let mut tick = Tick { from, until, phase, open, wanted: 100_000, waiting: 42, ..Tick::default() };
    tick.ramped_at = if phase == Phase::Ramp { Nanos::NEVER } else { Nanos::from_millis(10_250) };
    (tick.counts.opened, tick.counts.redialled) = (if phase == Phase::Ramp { 10_000 } else { 0 }, 7);
    (tick.counts.answered, tick.counts.bytes_in) = (12_345, 25_480_397);
    for us in 1..=1_000 {
        let latency = if phase == Phase::Ramp { &mut tick.ramp_latency } else { &mut tick.latency };
        latency.record(Nanos::from_micros(us * 10));
        tick.connect.record(Nanos::from_micros(us));
        tick.lag.record(Nanos::from_micros(us * 2));
    }
    for nth in 0..populations {
        let mut own = Tick { from, until, phase, open: open / 4 * (nth + 1), ..Tick::default() };
        (own.wanted, own.counts.answered) = (25_000 * (nth + 1), 1_000 * nth);
        (0..nth * 10).for_each(|_| own.latency.record(Nanos::from_millis(nth)));
        tick.populations.push(own);
    }
    tick
}

fn samples() -> Samples {
    let process = ProcessSample { cores_used: 1.234, rss_bytes: 9_542_042, ..ProcessSample::default() };
    let target = TargetSample {
        process,
        open_files: Some(100_012),
        open_files_limit: Some(1_048_576),
        accept_queue: Some(17),
        accept_backlog: Some(4_096),
        ..TargetSample::default()
    };
    Samples { target: Some(target), ..Samples::default() }
}

/// Ten seconds of ramp and ten of full load, with a dip and with faults.
fn in_trouble(populations: u64) -> Run {
    let mut run = Run::of(header());
    run.samples = samples();
    for n in 0..10 {
        run.tick(&second(n, Phase::Ramp, 10_000 * (n + 1), populations));
    }
    for n in 10..20 {
        let open = if (13..16).contains(&n) { 61_250 } else { 100_000 };
        let mut tick = second(n, Phase::Hold, open, populations);
        let kinds = [
            (Side::Target, Stage::Exchange, Kind::WrongStatus, 1_234),
            (Side::Target, Stage::Hold, Kind::Reset, 38_750 * u64::from(n == 13)),
            (Side::Unknown, Stage::Handshake, Kind::AddressInUse, u64::from(n == 19)),
            (Side::Path, Stage::Dial, Kind::Timeout, 2 * u64::from(n > 17)),
        ];
        for (side, stage, kind, count) in kinds {
            let fault = Fault { side, ..Fault::target(stage, kind) };
            let fail = |of: &mut Tick| match kind.is_wrong_response() {
                true => of.wrong(Entry::unsent(true, false), fault),
                false => of.connection_failed(None, fault, false),
            };
            for own in tick.populations.iter_mut().take(1) {
                (0..count).for_each(|_| fail(own));
            }
            (0..count).for_each(|_| fail(&mut tick));
        }
        (0..11_111).for_each(|_| tick.count_status(200));
        (0..1_234).for_each(|_| tick.count_status(503));
        run.tick(&tick);
    }
    run
}

#[test]
fn a_ramp() {
    let mut run =
        Run::of(Header { target: "http://t/".into(), populations: vec!["main".into()], ..header() });
    for n in 0..6 {
        run.tick(&second(n, Phase::Ramp, 10_000 * (n + 1), 0));
    }
    check("terminal-ramp-80x24", &frame(&run.scene(None), 80, 24));
}

#[test]
fn full_load_with_faults_and_several_populations() {
    let mut run = in_trouble(3);
    let scene = run.scene(Some("press d again to drain"));
    check("terminal-hold-80x24", &frame(&scene, 80, 24));
    run.held_messages = ["one", "two", "three", "four"].map(|line| format!("throng: notice {line}")).to_vec();
    check("terminal-hold-160x50", &frame(&run.scene(None), 160, 50));
}

#[test]
fn a_fleet_has_a_line_for_its_agents() {
    let agents = ["throng-agents-eu-west-17", "load-2", "load-3"];
    let agents = agents.map(|id| AgentShare { id: id.to_owned(), wanted: 33_333, cores: 4 });
    let mut run = Run::of(Header { agents: agents.into(), ..header() });
    run.samples = samples();
    let mut columns = AgentTicks::default();
    for (place, (cpu_s, lag_ms)) in [(1, 12), (3, 2), (2, 1)].into_iter().enumerate() {
        let mut own = Tick { cpu_ns: cpu_s * 1_000_000_000, ..Tick::default() };
        own.lag.record(Nanos::from_millis(lag_ms));
        own.report(place, &mut columns);
    }
    columns.lose(2);
    run.tick(&Tick { agents: Some(Box::new(columns)), ..second(10, Phase::Hold, 66_666, 0) });
    let text = frame(&run.scene(None), 80, 24);
    check("terminal-fleet-80x24", &text);
    let line = " agents 2 of 3 up, 1 lost  max cpu load-2 3.00 cores, lag …nts-eu-west-17 12 ms\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("\n coordinator  0.40   11.6 MiB\n target       1.23"), "{text}");
    for (width, height) in [(80, 24), (118, 30)] {
        let text = frame(&run.scene(None), width, height);
        assert!(
            text.contains(" agents 2 of 3 up, 1 lost  max cpu load-2 3.00 cores") && text.contains("q stop"),
            "{text}"
        );
    }
}

#[test]
fn requests_without_a_response_are_beside_the_percentiles() {
    let mut run = in_trouble(3);
    assert_eq!((run.second.no_response, run.second.no_connection), (None, None));
    let mut tick = second(20, Phase::Hold, 100_000, 3);
    (0..32).for_each(|_| tick.latency.censor());
    tick.connect.censor();
    (0..5).for_each(|_| tick.populations[1].latency.censor());
    // This population has no other request in this second.
    tick.populations[0].latency.censor();
    run.tick(&tick);
    assert_eq!(run.second.no_response, Some(32.0 / 1_032.0));
    let shares: Vec<_> = run.second.populations.iter().map(|own| own.no_response).collect();
    assert_eq!(shares, [Some(1.0), Some(5.0 / 15.0), None]);
    check("terminal-no-response-80x24", &frame(&run.scene(None), 80, 24));
    check("terminal-no-response-160x30", &frame(&run.scene(None), 160, 30));
    let small = frame(&run.scene(None), 60, 15);
    assert!(small.contains("\n no response 3.1 %\n"), "{small}");
    // A second without responses does not show the latencies of the ramp.
    let mut tick = Tick { latency: Default::default(), ..second(21, Phase::Hold, 100_000, 0) };
    tick.ramp_latency.record(Nanos::from_secs(9));
    tick.latency.censor();
    run.tick(&tick);
    assert_eq!((run.second.latency, run.second.no_response), (None, Some(1.0)));
}

#[test]
fn nothing_is_known_yet() {
    let run = Run::of(Header { hold_s: None, ..header() });
    check("terminal-begin-80x24", &frame(&run.scene(None), 80, 24));
}

#[test]
fn errors_and_statuses_are_counted() {
    let mut figures = Figures::of(&header());
    let mut tick = second(0, Phase::Hold, 5, 0);
    (0..300).for_each(|_| tick.count_status(200));
    (0..3).for_each(|_| tick.count_status(503));
    (0..3).for_each(|_| tick.faults.count(Fault::target(Stage::Exchange, Kind::WrongStatus)));
    // Their connections ended with the response, which is no further error.
    (0..3).for_each(|_| tick.faults.count(Fault::target(Stage::Hold, Kind::MissingValue)));
    (tick.counts.wrong, tick.counts.missed) = (3, 4);
    // A tick that covers two seconds.
    tick.until = Nanos::from_secs(2);
    let seen = figures.tick(&tick, &Samples::default()).unwrap();
    assert_eq!(seen.errors_per_s, 3.5);
    let statuses = |seen: &Second| -> Vec<(u16, u64, f64)> {
        seen.statuses.iter().map(|own| (own.status, own.count, own.per_s)).collect()
    };
    assert_eq!(statuses(&seen), [(200, 300, 150.0), (503, 3, 1.5)]);
    // A status is still shown when it no longer occurs.
    let seen = figures.tick(&second(2, Phase::Hold, 5, 0), &Samples::default()).unwrap();
    assert_eq!(statuses(&seen), [(200, 300, 0.0), (503, 3, 0.0)]);
    assert_eq!(seen.errors_per_s, 0.0);
}

#[test]
fn a_later_ramp_shows_its_own_times() {
    let mut figures = Figures::of(&header());
    let mut tick = second(5, Phase::Ramp, 5, 0);
    tick.latency.censor();
    let seen = figures.tick(&tick, &Samples::default()).unwrap();
    assert_eq!((seen.latency.map(|own| own.max), seen.no_response), (Some(Nanos::from_millis(10)), None));
}

#[test]
fn a_pause_and_the_end_have_other_keys() {
    let mut run = in_trouble(0);
    run.tick(&second(20, Phase::Pause, 100_000, 0));
    let text = frame(&run.scene(None), 80, 24);
    assert!(
        text.contains(" p resume    + more load    - less load    d drain    q stop    ? help\n"),
        "{text}"
    );
    assert!(text.contains("50s of 1m left"), "it is not running out: {text}");
    run.tick(&second(21, Phase::Drain, 100_000, 0));
    let text = frame(&run.scene(None), 80, 24);
    assert!(text.contains(" drain ") && text.contains("waiting for outstanding responses"), "{text}");
    assert!(text.ends_with(" q stop immediately    ? help\n"), "{text}");
}

#[test]
fn rates_are_of_a_second_whatever_the_period() {
    let mut figures = Figures::of(&header());
    let mut tick = second(3, Phase::Hold, 5, 2);
    tick.until = Nanos::from_secs(5);
    let own = |cpu_s| Samples { own: own(cpu_s, 5), ..Samples::default() };
    figures
        .tick(&Tick { from: Nanos::from_secs(1), until: tick.from, ..Tick::default() }, &own(1.0))
        .unwrap();
    let seen = figures.tick(&tick, &own(2.5)).unwrap();
    assert_eq!(seen.elapsed, Nanos::from_secs(4), "since the first tick began");
    assert_eq!((seen.opens_per_s, seen.requests_per_s, seen.bytes_in_per_s), (3.5, 6_172.5, 12_740_198.5));
    assert_eq!((seen.own_cpu, seen.own_memory, seen.waiting), (0.75, 5, 42));
    assert_eq!(seen.populations.iter().map(|own| own.requests_per_s).collect::<Vec<_>>(), [0.0, 500.0]);
    assert!(seen.populations[0].latency_p99.is_none());
    let p99 = seen.populations[1].latency_p99.unwrap();
    assert!((990_000..1_010_000).contains(&p99.0), "{p99:?}");
    // A short tick has no rates, and its CPU time counts for the next one.
    let rest = Tick { from: tick.until, until: Nanos::from_millis(5_400), ..Tick::default() };
    assert_eq!(figures.tick(&rest, &own(9.0)), None);
}

#[test]
fn tls_handshakes_have_a_line_of_their_own_from_the_first_on() {
    let mut run = Run::of(header());
    let mut line = |full: &[u64], resumed: &[u64]| {
        let mut tick = second(3, Phase::Hold, 5, 0);
        full.iter().for_each(|ms| tick.tls.record(Nanos::from_millis(*ms)));
        resumed.iter().for_each(|ms| tick.tls_resumed.record(Nanos::from_millis(*ms)));
        run.tick(&tick);
        let texts = [80, 140].map(|width| frame(&run.scene(None), width, 30));
        texts.map(|text| {
            let found = text.lines().find(|line| line.trim_start().starts_with("TLS "));
            found.map(|line| line.split_whitespace().take(9).collect::<Vec<_>>().join(" "))
        })
    };
    assert_eq!(line(&[], &[]), [None, None]);
    for found in line(&[3, 3, 3], &[1]) {
        assert_eq!(
            found.as_deref().map(|line| line.starts_with("TLS 3.0 ms 3.0 ms 3.0 ms 3.0 ms")),
            Some(true)
        );
    }
    for found in line(&[], &[1, 1]) {
        assert_eq!(
            found.as_deref().map(|line| line.starts_with("TLS 1.0 ms 1.0 ms 1.0 ms 1.0 ms")),
            Some(true)
        );
    }
    assert!(line(&[], &[]).iter().all(|found| found.as_deref().is_some_and(|line| !line.contains("ms"))));
}

#[test]
fn percentiles_are_of_the_last_second() {
    let mut figures = Figures::of(&header());
    figures.tick(&second(1, Phase::Hold, 5, 0), &Samples::default());
    let mut tick = second(2, Phase::Hold, 5, 0);
    // Late requests of the ramp do not count at full load.
    tick.ramp_latency.record(Nanos::from_secs(9));
    let seen = figures.tick(&tick, &Samples::default()).unwrap();
    let close = |seen: Option<Percentiles>, us: [u64; 5]| {
        let seen = seen.unwrap();
        for (seen, us) in [seen.p50, seen.p90, seen.p95, seen.p99, seen.max].into_iter().zip(us) {
            assert!(seen.0.abs_diff(us * 1_000) <= us * 2, "{seen:?}, {us} µs");
        }
    };
    close(seen.latency, [5_000, 9_000, 9_500, 9_900, 10_000]);
    close(seen.connect, [500, 900, 950, 990, 1_000]);
    close(seen.lag, [1_000, 1_800, 1_900, 1_980, 2_000]);
    let seen = figures.tick(&second(3, Phase::Ramp, 5, 0), &Samples::default()).unwrap();
    close(seen.latency, [5_000, 9_000, 9_500, 9_900, 10_000]);
    let nothing = Tick { from: Nanos::from_secs(4), until: Nanos::from_secs(5), ..Tick::default() };
    let seen = figures.tick(&nothing, &Samples::default()).unwrap();
    assert_eq!((seen.latency, seen.connect, seen.lag), (None, None, None));
}

/// Phase, open and wanted connections of each second, and the expected progress and remaining time.
type Seconds<'a> = &'a [(Phase, u64, u64, Option<f64>, Option<u64>)];

fn check_progress(hold_s: Option<f64>, seconds: Seconds) {
    let mut figures = Figures::of(&Header { hold_s, ..header() });
    for (n, (phase, open, wanted, progress, left)) in (0..).zip(seconds) {
        let tick = Tick { wanted: *wanted, ramped_at: Nanos::ZERO, ..second(n, *phase, *open, 0) };
        let seen = figures.tick(&tick, &Samples::default()).unwrap();
        let expected = (*progress, left.map(Nanos::from_secs));
        assert_eq!((seen.progress, seen.left), expected, "second {n} of {seconds:?}");
    }
}

#[test]
fn the_stage_has_its_name_where_there_is_room() {
    let mut figures = Figures::of(&header());
    let mut tick = second(0, Phase::Ramp, 10, 1);
    let named = |what: &str| Mark { at: Nanos::ZERO, kind: MarkKind::Stage, what: what.to_owned() };
    tick.marks = Marks::from(vec![named("peak")]);
    assert_eq!(figures.tick(&tick, &Samples::default()).unwrap().stage.as_deref(), Some("peak"));
    // The stage continues until the next one.
    let later = figures.tick(&second(1, Phase::Ramp, 20, 1), &Samples::default()).unwrap();
    assert_eq!(later.stage.as_deref(), Some("peak"));
    let mut run = in_trouble(1);
    run.second.stage = later.stage;
    let line = |width| scene::progress(&run.scene(None), width).to_string();
    assert!(line(100).contains("  peak  ━") && !line(99).contains("peak"), "{}", line(100));
    assert_eq!((line(100).chars().count(), line(99).chars().count()), (100, 99));
}

#[test]
fn progress_is_of_connections_and_then_of_time() {
    let (ramp, hold, pause) = (Phase::Ramp, Phase::Hold, Phase::Pause);
    check_progress(
        Some(4.0),
        &[
            (ramp, 25, 100, Some(0.25), Some(4)),
            (ramp, 75, 100, Some(0.75), Some(4)),
            (hold, 100, 100, Some(0.25), Some(3)),
            (pause, 100, 100, Some(0.25), Some(3)),
            // On the way down, progress starts from the previous number of connections.
            (ramp, 80, 60, Some(0.5), Some(3)),
            (hold, 60, 60, Some(0.5), Some(2)),
            (hold, 60, 60, Some(0.75), Some(1)),
            (hold, 60, 60, Some(1.0), Some(0)),
            (hold, 60, 60, Some(1.0), Some(0)),
        ],
    );
    check_progress(None, &[(ramp, 1, 2, Some(0.5), None), (hold, 2, 2, None, None)]);
    // There is nothing to wait for.
    check_progress(Some(0.0), &[(ramp, 0, 0, Some(1.0), Some(0)), (hold, 0, 0, Some(1.0), Some(0))]);
}

#[test]
fn full_load_begins_within_a_second() {
    let mut figures = Figures::of(&Header { hold_s: Some(10.0), ..header() });
    let tick = Tick { ramped_at: Nanos::from_millis(5_750), ..second(5, Phase::Hold, 5, 0) };
    let seen = figures.tick(&tick, &Samples::default()).unwrap();
    assert_eq!((seen.progress, seen.left), (Some(0.025), Some(Nanos::from_millis(9_750))));
}

#[test]
fn faults_add_up_the_most_frequent_first() {
    let seen = in_trouble(3).second;
    let counts: Vec<_> = seen.faults.iter().map(|own| (own.fault.kind, own.count, own.recent)).collect();
    let expected = [
        (Kind::Reset, 38_750, 0),
        (Kind::WrongStatus, 12_340, 1_234),
        (Kind::Timeout, 4, 2),
        (Kind::AddressInUse, 1, 1),
    ];
    assert_eq!(counts, expected);
    assert_eq!(seen.populations.iter().map(|own| own.faults).collect::<Vec<_>>(), [51_095, 0, 0]);
}

#[test]
fn a_target_on_another_host_is_not_seen() {
    let mut figures = Figures::of(&header());
    assert!(figures.tick(&second(0, Phase::Hold, 5, 0), &samples()).unwrap().target.is_some());
    let seen = figures.tick(&second(1, Phase::Hold, 5, 0), &Samples::default()).unwrap();
    assert_eq!(seen.target, None);
}
