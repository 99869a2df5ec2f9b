//! Messages over TCP, as the drawn server echoes them.

use units::Nanos;

use super::{
    books::Outcome,
    server::{Speaks, Turn},
};

/// The client's message.
const MESSAGE: &[u8] = b"hello";
const RIGHT: Outcome = Outcome { status: None, is_right: true, is_sure: true };

/// The protocol: bytes without framing.
pub(super) struct Tcp;

impl Speaks for Tcp {
    type Conn = ();

    fn ways(&self) -> u8 {
        9
    }

    fn begin(&mut self, _: &mut Turn<'_>) {}

    fn read(&mut self, (): &mut (), input: &[u8], turn: &mut Turn<'_>) -> usize {
        if input.len() < MESSAGE.len() {
            return 0;
        }
        turn.received(0, MESSAGE.len());
        let way = turn.way();
        respond(turn, way);
        MESSAGE.len()
    }
}

fn respond(turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    let complete = |turn: &mut Turn<'_>, after| {
        turn.send(after, MESSAGE);
        turn.done(after, 0, RIGHT);
    };
    match way {
        0 => complete(turn, now),
        1 => {
            let late = turn.within(150);
            complete(turn, late);
        }
        2 => {}
        3 => {
            let late = turn.within(300);
            turn.close(late);
        }
        4 => turn.send(soon, &MESSAGE[..3]),
        5 => {
            turn.send(soon, &MESSAGE[..3]);
            turn.close(soon);
        }
        6 => {
            turn.send(now, &MESSAGE[..3]);
            turn.send(soon, &MESSAGE[3..]);
            turn.done(soon, 0, RIGHT);
        }
        7 => {
            complete(turn, now);
            let later = turn.within(200);
            turn.close(later);
        }
        8 => {
            turn.send(soon, b"hullo".as_slice());
            turn.done(soon, 0, Outcome { is_right: false, ..RIGHT });
        }
        // More than an echo.
        _ => {
            turn.page.doubt();
            complete(turn, soon);
            turn.send(soon, b"!".as_slice());
        }
    }
}
