//! Messages that the server sends unasked: measured, answered, ignored.

use std::cell::Cell;

use samples::{Kind, Stage};
use stage::{DATE, RunResult, measured, network, play, scenario, turns};
use units::Nanos;

use super::{MS, S, WAY, run};
use crate::listener::{Listener, Received, Reply, Speaks, frame, welcome};

fn against(text: &str, replies: impl Fn(&Received) -> Vec<String> + 'static) -> (RunResult, Listener) {
    let text = format!("target = \"ws://127.0.0.1:80/feed\"\nduration = \"10s\"\n{text}");
    run(&text, 2, Speaks::WebSocket, move |received| match received.nth {
        0 => vec![Reply::Bytes(welcome(&received.text))],
        _ => replies(received)
            .iter()
            .flat_map(|text| match &text[..] {
                "bye" => vec![Reply::Bytes(b"\x88\x02\x03\xe9".to_vec()), Reply::End],
                text => vec![Reply::Bytes(frame(text))],
            })
            .collect(),
    })
}

/// Sends `go` and waits for half a second, without awaiting a message.
const LISTEN: &str = "[[population.step]]\nsend = \"go\"\n[[population.step]]\nwait = \"500ms\"\n";

fn listeners(keys: &str) -> String {
    format!("[[population]]\nname = \"fan\"\nconnections = 4\n{keys}\n{LISTEN}")
}

#[test]
fn a_time_in_a_message_gives_its_delay() {
    // The time in the message is 5 ms before it is sent; the network delay is added.
    let (result, server) = against(&listeners("expect.time = \"json:/at/ts\""), |received| {
        let ts = (DATE + received.at).0 - MS(5).0;
        vec![format!("{{\"at\":{{\"ts\":{ts}}}}}")]
    });
    let went = server.received.iter().filter(|received| received.text == "go").count() as u64;
    let (c, p) = (&result.whole.counts, &result.whole.pushes);
    assert!(result.faults().is_empty() && went >= 4 * 19, "{went}: {:?}", result.faults());
    assert_eq!((p.count, c.messages, c.pushed, c.told, c.sent), (went, went, went, went, 0));
    // {"at":{"ts":1700000000000000000}}, each nineteen digits.
    assert_eq!((p.bytes, p.bytes_max), (33 * went, 33));
    let delay = &result.whole.delay;
    assert_eq!((delay.count(), delay.min(), delay.max()), (went, MS(5) + WAY, MS(5) + WAY));
    assert_eq!((p.unread, p.ahead, p.numbered), (0, 0, 0));
    // The first message of each connection has no gap; the others are as far apart as the messages that request them.
    let gap = measured(&result.whole.gap);
    assert_eq!(gap.count, went - 4);
    assert!(gap.mean > 500e3 && gap.max < 502e3, "{gap:?}");
}

#[test]
fn a_time_of_the_future_is_said_to_be_one() {
    let (result, _) = against(&listeners("expect.time = \"after:at \""), |received| match received.nth % 2 {
        0 => vec![format!("at {}", (DATE + received.at + S(3)).0 / 1_000_000)],
        _ => vec!["no time".to_owned()],
    });
    let p = &result.whole.pushes;
    assert_eq!(p.count, p.ahead + p.unread);
    assert!(p.ahead >= 4 * 9 && p.unread >= 4 * 9, "{p:?}");
    assert_eq!((result.whole.delay.count(), result.whole.delay.max()), (p.ahead, Nanos::ZERO));
}

#[test]
fn numbers_show_what_is_lost_twice_or_late() {
    const NUMBERS: [u64; 9] = [10, 11, 12, 15, 14, 14, 16, 20, 7];
    let (result, _) = against(&listeners("expect.number = \"json:/1/n\""), |received| {
        let number = NUMBERS.get(received.nth - 1);
        number.iter().map(|n| format!("42[\"tick\",{{\"n\":{n}}}]")).collect()
    });
    let p = &result.whole.pushes;
    // 13 and 17, 18, 19 never arrive; 14 arrives late, and twice; 7 precedes the first one.
    assert_eq!((p.numbered, p.skipped, p.late, p.duplicates, p.restarts), (36, 4 * 5, 4, 4, 0));
    assert!(p.receipts.is_empty() && p.broadcasts == 0);
}

