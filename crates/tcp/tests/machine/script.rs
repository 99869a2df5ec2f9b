//! Scripts: incoming segments, and the segments and events that must result, line by line.
//!
//! ```text
//! connect                         the program dials; also: send N, static N, close, reset, hold, resume, turn (the end of one)
//! out S 0 mss 1460 scale 5        a segment that must be sent next: flags, number, and other properties
//! in SA 0 ack 1 win 5000          a segment of the peer
//! opened                          an event that must be reported next: bytes N, kept N, drained, ended, gone reset
//! skip 3                          this number of segments, of any kind
//! wait 200ms                      time passes; timers expire when they are due
//! icmp 3 4 1200                   an ICMP message about the last segment sent: type, code, word
//! ```
//!
//! Numbers are relative to the sender's initial sequence number, and `ack` to that of the other end. `200:100` is data: number and length;
//! a segment without data has only a number. An unexpected segment or event is a failure. After `in` and `wait` the turn ends, unless the
//! line ends with `more`.

use std::collections::VecDeque;
use std::net::SocketAddr;

use tcp::{Close, Link, Outgoing, Settings, Tcp, What, Why};
use units::Nanos;

use crate::segment::{ACK, FIN, PSH, RST, SYN, Segment, icmp};

/// A link that keeps all packets.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) packets: VecDeque<Vec<u8>>,
}

impl Link for Wire {
    fn completes_checksums(&self) -> bool {
        false
    }

    fn largest(&self) -> usize {
        0
    }

    fn send(&mut self, packet: Outgoing<'_>) {
        assert_eq!(packet.segment_size, None, "this link cuts nothing");
        self.packets.push_back([packet.head, packet.payload].concat());
    }
}

/// The peer's initial sequence number: its data wraps.
const PEER: u32 = u32::MAX - 300;

struct Stage {
    tcp: Tcp,
    wire: Wire,
    now: Nanos,
    ends: [SocketAddr; 2],
    /// The initial sequence number of the machine under test.
    iss: u32,
    events: VecDeque<String>,
    /// The packet that was sent last.
    last: Vec<u8>,
}

/// Byte `n` of any stream.
fn byte(n: usize) -> u8 {
    (n * 7 + n / 251) as u8
}

/// Runs a script over IPv4 and over IPv6.
pub(crate) fn check(name: &str, script: &str) {
    check_v4(name, script);
    check_v6(name, script);
}

pub(crate) fn check_v4(name: &str, script: &str) {
    check_between(name, script, ["198.18.0.9:4000", "10.0.0.1:80"].map(|end| end.parse().unwrap()));
}

pub(crate) fn check_v6(name: &str, script: &str) {
    check_between(name, script, ["[2001:2::9]:4000", "[fd00::1]:80"].map(|end| end.parse().unwrap()));
}

fn check_between(name: &str, script: &str, ends: [SocketAddr; 2]) {
    let settings = Settings { places: 4, secret: [3, 4], ..Settings::default() };
    let mut stage = Stage {
        tcp: Tcp::new(settings),
        wire: Wire::default(),
        now: Nanos::from_secs(1),
        ends,
        iss: 0,
        events: VecDeque::new(),
        last: Vec::new(),
    };
    for (nth, line) in script.lines().enumerate() {
        let line = line.split('#').next().unwrap().trim();
        if !line.is_empty() {
            stage.line(line, &format!("{name}, {}, line {}: {line}", ends[0], nth + 1));
        }
    }
    stage.is_quiet(&format!("{name}, {}, at its end", ends[0]));
}

impl Stage {
    fn is_quiet(&self, place: &str) {
        let packets: Vec<String> = self.wire.packets.iter().map(|packet| self.show(packet)).collect();
        assert!(
            packets.is_empty() && self.events.is_empty(),
            "{place}: before it: {packets:?} {:?}",
            self.events
        );
    }

