//! The report of ApacheBench 2.3.

use std::fmt::Write;

use samples::{Kind, Latency, Stage, Summary};

use super::{Place, Whole, is_of_connect, per_s};

/// The percentages for which ab reports times.
const SHARES: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// Formats ab's report.
pub fn ab(s: &Summary, whole: &Whole) -> String {
    let Place { host, port, path } = Place::of(&s.target);
    let counts = &whole.totals.counts;
    let mean_body = (counts.body_bytes_in as f64 / counts.answered.max(1) as f64).round();
    let mut out = format!(
        "This is throng {}, in the form of ApacheBench\n\nBenchmarking {host} (be patient).....done\n\n\n\
         Server Software:        \n\
         Server Hostname:        {host}\n\
         Server Port:            {port}\n\n\
         Document Path:          {path}\n\
         Document Length:        {mean_body} bytes\n\n\
         Concurrency Level:      {}\n\
         Time taken for tests:   {:.3} seconds\n\
         Complete requests:      {}\n",
        env!("CARGO_PKG_VERSION"),
        s.connections.wanted,
        s.elapsed_s,
        counts.answered,
    );
    out.push_str(&failures(s, whole));
    let _ = writeln!(out, "Keep-Alive requests:    {}", counts.kept);
    let _ = writeln!(out, "Total transferred:      {} bytes", counts.bytes_in);
    let _ = writeln!(out, "HTML transferred:       {} bytes", counts.body_bytes_in);
    out.push_str(&rates(s, whole));
    out.push_str(&tables(whole));
    out
}

fn failures(s: &Summary, whole: &Whole) -> String {
    let connect = whole.faults(is_of_connect);
    let of_requests = |is: &dyn Fn(Kind) -> bool| whole.faults(|f| f.stage == Stage::Exchange && is(f.kind));
    let receive = of_requests(&|kind| matches!(kind, Kind::Reset | Kind::Closed | Kind::Truncated));
    let length = of_requests(&|kind| matches!(kind, Kind::WrongLength | Kind::WrongEcho));
    let right_or_counted =
        |kind: Kind| kind.is_wrong_response() || matches!(kind, Kind::Reset | Kind::Closed | Kind::Truncated);
    let exceptions = of_requests(&|kind| !right_or_counted(kind)) + whole.unanswered();
    let failed = connect + receive + length + exceptions;
    let mut out = format!("Failed requests:        {failed}\n");
    if failed > 0 {
        let _ = writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})"
        );
    }
    let others: u64 = s.requests.status.iter().filter(|(code, _)| **code / 100 != 2).map(|(_, n)| n).sum();
    if others > 0 {
        let _ = writeln!(out, "Non-2xx responses:      {others}");
    }
    out
}

fn rates(s: &Summary, whole: &Whole) -> String {
    let answered = whole.totals.counts.answered;
    let ms_each = if answered == 0 { 0.0 } else { s.elapsed_s * 1e3 / answered as f64 };
    format!(
        "Requests per second:    {:.2} [#/sec] (mean)\n\
         Time per request:       {:.3} [ms] (mean)\n\
         Time per request:       {:.3} [ms] (mean, across all concurrent requests)\n\
         Transfer rate:          {:.2} [Kbytes/sec] received\n\n",
        per_s(answered as f64, s),
        ms_each * s.connections.wanted as f64,
        ms_each,
        per_s(whole.totals.counts.bytes_in as f64 / 1024.0, s),
    )
}

fn tables(whole: &Whole) -> String {
    let processing = whole.latency();
    if processing.count() == 0 {
        return String::new();
    }
    let waiting = whole.first_byte();
    let connect = Connects { dials: &whole.totals.connect, requests: processing.count() };
    let total = |q: f64| connect.quantile_s(q) + processing.quantile(q).secs_f64();
    let mut out = String::from("Connection Times (ms)\n              min  mean[+/-sd] median   max\n");
    let (mean, stdev) = connect.mean_and_stdev_s();
    let mut row = |name: &str, [min, mean, stdev, median, max]: [f64; 5]| {
        let [min, mean, median, max] = [min, mean, median, max].map(whole_ms);
        let _ = writeln!(out, "{name:<12}{min:5} {mean:4} {:5.1} {median:6} {max:7}", stdev * 1e3);
    };
    row("Connect:", [connect.quantile_s(0.0), mean, stdev, connect.quantile_s(0.5), connect.quantile_s(1.0)]);
    row("Processing:", figures(&processing));
    row("Waiting:", figures(&waiting));
    let deviation = stdev.hypot(processing.stdev_s());
    row("Total:", [total(0.0), mean + processing.mean_s(), deviation, total(0.5), total(1.0)]);
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for share in SHARES {
        let longest = if share == 100 { " (longest request)" } else { "" };
        let within = whole_ms(total(f64::from(share) / 100.0));
        let _ = writeln!(out, "{share:4}%  {within:5}{longest}");
    }
    out
}

