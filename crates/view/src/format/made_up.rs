//! Invented runs for the tests of all formats.

use samples::{Connections, Fault, Figures, Generator, Kind, Phase, Samples, Sink, Stage, Summary, Tick};
use units::Nanos;

use super::Whole;

/// A run in which nothing happened, of duration 0.
pub(crate) fn nothing() -> Summary {
    let figures = Figures {
        target: "http://127.0.0.1:8000/hello?length=12".to_owned(),
        threads: 2,
        connections: Connections { wanted: 10, ..Connections::default() },
        ..Figures::default()
    };
    Summary { figures, ..Summary::default() }
}

/// A run with this time at full load and in total, in seconds.
fn lasted(duration_s: f64, elapsed_s: f64) -> Summary {
    let mut summary = nothing();
    (summary.duration_s, summary.elapsed_s) = (duration_s, elapsed_s);
    summary
}

/// Ten connections with 1,000 requests/s for 12 seconds, and a response of 240 bytes to each after 1.1 to 2.1 ms. The last response
/// of second n takes n milliseconds.
pub(super) fn right() -> (Summary, Whole) {
    let mut whole = Whole::default();
    for second in 0..12 {
        whole.tick(&second_of_responses(second), &Samples::default());
    }
    let mut summary = lasted(12.003, 12.0);
    summary.ramp_s = 0.01;
    summary.connections =
        Connections { wanted: 10, opened: 10, peak: 10, held: 10, ..Connections::default() };
    summary.requests.status.insert(200, 12_000);
    summary.generator = Generator { cpu_s: 6.0, system_s: 4.5, ..Generator::default() };
    (summary, whole)
}

fn second_of_responses(second: u64) -> Tick {
    let (from, until) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
    let mut tick = Tick { from, until, open: 10, phase: Phase::Hold, ..Tick::default() };
    tick.open_ns = 10_000_000_000;
    let counts = &mut tick.counts;
    (counts.sent, counts.answered, counts.answered_at_load, counts.kept) = (1000, 1000, 1000, 1000);
    (counts.bytes_in, counts.bytes_out, counts.body_bytes_in) = (240_000, 62_000, 12_000);
    for i in 1..=1000 {
        let latency = Nanos::from_micros(1100 + i);
        let (times, first) = match second {
            0 => (&mut tick.ramp_latency, &mut tick.ramp_first_byte),
            _ => (&mut tick.latency, &mut tick.first_byte),
        };
        times.record(if i == 1000 { Nanos::from_millis(second + 1) } else { latency });
        first.record(Nanos::from_micros(1000));
        tick.head_sizes.record(228);
        tick.answer_sizes.record(240);
    }
    for rate in [400.0, 480.0, 500.0, 520.0, 600.0] {
        // Two shards; the second is slightly slower.
        tick.shard_rates.record(rate);
        tick.shard_rates.record(rate - 5.0 * second as f64);
    }
    if second == 0 {
        tick.counts.opened = 10;
        (1..=10).for_each(|n| tick.connect.record(Nanos::from_micros(n * 200)));
    }
    tick
}

/// Many failures: 1,000 responses in ten seconds, among them 40 with status 500 and 9 that are too short; 49 other faults.
pub(super) fn wrong() -> (Summary, Whole) {
    let mut tick = Tick { until: Nanos::from_secs(10), open: 5, ..Tick::default() };
    (tick.counts.opened, tick.counts.failed, tick.counts.answered) = (20, 7, 1000);
    (tick.counts.failed_requests, tick.counts.wrong) = (38, 49);
    for (stage, kind, n) in [
        (Stage::Dial, Kind::Refused, 1),
        (Stage::Dial, Kind::Timeout, 4),
        (Stage::Exchange, Kind::Reset, 5),
        (Stage::Exchange, Kind::Closed, 6),
        (Stage::Exchange, Kind::Truncated, 7),
        (Stage::Exchange, Kind::Timeout, 20),
        (Stage::Exchange, Kind::WrongStatus, 40),
        (Stage::Exchange, Kind::WrongLength, 9),
        (Stage::Hold, Kind::Closed, 3),
        (Stage::Hold, Kind::BadAnswer, 1),
    ] {
        (0..n).for_each(|_| tick.faults.count(Fault::target(stage, kind)));
    }
    let ours = Fault::host(Stage::Dial, Kind::AddressInUse);
    (0..2).for_each(|_| tick.faults.count(ours));
    (0..1000).for_each(|_| tick.latency.record(Nanos::from_millis(2)));
    let mut whole = Whole::default();
    whole.tick(&tick, &Samples::default());
    let mut summary = lasted(10.0, 10.0);
    summary.requests.status.extend([(200, 960), (500, 40)]);
    (summary, whole)
}

/// Twelve requests, three of them without a response at the end.
pub(super) fn unanswered() -> (Summary, Whole) {
    let mut tick = Tick { until: Nanos::from_secs(1), open: 1, ..Tick::default() };
    (tick.counts.opened, tick.counts.sent, tick.counts.answered, tick.counts.unanswered) = (1, 12, 9, 3);
    tick.latency.record_n(Nanos::from_millis(2), 9);
    (0..3).for_each(|_| tick.latency.censor());
    let mut whole = Whole::default();
    whole.tick(&tick, &Samples::default());
    (lasted(1.0, 1.0), whole)
}

/// Compares with a golden file, regardless of throng's version.
pub(crate) fn check_golden(name: &str, text: &str) {
    let file = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    fixtures::check_golden(&file, &text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}
