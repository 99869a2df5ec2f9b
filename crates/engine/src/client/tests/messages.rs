//! Messages that a server sends when nothing is awaited are not taken for replies.

use net::Io;
use wire::websocket::{Event, Frames, Role};

use super::{Instead, MS, Output, Serve, accepts, plan, run};

/// A WebSocket that echoes each message, followed by this.
struct EchoThen {
    then: &'static [u8],
    received: u64,
}

#[derive(Default)]
struct Conn(Option<Frames>);

impl Serve for EchoThen {
    type Conn = Conn;

    fn read<I: Io>(&mut self, Conn(frames): &mut Conn, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let Some(frames) = frames else {
            *frames = Some(Frames::new(Role::Server));
            out.send(&accepts(input));
            return input.len();
        };
        let mut used = 0;
        while used < input.len() {
            let (n, event) =
                frames.handle_bytes(&input[used..], 1_000).expect("a client that keeps to the RFC");
            used += n;
            match event {
                Some(Event::Data(data)) => {
                    let mut text = vec![0; data.payload.len()];
                    data.payload.copy_to(&mut text);
                    self.received += 1;
                    out.send(&[&[0x81, text.len() as u8], &text[..], self.then].concat());
                }
                None if n == 0 => break,
                _ => {}
            }
        }
        used
    }
}

#[test]
fn what_came_before_a_message_was_sent_is_no_reply_to_it() {
    for then in [&b""[..], b"\x81\x04news", b"\x81\x01n\x81\x01n\x89\0", b"\x82\x00"] {
        let text =
            "target = \"ws://127.0.0.1:80/\"\nping = \"0s\"\n[[population]]\nname = \"a\"\nconnections = 2\n";
        let mut server = EchoThen { then, received: 0 };
        let outcome = run(&plan(text), None, MS(200), Instead::default(), &mut server);
        let c = &outcome.tick.counts;
        let under_way = server.received - c.answered;
        assert!(c.answered > 100 && under_way <= 2, "{then:?}: {} {c:?}", server.received);
        assert_eq!(outcome.faults(), vec![], "{then:?}");
    }
}
