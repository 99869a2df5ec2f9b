//! The messages of `/ws/push`: `{"seq":17,"ts":1700000000123456,"pad":"…"}`. All connections with the same interval get the same
//! number at the same time, like members of a chat room; they share nothing but the date.

use std::io::Write;

use units::Nanos;
use wire::websocket::{self as ws, Opcode};

/// Octets of a message without padding, rounded up: it has two numbers of up to twenty digits.
const PLAIN: usize = 80;

/// A message to be sent.
pub(crate) struct Message {
    /// Time since 1970.
    pub(crate) date: Nanos,
    pub(crate) every: Nanos,
    /// Minimum length, in octets.
    pub(crate) length: u16,
}

/// How much too early a timer may fire, since timers are set in whole milliseconds.
const EARLY: Nanos = Nanos::from_millis(1);

/// The number of the message due at this date: how many intervals have passed since 1970.
pub(crate) fn number(date: Nanos, every: Nanos) -> u64 {
    (date + EARLY).0 / every.0
}

/// How long after `date` the next message is due.
pub(crate) fn until_next(date: Nanos, every: Nanos) -> Nanos {
    Nanos((number(date, every) + 1) * every.0).since(date)
}

impl Message {
    /// Room for the message with its frame, and for a copy of it.
    pub(crate) fn room(&self) -> usize {
        ws::MAX_HEADER + 2 * (PLAIN + usize::from(self.length))
    }

    /// Writes the framed message; returns its length.
    pub(crate) fn write(&self, out: &mut [u8]) -> usize {
        let (out, text) = out.split_at_mut(out.len() / 2 + ws::MAX_HEADER / 2);
        let size = text.len();
        let mut to = &mut text[..];
        write!(to, "{{\"seq\":{},\"ts\":{}", number(self.date, self.every), self.date.0 / 1_000).expect(ROOM);
        let so_far = size - to.len();
        // `,"pad":""}` are ten octets, `}` is one.
        if usize::from(self.length) > so_far + 1 {
            let pad = usize::from(self.length).saturating_sub(so_far + 10);
            write!(to, ",\"pad\":\"{:x<pad$}\"", "").expect(ROOM);
        }
        write!(to, "}}").expect(ROOM);
        let length = size - to.len();
        ws::write_frame(out, Opcode::Text, true, None, &text[..length]).expect(ROOM)
    }
}

const ROOM: &str = "there is room for a message";

#[cfg(test)]
mod tests {
    use super::*;
    use wire::websocket::{Event, Frames, Role};

    fn text(length: u16) -> String {
        let date = Nanos(1_700_000_000_123_456_789);
        let message = Message { date, every: Nanos::from_millis(100), length };
        let mut out = vec![0; message.room()];
        let written = message.write(&mut out);
        let (n, event) = Frames::new(Role::Client).handle_bytes(&out[..written], 100_000).unwrap();
        let Some(Event::Data(data)) = event else { panic!("{event:?}") };
        assert_eq!(n, written);
        String::from_utf8(data.payload.bytes().collect()).unwrap()
    }

    #[test]
    fn a_message_has_its_number_the_time_and_the_length_that_was_asked_for() {
        let plain = r#"{"seq":17000000001,"ts":1700000000123456}"#;
        assert_eq!(text(0), plain);
        assert_eq!(text(plain.len() as u16), plain);
        assert_eq!((text(60).len(), text(10_240).len()), (60, 10_240));
        assert!(text(60).starts_with(&plain[..plain.len() - 1]) && text(60).ends_with("x\"}"));
        assert!(text(45).len() >= 45);
    }

    #[test]
    fn the_next_message_is_due_at_the_next_multiple() {
        let every = Nanos::from_millis(100);
        for (date, number_, wait) in [
            (1_700_000_000_123_456_789, 17_000_000_001, 76_543_211),
            (300_000_000, 3, 100_000_000),
            (398_999_999, 3, 1_000_001),
            // The timer fired early.
            (299_500_000, 3, 100_500_000),
        ] {
            assert_eq!(
                (number(Nanos(date), every), until_next(Nanos(date), every)),
                (number_, Nanos(wait)),
                "{date}"
            );
        }
    }
}
