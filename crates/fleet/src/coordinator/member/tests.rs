use plan::ProbeKind;
use samples::Counts;

use super::*;

#[test]
fn an_agent_holds_what_its_load_has_open_when_that_ends() {
    let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
    let roles = [Role::Population(0), Role::Probe(ProbeKind::Kept), Role::Population(1)];
    member.add_workers(0, &roles);
    let count = |member: &mut Member, phase: Phase, open: [u64; 3]| {
        let stalled = Nanos::from_millis(open[0]);
        let ticks = open.map(|open| Tick { open, phase, stalled, ..Tick::default() }).to_vec();
        member.count(ticks, |_| false, (0, &mut Seconds::default()), &mut VecDeque::new());
        member.summary(None).held
    };
    assert_eq!(count(&mut member, Phase::Hold, [10, 1, 5]), 15);
    assert_eq!(count(&mut member, Phase::Drain, [9, 1, 5]), 14);
    assert_eq!(count(&mut member, Phase::Drain, [3, 1, 0]), 14, "they end after the load");
    member.lose_unheard(&mut VecDeque::new());
    let AgentSummary { held, lost_with, stall_us, .. } = member.summary(None);
    assert_eq!(
        (held, lost_with, stall_us),
        (14, 14, 10e3),
        "it was lost after its load, and its longest stall"
    );
    // An agent that is lost during its load holds nothing: its lease expires.
    let mut member = Member::again(Incarnation { id: "b".to_owned(), nonce: 1 }, Answer::None);
    member.add_workers(0, &roles);
    assert_eq!(count(&mut member, Phase::Hold, [10, 1, 5]), 15);
    member.lose_unheard(&mut VecDeque::new());
    let AgentSummary { held, lost_with, .. } = member.summary(None);
    assert_eq!((held, lost_with), (0, 15));
}

#[test]
fn connections_that_had_nothing_more_to_send_were_held() {
    let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
    member.add_workers(0, &[Role::Population(0)]);
    for (phase, open, ended_after) in
        [(Phase::Hold, 10, 0), (Phase::Hold, 4, 6), (Phase::Drain, 1, 3), (Phase::Drain, 0, 1)]
    {
        let counts = Counts { ended_after, ..Counts::default() };
        let tick = Tick { phase, open, counts, ..Tick::default() };
        member.count(vec![tick], |_| false, (0, &mut Seconds::default()), &mut VecDeque::new());
        assert_eq!(member.summary(None).held, 10, "{phase:?} {open}");
    }
}

#[test]
fn requests_under_way_when_an_agent_is_lost_are_lost_with_it() {
    let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
    member.add_workers(0, &[Role::Population(0), Role::Probe(ProbeKind::Kept), Role::Population(1)]);
    let count = |member: &mut Member, ticks: [(u64, u64); 3]| {
        let tick = |(waiting, unanswered)| {
            let counts = Counts { unanswered, ..Counts::default() };
            Tick { waiting, unsettled: waiting - unanswered, counts, ..Tick::default() }
        };
        let ticks = ticks.map(tick).to_vec();
        member.count(ticks, |_| false, (0, &mut Seconds::default()), &mut VecDeque::new());
    };
    count(&mut member, [(7, 0), (1, 0), (3, 0)]);
    assert_eq!(member.summary(None).requests_lost, 0, "they go on");
    member.lose_unheard(&mut VecDeque::new());
    assert_eq!(member.summary(None).requests_lost, 10, "those of the probe are none of the load");
    // Late ticks: the load of one population has ended, without responses in time.
    count(&mut member, [(7, 7), (1, 0), (2, 0)]);
    assert_eq!(member.summary(None).requests_lost, 2);
}

/// Takes entries of an agent that sent 3, 5 and 7 requests, and its seal, in this order. Returns what was taken, and whether it is
/// complete.
fn taken(order: &[u64], sealed: [u64; 3]) -> (u64, bool) {
    let tick = |sent| Tick { counts: Counts { sent, ..Counts::default() }, ..Tick::default() };
    let mut sums = Sums::default();
    sealed.iter().for_each(|sent| sums.add(&tick(*sent)));
    let seal = Seal { sums: vec![sums], ..Seal::default() };
    let record = |sequence: u64| match sequence {
        3 => Record::Sealed(seal.clone()),
        nth => Record::Ticks(vec![tick([3, 5, 7][nth as usize])]),
    };
    let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
    member.add_workers(0, &[Role::Population(0)]);
    for sequence in order {
        member.take(*sequence, record(*sequence));
        while let Some(record) = member.poll_record() {
            let (changes, seconds) = (&mut VecDeque::new(), &mut Seconds::default());
            match record {
                Record::Ticks(ticks) => member.count(ticks, |_| false, (0, seconds), changes),
                Record::Sealed(seal) => member.seal(seal, changes),
                other => panic!("{other:?}"),
            }
        }
    }
    (member.sent(), member.summary(None).sealed)
}

#[test]
fn entries_count_once_in_their_order_and_must_add_up_to_the_seal() {
    for order in [&[0, 1, 2, 3][..], &[3, 2, 1, 0], &[1, 1, 0, 0, 3, 3, 2, 2, 1, 0, 3]] {
        assert_eq!(taken(order, [3, 5, 7]), (15, true), "{order:?}");
    }
    assert_eq!(taken(&[0, 1, 2, 3], [3, 5, 8]), (15, false), "it lies");
    assert_eq!(taken(&[0, 2, 3], [3, 5, 7]), (3, false), "one is missing");
    assert_eq!(taken(&[0, 1, 2], [3, 5, 7]), (15, false), "its seal is missing");
}

#[test]
fn how_long_no_agent_had_the_part_of_a_lost_one_is_known() {
    let s = Nanos::from_secs;
    let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
    member.heard = s(20);
    assert_eq!(member.summary(None).gap_s, 0.0);
    member.lose_unheard(&mut VecDeque::new());
    // It reports once more, too late to get its part back.
    member.is_replaced = true;
    member.be_heard(s(30), &mut VecDeque::new());
    member.be_taken_over("b".to_owned(), s(36));
    member.be_taken_over("c".to_owned(), s(35));
    let AgentSummary { gap_s, taken_over_by, .. } = member.summary(None);
    assert_eq!((gap_s, taken_over_by), (16.0, vec!["b".to_owned(), "c".to_owned()]));
    let seal = Seal { why: Some("its lease".to_owned()), closed_by_lease: 7, ..Seal::default() };
    member.seal(seal, &mut VecDeque::new());
    assert_eq!(member.summary(None).closed_by_lease, 7);
}

#[test]
fn how_an_agent_was_lost_is_known() {
    let check = |lose: fn(&mut Member), expected: &str| {
        let mut member = Member::again(Incarnation { id: "a".to_owned(), nonce: 1 }, Answer::None);
        lose(&mut member);
        assert_eq!(member.poll_notice(), Some(format!("agent a was lost: {expected}")));
        assert_eq!(member.summary(None).why.as_deref(), Some(expected));
        member.not_taken = Some("none took over its part".to_owned());
        assert_eq!(member.summary(None).why, Some(format!("{expected}; none took over its part")));
    };
    check(|member| member.lose_unheard(&mut VecDeque::new()), "no heartbeat for 4s");
    check(|member| member.idle(&mut VecDeque::new()), "it no longer takes part in the run");
    let stopped = |member: &mut Member| {
        let seal = Seal { why: Some("it was stopped".to_owned()), ..Seal::default() };
        member.seal(seal, &mut VecDeque::new());
    };
    check(stopped, "it was stopped");
}
