//! A target that does not read: what throng sends must neither pile up here nor pass for sent in time.

use net::{Cx, Gone, Io, Key, Program};
use samples::{Kind, Stage};
use units::Nanos;

use super::S;
use crate::stage::{Story, listening, network, play, scenario};

/// Accepts, and reads from this time on.
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
        assert!(input.iter().all(|byte| *byte == b'x'), "nothing but what was said");
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

/// Messages of so many bytes that nobody answers each 10 ms for 6 s, and `then`. What was sent before `until`, the run,
/// and the bytes read.
fn against(until: Nanos, size: usize, then: &str) -> (u64, Story, u64) {
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
    let story = play(&net, &plan, 1, &mut [&mut server], |_, tick| {
        if tick.from + S(1) <= until {
            before += tick.counts.told;
        }
    });
    (before, story, server.program().read)
}

#[test]
fn messages_wait_for_a_target_that_does_not_read() {
    let (before, story, read) = against(S(3), MESSAGE, "");
    let told = story.whole.counts.told;
    assert_eq!((story.faults(), story.held), (vec![], CONNECTIONS));
    // A window and what the server keeps unread, and one that waits: not the 100 that are due each second.
    assert!((1..CONNECTIONS * 40).contains(&before), "{before} told while nobody read");
    assert!(told - before > CONNECTIONS * 200, "{told} told, {before} while nobody read");
    assert_eq!(read, told * MESSAGE as u64);
}

#[test]
fn a_question_behind_what_is_not_read_is_due_when_it_is() {
    let ask = format!(
        "[[population.step]]\nsend = \"{}\"\n[[population.step]]\nsend = \"ask\"\nexpect = {{ body = \"ok\" }}\n",
        "x".repeat(15 * MESSAGE)
    );
    let (_, story, _) = against(S(60), 15 * MESSAGE, &ask);
    assert_eq!(story.faults(), [(Stage::Exchange, Kind::Timeout, CONNECTIONS)]);
}
