use super::*;
use proptest::prelude::*;

#[test]
fn nothing_recorded_reads_zero() {
    assert_eq!(Latency::default().quantiles(), Quantiles::default());
}

#[test]
fn a_coarse_one_is_right_to_a_hundredth() {
    let mut l = Latency::default();
    for us in 1..=10_000 {
        l.record(Nanos::from_micros(us));
    }
    let fine = l.quantiles();
    l.coarsen();
    let coarse = l.quantiles();
    assert_eq!(
        (coarse.count, coarse.mean, coarse.min, coarse.max),
        (fine.count, fine.mean, fine.min, fine.max)
    );
    for (coarse, fine) in [(coarse.p50, fine.p50), (coarse.p99, fine.p99), (coarse.p999, fine.p999)] {
        assert!((coarse / fine - 1.0).abs() < 0.01, "{coarse} for {fine}");
    }
    let mut twice = l.clone();
    twice.merge(&l);
    assert_eq!((twice.count(), twice.quantile(0.5)), (20_000, l.quantile(0.5)));
}

#[test]
fn a_ramp_of_times_has_its_quantiles() {
    let mut l = Latency::default();
    for us in 1..=10_000 {
        l.record(Nanos::from_micros(us));
    }
    let q = l.quantiles();
    assert_eq!((q.count, q.min, q.max), (10_000, 1.0, 10_000.0));
    for (got, want) in [
        (q.mean, 5_000.5),
        (q.p50, 5_000.0),
        (q.p75, 7_500.0),
        (q.p90, 9_000.0),
        (q.p95, 9_500.0),
        (q.p99, 9_900.0),
        (q.p999, 9_990.0),
        (q.p9999, 9_999.0),
    ] {
        assert!((got / want - 1.0).abs() < 0.002, "{got} for {want}");
    }
    // The standard deviation of 1..n is sqrt((n² - 1) / 12).
    assert!((q.stdev / 2886.75 - 1.0).abs() < 0.002, "{}", q.stdev);
}

#[test]
fn longer_than_an_hour_counts_as_an_hour_with_its_true_maximum() {
    let mut l = Latency::default();
    l.record(Nanos::from_secs(7200));
    assert_eq!((l.count(), l.quantiles().max), (1, 7.2e9));
    assert!(l.quantile(0.5) >= Nanos::from_secs(3590));
}

#[test]
fn shares_sums_and_extremes_are_of_what_was_recorded() {
    let mut l = Latency::default();
    assert_eq!((l.min(), l.max(), l.mean_s(), l.stdev_s()), (Nanos::ZERO, Nanos::ZERO, 0.0, 0.0));
    assert_eq!(l.count_within(Nanos::ZERO, Nanos::NEVER), 0);
    for ms in [4, 1, 2, 3, 10] {
        l.record(Nanos::from_millis(ms));
    }
    assert_eq!((l.min(), l.max()), (Nanos::from_millis(1), Nanos::from_millis(10)));
    assert!((l.sum_s() - 0.020).abs() < 1e-12 && (l.mean_s() - 0.004).abs() < 1e-12);
    let within = |from, to| l.count_within(Nanos::from_millis(from), Nanos::from_millis(to));
    assert_eq!((within(0, 1), within(2, 3), within(5, 9), within(0, 10), within(3, 2)), (1, 2, 0, 5, 0));
    let bounds = [0, 1, 3, 9, 10, 60_000].map(Nanos::from_millis);
    assert_eq!(l.counts_up_to(&bounds), [0, 1, 3, 4, 5, 5]);
    assert_eq!(Latency::default().counts_up_to(&bounds), [0; 6]);
    let (mut empty, before) = (Latency::default(), l.quantiles());
    l.merge(&empty);
    empty.merge(&l);
    assert_eq!((l.quantiles(), empty.quantiles()), (before, before), "nothing is the neutral element");
    l.clear();
    assert_eq!(l.quantiles(), Quantiles::default());
}

#[test]
fn censored_values_exceed_all_measured_ones() {
    // Number of times (1 ms, 2 ms, …), number without a response, quantile, and expected milliseconds.
    let check = |n: u64, censored: u64, q: f64, expected: Option<u64>| {
        let mut l = Latency::default();
        (1..=n).for_each(|ms| l.record(Nanos::from_millis(ms)));
        (0..censored).for_each(|_| l.censor());
        let got = l.judged_quantile(q).map(|t| (t.0 as f64 / 1e6).round() as u64);
        assert_eq!(got, expected, "{n} with a time, {censored} without, quantile {q}");
        assert_eq!((l.count(), l.censored()), (n, censored));
    };
    check(0, 0, 0.5, None);
    check(0, 5, 0.5, None);
    check(100, 0, 0.99, Some(99));
    check(100, 0, 1.0, Some(100));
    // Exactly one in a hundred has no response, and then one more.
    check(990, 10, 0.99, Some(990));
    check(990, 11, 0.99, None);
    check(100, 100, 0.25, Some(50));
    check(100, 100, 0.5, Some(100));
    check(100, 101, 0.5, None);
    check(100, 102, 0.51, None);
    check(1, 0, 0.001, Some(1));
    let mut l = Latency::default();
    assert_eq!((l.quantiles().censored, l.censored_share()), (None, 0.0));
    l.record_n(Nanos::from_millis(4), 3);
    l.record_n(Nanos::from_millis(9), 0);
    l.censor();
    let mut twice = l.clone();
    twice.merge(&l);
    let q = twice.quantiles();
    assert_eq!((q.count, q.mean, q.max), (6, 4_000.0, 4_000.0), "the figures of what was measured stay");
    let censored = q.censored.unwrap();
    assert_eq!((censored.count, censored.share, censored.p99), (2, 0.25, None));
    assert!((censored.p75.unwrap() / 4_000.0 - 1.0).abs() < 1e-3, "{censored:?}");
    let read: Latency = serde_json::from_str(&serde_json::to_string(&twice).unwrap()).unwrap();
    assert_eq!(read, twice);
    twice.clear();
    assert_eq!(twice.quantiles(), Quantiles::default());
}

