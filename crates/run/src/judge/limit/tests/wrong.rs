//! Responses that are not as expected, in words.

use super::*;

#[test]
fn wrong_responses_are_described_with_their_statuses() {
    let wrong = |kind, n: u64| fault(Stage::Exchange, kind, n);
    let detail = |faults: Vec<FaultCount>, statuses: &[(u16, u64)]| {
        let mut s = stopped(1_000, faults);
        s.requests.status.extend(statuses.iter().copied());
        limit(&s, &Evidence::default()).expect("it is bad").detail
    };
    assert_eq!(
        detail(vec![wrong(Kind::WrongStatus, 34_502)], &[(404, 34_500), (503, 2)]),
        "34,502 responses were wrong: unexpected status, 404 × 34,500, 503 × 2"
    );
    assert_eq!(
        detail(vec![wrong(Kind::Truncated, 5), wrong(Kind::WrongLength, 2)], &[]),
        "7 responses were wrong, 5 of them: cut off in the middle"
    );
    assert_eq!(
        detail(vec![wrong(Kind::BadAnswer, 1)], &[]),
        "1 response was wrong: not allowed by the protocol"
    );
}