    fn line(&mut self, line: &str, place: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |nth: usize| words[nth].parse::<usize>().unwrap_or_else(|_| panic!("{place}: a number"));
        if !matches!(words[0], "out" | "skip" | "opened" | "bytes" | "kept" | "drained" | "ended" | "gone") {
            self.is_quiet(place);
        }
        let (now, wire) = (self.now, &mut self.wire);
        match words[0] {
            "connect" => {
                self.tcp.connect(0, self.ends[0], self.ends[1], now, wire).expect(place);
                self.iss = Segment::read(&wire.packets[0]).seq;
            }
            "send" => {
                let bytes: Vec<u8> = (0..number(1)).map(byte).collect();
                self.tcp.send(0, &bytes, now, wire);
            }
            "static" => self.tcp.send_static(0, &[b's'; 4000][..number(1)], now, wire),
            "close" => self.tcp.close(0, Close::Graceful, now, wire),
            "reset" => self.tcp.close(0, Close::Reset, now, wire),
            "hold" => self.tcp.hold(0),
            "resume" => self.tcp.resume(0),
            "turn" => self.tcp.flush(now, wire),
            "in" => self.incoming(&words[1..], place),
            "icmp" => {
                let router = match self.ends[0] {
                    SocketAddr::V4(_) => "192.0.2.1".parse().unwrap(),
                    SocketAddr::V6(_) => "2001:db8::1".parse().unwrap(),
                };
                let packet = icmp(router, &self.last, number(1) as u8, number(2) as u8, number(3) as u32);
                self.take(&packet);
            }
            "wait" => self.wait(words[1]),
            "out" => self.outgoing(&words[1..], place),
            "skip" => {
                assert_eq!(wire.packets.len(), number(1), "{place}");
                wire.packets.clear();
            }
            "left" => {
                let left = (self.tcp.in_flight(), self.tcp.lingering(), self.tcp.blocked());
                assert_eq!(left, (number(1), number(2), number(3)), "{place}: flights, lingering, blocked");
            }
            _ => assert_eq!(self.events.pop_front().as_deref(), Some(line), "{place}"),
        }
        if !matches!(words[0], "out") {
            self.gather();
            if words.last() != Some(&"more") && matches!(words[0], "in" | "wait") {
                self.tcp.flush(self.now, &mut self.wire);
            }
        }
    }

    fn take(&mut self, packet: &[u8]) {
        let event = self.tcp.receive(packet, false, self.now, &mut self.wire);
        if let Some(event) = event {
            let What::Bytes { at, len } = event.what else { panic!("{event:?} from receive") };
            let bytes = &packet[at as usize..][..len as usize];
            assert!(!bytes.is_empty());
            self.events.push_back(format!("bytes {len}"));
        }
    }

    fn gather(&mut self) {
        let mut buffer = [0; 100_000];
        while let Some(event) = self.tcp.next_event(&mut buffer) {
            assert_eq!(event.place, 0);
            self.events.push_back(match event.what {
                What::Opened => "opened".to_owned(),
                What::Kept { len } => format!("kept {len}"),
                What::Drained => "drained".to_owned(),
                What::Ended => "ended".to_owned(),
                What::Gone(Why::Reset) => "gone reset".to_owned(),
                What::Gone(Why::Refused) => "gone refused".to_owned(),
                What::Gone(Why::TimedOut) => "gone timed out".to_owned(),
                What::Gone(Why::Unreachable(errno)) => format!("gone {errno}"),
                What::Bytes { .. } => panic!("bytes of a packet that is gone"),
            });
        }
    }

    fn wait(&mut self, span: &str) {
        let ms = span.strip_suffix("ms").map(|n| n.parse::<u64>().unwrap());
        let span = Nanos::from_millis(
            ms.unwrap_or_else(|| span.strip_suffix('s').unwrap().parse::<u64>().unwrap() * 1000),
        );
        let until = self.now + span;
        while self.tcp.wakes_at() <= until {
            self.now = self.now.max(self.tcp.wakes_at());
            self.tcp.expire(self.now, &mut self.wire);
        }
        self.now = until;
    }

