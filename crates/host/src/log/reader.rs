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
enum Ask {
    Sample,
    /// Files that these processes have opened since.
    Open(Vec<u32>),
}

/// The logs of some processes from a moment on, without waiting for them.
#[derive(Debug)]
pub(crate) struct LogReader {
    /// None where there can be no thread.
    thread: Option<(Sender<Ask>, Receiver<Vec<LogLine>>)>,
    is_asked: bool,
    latest: Vec<LogLine>,
}

impl LogReader {
    /// What is in them now is not read.
    pub(crate) fn from_now_on(root: &Root, pids: Vec<u32>) -> LogReader {
        let (ask, asked) = channel();
        let (tell, told) = channel();
        let root = root.clone();
        let reads = move || {
            let mut logs = Logs::from_now_on(&root, pids.into_iter());
            let mut goes_on = tell.send(Vec::new()).is_ok();
            while let (true, Ok(ask)) = (goes_on, asked.recv()) {
                match ask {
                    Ask::Sample => goes_on = tell.send(logs.look().to_vec()).is_ok(),
                    Ask::Open(pids) => logs.open(pids.into_iter()),
                }
            }
        };
        let begun = thread::Builder::new().name("target-logs".to_owned()).spawn(reads);
        let mut reader = LogReader { thread: None, is_asked: true, latest: Vec::new() };
        reader.thread = begun.ok().map(|_| (ask, told));
        reader.take(FIRST);
        reader
    }

    /// Adds the files that these processes have opened since.
    pub(crate) fn open(&mut self, pids: Vec<u32>) {
        if let Some((ask, _)) = self.thread.as_ref().filter(|_| !self.is_asked) {
            let _ = ask.send(Ask::Open(pids));
        }
    }

    /// The first line of each kind written since the start; as of the last sample if this one takes long.
    pub(crate) fn look(&mut self) -> &[LogLine] {
        if let Some((ask, _)) = self.thread.as_ref().filter(|_| !self.is_asked) {
            self.is_asked = ask.send(Ask::Sample).is_ok();
        }
        self.take(PATIENCE);
        &self.latest
    }

    fn take(&mut self, patience: Duration) {
        let told = self.thread.as_ref().filter(|_| self.is_asked);
        if let Some(lines) = told.and_then(|(_, told)| told.recv_timeout(patience).ok()) {
            (self.latest, self.is_asked) = (lines, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;
    use samples::LogKind;

    #[test]
    fn what_is_logged_is_reported_and_nobody_waits_for_it() {
        let machine = Machine::with(&[("out", "")]);
        machine.link("proc/7/fd/1", machine.root().path("out").to_str().unwrap());
        machine.write("proc/7/fdinfo/1", "flags:\t0100001\n");
        let mut reader = LogReader::from_now_on(&machine.root(), vec![7]);
        assert_eq!(reader.look(), []);
        machine.write("out", "java.lang.OutOfMemoryError: Java heap space\n");
        // A busy machine may delay one sample, but not all.
        let seen = (0..500).find_map(|_| reader.look().first().cloned()).expect("it was told");
        assert_eq!(seen.kind, LogKind::Heap);
        // A thread that is gone, or hangs, is as if nothing had been written since.
        let (ask, _hangs) = channel();
        let (_never, told) = channel();
        reader.thread = Some((ask, told));
        assert_eq!((reader.look().len(), reader.look().len()), (1, 1));
        reader.open(vec![7]);
    }
}
