//! Writes the output of a server to a file of bounded size: the beginning and the end are kept, the middle is omitted.

use std::{
    collections::VecDeque,
    fs::File,
    io::{PipeReader, Read, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// Number of bytes kept from the beginning.
const HEAD: usize = 8 << 20;
/// Number of bytes kept from the end.
const TAIL: usize = 1 << 20;
/// Maximum wait for remaining output after the process has ended: a process that it started may keep the pipe open.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The log of a process.
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    is_whole: Receiver<()>,
}

impl Log {
    /// Starts a thread that writes the output of a pipe to a file.
    ///
    /// # Errors
    /// The file cannot be written, or no thread can be started.
    pub(crate) fn of(mut output: PipeReader, path: &Path) -> std::io::Result<Log> {
        let mut file = File::create(path)?;
        let (done, is_whole) = channel();
        thread::Builder::new().name("lab-log".to_owned()).spawn(move || {
            // Reading continues even if the disk is full; otherwise the server would block.
            keep(&mut output, &mut file, HEAD, TAIL);
            let _ = done.send(());
        })?;
        Ok(Log { path: path.to_owned(), is_whole })
    }

    /// Waits, after the process has ended, until its output is written.
    pub(crate) fn wait(&self) {
        let _ = self.is_whole.recv_timeout(END_TIMEOUT);
    }
}

/// Copies the first `head` and the last `tail` bytes; omits the middle of longer output.
fn keep(from: &mut impl Read, to: &mut impl Write, head: usize, tail: usize) {
    let (mut left, mut omitted) = (head, 0u64);
    let mut end: VecDeque<u8> = VecDeque::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let (first, rest) = buffer[..n].split_at(left.min(n));
        let _ = to.write_all(first);
        left -= first.len();
        end.extend(rest);
        let over = end.len().saturating_sub(tail);
        end.drain(..over);
        omitted += over as u64;
    }
    if omitted > 0 {
        let _ = write!(to, "\n… {omitted} bytes omitted …\n");
    }
    let (one, two) = end.as_slices();
    let _ = to.write_all(one).and_then(|()| to.write_all(two)).and_then(|()| to.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_log_is_left_out() {
        let check = |said: &str, expected: &str| {
            let mut kept = Vec::new();
            keep(&mut said.as_bytes(), &mut kept, 4, 3);
            assert_eq!(String::from_utf8(kept).unwrap(), expected);
        };
        check("", "");
        check("one", "one");
        check("1234567", "1234567");
        check("12345678", "1234\n… 1 bytes omitted …\n678");
        let long: String = "0123456789".repeat(100_000);
        check(&long, "0123\n… 999993 bytes omitted …\n789");
    }
}
