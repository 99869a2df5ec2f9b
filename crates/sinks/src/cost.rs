//! What a connection and a request cost, on one line.

use samples::{Cost, Fit, Summary};
use units::Count;

/// The line, where there is something to tell.
pub(crate) fn line(s: &Summary) -> Option<String> {
    let parts = [
        bytes(&s.cost),
        cpu("target", target_cpu(&s.cost)),
        cpu("throng", own_cpu(&s.cost)),
        ceiling(&s.cost),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Memory; the least R² of those shown says how far to believe them.
fn bytes(c: &Cost) -> Option<String> {
    let all = [
        ("target", c.target_bytes),
        ("throng", c.generator_bytes),
        ("kernel", c.kernel_bytes),
        ("kernel there", c.target_kernel_bytes),
    ];
    let shown: Vec<(&str, Fit)> = all.into_iter().filter_map(|(name, fit)| Some((name, fit?))).collect();
    let each: Vec<String> =
        shown.iter().map(|(name, fit)| format!("{name} {:.0} ± {:.0}", fit.value, fit.error)).collect();
    let r2 = shown.iter().map(|(_, fit)| fit.r2).fold(1.0, f64::min);
    (!each.is_empty()).then(|| format!("bytes a connection: {} (R² {r2:.3})", each.join(", ")))
}

type Cpu = [(&'static str, Option<Fit>); 3];

fn target_cpu(c: &Cost) -> Cpu {
    [
        ("a connection opened", c.target_cpu_us_per_open),
        ("an answer", c.target_cpu_us_per_request),
        ("an idle second", c.target_cpu_us_per_idle_second),
    ]
}

fn own_cpu(c: &Cost) -> Cpu {
    [
        ("a connection opened", c.generator_cpu_us_per_open),
        ("an answer", c.generator_cpu_us_per_request),
        ("an idle second", c.generator_cpu_us_per_idle_second),
    ]
}

fn cpu(who: &str, costs: Cpu) -> Option<String> {
    let each: Vec<String> =
        costs.into_iter().filter_map(|(what, fit)| Some(format!("{:.1} µs {what}", fit?.value))).collect();
    (!each.is_empty()).then(|| format!("CPU of {who}: {}", each.join(", ")))
}

fn ceiling(c: &Cost) -> Option<String> {
    c.ceiling_connections.map(|n| format!("memory for about {} connections", Count(n)))
}
