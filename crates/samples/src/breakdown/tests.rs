use super::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

#[test]
fn octaves_cover_all_times() {
    for (time, expected) in
        [(0, 0), (8_191, 0), (8_192, 1), (16_383, 1), (16_384, 2), (1 << 36, 24), (u64::MAX, 24)]
    {
        assert_eq!(cell(Nanos(time)), expected, "{time}");
    }
    for at in 1..TIMES {
        assert_eq!((cell(from_cell(at)), cell(Nanos(from_cell(at).0 - 1))), (at, at - 1));
    }
}

#[test]
fn each_outcome_has_its_column() {
    let mut outcomes = Outcomes::default();
    let all = [
        Outcome::InRamp,
        Outcome::Wrong,
        Outcome::Wrong,
        Outcome::Missing,
        Outcome::Took(MS(1)),
        Outcome::Took(MS(300)),
    ];
    all.iter().for_each(|one| outcomes.count(*one));
    assert_eq!((outcomes.all(), outcomes.wrong(), outcomes.missing(), outcomes.timed()), (6, 2, 1, 2));
    let edges = [0, cell(MS(1)), cell(MS(1)) + 1, cell(MS(300)), cell(MS(300)) + 1, 99];
    assert_eq!(edges.map(|edge| outcomes.from(edge)), [2, 2, 1, 1, 0, 0]);
}

#[test]
fn a_request_is_counted_once_in_each_of_its_buckets() {
    let mut buckets = Buckets::NONE;
    buckets.set(Dimension::Group, 7);
    buckets.set(Dimension::Size, 999);
    let mut breakdown = Breakdown::default();
    assert!(breakdown.is_empty() && breakdown.buckets(Dimension::Size).is_empty());
    (0..3).for_each(|_| breakdown.count(buckets, Outcome::Wrong));
    let wrong = |dimension| breakdown.buckets(dimension).iter().map(Outcomes::wrong).collect::<Vec<u64>>();
    for dimension in Dimension::ALL {
        let mut expected = vec![0; dimension.buckets()];
        if *dimension == Dimension::Group {
            expected[7] = 3;
        } else if *dimension == Dimension::Size {
            expected[Dimension::Size.buckets() - 1] = 3;
        }
        assert_eq!(wrong(*dimension), expected, "{dimension:?}");
    }
    assert_eq!(breakdown.all().wrong(), 3);
}

#[test]
fn it_is_read_as_it_was_written() {
    for seed in 0..20 {
        let breakdown = drawn(seed);
        let written = serde_json::to_string(&breakdown).unwrap();
        assert_eq!(serde_json::from_str::<Breakdown>(&written).unwrap(), breakdown, "{written}");
    }
    let mut buckets = Buckets::NONE;
    buckets.set(Dimension::Step, 2);
    let mut one = Breakdown::default();
    one.count(buckets, Outcome::Took(MS(1)));
    one.count(buckets, Outcome::Missing);
    assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"step":[[2,2,1,10,1]]}"#);
    for wrong in
        [r#"{"step":[[16,2,1]]}"#, r#"{"step":[[2,99,1]]}"#, r#"{"step":[[2,1]]}"#, r#"{"step":[[]]}"#]
    {
        assert!(serde_json::from_str::<Breakdown>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn bins_are_merged_in_pairs_where_there_are_too_many() {
    let mut bins = Bins::default();
    let mut one = Outcomes::default();
    one.count(Outcome::Missing);
    for second in 3..900 {
        bins.add(Nanos::from_secs(second), &one);
    }
    // A late event, before all others.
    bins.add(Nanos::ZERO, &one);
    assert_eq!(bins.width, MS(1_600));
    assert!(bins.iter().count() <= Bins::MOST);
    assert_eq!(bins.iter().map(|(_, bin)| bin.missing()).sum::<u64>(), 898);
    assert_eq!(bins.iter().next().map(|(from, bin)| (from, bin.missing())), Some((MS(1_600), 2)));
    let at_100_s = bins.iter().find(|(from, _)| *from == MS(99_200)).map(|(_, bin)| bin.missing());
    assert_eq!(at_100_s, Some(1), "second 100");
    let read: Bins = serde_json::from_str(&serde_json::to_string(&bins).unwrap()).unwrap();
    assert!(read.iter().eq(bins.iter()));
}
