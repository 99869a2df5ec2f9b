//! Standard error: messages, the lines of a run and the ends of the live view. A reader that stops reading blocks nothing
//! here ([`Background`]).

use std::{
    io::{self, Write, stderr},
    mem,
    sync::OnceLock,
    time::Duration,
};

use exporters::background::{Background, Full};
use units::Count;

/// Bytes that may wait: an hour of lines and more.
const LIMIT: usize = 1 << 20;
/// Timeout of a standard error that accepts nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// None where there is no thread for it.
static QUEUE: OnceLock<Option<Background>> = OnceLock::new();

fn queue() -> Option<&'static Background> {
    QUEUE.get_or_init(|| Background::start(stderr(), Full::DropsOldest, LIMIT).ok()).as_ref()
}

/// Queues bytes for standard error, to be written as one piece.
pub(crate) fn write(bytes: Vec<u8>) {
    match queue() {
        Some(queue) => queue.push(bytes),
        None => {
            let _ = stderr().write_all(&bytes);
        }
    }
}

/// A message on standard error, a line or several. It is written at once where standard error takes it; it never waits.
pub fn message(text: &str) {
    write(format!("{text}\n").into_bytes());
}

/// Waits until the messages so far are written, for as long as standard error takes any. To be called before something is
/// written to standard output, and at the end of the process. What was dropped is reported here.
pub fn flush_messages() {
    flush(PATIENCE);
}

/// The same with another patience.
pub(crate) fn flush(patience: Duration) {
    let Some(queue) = queue() else { return };
    let flushed = queue.flush(patience);
    if flushed.dropped > 0 {
        let dropped = Count(flushed.dropped).of("message");
        message(&format!("throng: standard error was not read; {dropped} dropped"));
        if !flushed.is_stuck {
            queue.flush(patience);
        }
    }
}

/// Standard error for the lines of a run: each goes out as a whole when it ends.
#[derive(Default)]
pub struct Messages {
    line: Vec<u8>,
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if self.line.ends_with(b"\n") {
            write(mem::take(&mut self.line));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