    fn incoming(&mut self, words: &[&str], place: &str) {
        let (seq, len) = numbers(words[1]);
        let mut segment = Segment {
            from: self.ends[1],
            to: self.ends[0],
            seq: PEER.wrapping_add(seq as u32),
            ack: 0,
            flags: flags(words[0], place),
            window: 10_000,
            mss: None,
            scale: None,
            sack_permitted: false,
            sacks: Vec::new(),
            payload: (0..len).map(|n| byte(n + seq as usize)).collect(),
        };
        let mut words = words[2..].iter().filter(|word| **word != "more");
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{place}: a value for {word}"));
            let value: i64 = value.parse().unwrap_or_else(|_| panic!("{place}: {value}"));
            match *word {
                "ack" => segment.ack = self.iss.wrapping_add(value as u32),
                "win" => segment.window = value as u16,
                "mss" => segment.mss = Some(value as u16),
                "scale" => segment.scale = Some(value as u8),
                "sackok" => segment.sack_permitted = value == 1,
                "from" => segment.from.set_port(value as u16),
                _ => panic!("{place}: {word}"),
            }
        }
        if segment.has(ACK) && segment.ack == 0 {
            panic!("{place}: what it acknowledges");
        }
        self.take(&segment.bytes());
    }

    fn show(&self, packet: &[u8]) -> String {
        let segment = Segment::read(packet);
        let flags: String = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, 'A')]
            .iter()
            .filter(|(flag, _)| segment.has(*flag))
            .map(|(_, letter)| *letter)
            .collect();
        let seq = segment.seq.wrapping_sub(self.iss) as i32;
        let mut shown = match segment.seq {
            0 => format!("{flags} zero"),
            _ => format!("{flags} {seq}"),
        };
        if !segment.payload.is_empty() {
            shown += &format!(":{}", segment.payload.len());
        }
        if segment.has(ACK) {
            shown += &format!(" ack {}", segment.ack.wrapping_sub(PEER) as i32);
        }
        if let Some(mss) = segment.mss {
            shown += &format!(" mss {mss}");
        }
        if let Some(scale) = segment.scale {
            shown += &format!(" scale {scale}");
        }
        if segment.sack_permitted {
            shown += " sackok 1";
        }
        let number = |number: u32| number.wrapping_sub(PEER) as i32;
        let blocks = segment.sacks.iter().map(|(from, to)| format!("{}:{}", number(*from), number(*to)));
        let blocks: Vec<_> = blocks.collect();
        if !blocks.is_empty() {
            shown += &format!(" sack {}", blocks.join(","));
        }
        shown + &format!(" win {}", segment.window)
    }

    /// Checks the next segment against these words; properties that they do not name are ignored.
    fn outgoing(&mut self, words: &[&str], place: &str) {
        let Some(packet) = self.wire.packets.pop_front() else { panic!("{place}: nothing went out") };
        let shown = self.show(&packet);
        // The MSS follows from the link's MTU; for IPv6 it is 20 less.
        let shown = shown.replace("mss 1440", "mss 1460");
        let shown: Vec<&str> = shown.split(' ').collect();
        let pairs = |words: &[&str]| -> Vec<(String, String)> {
            words[2..].chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
        };
        let has = pairs(&shown);
        let fits = words[..2] == shown[..2]
            && pairs(words).iter().all(|(name, value)| match value.as_str() {
                "none" => has.iter().all(|(other, _)| other != name),
                _ => has.contains(&(name.clone(), value.clone())),
            });
        assert!(fits, "{place}: went out: {}", shown.join(" "));
        self.last = packet;
    }
}

fn numbers(word: &str) -> (i64, usize) {
    match word.split_once(':') {
        Some((seq, len)) => (seq.parse().unwrap(), len.parse().unwrap()),
        None => (word.parse().unwrap(), 0),
    }
}

fn flags(word: &str, place: &str) -> u8 {
    word.chars().fold(0, |flags, letter| {
        flags
            | match letter {
                'S' => SYN,
                'F' => FIN,
                'R' => RST,
                'P' => PSH,
                'A' => ACK,
                _ => panic!("{place}: {letter}"),
            }
    })
}