#[test]
fn a_message_with_a_number_that_is_not_the_echo_is_none() {
    // Each echo has a message of the feed before or after it; one echo has the format of the feed itself.
    let users = "[[population]]\nname = \"fan\"\nconnections = 4\nping = \"500ms\"\nmessage = 'MESSAGE'\n\
        expect.number = \"json:/n\"\n";
    for message in ["hello", "{\"n\":0}"] {
        let (result, server) = against(&users.replace("MESSAGE", message), |received| {
            let feed = format!("{{\"n\":{}}}", received.nth);
            let echo = received.text.clone();
            if received.nth % 2 == 0 { vec![feed, echo] } else { vec![echo, feed] }
        });
        let went = server.received.iter().filter(|received| received.text == message).count() as u64;
        let (c, p) = (&result.whole.counts, &result.whole.pushes);
        assert!(result.faults().is_empty() && went >= 4 * 19, "{went}: {:?}", result.faults());
        assert_eq!((c.sent, c.answered, c.pushed, p.numbered), (went, went, went, went), "{message}");
        assert_eq!((p.skipped, p.late, p.duplicates, p.unread), (0, 0, 0, 0), "{message}: {p:?}");
        // Pieces are a millisecond apart.
        let latency = &result.whole.latency;
        assert!(latency.min() == WAY + WAY && (MS(1)..MS(3)).contains(&latency.max()), "{message}");
    }
}

#[test]
fn a_room_has_a_message_when_its_last_member_has_it() {
    let text = "target = \"ws://127.0.0.1:80/ws/push?every=100ms&length=100\"\nduration = \"10s\"\n[[population]]\nname = \
        \"fan\"\nconnections = 50\nping = \"30s\"\nmessage = \"\"\nexpect = { time = \"json:/ts\", number = \"json:/seq\", \
        receivers = \"all\" }\n";
    let net = network(1, |f| f.delay = (WAY, WAY));
    let plan = scenario(text, 1);
    let (mut servers, _) = stage::servers(&net, plan.destinations()[0], 2, 100);
    let mut turns = turns(&mut servers);
    let result = play(&net, &plan, 3, &mut turns, |_, _| {});
    let s = result.judge(&plan);
    let (p, q) = (&s.pushes, &result.whole.pushes);
    assert!(result.faults().is_empty() && p.count >= 50 * 98, "{p:?}");
    assert_eq!((p.lost, p.duplicates, p.out_of_order, p.unread, p.ahead), (0, 0, 0, 0, 0));
    assert_eq!(
        (p.numbered, p.bytes, p.bytes_max, p.clock_offset_us),
        (p.count, 100 * p.count, 100, Some(0.0))
    );
    assert_eq!((q.count, s.requests.messages), (p.count, p.count));
    // The server's timers are up to a millisecond late, and its times are those of sending, to a microsecond.
    let delay = &result.whole.delay;
    assert!(
        (WAY..WAY + Nanos(1_000)).contains(&delay.min()) && delay.max() < WAY + Nanos(1_000),
        "{delay:?}"
    );
    // Ten a second; the first and the last second of full load are incomplete.
    assert!((95..=100).contains(&p.broadcasts) && p.complete == p.broadcasts, "{p:?}");
    assert_eq!((s.spread_us.count, s.spread_us.censored), (p.complete, None));
    assert!(s.spread_us.max <= 2_000.0, "{:?}", s.spread_us);
    assert!((p.per_s - p.count as f64 / s.elapsed_s).abs() < 1e-6);
}

