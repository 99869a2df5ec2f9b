//! Messages by steps, over WebSocket and over raw TCP.

use samples::{Kind, Stage, Verdict};
use stage::RunResult;
use units::Nanos;

use super::{MS, S, WAY, check_gap, lines, run};
use crate::listener::{Listener, Received, Reply, Speaks, frame, welcome};

const ROUND: Nanos = Nanos(2 * WAY.0);

/// A server that replies to each message with `reply`, on WebSockets after the upgrade.
fn against(speaks: Speaks, text: &str, replies: fn(&Received) -> Vec<Reply>) -> (RunResult, Listener) {
    run(text, 2, speaks, move |received| match (speaks, received.nth) {
        (Speaks::WebSocket, 0) => vec![Reply::Bytes(welcome(&received.text))],
        _ => replies(received),
    })
}

fn ws(text: &str, replies: fn(&Received) -> Vec<Reply>) -> (RunResult, Listener) {
    against(Speaks::WebSocket, &format!("target = \"ws://127.0.0.1:80/chat\"\n{text}"), replies)
}

fn tcp(text: &str, replies: fn(&Received) -> Vec<Reply>) -> (RunResult, Listener) {
    against(Speaks::Bytes, &format!("target = \"tcp://127.0.0.1:80\"\n{text}"), replies)
}

fn text(text: &str) -> Reply {
    Reply::Bytes(frame(text))
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

const CHAT: &str = r#"
duration = "10s"
[[population]]
name = "chat"
connections = 6
loop = false

[[population.step]]
send = "join {seq}"
expect = { body = "joined" }

[[population.step]]
wait = "1s..2s"

[[population.step]]
send = "hello {rand 1 1000} {choice a b}"
expect = { echo = true }
think = "500ms"

[[population.step]]
send = "bye"

[[population.step]]
close = true
"#;

#[test]
fn a_conversation_from_its_upgrade_to_its_close() {
    let (result, server) = ws(CHAT, |received| match received.nth {
        // In two frames, and in pieces.
        1 => vec![bytes("\x01\x06who jo"), Reply::Bytes(vec![0x80, 5]), bytes("ine"), bytes("d?")],
        2 => vec![text(&received.text)],
        _ => vec![],
    });
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.sent, c.answered, c.told), (vec![], 12, 12, 6), "{c:?}");
    assert_eq!((c.opened, c.finished, c.done, c.redialled, result.held), (6, 6, 6, 0, 0), "{c:?}");
    for received in server.by_connection() {
        let text = lines(&received);
        assert!(
            text[0] == "GET /chat" && text[1].starts_with("join ") && text[2].starts_with("hello "),
            "{text:?}"
        );
        assert_eq!(text[3..], ["bye", "close 1000"]);
        // The reply's last piece arrives 3 ms after its first.
        let wait = received[2].at.since(received[1].at + ROUND + MS(3));
        assert!((S(1)..=S(2) + MS(1)).contains(&wait), "{wait}");
        check_gap(received[2].at, received[3].at, MS(500) + ROUND);
    }
    let joins: std::collections::HashSet<&str> =
        server.received.iter().filter(|h| h.nth == 1).map(Received::line).collect();
    assert_eq!(joins.len(), 6, "each has a number of its own: {joins:?}");
}

/// A message awaited once must arrive like a response; a repeatedly awaited one may be outstanding.
#[test]
fn a_greeting_that_does_not_come_is_missing() {
    let check = |then: &str, expected: (u64, u64, Verdict)| {
        let keys = format!(
            "target = \"ws://127.0.0.1:80/chat\"\nduration = \"4s\"\ntimeout = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 6\n{then}[[population.step]]\n\
             name = \"greet\"\nexpect = {{ body = \"220\" }}\n[[population.step]]\nname = \"helo\"\nsend = \"hi\"\n\
             expect = {{ body = \"250\" }}\nthink = \"50ms\"\n"
        );
        let upgraded = |received: &Received| Reply::Bytes(welcome(&received.text));
        let (result, _) =
            run(&keys, 2, Speaks::WebSocket, move |received| match (received.nth, received.conn % 3) {
                (0, 0) => vec![upgraded(received)],
                (0, _) => vec![upgraded(received), text("220 ready")],
                _ => vec![text("250 ok")],
            });
        let s = result.judge(&stage::scenario(&keys, 1));
        let c = &result.whole.counts;
        assert_eq!((c.failed_requests, c.revoked, s.verdict), expected, "{then}: {:?} {c:?}", s.reasons);
    };
    check("loop = \"helo\"\n", (2, 0, Verdict::Fail));
    check("", (0, 6, Verdict::Pass));
}

