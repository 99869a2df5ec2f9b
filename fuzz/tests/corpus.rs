//! Each target over its corpus, and over a few thousand mutations of it, always the same ones.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Words that a mutation may drop in: those that turn the machines' switches.
const WORDS: [&[u8]; 56] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b";a=\"b\"",
    b"ffffffffffffffff",
    b"10000000000000000",
    b"Content-Length: 5\r\n",
    b"Content-Length: 18446744073709551616\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Keep-Alive: timeout=5, max=100\r\n",
    b"Expect: 100-continue\r\n",
    b"Host: h\r\n",
    b"HTTP/1.0",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n",
    b"Upgrade: websocket\r\n",
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
    b"Sec-WebSocket-Protocol: chat\r\n",
    b"\x01\x83\xf1\xf2\xf3\xf4\xe2\x82\xac",
    b"\x80\x80\0\0\0\0",
    b"\x89\x81\x01\x02\x03\x04x",
    b"\x88\x82\0\0\0\0\x03\xe8",
    b"\x01\x03\xe2\x82\xac",
    b"\x80\0",
    b"\x89\x01x",
    b"\x88\x02\x03\xe8",
    b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01h",
    b"\0\0\x06\x01\x04\0\0\0\x03\x83\x86\x84\x41\x01h",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\0\0\x01\0\0\0\x01",
    b"\0\0\x05\0\0\0\0\0\x01hello",
    b"\0\0\x04\x08\0\0\0\0\0\0\0\x10\0",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x05",
    b"\0\0\x01\x09\x04\0\0\0\x01\xbe",
    b"\x40\x01a\x01b",
    b"\x00\x02te\x81\x1f",
    b"\n[[population]]\nname = \"b\"\n",
    b"\n[[population.step]]\nrequest = \"POST /\"\n",
    b"\n[[population.step]]\nsend = \"x\"\n",
    b"\n[[stage]]\nto = \"50%\"\n",
    b"rate = \"5/s\"\n",
    b"think = \"1s..2s\"\n",
    b"{rand 1 9}",
    b"{{seq}",
];

const MUTATIONS: usize = 4000;

#[test]
fn targets_hold_over_their_corpus_and_its_mutations() {
    for (name, target) in fuzz::TARGETS {
        let seeds = seeds(name);
        assert!(seeds.len() >= 20, "{name}: corpus of {}", seeds.len());
        for (path, seed) in &seeds {
            hold(target, seed, &path.display().to_string());
        }
        let mut dice = Dice(0x7468_726f_6e67);
        for nth in 0..MUTATIONS {
            let (_, seed) = &seeds[dice.below(seeds.len())];
            let (_, other) = &seeds[dice.below(seeds.len())];
            let mut data = seed.clone();
            for _ in 0..=dice.below(4) {
                mutate(&mut data, other, &mut dice);
            }
            hold(target, &data, &format!("{name}, mutation {nth}"));
        }
    }
}

/// Runs the target, and says on which input it fails; the panic has said why.
fn hold(target: fuzz::Target, data: &[u8], what: &str) {
    let held = catch_unwind(AssertUnwindSafe(|| target(data)));
    assert!(held.is_ok(), "{what}: {}", data.escape_ascii());
}

/// The corpus in the order of its names, so that each mutation is the same each time.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the corpus is there").map(|f| f.expect("readable").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("readable"))).collect()
}

fn mutate(data: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.below(data.len() + 1);
    let end = (at + dice.below(20)).min(data.len());
    match dice.below(6) {
        0 if at < data.len() => data[at] ^= 1 << dice.below(8),
        1 if at < data.len() => data[at] = dice.below(256) as u8,
        2 => drop(data.drain(at..end)),
        3 => {
            let copy = data[at..end].to_vec();
            data.splice(at..at, copy);
        }
        4 => {
            let from = dice.below(other.len() + 1);
            data.splice(at.., other[from..].iter().copied());
        }
        _ => drop(data.splice(at..at, WORDS[dice.below(WORDS.len())].iter().copied())),
    }
}

/// Marsaglia's xorshift, 64 bits: enough to choose, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}
