use std::sync::Mutex;

use super::*;
use fixtures::{header, seen};

/// An output that collects what was written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output that blocks permanently, or until it is released.
struct Stuck(Option<Receiver<()>>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            None => Err(io::Error::other("full")),
            Some(go) => {
                let _ = go.recv();
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(exporters: &mut Exporters, seconds: u64) {
    exporters.begin(&header());
    for second in 1..=seconds {
        let (tick, samples) = seen(second);
        exporters.tick(&tick, &samples);
    }
}

#[test]
fn all_that_happened_is_taken_away() {
    let (csv, jsonl) = (Shared::default(), Shared::default());
    let mut exporters = Exporters::new(Date(0));
    exporters.csv("--csv a".to_owned(), csv.clone());
    exporters.jsonl("--jsonl b".to_owned(), jsonl.clone());
    run(&mut exporters, 5);
    assert_eq!(exporters.end().troubles, Vec::<String>::new());
    let lines = |of: &Shared| of.0.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!((lines(&csv), lines(&jsonl)), (6, 5));
}

#[test]
fn one_that_fails_is_reported_and_costs_the_others_nothing() {
    let jsonl = Shared::default();
    let mut exporters = Exporters::new(Date(0));
    exporters.csv("--csv a".to_owned(), Stuck(None));
    exporters.jsonl("--jsonl b".to_owned(), jsonl.clone());
    // As many as the queue of the other exporter holds, however slow that is.
    run(&mut exporters, 50);
    assert_eq!(exporters.end().troubles, ["--csv a: incomplete: full"]);
}

#[test]
fn one_that_is_too_slow_misses_seconds_and_they_are_counted() {
    let (go, stuck) = sync_channel(0);
    let mut exporters = Exporters::new(Date(0));
    exporters.jsonl("--jsonl b".to_owned(), Stuck(Some(stuck)));
    run(&mut exporters, 100);
    drop(go);
    let troubles = exporters.end().troubles;
    // One second may be being written.
    let missed = [39, 40].map(|n| format!("--jsonl b: too slow: {n} seconds dropped"));
    assert!(missed.contains(&troubles[0]) && troubles.len() == 1, "{troubles:?}");
}

#[test]
fn without_connections_there_is_nothing_to_do() {
    let mut exporters = Exporters::new(Date(0));
    run(&mut exporters, 3);
    assert_eq!(exporters.end().troubles, Vec::<String>::new());
    assert_eq!(Exporters::new(Date(0)).end().troubles, Vec::<String>::new());
}
