//! The report of httperf 0.9.

use samples::{Kind, Moments, Stage, Summary};

use super::{Place, Whole, per_s, percent};

/// Formats httperf's report.
pub fn httperf(s: &Summary, whole: &Whole) -> String {
    let Place { host, port, path } = Place::of(&s.target);
    let counts = &whole.totals.counts;
    let dialled = whole.opened() + counts.failed;
    let calls = if whole.opened() == 0 { 0.0 } else { counts.answered as f64 / whole.opened() as f64 };
    let head = format!(
        "throng --client=0/1 --server={host} --port={port} --uri={path} --num-conns={dialled}\n\
         Maximum connect burst length: 0\n\n\
         Total: connections {dialled} requests {} replies {} test-duration {:.3} s\n\n",
        counts.sent(),
        counts.answered,
        s.elapsed_s,
    );
    let connections = format!(
        "Connection rate: {:.1} conn/s ({:.1} ms/conn, <={} concurrent connections)\n\
         Connection time [ms]: min 0.0 avg {:.1} max 0.0 median 0.0 stddev 0.0\n\
         Connection time [ms]: connect {:.1}\n\
         Connection length [replies/conn]: {calls:.3}\n\n",
        per_s(dialled as f64, s),
        ms_each(s, dialled),
        s.connections.peak,
        // Mean lifetime by Little's law: open connections integrated over time, divided by the number opened.
        whole.totals.open_ns as f64 / 1e6 / whole.opened().max(1) as f64,
        whole.totals.connect.mean_s() * 1e3,
    );
    let requests = format!(
        "Request rate: {:.1} req/s ({:.1} ms/req)\nRequest size [B]: {:.1}\n\n",
        per_s(counts.sent() as f64, s),
        ms_each(s, counts.sent()),
        counts.bytes_out as f64 / counts.sent().max(1) as f64,
    );
    head + &connections + &requests + &replies(s, whole) + &machine(s, whole) + &errors(whole)
}

fn ms_each(s: &Summary, n: u64) -> f64 {
    if n == 0 { 0.0 } else { s.elapsed_s * 1e3 / n as f64 }
}

fn replies(s: &Summary, whole: &Whole) -> String {
    let rates = &whole.replies.rates;
    let per_s = |thousandths: f64| thousandths / 1e3;
    let (response, all) = (whole.first_byte().mean_s(), whole.latency().mean_s());
    let head = whole.totals.head_sizes.mean();
    let content = whole.totals.counts.body_bytes_in as f64 / whole.totals.counts.answered.max(1) as f64;
    let of =
        |class: u16| -> u64 { s.requests.status.range(class * 100..class * 100 + 100).map(|(_, n)| n).sum() };
    format!(
        "Reply rate [replies/s]: min {:.1} avg {:.1} max {:.1} stddev {:.1} ({} samples)\n\
         Reply time [ms]: response {:.1} transfer {:.1}\n\
         Reply size [B]: header {head:.1} content {content:.1} footer 0.0 (total {:.1})\n\
         Reply status: 1xx={} 2xx={} 3xx={} 4xx={} 5xx={}\n\n",
        per_s(rates.min() as f64),
        per_s(rates.mean()),
        per_s(rates.max() as f64),
        per_s(sample_stdev(rates)),
        rates.count(),
        response * 1e3,
        (all - response).max(0.0) * 1e3,
        head + content,
        of(1),
        of(2),
        of(3),
        of(4),
        of(5),
    )
}

/// Standard deviation estimated from a sample, that is with n − 1 as the divisor.
fn sample_stdev(m: &Moments) -> f64 {
    let n = m.count() as f64;
    if n < 2.0 { 0.0 } else { m.stdev() * (n / (n - 1.0)).sqrt() }
}