#[test]
fn a_bucket_takes_more_than_32_bits() {
    let mut l = Latency::default();
    l.record_n(Nanos::from_millis(1), 3 << 30);
    let half = l.clone();
    l.merge(&half);
    l.record_n(Nanos::from_millis(100), 3 << 30);
    assert_eq!(l.count(), 9 << 30);
    assert_eq!(
        l.count_within(Nanos::ZERO, Nanos::from_millis(2)),
        6 << 30,
        "the buckets add up to the total"
    );
    assert_eq!((l.quantile(0.66).millis(), l.quantile(0.67).millis()), (1, 100));
    let read: Latency = serde_json::from_str(&serde_json::to_string(&l).unwrap()).unwrap();
    assert_eq!(read.count_within(Nanos::ZERO, Nanos::from_millis(2)), 6 << 30);
}

proptest! {
    /// Merging is associative and commutative, and equals recording everything in one place.
    #[test]
    fn merging_equals_recording_together(a in times(), b in times(), c in times()) {
        let of = |lists: &[&Vec<u64>]| {
            let mut l = Latency::default();
            lists.iter().for_each(|list| list.iter().for_each(|t| l.record(Nanos(*t))));
            l
        };
        let together = of(&[&a, &b, &c]);
        let (mut left, mut right) = (of(&[&a]), of(&[&c]));
        left.merge(&of(&[&b]));
        left.merge(&of(&[&c]));
        right.merge(&of(&[&b]));
        right.merge(&of(&[&a]));
        prop_assert_eq!(&left, &together);
        prop_assert_eq!(&right, &together);
    }
}

#[test]
fn slow_times_of_their_own_kind_are_a_part() {
    let part = |times: &[(u64, u64)]| {
        let mut l = Latency::default();
        times.iter().for_each(|(us, n)| l.record_n(Nanos(us * 1_000), *n));
        l.slow_part().map(|part| format!("{:.3}: {}, {}", part.share, part.slow.brief(), part.usual.brief()))
    };
    let expected = Some("0.050: 4.0 s, 20 ms".to_owned());
    assert_eq!(part(&[(20_000, 900), (23_000, 50), (4_000_000, 30), (4_010_000, 20)]), expected);
    // A single time in between counts as slow.
    assert_eq!(part(&[(20_000, 950), (300_000, 1), (4_000_000, 49)]), expected);
    // Not a separate part: too few, too many, times of all lengths, too close to the others, all equal, or none.
    assert_eq!(part(&[(20_000, 900), (4_000_000, 2)]), None);
    assert_eq!(part(&[(20_000, 40), (4_000_000, 60)]), None);
    assert_eq!(part(&[(20_000, 90), (1_000_000, 5), (4_000_000, 5)]), None);
    assert_eq!(part(&[(20_000, 90), (60_000, 10)]), None);
    assert_eq!((part(&[(20_000, 90)]), part(&[])), (None, None));
}

proptest! {
    /// The error of a recorded time is within its bound.
    #[test]
    fn a_time_is_as_exact_as_its_grain(ns in 1u64..crate::buckets::HIGHEST) {
        let mut l = Latency::default();
        l.record(Nanos(ns));
        l.record(Nanos(crate::buckets::HIGHEST));
        let (us, read) = (ns as f64 / 1e3, l.quantile(0.5).0 as f64 / 1e3);
        prop_assert!((read - us).abs() <= us * Latency::grain(us), "{} for {}", read, us);
    }
}

proptest! {
    /// Both ways of counting agree.
    #[test]
    fn counts_up_to_a_time_are_those_within_it(values in times(), bound in 0u64..10_000_000_000) {
        let mut l = Latency::default();
        values.iter().for_each(|t| l.record(Nanos(*t)));
        let bounds = [Nanos(bound / 2), Nanos(bound)];
        prop_assert_eq!(l.counts_up_to(&bounds), bounds.map(|to| l.count_within(Nanos::ZERO, to)));
    }
}

fn times() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(0u64..10_000_000_000, 0..40)
}
