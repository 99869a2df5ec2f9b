//! A target that does not read: throng's output must neither accumulate in memory, nor count as sent in time.

use net::{Cx, Gone, Io, Key, Program};
use samples::{Kind, Stage};
use stage::{RunResult, listening, network, play, scenario};
use units::Nanos;

use super::S;

/// A server that accepts, and reads from this time on.
struct Deaf {
    until: Nanos,
    accepting: u32,
    open: Vec<Key>,
    read: u64,
}

impl Program for Deaf {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        self.open.push(k);
    }
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, _: Key, input: &mut [u8]) -> usize {
        if cx.now() < self.until {
            return 0;
        }
        assert!(input.iter().all(|byte| *byte == b'x'), "nothing but the messages");
        self.read += input.len() as u64;
        input.len()
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < 10 && cx.accept() {
            self.accepting += 1;
        }
        if cx.now() < self.until {
            return self.until;
        }
        self.open.drain(..).for_each(|k| cx.call_again(k));
        Nanos::NEVER
    }
}

const MESSAGE: usize = 4 * 1024;
const CONNECTIONS: u64 = 4;

/// Sends fire-and-forget messages of this size every 10 ms for 6 s, and `then`. Returns the number sent before `until`, the result, and
/// the bytes read.
fn against(until: Nanos, size: usize, then: &str) -> (u64, RunResult, u64) {
    let net = network(1, |faults| faults.window = 16 * 1024);
    let plan = scenario(
        &format!(
            "target = \"tcp://127.0.0.1:80\"\nduration = \"6s\"\ntimeout = \"1s\"\n[[population]]\nname = \"a\"\n\
             connections = {CONNECTIONS}\n[[population.step]]\nsend = \"{}\"\nthink = \"10ms\"\n{then}",
            "x".repeat(size)
        ),
        1,
    );
    let deaf = Deaf { until, accepting: 0, open: Vec::new(), read: 0 };
    let mut server = listening(&net, plan.destinations()[0], 100, deaf);
    let mut before = 0;
    let result = play(&net, &plan, 1, &mut [&mut server], |_, tick| {
        if tick.from + S(1) <= until {
            before += tick.counts.told;
        }
    });
    (before, result, server.program().read)
}

#[test]
fn messages_wait_for_a_target_that_does_not_read() {
    let (before, result, read) = against(S(3), MESSAGE, "");
    let sent = result.whole.counts.told;
    assert_eq!((result.faults(), result.held), (vec![], CONNECTIONS));
    // A window, the server's unread input, and one that waits: not the 100 that are due each second.
    assert!((1..CONNECTIONS * 40).contains(&before), "{before} sent while the server did not read");
    assert!(sent - before > CONNECTIONS * 200, "{sent} sent, {before} while the server did not read");
    assert_eq!(read, sent * MESSAGE as u64);
}

#[test]
fn a_message_after_a_blocked_one_is_due_when_that_is_sent() {
    let messages = format!(
        "[[population.step]]\nsend = \"{}\"\n[[population.step]]\nsend = \"ask\"\nexpect = {{ body = \"ok\" }}\n",
        "x".repeat(15 * MESSAGE)
    );
    let (_, result, _) = against(S(60), 15 * MESSAGE, &messages);
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Timeout, CONNECTIONS)]);
}