fn machine(s: &Summary, whole: &Whole) -> String {
    let (all, system) = (s.generator.cpu_s, s.generator.system_s);
    let share = |cpu_s: f64| percent(cpu_s, s.elapsed_s);
    let bytes_per_s = per_s((whole.totals.counts.bytes_in + whole.totals.counts.bytes_out) as f64, s);
    format!(
        "CPU time [s]: user {:.2} system {system:.2} (user {:.1}% system {:.1}% total {:.1}%)\n\
         Net I/O: {:.1} KB/s ({:.1}*10^6 bps)\n\n",
        all - system,
        share(all - system),
        share(system),
        share(all),
        bytes_per_s / 1024.0,
        bytes_per_s * 8.0 / 1e6,
    )
}

fn errors(whole: &Whole) -> String {
    let of = |kinds: &[Kind]| whole.faults(|f| kinds.contains(&f.kind));
    let timeouts = of(&[Kind::Timeout]) + whole.unanswered();
    // A refused stream (REFUSED_STREAM) belongs to an open connection, for which httperf has no kind of error.
    let refused = whole.faults(|f| f.kind == Kind::Refused && f.stage == Stage::Dial);
    let lost = of(&[Kind::Reset, Kind::Closed, Kind::Truncated]);
    let files = of(&[Kind::OpenFiles]);
    let addresses = of(&[Kind::AddressInUse]);
    // httperf does not check the contents of responses.
    let total = whole.faults(|f| !f.kind.is_wrong_response()) + whole.unanswered();
    let other = total - timeouts - refused - lost - files - addresses;
    format!(
        "Errors: total {total} client-timo {timeouts} socket-timo 0 connrefused {refused} connreset {lost}\n\
         Errors: fd-unavail {files} addrunavail {addresses} ftab-full 0 other {other}\n"
    )
}

#[cfg(test)]
mod tests {
    use samples::{Fault, Samples, Sink, Tick};
    use units::Nanos;

    use super::super::made_up;
    use super::*;

    #[test]
    fn the_report_is_as_it_was() {
        let (summary, whole) = made_up::right();
        made_up::check_golden("httperf", &httperf(&summary, &whole));
    }

    #[test]
    fn errors_are_reported_by_their_kind() {
        let (summary, whole) = made_up::wrong();
        let out = httperf(&summary, &whole);
        let expected = "Errors: total 49 client-timo 24 socket-timo 0 connrefused 1 connreset 21\n\
                        Errors: fd-unavail 0 addrunavail 2 ftab-full 0 other 1\n";
        assert!(out.ends_with(expected), "{out}");
        assert!(out.contains("Reply status: 1xx=0 2xx=960 3xx=0 4xx=0 5xx=40\n"), "{out}");
    }

    #[test]
    fn refused_streams_are_no_refused_connections() {
        let mut tick = Tick { until: Nanos::from_secs(1), ..Tick::default() };
        for (stage, count) in [(Stage::Dial, 2), (Stage::Exchange, 30), (Stage::Handshake, 400)] {
            (0..count).for_each(|_| tick.faults.count(Fault::target(stage, Kind::Refused)));
        }
        let mut whole = Whole::default();
        whole.tick(&tick, &Samples::default());
        let out = httperf(&made_up::nothing(), &whole);
        let expected = "Errors: total 432 client-timo 0 socket-timo 0 connrefused 2 connreset 0\n\
                        Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 430\n";
        assert!(out.ends_with(expected), "{out}");
    }

    #[test]
    fn requests_unanswered_at_the_end_are_errors() {
        let (summary, whole) = made_up::unanswered();
        let out = httperf(&summary, &whole);
        let expected = "Errors: total 3 client-timo 3 socket-timo 0 connrefused 0 connreset 0\n";
        assert!(out.contains(expected) && out.ends_with(" other 0\n"), "{out}");
    }

    #[test]
    fn nothing_at_all_has_a_report_too() {
        let out = httperf(&made_up::nothing(), &Whole::default());
        assert!(out.contains("(0 samples)") && !out.contains("NaN") && !out.contains("inf"), "{out}");
    }

    #[test]
    fn few_samples_deviate_more_than_all_would() {
        let mut two = Moments::default();
        assert_eq!(sample_stdev(&two), 0.0);
        two.record(1000);
        assert_eq!(sample_stdev(&two), 0.0);
        two.record(3000);
        assert!((sample_stdev(&two) - 2f64.sqrt() * 1000.0).abs() < 1e-6);
    }
}
