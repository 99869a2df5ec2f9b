//! Reads logs on a separate thread: a file system that does not respond (NFS) must not block the observer.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use samples::LogLine;

use super::Logs;
use crate::Root;

/// A sample takes well under a millisecond; after this time the next one takes its result.
const PATIENCE: Duration = Duration::from_millis(20);
/// Lines before the first dial do not belong to this run: the first sample is awaited.
const FIRST: Duration = Duration::from_millis(500);

/// Requests to the thread.
enum Request {
    Sample,
    /// Files that these processes have opened since.
    Open(Vec<u32>),
}

/// The logs of some processes from a moment on, without waiting for them.
#[derive(Debug)]
pub(crate) struct LogReader {
    /// None where there can be no thread.
    thread: Option<(Sender<Request>, Receiver<Vec<LogLine>>)>,
    is_waiting: bool,
    latest: Vec<LogLine>,
}

impl LogReader {
    /// What is in them now is not read.
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

    /// Adds the files that these processes have opened since.
    pub(crate) fn open(&mut self, pids: Vec<u32>) {
        if let Some((requests, _)) = self.thread.as_ref().filter(|_| !self.is_waiting) {
            let _ = requests.send(Request::Open(pids));
        }
    }

    /// The first line of each kind written since the start; as of the last sample if this one takes long.
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
        // A busy machine may delay one sample, but not all.
        let seen = (0..500).find_map(|_| reader.sample().first().cloned()).expect("a reply");
        assert_eq!(seen.kind, LogKind::Heap);
        // A thread that is gone, or hangs, is as if nothing had been written since.
        let (requests, _hangs) = channel();
        let (_never, receiver) = channel();
        reader.thread = Some((requests, receiver));
        assert_eq!((reader.sample().len(), reader.sample().len()), (1, 1));
        reader.open(vec![7]);
    }
}