/// Runs three connections with this step, a second apart, for two seconds; expects these faults.
fn check(speaks: Speaks, step: &str, replies: fn(&Received) -> Vec<Reply>, expected: Option<Kind>) {
    let text = format!(
        "duration = \"3s\"\n[[population]]\nname = \"a\"\nconnections = 3\nthink = \"1s\"\n[[population.step]]\n{step}\n"
    );
    let (result, _) = match speaks {
        Speaks::WebSocket => ws(&text, replies),
        _ => tcp(&text, replies),
    };
    let c = &result.whole.counts;
    let faults: Vec<_> = expected.into_iter().map(|kind| (Stage::Exchange, kind, c.answered)).collect();
    assert_eq!(result.faults(), faults, "{step}");
    assert!(c.answered >= 9 && c.answered == c.sent && result.held == 3, "{step}: {c:?}");
}

#[test]
fn checks_of_a_message() {
    const ECHO: &str = "send = \"n {seq} {rand 1 9} {choice x yy} {csv u.id}\"\nexpect = { echo = true }\n[csv.u]\nfile = \"users.csv\"";
    const SHORT: &str = "send = \"hi {rand 3 3}\"\nexpect = { length = \"$1\" }";
    const FOUND: &str = "send = \"hi\"\nexpect = { body = \"wel\", length = 7 }";
    let is_ws = Speaks::WebSocket;
    check(is_ws, ECHO, |received| vec![text(&received.text)], None);
    check(is_ws, ECHO, |received| vec![text(&received.text.replace("n ", "m "))], Some(Kind::WrongEcho));
    check(is_ws, ECHO, |received| vec![text(&format!("{}!", received.text))], Some(Kind::WrongEcho));
    check(is_ws, SHORT, |_| vec![text("abc")], None);
    check(is_ws, SHORT, |_| vec![text("abcd")], Some(Kind::WrongLength));
    check(is_ws, FOUND, |_| vec![text("welcome")], None);
    check(is_ws, FOUND, |_| vec![text("goodbye")], Some(Kind::WrongBody));
    check(is_ws, FOUND, |_| vec![text("wel come")], Some(Kind::WrongLength));
    check(is_ws, "send = \"hi\"\nexpect = {}", |_| vec![text("")], None);

    let tcp = Speaks::Bytes;
    check(tcp, ECHO, |received| received.text.split_inclusive(' ').map(bytes).collect(), None);
    check(tcp, ECHO, |received| vec![bytes(&received.text.replace("n ", "m "))], Some(Kind::WrongEcho));
    check(tcp, SHORT, |_| vec![bytes("a"), bytes("bc")], None);
    check(tcp, FOUND, |_| vec![bytes("we"), bytes("lco"), bytes("me")], None);
    check(tcp, FOUND, |_| vec![bytes("goo"), bytes("dbye")], Some(Kind::WrongBody));
    // Without a length, the reply is complete as soon as the text is found; the following bytes are discarded.
    const SOON: &str = "send = \"hi\"\nexpect = { body = \"ok\" }";
    check(tcp, SOON, |_| vec![bytes("well, o"), bytes("k then"), bytes(" and more")], None);
    check(tcp, "send = \"hi\"\nexpect = {}", |_| vec![bytes("x")], None);
}

#[test]
fn a_head_that_never_arrives_is_given_up() {
    // Not found, over TCP: it might still arrive.
    let step = "timeout = \"1s\"\nduration = \"10s\"\n[[population]]\nname = \"a\"\nconnections = 3\n[[population.step]]\nsend = \"hi\"\nexpect = { body = \"ok\" }";
    let (result, _) = tcp(step, |_| vec![bytes("no")]);
    assert_eq!((result.faults(), result.held), (vec![(Stage::Exchange, Kind::Timeout, 3)], 0));
}

