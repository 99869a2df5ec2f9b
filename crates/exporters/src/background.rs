//! A writer on a thread, fed through a bounded queue, so that the caller never waits for a pipe, a disk or a terminal.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use units::Clock;

/// Which data to drop when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The oldest. For messages, since the latest matter most; each is written even if earlier writes failed.
    DropsOldest,
    /// The newest. For files, which can only be read from their beginning; nothing is written after the first failure.
    DropsNewest,
}

/// The sending end. When it is dropped, the thread writes what is queued and ends.
pub struct Background {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    full: Full,
    /// Capacity of the queue in bytes.
    limit: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    /// Number of bytes in `waiting`.
    bytes: usize,
    is_writing: bool,
    is_closed: bool,
    /// Number of pieces that were written, successfully or not.
    done: u64,
    dropped: u64,
    failed: Option<io::Error>,
}

/// The result of a flush.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Whether data is still queued and no progress was made until the timeout.
    pub is_stuck: bool,
    /// Number of pieces dropped since the last flush because the queue was full.
    pub dropped: u64,
    /// The first failed write since the last flush.
    pub failed: Option<io::Error>,
}

impl Background {
    /// Starts the thread; `limit` is the capacity of the queue in bytes.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(out: impl Write + Send + 'static, full: Full, limit: usize) -> io::Result<Background> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), full, limit });
        let of_thread = shared.clone();
        thread::Builder::new().name("writer".to_owned()).spawn(move || of_thread.write_all(out))?;
        Ok(Background { shared })
    }

    /// Queues a piece, which is written in one call.
    pub fn push(&self, piece: Vec<u8>) {
        let (mut state, Shared { full, limit, .. }) = (self.shared.state.lock(), &*self.shared);
        // A piece larger than the queue is accepted if the queue is empty.
        while state.bytes + piece.len() > *limit && !state.waiting.is_empty() {
            state.dropped += 1;
            if *full == Full::DropsNewest {
                return;
            }
            state.bytes -= state.waiting.pop_front().map_or(0, |oldest| oldest.len());
        }
        state.bytes += piece.len();
        state.waiting.push_back(piece);
        self.shared.changed.notify_all();
    }

    /// Waits until everything is written, or until no piece was written for `patience`; at most ten times `patience` in total.
    pub fn flush(&self, patience: Duration) -> Flushed {
        let clock = Clock::start();
        let mut state = self.shared.state.lock();
        while !state.is_idle() && clock.now().0 < 10 * patience.as_nanos() as u64 {
            let before = state.done;
            let stuck = |state: &mut State| !state.is_idle() && state.done == before;
            if self.shared.changed.wait_while_for(&mut state, stuck, patience).timed_out() {
                break;
            }
        }
        Flushed {
            is_stuck: !state.is_idle(),
            dropped: std::mem::take(&mut state.dropped),
            failed: state.failed.take(),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_writing
    }
}

impl Shared {
    /// The body of the thread: writes until the sending end is dropped and the queue is empty.
    fn write_all(&self, mut out: impl Write) {
        let mut is_broken = false;
        loop {
            let mut state = self.state.lock();
            self.changed.wait_while(&mut state, |state| state.waiting.is_empty() && !state.is_closed);
            let Some(piece) = state.waiting.pop_front() else { return };
            (state.bytes, state.is_writing) = (state.bytes - piece.len(), true);
            drop(state);
            units::failpoint("writer");
            let written = match is_broken {
                true => Ok(()),
                false => out.write_all(&piece).and_then(|()| out.flush()),
            };
            let mut state = self.state.lock();
            if let Err(e) = written {
                is_broken = self.full == Full::DropsNewest;
                state.failed.get_or_insert(e);
            }
            (state.done, state.is_writing) = (state.done + 1, false);
            self.changed.notify_all();
        }
    }
}

/// Queue capacity for a file, in bytes: minutes of histograms.
const FILE_LIMIT: usize = 4 << 20;
/// Maximum time without progress of a disk at the end.
const FILE_PATIENCE: Duration = Duration::from_secs(5);

