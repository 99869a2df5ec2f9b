//! Writes messages, the lines of a run and the output of the live view to standard error, through a queue ([`Background`]). A reader
//! that stops reading does not block throng.

use std::{
    io::{self, Write, stderr},
    mem,
    sync::OnceLock,
    time::Duration,
};

use exporters::background::{Background, Full};
use units::Count;

/// Capacity of the queue in bytes: more than an hour of lines.
const LIMIT: usize = 1 << 20;
/// Maximum time without progress when the queue is flushed.
const PATIENCE: Duration = Duration::from_secs(1);

/// The queue; `None` if its thread could not be started.
static QUEUE: OnceLock<Option<Background>> = OnceLock::new();

fn queue() -> Option<&'static Background> {
    QUEUE.get_or_init(|| Background::start(stderr(), Full::DropsOldest, LIMIT).ok()).as_ref()
}

/// Queues bytes that are written in one call.
pub(crate) fn write(bytes: Vec<u8>) {
    match queue() {
        Some(queue) => queue.push(bytes),
        None => {
            let _ = stderr().write_all(&bytes);
        }
    }
}

/// Prints a message of one or more lines to standard error. Never waits.
pub fn message(text: &str) {
    write(format!("{text}\n").into_bytes());
}

/// Waits until the messages so far are written, or until there is no progress. Must be called before something is written to standard
/// output, and before the process exits. Reports dropped messages.
pub fn flush_messages() {
    flush(PATIENCE);
}

/// As [`flush_messages`], with another timeout.
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

/// Standard error for the lines of a run; each is written as a whole when it is complete.
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
