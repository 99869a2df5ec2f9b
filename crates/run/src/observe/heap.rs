//! What lives in the target's managed heap, before the first dial and at full load: after full collections that the user allowed.

use std::{
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use host::Root;

/// A collection under way at the end of the run may take so long.
const PATIENCE: Duration = Duration::from_secs(60);

type Live = Result<u64, String>;

/// Both collections of a run.
pub(super) struct Heap {
    without: Live,
    with: Option<Live>,
    under_way: Option<Receiver<Live>>,
}

impl Heap {
    /// Collects now, and waits for it.
    pub(super) fn without_load(root: &Root, pids: Vec<u32>) -> Heap {
        Heap { without: host::live_heap(root, &pids), with: None, under_way: None }
    }

    /// Collects from now on, on a thread of its own: the run goes on.
    pub(super) fn at_full_load(&mut self, root: &Root, pids: &[u32]) {
        if self.without.is_err() {
            return;
        }
        let (root, pids, (tell, under_way)) = (root.clone(), pids.to_vec(), channel());
        let begun = thread::Builder::new().name("target-gc".to_owned()).spawn(move || {
            let _ = tell.send(host::live_heap(&root, &pids));
        });
        match begun {
            Ok(_) => self.under_way = Some(under_way),
            Err(e) => self.with = Some(Err(e.to_string())),
        }
    }

    /// Connections are being closed: what is collected now is not full load's.
    pub(super) fn load_ends(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            let late =
                || Err("the run ended before the collection at full load did: use a longer -d".to_owned());
            self.with = Some(under_way.try_recv().unwrap_or_else(|_| late()));
        }
    }

    /// Bytes without and with load.
    pub(super) fn finish(mut self) -> Result<(u64, u64), String> {
        if let Some(under_way) = self.under_way.take() {
            let late = |_| Err("the collection at full load did not end".to_owned());
            self.with = Some(under_way.recv_timeout(PATIENCE).unwrap_or_else(late));
        }
        let with = self.with.unwrap_or_else(|| Err("the load was never full".to_owned()));
        Ok((self.without?, with?))
    }
}