/// A connection that sends a fire-and-forget message, and immediately one with a reply, is also given up without a reply.
#[test]
fn a_silent_server_is_given_up_after_a_fire_and_forget_message() {
    let steps = "timeout = \"1s\"\nduration = \"10s\"\n[[population]]\nname = \"a\"\nconnections = 3\n\
                 [[population.step]]\nsend = \"tell\"\n[[population.step]]\nsend = \"ask\"\nexpect = { echo = true }";
    let (result, server) =
        ws(steps, |received| if received.nth < 5 { vec![text(&received.text)] } else { vec![] });
    assert_eq!(
        (result.faults(), result.held),
        (vec![(Stage::Exchange, Kind::Timeout, 3)], 0),
        "{:?}",
        server.received.len()
    );
}

#[test]
fn fire_and_forget_messages_are_counted() {
    let steps = "duration = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 4\n\
                 [[population.step]]\nsend = \"one.\"\n[[population.step]]\nsend = \"two {choice a b}.\"\n\
                 [[population.step]]\nwait = \"0s\"\n[[population.step]]\nsend = \"three.\"\nthink = \"100ms\"";
    let over_websocket = ws(steps, |_| vec![]);
    let over_tcp = tcp(steps, |_| vec![bytes("what?")]);
    for ((result, server), upgrades) in [(over_websocket, 1), (over_tcp, 0)] {
        let c = &result.whole.counts;
        assert_eq!((result.faults(), c.sent, c.answered, result.held), (vec![], 0, 0, 4));
        // Three every hundred milliseconds, plus a timer or two.
        assert!((c.told as i64 - 4 * 3 * 50).abs() < 40, "{}", c.told);
        let mut fire_and_forget = 0;
        for received in server.by_connection() {
            let text: String = lines(&received[upgrades..]).concat();
            let text: Vec<&str> = text.replace(" a", " b").leak().split_terminator('.').collect();
            fire_and_forget += text.len() as u64;
            assert!(
                text.iter().zip(["one", "two b", "three"].iter().cycle()).all(|(text, step)| text == step)
            );
        }
        assert_eq!(fire_and_forget, c.told);
    }
}

#[test]
fn unsolicited_messages_can_be_expected() {
    let steps = "duration = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 4\n\
                 [[population.step]]\nexpect = { body = \"news\" }\n\
                 [[population.step]]\nsend = \"ask\"\nexpect = { echo = true }\n\
                 [[population.step]]\nname = \"push\"\nexpect = { length = 6 }\n\
                 [[population.step]]\nname = \"late\"\nexpect = { body = \"late\" }\nthink = \"1s\"\n\
                 [[population.step]]\nsend = \"again\"\n";
    // In one segment with the 101, in one with the previous reply, and some time later; then during a pause.
    let (result, server) =
        run(&format!("target = \"ws://127.0.0.1:80/\"\n{steps}"), 2, Speaks::WebSocket, |received| {
            match (received.nth, received.text.as_str()) {
                (0, head) => vec![Reply::Bytes([welcome(head), frame("no news")].concat())],
                (_, "ask") => vec![
                    Reply::Bytes([frame("ask"), frame("pushed")].concat()),
                    text("later"),
                    text("forgotten"),
                ],
                _ => vec![text("news at ten")],
            }
        });
    let c = &result.whole.counts;
    // "later" contains "late".
    assert_eq!((result.faults(), c.dropped, result.held), (vec![], 0, 4));
    assert_eq!((c.sent, c.answered - result.whole.waiting), (c.answered, c.answered));
    let rounds = server.received.iter().filter(|received| received.text == "again").count() as u64;
    assert!(rounds >= 16 && c.told == rounds, "{rounds}");
    assert!(c.answered >= 4 * rounds, "{} in {rounds}", c.answered);
    for received in server.by_connection() {
        assert_eq!(lines(&received)[1..4], ["ask", "again", "ask"]);
    }
}

