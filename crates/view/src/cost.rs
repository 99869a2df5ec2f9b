//! The cost of a connection and of a request, as a line of the summary.

use samples::{Cost, Fit};
use units::{Count, Nanos, fixed};

/// The operations to which CPU time is attributed, by the suffixes of the figures' names.
static PER: [(&str, &str); 4] = [
    ("open", "connection opened"),
    ("handshake", "connection and TLS handshake"),
    ("request", "response"),
    ("idle_second", "idle second"),
];

/// The name and the value of a figure of [`Cost`], such as `target_cpu_us_per_open`. The value includes its error, which is shown as
/// at least one unit of the last digit. `generator` is the name of throng's process.
pub(crate) fn row(figure: &str, fit: Fit, generator: &str) -> (String, String) {
    let (side, what) = figure.split_once('_').expect("a figure's name begins with its side");
    let (whose, what) = match (side, what) {
        ("generator", _) => (generator, what),
        ("kernel", _) => ("the kernel", what),
        (_, "kernel_bytes") => ("the kernel on the target's host", "bytes"),
        _ => ("the target", what),
    };
    let Fit { value, error, .. } = fit;
    if let Some((_, per)) = PER.iter().find(|(end, _)| what.strip_prefix("cpu_us_per_") == Some(*end)) {
        return (format!("CPU of {whose} per {per}"), format!("{} ± {}", time(value), time(error.max(0.1))));
    }
    let kind = if what == "bytes" { "memory" } else { "live heap" };
    let error = error.max(1.0);
    (format!("{kind} of {whose} per connection"), format!("{} ± {error:.0} bytes", fixed(value, 0)))
}