/// A file, or another output, written line by line in the background. A flush waits for a bounded time and reports lost lines as an
/// error.
pub struct BackgroundFile {
    line: Vec<u8>,
    queue: Background,
}

impl BackgroundFile {
    /// Starts a writer to `out`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<BackgroundFile> {
        Ok(BackgroundFile { line: Vec::new(), queue: Background::start(out, Full::DropsNewest, FILE_LIMIT)? })
    }
}

impl Write for BackgroundFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if self.line.ends_with(b"\n") {
            self.queue.push(std::mem::take(&mut self.line));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.queue.flush(FILE_PATIENCE) {
            Flushed { failed: Some(e), .. } => Err(e),
            Flushed { is_stuck: true, .. } => {
                Err(io::Error::other(format!("no progress for {FILE_PATIENCE:?}")))
            }
            Flushed { dropped: 0, .. } => Ok(()),
            Flushed { dropped, .. } => Err(io::Error::other(format!("too slow: {dropped} lines dropped"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(10);

    /// An output that accepts a piece each time the test allows it.
    struct Slow {
        may: Receiver<()>,
        took: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.may.recv().map_err(io::Error::other)?;
            self.took.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Pushes nine pieces of one byte to a blocked output, through a queue with room for three, and checks which it finally gets.
    fn check(full: Full, expected: &[u8]) {
        let ((allow, may), (took, taken)) = (channel(), channel());
        let out = Background::start(Slow { may, took }, full, 3).unwrap();
        out.push(vec![0]);
        // Waits until the first piece is being written and no longer queued.
        while !out.shared.state.lock().is_writing {
            thread::yield_now();
        }
        (1..9).for_each(|n| out.push(vec![n]));
        let stuck = out.flush(SHORT);
        assert!(stuck.is_stuck && stuck.failed.is_none(), "{full:?}: {stuck:?}");
        assert_eq!(stuck.dropped, 5, "{full:?}");
        (0..4).for_each(|_| allow.send(()).unwrap());
        let flushed = out.flush(LONG);
        assert!(!flushed.is_stuck && flushed.dropped == 0 && flushed.failed.is_none(), "{flushed:?}");
        drop((out, allow));
        assert_eq!(taken.iter().flatten().collect::<Vec<u8>>(), expected, "{full:?}");
    }

    #[test]
    fn samples_beyond_the_queue_are_dropped_and_counted() {
        check(Full::DropsOldest, &[0, 6, 7, 8]);
        check(Full::DropsNewest, &[0, 1, 2, 3]);
    }

    #[test]
    fn a_piece_larger_than_the_queue_is_written() {
        let ((allow, may), (took, taken)) = (channel(), channel());
        let out = Background::start(Slow { may, took }, Full::DropsOldest, 3).unwrap();
        allow.send(()).unwrap();
        out.push(vec![7; 1000]);
        assert!(!out.flush(LONG).is_stuck);
        assert_eq!(taken.recv().unwrap(), vec![7; 1000]);
    }

    /// A disk that is full at the first write.
    struct FullOnce(bool, Sender<Vec<u8>>);

    impl Write for FullOnce {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !std::mem::replace(&mut self.0, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_ends_at_its_first_failure_and_messages_are_tried_again() {
        for (full, expected) in [(Full::DropsOldest, vec![2]), (Full::DropsNewest, vec![])] {
            let (took, taken) = channel();
            let out = Background::start(FullOnce(false, took), full, 100).unwrap();
            out.push(vec![1]);
            out.push(vec![2]);
            let flushed = out.flush(LONG);
            let failed = flushed.failed.expect("the first failed");
            assert_eq!(failed.kind(), io::ErrorKind::StorageFull, "{full:?}");
            assert!(!flushed.is_stuck && flushed.dropped == 0);
            drop(out);
            assert_eq!(taken.iter().flatten().collect::<Vec<u8>>(), expected, "{full:?}");
        }
    }
}
