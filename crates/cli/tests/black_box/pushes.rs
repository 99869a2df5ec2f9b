//! Messages that the server, `throng serve`, sends without a request.

use crate::{
    program::{Serving, file},
    summary::run,
};

#[test]
fn a_feed_is_measured() {
    let serving = Serving::start(&[]);
    let target = format!("ws://{}/ws/push?every=250ms&length=64", serving.address);
    let path = file("feed.toml");
    let text = format!(
        "target = \"{target}\"\nduration = \"3s\"\nthresholds = [\"duplicates == 0\", \"delay.p99 < 10s\", \"pushes.complete >= 50%\"]\n\
         [[population]]\nname = \"viewers\"\nconnections = 12\nmessage = \"\"\n\
         expect = {{ time = \"json:/ts\", number = \"json:/seq\", receivers = \"all\" }}\n"
    );
    std::fs::write(&path, text).unwrap();
    let (ended, s) = run(path.to_str().unwrap(), &["--threads", "2"]);
    ended.assert_status(0);
    let count = |name: &str| s.count(&format!("pushes.{name}"));
    // Twelve in three seconds; fewer where a server without a processor leaves some out, and then they are lost.
    let pushes = count("count");
    assert!(
        (12 * 8..=12 * 20).contains(&(pushes + count("lost"))) && count("lost") * 2 < pushes,
        "{:#}",
        s.at("pushes")
    );
    assert_eq!(
        (count("numbered"), s.count("requests.messages"), s.count("delay_us.count")),
        (pushes, pushes, pushes)
    );
    assert_eq!((count("bytes"), count("bytes_max")), (64 * pushes, 64));
    assert_eq!((count("duplicates"), count("out_of_order"), count("unread"), count("ahead")), (0, 0, 0, 0));
    assert_eq!(s.at("pushes.clock_offset_us").as_f64(), Some(0.0));
    // All but the first of each connection.
    assert_eq!(s.count("gap_us.count"), pushes - 12);
    // The number of intervals between the first and the last number.
    let (mean, intervals) =
        (s.number("gap_us.mean"), (pushes - 12 + count("lost")) as f64 / (pushes - 12) as f64);
    assert!((mean / (250e3 * intervals) - 1.0).abs() < 0.1, "{mean} us apart");
    assert_eq!(s.count("spread_us.count"), count("complete"));
    assert!(s.number("spread_us.p50") < 250e3 && s.number("delay_us.p50") < 250e3, "{:#}", s.0);
    let rate = s.number("pushes.per_s") * s.number("elapsed_s");
    assert!((rate - pushes as f64).abs() < 0.5, "{rate}");
    for row in
        ["  pushed        ", "  delay         ", "  numbers       ", "  broadcasts    ", "  gap           "]
    {
        assert!(ended.stderr.contains(row), "{row}: {}", ended.stderr);
    }
}

#[test]
fn what_feeds_cannot_do_is_said_at_once() {
    let path = file("feeds.toml");
    let text = "[[population]]\nname = \"a\"\ntarget = \"http://127.0.0.1:1/\"\nexpect = { time = \"json:/ts\" }\n\
        [[population]]\nname = \"b\"\ntarget = \"ws://127.0.0.1:1/\"\nexpect = { time = \"ts\", receivers = \"all\" }\n\
        [[population.on]]\nis = \"2\"\nstarts = \"2\"\n[[population.on]]\nevery = \"1s\"\n";
    std::fs::write(&path, text).unwrap();
    let ended = crate::program::Program::start(&["run", path.to_str().unwrap()]).end();
    ended.assert_status(2);
    for said in [
        "population.a.expect.time: http:// has no pushed messages; use a target with ws://",
        "population.b.expect.time: \"ts\" is not a location in a message; use json:/ts or after:ts=",
        "population.b.expect.receivers: requires number = \"json:/seq\", the same for all of them",
        "use one of is, starts, contains and every",
        "requires send = \"ping\"",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}
