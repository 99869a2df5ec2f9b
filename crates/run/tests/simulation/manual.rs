//! Manual control: a user pauses a run and changes its load, for every kind of load.

use samples::{Command, Tick};
use stage::{
    Level::{self, UserCommand},
    RunResult, connections, listening, measured, network, plan, play_levels,
    scripted::{Act, Scripted, Then},
    servers, turns,
};
use units::Nanos;

const S: fn(u64) -> Nanos = Nanos::from_secs;
const SHARDS: u32 = 2;

const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// The requests sent in a second, and the connections open at its end, summed over all shards.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    sent: u64,
    open: u64,
}

fn run(target: &str, flags: &str, commands: &[(Nanos, Level)]) -> (RunResult, Vec<Second>) {
    let net = network(8, |_| {});
    let plan = plan(target, flags, 8);
    let (mut servers, _) = servers(&net, plan.destinations()[0], 2, connections(&plan));
    let mut turns = turns(&mut servers);
    let mut seconds = vec![Second::default(); 100];
    let result = play_levels(&net, &plan, SHARDS, &mut turns, commands, |shard, tick: &Tick| {
        let Some(second) = seconds.get_mut((tick.until.0.saturating_sub(1) / S(1).0) as usize) else {
            return;
        };
        if shard < SHARDS {
            second.sent += tick.counts.sent;
            second.open += if tick.until.0.is_multiple_of(S(1).0) { tick.open } else { 0 };
        }
    });
    (result, seconds)
}

/// Paused from 5 s to 15 s of a run whose hold lasts 20 s.
fn check_pause(target: &str, flags: &str, per_s: u64) {
    let commands = [(S(5), UserCommand(Command::Pause)), (S(15), UserCommand(Command::Resume))];
    let (result, seconds) = run(target, &format!("{flags} duration=20s"), &commands);
    assert_eq!((result.faults(), result.whole.counts.missed), (vec![], 0), "{flags}");
    assert_eq!((result.held, result.whole.counts.finished), (100, 0), "{flags}: everyone stays");
    for (at, second) in seconds.iter().enumerate().take(30) {
        let expected = match at {
            2..5 | 17..29 => per_s * 8 / 10..=per_s * 12 / 10,
            7..15 => 0..=0,
            _ => continue,
        };
        assert!(expected.contains(&second.sent), "{flags}: {} in second {at}: {seconds:?}", second.sent);
    }
    let ended = result.hold_until;
    assert!((S(30)..S(31)).contains(&ended), "{flags}: the pause is no part of the hold: {ended}");
    assert!(measured(&result.whole.latency).max < 1e6, "{flags}: nobody waited for the pause to end");
}

#[test]
fn a_pause_keeps_connections_and_sends_nothing() {
    const HTTP: &str = "http://127.0.0.1:8000/";
    check_pause(HTTP, "connections=100 think=500ms..1500ms", 100);
    check_pause(HTTP, "connections=100 rate=300/s", 300);
    check_pause("ws://127.0.0.1:8000/ws/echo", "connections=100 ping=1s", 100);
}

#[test]
fn a_closed_loop_goes_on_after_a_pause() {
    let commands = [(S(2), UserCommand(Command::Pause)), (S(4), UserCommand(Command::Resume))];
    let (result, seconds) = run("http://127.0.0.1:8000/", "connections=4 duration=5s timeout=1s", &commands);
    let before = seconds[1].sent;
    assert!(before > 1_000, "{seconds:?}");
    assert_eq!((seconds[3].sent, result.faults(), result.held), (0, vec![], 4), "{seconds:?}");
    assert!(seconds[6].sent > before * 8 / 10, "{seconds:?}");
}

#[test]
fn arrivals_pause_and_all_of_them_come() {
    let commands = [(S(2), UserCommand(Command::Pause)), (S(6), UserCommand(Command::Resume))];
    let flags = "arrive=100/s total=500 calls=2";
    let (result, seconds) = run("http://127.0.0.1:8000/", flags, &commands);
    let counts = &result.whole.counts;
    assert_eq!((counts.opened, counts.finished, counts.answered), (500, 500, 1_000), "{seconds:?}");
    assert_eq!((seconds[4].sent, result.faults()), (0, vec![]), "{seconds:?}");
    // Nothing was due during the pause: no request is late, and no burst follows it.
    assert!(
        measured(&result.whole.connect).max < 1e6 && measured(&result.whole.lag).max < 1e6,
        "{:?}",
        result.whole.connect.max()
    );
    assert!(seconds[7].sent <= 240 && seconds[8].sent <= 240, "{seconds:?}");
}

