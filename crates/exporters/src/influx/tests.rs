use super::*;
use crate::metrics::made_up::two_seconds;
use fixtures::header;

#[test]
fn points_are_line_protocol() {
    let (_, [_, last]) = two_seconds();
    let text = points(&last, &tags(&header()));
    let check = |line: &str| assert!(text.lines().any(|one| one == line), "no {line} in {text}");
    let run = "target=http://t/ü?a\\=\"1\",seed=7";
    let ns = "1700000002250000000";
    check(&format!("throng_run_info,{run},io=epoll value=1 {ns}"));
    check(&format!("throng_connections_open,{run},population=idle value=20 {ns}"));
    check(&format!("throng_connections_open,{run},population=a\\,\"b\"\\ \\=c value=2 {ns}"));
    check(&format!("throng_statuses_total,{run},population=idle,status=200 value=2997 {ns}"));
    check(&format!("throng_generator_cpu_seconds_total,{run},mode=user value=0.5 {ns}"));
    check(&format!("throng_connect_seconds,{run},population=idle count=0,sum=0 {ns}"));
    assert!(text.lines().any(|line| {
        line.starts_with(&format!("throng_latency_seconds,{run},population=idle count=2000,sum=1501.5,p50="))
    }));
    check(&format!("throng_agent_up,{run},agent=a value=0 {ns}"));
    check(&format!("throng_agent_up,{run},agent=b value=1 {ns}"));
    check(&format!("throng_agent_cpu_seconds_total,{run},agent=a value=1.5 {ns}"));
    check(&format!("throng_agent_cpu_seconds_total,{run},agent=b value=0.75 {ns}"));
    check(&format!("throng_agent_lag_p99_seconds,{run},agent=b value=0.004 {ns}"));
    assert!(
        !text.contains(&format!("throng_agent_lag_p99_seconds,{run},agent=a")),
        "nothing was due: {text}"
    );
    assert!(!text.contains("throng_target_accept_queue"), "nobody saw it: {text}");
    assert!(text.lines().all(|line| line.ends_with(&format!(" {ns}"))), "{text}");
}

#[test]
fn tags_say_what_line_protocol_can() {
    for (says, expected) in [
        ("", ""),
        ("a", ",t=a"),
        ("a b,c=d", ",t=a\\ b\\,c\\=d"),
        ("a\nb", ",t=a\\ b"),
        ("a\\b\\", ",t=a\\b"),
        ("\\", ""),
    ] {
        assert_eq!(tag("t", says), expected, "{says:?}");
    }
}