fn whole_ms(s: f64) -> u64 {
    (s * 1e3).round() as u64
}

/// Minimum, mean, standard deviation, median and maximum, in seconds.
fn figures(times: &Latency) -> [f64; 5] {
    let [min, median, max] = [times.min(), times.quantile(0.5), times.max()].map(|t| t.secs_f64());
    [min, times.mean_s(), times.stdev_s(), median, max]
}

/// The connect times as ab counts them: one per request, which is 0 if the connection was reused.
struct Connects<'a> {
    dials: &'a Latency,
    requests: u64,
}

impl Connects<'_> {
    /// Limited, because a connection may have been opened without ever getting a response.
    fn dials(&self) -> f64 {
        self.dials.count().min(self.requests) as f64
    }

    fn quantile_s(&self, q: f64) -> f64 {
        let requests = self.requests as f64;
        let kept = requests - self.dials();
        let beyond = q * requests - kept;
        match (kept > 0.0, beyond > 0.0) {
            (true, false) => 0.0,
            (false, _) if q == 0.0 => self.dials.min().secs_f64(),
            _ => self.dials.quantile(beyond / self.dials()).secs_f64(),
        }
    }

    fn mean_and_stdev_s(&self) -> (f64, f64) {
        let share = self.dials() / self.requests as f64;
        let mean = self.dials.mean_s() * share;
        let squares = (self.dials.mean_s().powi(2) + self.dials.stdev_s().powi(2)) * share;
        (mean, (squares - mean * mean).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;
    use units::Nanos;

    #[test]
    fn the_report_is_as_it_was() {
        let (summary, whole) = made_up::right();
        made_up::check_golden("ab", &ab(&summary, &whole));
    }

    #[test]
    fn failures_are_reported_by_their_kind() {
        let (summary, whole) = made_up::wrong();
        let expected = "Failed requests:        54\n   (Connect: 7, Receive: 18, Length: 9, Exceptions: 20)\n\
                        Non-2xx responses:      40\n";
        let out = ab(&summary, &whole);
        assert!(out.contains(expected), "{out}");
    }

    #[test]
    fn requests_unanswered_at_the_end_have_failed() {
        let (summary, whole) = made_up::unanswered();
        let out = ab(&summary, &whole);
        let expected = "Failed requests:        3\n   (Connect: 0, Receive: 0, Length: 0, Exceptions: 3)\n";
        assert!(out.contains(expected), "{out}");
    }

    #[test]
    fn nothing_at_all_has_a_report_too() {
        let out = ab(&made_up::nothing(), &Whole::default());
        assert!(out.contains("Complete requests:      0\nFailed requests:        0\nKeep-Alive"), "{out}");
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    }

    #[test]
    fn a_kept_connection_costs_its_requests_no_connect_time() {
        let mut dials = Latency::default();
        (1..=10).for_each(|ms| dials.record(Nanos::from_millis(ms)));
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 0.001 * b, "{a} {b}");
        let kept = Connects { dials: &dials, requests: 100 };
        for (q, ms) in [(0.0, 0.0), (0.5, 0.0), (0.9, 0.0), (0.91, 1.0), (0.95, 5.0), (1.0, 10.0)] {
            close(kept.quantile_s(q) * 1e3, ms);
        }
        // For 90 zeros and the numbers 1 to 10, the mean is 0.55 and the mean of the squares 3.85.
        close(kept.mean_and_stdev_s().0, 0.55e-3);
        close(kept.mean_and_stdev_s().1, (3.85f64 - 0.3025).sqrt() * 1e-3);
        let new = Connects { dials: &dials, requests: 10 };
        for (q, ms) in [(0.0, 1.0), (0.5, 5.0), (1.0, 10.0)] {
            close(new.quantile_s(q) * 1e3, ms);
        }
        let unanswered = Connects { dials: &dials, requests: 4 };
        close(unanswered.quantile_s(1.0) * 1e3, 10.0);
    }
}
