//! Combines the summaries of several clients that shared a load: counts are added; of observations of the server, which all clients
//! share, the maximum is used; the worst verdict counts; and latencies are computed from all requests together.

use samples::{Cost, Latency, Quantiles, Summary, Tick, Verdict};

/// Combines summaries. `peak` is the maximum number of simultaneous connections. `totals` is the sum of all ticks from the run store,
/// needed since percentiles cannot be added; if the store lacks some of the ticks, latencies are omitted rather than wrong.
pub(crate) fn combined(summaries: &[Summary], peak: u64, totals: &Tick) -> Summary {
    let worst = summaries.iter().max_by_key(|summary| summary.verdict as u8).expect("there are several");
    let (first, others) = summaries.split_first().expect("there are several");
    let mut all = worst.clone();
    (all.figures, all.generator) = (first.figures.clone(), first.generator.clone());
    for other in others {
        all.figures.merge(&other.figures);
        all.generator.merge(&other.generator);
    }
    all.target.clone_from(&worst.target);
    all.connections.peak = peak.max(all.connections.held);
    let at_connections = all.connections.peak;
    all.limit.iter_mut().for_each(|limit| limit.at_connections = at_connections);
    if let Some(seen) = &mut all.target_cost {
        for other in summaries.iter().filter_map(|summary| summary.target_cost.as_ref()) {
            seen.rss_bytes = seen.rss_bytes.max(other.rss_bytes);
            seen.cpu_s = seen.cpu_s.max(other.cpu_s);
        }
        // Each client attributes the growth of the whole server's memory to its own part of the connections.
        seen.user_bytes_per_connection = None;
    }
    // These figures would be those of a single client.
    (all.kernel_bytes_per_connection, all.cost, all.probe) = (None, Cost::default(), None);
    all.populations.clear();
    times(&mut all, summaries, totals);
    let whose = if worst.verdict == Verdict::Pass { "each" } else { "one of them" };
    all.headline = format!("{} clients, {whose}: {}", summaries.len(), worst.headline);
    all
}

/// Sets the latencies, if the store has all of them.
fn times(all: &mut Summary, summaries: &[Summary], totals: &Tick) {
    let whole = |of: fn(&Summary) -> &Quantiles, times: &Latency| {
        let counted: u64 = summaries.iter().map(|summary| of(summary).count).sum();
        if times.count() == counted { times.quantiles() } else { Quantiles::default() }
    };
    all.latency_us = whole(|s| &s.latency_us, &totals.latency);
    all.ramp_latency_us = whole(|s| &s.ramp_latency_us, &totals.ramp_latency);
    all.first_byte_us = whole(|s| &s.first_byte_us, &totals.first_byte);
    all.gap_us = whole(|s| &s.gap_us, &totals.gap);
    all.delay_us = whole(|s| &s.delay_us, &totals.delay);
    all.spread_us = whole(|s| &s.spread_us, &totals.spread);
    all.ping_rtt_us = whole(|s| &s.ping_rtt_us, &totals.ping_rtt);
    all.connect_us = whole(|s| &s.connect_us, &totals.connect);
    all.tls_us = whole(|s| &s.tls_us, &totals.tls);
    all.tls_resumed_us = whole(|s| &s.tls_resumed_us, &totals.tls_resumed);
    all.handshake_us = whole(|s| &s.handshake_us, &totals.handshake);
    all.lag_us = whole(|s| &s.lag_us, &totals.lag);
    if all.latency_us.count == 0 && summaries.iter().any(|summary| summary.latency_us.count > 0) {
        let why =
            "latencies of several clients come from the run store, which does not have all of their runs";
        all.reasons = vec![why.to_owned()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{Fault, FaultCount, Generator, Kind, Limit, ProcessCost, Stage};
    use units::Nanos;

    fn summary(verdict: Verdict, held: u64, status: u16) -> Summary {
        let mut s =
            Summary { verdict, headline: format!("{}: of one", verdict.name()), ..Summary::default() };
        s.ramp_s = held as f64;
        (s.connections.held, s.connections.peak, s.connections.open_per_s) = (held, held + 5, 10.5);
        s.connections.seen_by_target = Some(held * 3);
        (s.requests.answered, s.requests.lower_bound) = (held * 2, held > 100);
        s.requests.status.insert(status, held * 2);
        if verdict == Verdict::Fail {
            s.limit = Some(Limit { at_connections: 1, ..Limit::default() });
        }
        s.faults = vec![FaultCount::new(Fault::target(Stage::Hold, Kind::Reset), held)];
        let cost = ProcessCost { rss_bytes: held * 10, cpu_s: 1.0, ..ProcessCost::default() };
        s.target_cost = Some(ProcessCost { user_bytes_per_connection: Some(99.0), ..cost });
        s.generator = Generator { cpu_s: 1.5, system_s: 0.5, rss_bytes: 100, ..Generator::default() };
        (s.latency_us.count, s.lag_us.count) = (1, 7);
        s
    }

    fn totals() -> Tick {
        let mut tick = Tick::default();
        tick.latency.record(Nanos::from_millis(7));
        let mut totals = tick.clone();
        totals.extend(&tick);
        totals
    }

    #[test]
    fn several_summaries_are_one() {
        let parts = [summary(Verdict::Pass, 100, 200), summary(Verdict::Pass, 200, 503)];
        let all = combined(&parts, 290, &totals());
        let c = &all.connections;
        assert_eq!((c.held, c.peak, c.open_per_s, c.seen_by_target), (300, 300, 21.0, Some(600)));
        assert_eq!((all.requests.answered, all.requests.lower_bound), (600, true));
        assert_eq!(all.requests.status, [(200, 200), (503, 400)].into());
        assert_eq!(all.headline, "2 clients, each: pass: of one");
        let cost = all.target_cost.unwrap();
        assert_eq!((cost.rss_bytes, cost.cpu_s, cost.user_bytes_per_connection), (2_000, 1.0, None));
        let own = &all.generator;
        assert_eq!((own.cpu_s, own.system_s, own.rss_bytes), (3.0, 1.0, 200));
        assert_eq!(all.figures.ramp_s, 200.0);
        assert_eq!((all.figures.latency_us.max, all.figures.latency_us.count), (7_000.0, 2));
        // Equal faults are combined.
        assert_eq!(all.figures.faults.iter().map(|fault| fault.count).collect::<Vec<_>>(), [300]);
        // The store has fewer values than the summaries.
        assert_eq!(all.lag_us, Quantiles::default());
    }

    #[test]
    fn the_worst_is_reported() {
        let parts = [summary(Verdict::Fail, 2, 200), summary(Verdict::Pass, 1, 200)];
        let all = combined(&parts, 30, &Tick::default());
        assert_eq!(all.headline, "2 clients, one of them: fail: of one");
        assert_eq!((all.verdict, all.limit.as_ref().unwrap().at_connections), (Verdict::Fail, 30));
        assert_eq!(all.latency_us, Quantiles::default());
        assert!(all.reasons[0].contains("the run store"));
    }
}