/// The line; `None` if no figure is known. Figures within their noise are only in the JSON. `generator` is the name of throng's
/// process.
pub(crate) fn line(c: &Cost, generator: &str) -> Option<String> {
    let target = [
        c.target_cpu_us_per_open,
        c.target_cpu_us_per_handshake,
        c.target_cpu_us_per_request,
        c.target_cpu_us_per_idle_second,
    ];
    let own = [
        c.generator_cpu_us_per_open,
        c.generator_cpu_us_per_handshake,
        c.generator_cpu_us_per_request,
        c.generator_cpu_us_per_idle_second,
    ];
    let parts = [bytes(c, generator), live(c), cpu("target", target), cpu(generator, own), ceiling(c)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Memory per connection; the lowest R² indicates the reliability of all.
fn bytes(c: &Cost, generator: &str) -> Option<String> {
    let all = [
        ("target", "target_bytes", c.target_bytes),
        (generator, "generator_bytes", c.generator_bytes),
        ("kernel", "kernel_bytes", c.kernel_bytes),
        ("kernel there", "target_kernel_bytes", c.target_kernel_bytes),
    ];
    let shown: Vec<(&str, Fit)> = all.into_iter().filter_map(|(name, _, fit)| Some((name, fit?))).collect();
    let mut each: Vec<String> = shown
        .iter()
        .map(|(name, fit)| format!("{name} {} ± {:.0}", fixed(fit.value, 0), fit.error.max(1.0)))
        .collect();
    if let (Some(runtime), Some(target)) =
        (&c.target_runtime, each.first_mut().filter(|_| c.target_bytes.is_some()))
    {
        *target += &format!(" ({runtime}: resident memory, not its live heap)");
    }
    if let Some(last) = each.last_mut() {
        let r2 = shown.iter().map(|(_, fit)| fit.r2).fold(1.0, f64::min);
        *last += &format!(" (R² {r2:.3})");
    }
    for (name, figure, _) in all {
        let own = c.discarded.iter().find(|discarded| discarded.figure == figure);
        each.extend(own.map(|own| format!("{name} not measured: {}", why_not(own.fit))));
    }
    (!each.is_empty()).then(|| format!("bytes per connection: {}", each.join(", ")))
}

/// The reason why a slope is not used.
fn why_not(fit: Fit) -> String {
    match fit.r2 < Fit::MIN_R2 {
        true => format!("fit R² {:.2}", fit.r2),
        false => format!("slope {} ± {:.0}", fixed(fit.value, 0), fit.error),
    }
}

/// The live heap of the target, or the reason why it is not known.
fn live(c: &Cost) -> Option<String> {
    let failed = c.target_live_failure.as_ref().map(|why| format!("live heap not measured: {why}"));
    let error = c.target_live_fit.map_or(String::new(), |fit| format!(" ± {:.0}", fit.error));
    let live = c
        .target_live_bytes
        .map(|bytes| format!("live heap of the target: {bytes:.0}{error} bytes per connection"));
    live.or(failed)
}

/// CPU time per opened connection, per response, and per idle second of a connection. If each connection has a TLS handshake, its
/// figure includes opening.
fn cpu(who: &str, [opened, handshake, response, idle]: [Option<Fit>; 4]) -> Option<String> {
    let is_secured = handshake.is_some_and(|fit| fit.is_known());
    let fits = [opened.filter(|_| !is_secured), handshake, response, idle];
    let of = PER.iter().map(|(_, what)| what).zip(fits);
    let known = of.filter_map(|(what, fit)| Some((what, fit.filter(Fit::is_known)?.value)));
    let each: Vec<String> = known.map(|(what, us)| format!("{} per {what}", time(us))).collect();
    (!each.is_empty()).then(|| format!("CPU of {who}: {}", each.join(", ")))
}

/// A time in microseconds; below a millisecond with one decimal.
fn time(us: f64) -> String {
    if us < 1e3 { format!("{} µs", fixed(us, 1)) } else { Nanos((us * 1e3) as u64).brief().to_string() }
}

/// The number of connections for which memory suffices, rounded to two digits: no slope is more precise.
fn ceiling(c: &Cost) -> Option<String> {
    let n = c.ceiling_connections?;
    let grain = 10u64.pow(n.max(1).ilog10().saturating_sub(1));
    Some(format!("memory for about {}", Count((n + grain / 2) / grain * grain).of("connection")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(value: f64, r2: f64) -> Option<Fit> {
        Some(Fit { value, error: value / 100.0, r2 })
    }

    fn check(cost: Cost, expected: Option<&str>) {
        assert_eq!(line(&cost, "throng").as_deref(), expected);
    }

    #[test]
    fn a_row_has_a_name_in_english_and_its_unit() {
        let cost = Cost {
            generator_bytes: fit(300.0, 0.9),
            generator_cpu_us_per_idle_second: fit(-0.01, 0.9),
            generator_cpu_us_per_request: fit(12.34, 0.9),
            kernel_bytes: fit(2_500.4, 0.9),
            target_cpu_us_per_handshake: fit(30_000.0, 0.9),
            target_cpu_us_per_open: fit(45.0, 0.9),
            target_kernel_bytes: fit(8_400.0, 0.9),
            target_live_fit: fit(2_412.3, 0.9),
            ..Cost::default()
        };
        let rows: Vec<(String, String)> =
            cost.fits().map(|(figure, fit)| row(figure, fit, "coordinator")).collect();
        let expected = [
            ("memory of coordinator per connection", "300 ± 3 bytes"),
            ("CPU of coordinator per idle second", "0.0 µs ± 0.1 µs"),
            ("CPU of coordinator per response", "12.3 µs ± 0.1 µs"),
            ("memory of the kernel per connection", "2500 ± 25 bytes"),
            ("CPU of the target per connection and TLS handshake", "30 ms ± 300.0 µs"),
            ("CPU of the target per connection opened", "45.0 µs ± 0.5 µs"),
            ("memory of the kernel on the target's host per connection", "8400 ± 84 bytes"),
            ("live heap of the target per connection", "2412 ± 24 bytes"),
        ];
        assert_eq!(rows, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_summary_line_has_the_known_figures() {
        check(Cost::default(), None);
        check(
            Cost { target_cpu_us_per_request: fit(12.34, 0.9), ..Cost::default() },
            Some("CPU of target: 12.3 µs per response"),
        );
        check(
            Cost { generator_cpu_us_per_request: fit(30_000.0, 0.9), ..Cost::default() },
            Some("CPU of throng: 30 ms per response"),
        );
        let secured = Cost {
            target_cpu_us_per_open: fit(345.0, 0.9),
            target_cpu_us_per_handshake: fit(344.0, 0.9),
            generator_cpu_us_per_handshake: fit(120.0, 0.9),
            ..Cost::default()
        };
        let expected = "CPU of target: 344.0 µs per connection and TLS handshake; CPU of throng: 120.0 µs per connection and TLS handshake";
        check(secured, Some(expected));
        let all = Cost {
            target_bytes: fit(1_000.4, 0.999),
            generator_bytes: fit(300.0, 0.987),
            kernel_bytes: fit(2_500.0, 1.0),
            target_cpu_us_per_open: fit(45.0, 0.9),
            generator_cpu_us_per_idle_second: fit(0.5, 0.9),
            ceiling_connections: Some(2_674_999),
            ..Cost::default()
        };
        check(
            all,
            Some(
                "bytes per connection: target 1000 ± 10, throng 300 ± 3, kernel 2500 ± 25 (R² 0.987); CPU of target: 45.0 µs per connection opened; CPU of throng: 0.5 µs per idle second; memory for about 2,700,000 connections",
            ),
        );
        let wild = Fit { value: 900.0, error: 40.0, r2: 0.585 };
        let discarded = ["target_bytes", "generator_bytes"]
            .map(|figure| samples::Discarded { figure: figure.to_owned(), fit: wild });
        check(
            Cost { kernel_bytes: fit(2_500.0, 1.0), discarded: discarded.to_vec(), ..Cost::default() },
            Some(
                "bytes per connection: kernel 2500 ± 25 (R² 1.000), target not measured: fit R² 0.58, throng not measured: fit R² 0.58",
            ),
        );
        let jvm = Cost {
            target_bytes: fit(4_700.0, 0.99),
            target_runtime: Some("JVM".to_owned()),
            target_live_bytes: Some(2_412.3),
            target_live_fit: Some(Fit { value: 2_412.3, error: 31.0, r2: 0.999 }),
            ..Cost::default()
        };
        check(
            jvm,
            Some(
                "bytes per connection: target 4700 ± 47 (JVM: resident memory, not its live heap) (R² 0.990); live heap of the target: 2412 ± 31 bytes per connection",
            ),
        );
        let few = Cost { ceiling_connections: Some(7), ..Cost::default() };
        check(few, Some("memory for about 7 connections"));
    }
}