#[test]
fn a_changing_rate_pauses_too() {
    let commands = [
        (S(5), UserCommand(Command::Down)),
        (Nanos::from_millis(5_200), UserCommand(Command::Pause)),
        (S(12), UserCommand(Command::Resume)),
    ];
    let flags = "connections=100 rate=300/s ramp=2/s duration=20s";
    // By then the connections of the first stage are open.
    let (result, seconds) =
        run("http://127.0.0.1:8000/", flags, &commands.map(|(at, command)| (at + S(55), command)));
    assert_eq!((seconds[64].sent, result.faults()), (0, vec![]), "{:?}", &seconds[50..]);
    assert_eq!(result.whole.counts.missed, 0);
}

#[test]
fn a_server_that_closes_after_each_response_is_paused_too() {
    let commands = [(S(2), UserCommand(Command::Pause)), (S(6), UserCommand(Command::Resume))];
    let net = network(9, |_| {});
    let plan = plan("http://127.0.0.1:8000/", "connections=4 duration=4s timeout=1s", 9);
    let closing = Scripted::new(|_| Act { send: OK_AND_CLOSE, then: Then::Close(net::Close::Graceful) });
    let mut server = listening(&net, plan.destinations()[0], 50_000, closing);
    let mut sent = vec![0; 100];
    let result = play_levels(&net, &plan, 1, &mut [&mut server], &commands, |_, tick: &Tick| {
        sent[(tick.until.0.saturating_sub(1) / S(1).0) as usize] += tick.counts.sent;
    });
    assert!(sent[1] > 10 && sent[3] == 0 && sent[4] == 0 && sent[7] > 10, "{sent:?}");
    assert_eq!(result.faults(), vec![]);
}

#[test]
fn requests_due_before_a_pause_are_at_full_load() {
    let commands = [(S(3), UserCommand(Command::Pause)), (S(6), UserCommand(Command::Resume))];
    let target = "http://127.0.0.1:8000/delay?for=2s";
    let (result, _) = run(target, "connections=50 think=900ms duration=10s", &commands);
    // Each of the fifty had sent a request before, and its response arrived during the pause.
    let late = result.whole.ramp_latency.count();
    assert!(late <= 50 && result.whole.latency.count() >= 150, "{late} of {}", result.whole.latency.count());
    assert_eq!(result.faults(), vec![]);
}

#[test]
fn a_step_down_closes_a_tenth_and_a_step_up_dials_it_again() {
    let commands = [
        (S(5), UserCommand(Command::Down)),
        (S(10), UserCommand(Command::Down)),
        (S(15), UserCommand(Command::Up)),
    ];
    for (flags, per_s) in [("connections=100 think=1s", 100), ("connections=100 rate=500/s", 500)] {
        let (result, seconds) = run("http://127.0.0.1:8000/", &format!("{flags} duration=20s"), &commands);
        let open = |at: usize| seconds[at].open;
        assert_eq!((open(3), open(8), open(13), open(18)), (100, 90, 80, 90), "{flags}: {seconds:?}");
        let sent = [3, 8, 13, 18].map(|at| seconds[at].sent);
        let expected = [10, 9, 8, 9].map(|tenths| per_s * tenths / 10);
        let near = sent.iter().zip(expected).all(|(sent, n)| sent.abs_diff(n) <= n / 20 + 2);
        assert!(near, "{flags}: {sent:?} instead of {expected:?}");
        assert_eq!((result.faults(), result.whole.counts.finished), (vec![], 20), "{flags}");
    }
}

#[test]
fn a_ramp_may_be_paused() {
    let commands = [(S(2), UserCommand(Command::Pause)), (S(7), UserCommand(Command::Resume))];
    let flags = "connections=1k ramp=200/s think=1s duration=5s";
    let (result, seconds) = run("http://127.0.0.1:8000/", flags, &commands);
    let (paused, later) = (seconds[4].open, seconds[8].open);
    assert!((380..=460).contains(&paused) && seconds[6].open == paused, "{seconds:?}");
    assert!((paused + 250..=paused + 400).contains(&later), "not all at once: {seconds:?}");
    assert_eq!((result.held, result.faults()), (1_000, vec![]));
}