/// One of four connections is redialled, and receives what the others had before.
#[test]
fn what_a_connection_that_comes_later_receives_as_history_is_no_broadcast() {
    let keys = "ping = \"500ms\"\nexpect = { number = \"json:/n\", receivers = \"all\" }";
    let users = format!("[[population]]\nname = \"fan\"\nconnections = 4\n{keys}\nmessage = \"go\"\n");
    let (highest, joined) = (Cell::new(0), Cell::new(0));
    let (result, server) = against(&users, move |received| {
        let nth = received.nth as u64;
        let feed = |n: u64| format!("{{\"n\":{n}}}");
        if received.conn == 0 && nth == 6 {
            return vec!["bye".to_owned()];
        }
        if received.conn < 4 {
            highest.set(highest.get().max(nth));
            return vec![feed(nth), "go".to_owned()];
        }
        // Like the others at the same time.
        if nth == 1 {
            joined.set(highest.get());
            let history = joined.get().saturating_sub(3)..=joined.get();
            return history.map(feed).chain(["go".to_owned()]).collect();
        }
        vec![feed(joined.get() + nth - 1), "go".to_owned()]
    });
    assert_eq!(server.accepted_at.len(), 5, "one comes again");
    let text = format!("target = \"ws://127.0.0.1:80/feed\"\nduration = \"10s\"\n{users}");
    let s = result.judge(&scenario(&text, 1));
    let p = &s.pushes;
    assert_eq!((p.lost, p.duplicates, p.restarts), (0, 0, 0), "{p:?}");
    assert!(p.broadcasts >= 15 && p.broadcasts - p.complete <= 1, "{p:?}");
    assert!(s.spread_us.max < 700e3, "{:?}", s.spread_us);
}

#[test]
fn a_broadcast_that_not_all_receive_is_not_complete() {
    // If the timeout is as long as the run, it is known at the end.
    for timeout in ["1s", "10s"] {
        let keys = format!("timeout = \"{timeout}\"\nexpect = {{ number = \"json:/n\", receivers = 4 }}");
        // The nth message of each connection is the nth broadcast; every other one does not reach the first connection.
        let (result, server) = against(&listeners(&keys), |received| {
            let is_left_out = received.conn == 0 && received.nth % 2 == 0;
            if is_left_out { vec![] } else { vec![format!("{{\"n\":{}}}", received.nth)] }
        });
        let rounds = server.by_connection()[0].len() as u64 - 1;
        let text = format!("target = \"ws://127.0.0.1:80/feed\"\n{}", listeners(&keys));
        let s = result.judge(&scenario(&text, 1));
        let (p, missing) = (&s.pushes, s.spread_us.censored.map_or(0, |censored| censored.count));
        assert_eq!((missing, s.spread_us.count), (p.broadcasts - p.complete, p.complete));
        // Those that began in the ramp do not count, and the outcome of those right before the end is unknown.
        assert!((rounds / 2 - 1..=rounds / 2 + 1).contains(&p.complete), "{timeout} {rounds}: {p:?}");
        assert!((rounds / 2 - 4..=rounds / 2).contains(&missing), "{timeout} {rounds}: {p:?}");
    }
}

const TALK: &str = r#"
[[population]]
name = "fan"
connections = 4
loop = false

[[population.on]]
is = "2"
send = "3"

[[population.on]]
starts = "news"

[[population.on]]
contains = "\"ping\""
send = "pong {seq}"

[[population.step]]
send = "hello"
expect = { body = "hello", length = 8 }

[[population.step]]
send = "bye"
expect = { body = "bye", skip = true }
"#;

#[test]
fn what_rules_are_for_is_answered_or_passed_over() {
    let (result, server) = against(TALK, |received| {
        let all: &[&str] = match received.text.as_str() {
            "hello" => &["2", "newsletter", "{\"type\":\"ping\"}", "hello 22"],
            "bye" => &["22", "good", "bye!"],
            _ => &[],
        };
        all.iter().map(|text| (*text).to_owned()).collect()
    });
    let (c, p) = (&result.whole.counts, &result.whole.pushes);
    assert_eq!((result.faults(), c.sent, c.answered, c.told), (vec![], 8, 8, 8));
    // `22` and `good` are not correct, and are ignored too.
    assert_eq!((p.count, c.pushed, c.messages), (4 * 5, 4 * 5, 4 * 5));
    for of in server.by_connection() {
        let texts: Vec<&str> = of[1..].iter().map(|received| received.text.as_str()).collect();
        let is_pong = texts[2].strip_prefix("pong ").is_some_and(|seq| seq.parse::<u64>().is_ok());
        assert!(is_pong && texts[..2] == ["hello", "3"] && texts[3] == "bye", "{texts:?}");
    }
}

