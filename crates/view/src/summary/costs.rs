//! The rows of resource usage: CPU and memory of throng, the target and the kernel.

use samples::{ProcessCost, Summary};
use units::{Bytes, Count};

use super::{cores, generator, row};

pub(super) fn rows(s: &Summary, out: &mut String) {
    let g = &s.generator;
    row(out, generator(s), use_of(g.cpu_s, g.over_s, g.rss_bytes, g.user_bytes_per_connection));
    if let Some(t) = &s.target_cost {
        let used = use_of(t.cpu_s, t.over_s, t.rss_bytes, t.user_bytes_per_connection);
        row(out, "target", format!("{used} (process {}{})", t.pid, others(t)));
    }
    if let Some(k) = &s.kernel_bytes_per_connection {
        let is_target_here = s.target_cost.is_some() && s.observed.target_host.is_none();
        let ends = match k.both_ends {
            true => "both ends",
            // With `tun`, the kernel has no socket for throng's end.
            false if s.io == "tun" && is_target_here => "the target's end",
            false => "this end",
        };
        row(out, "kernel", format!("{:.0} bytes per connection, {ends}", k.value));
    }
    if let Some(line) = crate::cost::line(&s.cost, generator(s)) {
        row(out, "cost", line);
    }
    if let Some(o) = &s.observed.observer {
        let failures = match &o.last_failure {
            Some(why) => format!(", {}, the last: {why}", Count(o.failures).of("failure")),
            None => String::new(),
        };
        row(out, "observer", format!("{}: {}{failures}", o.address, Count(o.answers).of("response")));
    }
}

/// Of several processes, the smallest and the largest.
fn others(t: &ProcessCost) -> String {
    let sizes = || t.processes.iter().map(|own| own.rss_bytes);
    match (sizes().min(), sizes().max()) {
        (Some(least), Some(most)) if t.processes.len() > 1 => {
            format!(" and others: {} to {} each", Bytes(least).brief(), Bytes(most).brief())
        }
        _ => String::new(),
    }
}

/// CPU and memory, with the memory per connection if it is known.
fn use_of(cpu_s: f64, over_s: f64, rss_bytes: u64, each: Option<f64>) -> String {
    let each = each.map_or(String::new(), |bytes| format!(", {bytes:.0} bytes per connection"));
    // Earlier versions did not store the time.
    let cores = if over_s > 0.0 { format!(" ({})", cores(cpu_s / over_s)) } else { String::new() };
    format!("{cpu_s:.1} s of CPU{cores}, {} of memory{each}", Bytes(rss_bytes).brief())
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::ProcessMemory;

    #[test]
    fn cpu_is_also_in_cores() {
        assert_eq!(use_of(3.0, 2.0, 1 << 20, None), "3.0 s of CPU (1.50 cores), 1.0 MiB of memory");
        assert_eq!(use_of(0.1, 0.0, 1 << 20, None), "0.1 s of CPU, 1.0 MiB of memory");
    }

    #[test]
    fn several_processes_are_reported_by_their_extremes() {
        let check = |mib: &[u64], expected| {
            let processes = (7..).zip(mib).map(|(pid, mib)| ProcessMemory { pid, rss_bytes: mib << 20 });
            let cost = ProcessCost { processes: processes.collect(), ..ProcessCost::default() };
            assert_eq!(others(&cost), expected, "{mib:?}");
        };
        check(&[], "");
        check(&[28], "");
        check(&[28, 60, 41], " and others: 28.0 MiB to 60.0 MiB each");
    }
}
