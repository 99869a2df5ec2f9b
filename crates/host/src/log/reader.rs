//! Reads logs on a separate thread: a file system that does not respond (NFS) must not block the observer.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use samples::LogLine;

use super::Logs;
use crate::Root;

/// Maximum wait for a sample, which usually takes well under a millisecond. A late result is returned by the next call.
const PATIENCE: Duration = Duration::from_millis(20);
/// Maximum wait for the first sample, which must precede the first dial: earlier lines do not belong to this run.
const FIRST: Duration = Duration::from_millis(500);

/// Requests to the thread.
enum Request {
    Sample,
    /// Add the files that these processes have opened meanwhile.
    Open(Vec<u32>),
}

/// The logs of some processes from a point in time on, read without blocking.
#[derive(Debug)]
pub(crate) struct LogReader {
    /// `None` if the thread could not be started.
    thread: Option<(Sender<Request>, Receiver<Vec<LogLine>>)>,
    is_waiting: bool,
    latest: Vec<LogLine>,
}

impl LogReader {
    /// Skips the present content of the logs.
    pub(crate) fn from_now_on(root: &Root, pids: Vec<u32>) -> LogReader {
        let (requests, received) = channel();
        let (sender, receiver) = channel();
        let root = root.clone();
        let reads = move || {
            units::failpoint("target-logs");
            let mut logs = Logs::from_now_on(&root, pids.into_iter());
            let mut goes_on = sender.send(Vec::new()).is_ok();
            while let (true, Ok(request)) = (goes_on, received.recv()) {
                match request {
                    Request::Sample => goes_on = sender.send(logs.sample().to_vec()).is_ok(),
                    Request::Open(pids) => logs.open(pids.into_iter()),
                }
            }
        };
        let begun = thread::Builder::new().name("target-logs".to_owned()).spawn(reads);
        let thread = begun.ok().map(|_| (requests, receiver));
        let mut reader = LogReader { thread, is_waiting: true, latest: Vec::new() };
        reader.take(FIRST);
        reader
    }

    /// Adds the files that these processes have opened meanwhile.
    pub(crate) fn open(&mut self, pids: Vec<u32>) {
        if let Some((requests, _)) = self.thread.as_ref().filter(|_| !self.is_waiting) {
            let _ = requests.send(Request::Open(pids));
        }
    }

    /// The first line of each kind written since the start; the previous sample if this one takes too long.
    pub(crate) fn sample(&mut self) -> &[LogLine] {
        if let Some((requests, _)) = self.thread.as_ref().filter(|_| !self.is_waiting) {
            self.is_waiting = requests.send(Request::Sample).is_ok();
        }
        self.take(PATIENCE);
        &self.latest
    }

    fn take(&mut self, patience: Duration) {
        let waiting = self.thread.as_ref().filter(|_| self.is_waiting);
        if let Some(lines) = waiting.and_then(|(_, receiver)| receiver.recv_timeout(patience).ok()) {
            (self.latest, self.is_waiting) = (lines, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;
    use samples::LogKind;

    #[test]
    fn log_lines_are_reported_without_blocking() {
        let machine = Machine::with(&[("out", "")]);
        machine.link("proc/7/fd/1", machine.root().path("out").to_str().unwrap());
        machine.write("proc/7/fdinfo/1", "flags:\t0100001\n");
        let mut reader = LogReader::from_now_on(&machine.root(), vec![7]);
        assert_eq!(reader.sample(), []);
        machine.write("out", "java.lang.OutOfMemoryError: Java heap space\n");
        // A busy machine may delay single samples.
        let seen = (0..500).find_map(|_| reader.sample().first().cloned()).expect("a reply");
        assert_eq!(seen.kind, LogKind::Heap);
        // A thread that has ended or hangs: as if nothing had been written since.
        let (requests, _hangs) = channel();
        let (_never, receiver) = channel();
        reader.thread = Some((requests, receiver));
        assert_eq!((reader.sample().len(), reader.sample().len()), (1, 1));
        reader.open(vec![7]);
    }
}