#[test]
fn messages_with_another_value_are_passed_over() {
    let text = "[[population]]\nname = \"fan\"\nconnections = 4\nloop = false\n[[population.step]]\nsend = \"join\"\n\
        expect = { json = { \"/status\" = \"ok\" }, skip = true }\n";
    let (result, _) = against(text, |received| {
        let all: &[&str] = match received.text.as_str() {
            "join" => &["hello", "{\"status\":\"wait\"}", "{\"other\":\"ok\"}", "{\"status\":\"ok\"}"],
            _ => &[],
        };
        all.iter().map(|text| (*text).to_owned()).collect()
    });
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.sent, c.answered, c.pushed), (vec![], 4, 4, 4 * 3));
}

#[test]
fn without_a_rule_the_next_message_has_to_be_right() {
    let text = TALK.split("[[population.on]]").next().unwrap().to_owned();
    let steps = TALK.split("[[population.step]]").nth(1).unwrap();
    let (result, _) =
        against(&format!("{text}[[population.step]]{steps}"), |received| match received.text.as_str() {
            "hello" => vec!["2".to_owned(), "hello 22".to_owned()],
            _ => vec![],
        });
    let c = &result.whole.counts;
    assert_eq!(
        (result.faults(), c.answered, c.pushed),
        (vec![(Stage::Exchange, Kind::WrongLength, 4)], 4, 4)
    );
}

#[test]
fn what_is_passed_over_may_time_out() {
    let text = "[[population]]\nname = \"fan\"\nconnections = 4\ntimeout = \"2s\"\n[[population.step]]\nsend = \"hello\"\n\
        expect = { body = \"hello\", skip = true }\n";
    let (result, _) = against(text, |_| vec!["hell".to_owned()]);
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Timeout, 4)]);
}

#[test]
fn heartbeats_go_out_whatever_else_is_done() {
    const BEAT: &str = "[[population.on]]\nevery = \"700ms\"\nsend = \"beat\"\n";
    // Message by message: a reply follows fifty others, each a millisecond later.
    let busy = "[[population.step]]\nsend = \"hello\"\nexpect = { body = \"hello\", skip = true }\n";
    let waits =
        "[[population.step]]\nsend = \"hello\"\nexpect = { body = \"hello\", skip = true }\nthink = \"3s\"\n";
    let never = "[[population.step]]\nsend = \"hello\"\nexpect = { body = \"no\", skip = true }\n";
    for (steps, keys) in
        [(busy, ""), (waits, ""), (LISTEN, ""), (never, "timeout = \"1m\"\n"), (waits, "rate = \"9/s\"\n")]
    {
        let steps = if keys.starts_with("rate") { busy } else { steps };
        let text = format!("[[population]]\nname = \"fan\"\nconnections = 4\n{keys}{BEAT}{steps}");
        let (result, server) = against(&text, |received| match received.text.as_str() {
            "hello" => [vec!["hell".to_owned(); 50], vec!["hello".to_owned()]].concat(),
            _ => vec![],
        });
        for of in server.by_connection() {
            let beats: Vec<Nanos> =
                of.iter().filter(|received| received.text == "beat").map(|received| received.at).collect();
            assert!((13..=14).contains(&beats.len()), "{steps}{keys}: {}", beats.len());
            let apart = beats.windows(2).map(|pair| pair[1].since(pair[0]));
            apart.for_each(|gap| assert!((MS(700)..MS(702)).contains(&gap), "{steps}{keys}: {gap}"));
        }
        let is_right = |(_, kind, _): &(Stage, Kind, u64)| *kind == Kind::Timeout;
        assert!(result.faults().iter().all(is_right), "{:?}", result.faults());
    }
}