#[test]
fn unsolicited_bytes_can_be_expected() {
    let steps = "duration = \"5s\"\ntimeout = \"2s\"\n[[population]]\nname = \"a\"\nconnections = 4\n\
                 [[population.step]]\nsend = \"hello\"\nexpect = { length = 2 }\n\
                 [[population.step]]\nexpect = { body = \"ready\" }\n\
                 [[population.step]]\nexpect = {}\nthink = \"1s\"\n";
    let (result, server) =
        tcp(steps, |_| vec![bytes("okrea"), bytes("dy"), bytes("go"), bytes("nobody listens")]);
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.held, c.answered), (vec![], 4, c.sent), "{c:?}");
    let rounds = server.received.len() as u64;
    assert!((20..=24).contains(&rounds) && c.answered == 3 * rounds, "{rounds}: {c:?}");
    // The next step must wait for the segment after "ready".
    for received in server.by_connection() {
        let gap = received[1].at.since(received[0].at);
        assert!((S(1) + ROUND + MS(2)..=S(1) + ROUND + MS(5)).contains(&gap), "{gap}");
    }
}

#[test]
fn a_pong_does_not_get_in_the_way_of_a_response() {
    let steps = "duration = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 4\n\
                 [[population.step]]\nsend = \"ask\"\nexpect = { echo = true }\n\
                 [[population.step]]\nsend = \"tell\"\nthink = \"1s\"\n";
    let (result, server) = ws(steps, |received| match received.text.as_str() {
        "ask" => vec![Reply::Bytes([&b"\x89\x02hi"[..], &frame("ask")].concat())],
        _ => vec![],
    });
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.held), (vec![], 4));
    assert!(c.answered >= 20 && c.told == c.answered, "{c:?}");
    assert!(server.by_connection().iter().all(|received| lines(received)[1..3] == ["ask", "tell"]));
}

#[test]
fn after_a_close_the_next_step_dials_again() {
    let steps = "duration = \"10s\"\n[[population]]\nname = \"a\"\nconnections = 3\n\
                 [[population.step]]\nsend = \"one\"\nexpect = { echo = true }\n\
                 [[population.step]]\nclose = true\n\
                 [[population.step]]\nwait = \"1s\"\n\
                 [[population.step]]\nsend = \"two\"\n";
    let (result, server) = ws(steps, |received| vec![text(&received.text)]);
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.held, c.closed, c.dropped, c.done), (vec![], 3, 0, 0, 0), "{c:?}");
    assert!(c.redialled >= 24 && c.redialled == c.finished && c.opened == 3, "{c:?}");
    let (first, later): (Vec<_>, Vec<_>) =
        server.by_connection().into_iter().partition(|received| received[0].conn < 3);
    assert!(first.iter().all(|received| lines(received)[1..] == ["one", "close 1000"]));
    assert_eq!(later.len() as u64, c.redialled);
    for received in &later {
        // Some are outstanding at the end.
        let own = &lines(received)[1..];
        assert!(["two", "one", "close 1000"].starts_with(own), "{own:?}");
    }
    assert!(later.iter().filter(|received| received.len() == 4).count() >= 20);
}

#[test]
fn arrivals_exchange_messages_and_leave() {
    let steps = "duration = \"10s\"\n[[population]]\nname = \"a\"\narrive = \"50/s\"\ntotal = 200\n\
                 [[population.step]]\nsend = \"one\"\nexpect = { echo = true }\n\
                 [[population.step]]\nsend = \"bye\"\n";
    let (result, server) = ws(steps, |received| vec![text(&received.text)]);
    let c = &result.whole.counts;
    assert_eq!(
        (result.faults(), c.opened, c.finished, c.sent, c.told),
        (vec![], 200, 200, 200, 200),
        "{c:?}"
    );
    assert!(
        server.by_connection().iter().all(|received| lines(received)[1..] == ["one", "bye", "close 1000"])
    );
}

#[test]
fn a_rate_loses_no_slot_to_a_fire_and_forget_message() {
    let steps = "duration = \"10s\"\n[[population]]\nname = \"a\"\nconnections = 6\nrate = \"20/s\"\n\
        [[population.step]]\nsend = \"ask\"\nexpect = { echo = true }\n\
        [[population.step]]\nclose = true\n[[population.step]]\nsend = \"hi\"\n";
    let (result, server) =
        tcp(steps, |received| if received.text.contains("ask") { vec![bytes("ask")] } else { vec![] });
    let c = &result.whole.counts;
    // Each connection sends, closes, is redialled, greets, and sends again.
    assert_eq!((c.sent, c.answered, c.missed, result.faults()), (200, 200, 0, vec![]), "{c:?}");
    assert_eq!((c.finished, c.redialled, c.told), (200, 200, 200), "{c:?}");
    assert_eq!(server.accepted_at.len(), 206);
}
