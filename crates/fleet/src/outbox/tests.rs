use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use samples::Tick;

use super::*;
use crate::message::{Incarnation, Seal, Sums};

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-spool-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Folder(std::env::temp_dir().join(name))
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).map_or(0, Iterator::count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn author(nonce: u32) -> Author {
    Author::Agent(Incarnation { id: "a1".to_owned(), nonce })
}

fn ticks(answered: u64) -> Record {
    let mut tick = Tick::default();
    tick.counts.answered = answered;
    Record::Ticks(vec![tick])
}

fn sealed() -> Record {
    Record::Sealed(Seal::default())
}

/// Sends and stores all entries; returns them.
fn send_all(outbox: &mut Outbox, now: Nanos) -> Vec<Entry> {
    let mut sent = Vec::new();
    while let Some(Parcel { ticket, bytes, .. }) = outbox.poll(now) {
        sent.push(decode(&bytes).expect("it reads what it wrote"));
        outbox.handle(now, &ticket, true);
    }
    sent
}

fn answered(entries: &[Entry]) -> Vec<(u64, u64)> {
    let of = |entry: &Entry| match &entry.record {
        Record::Ticks(ticks) => (entry.sequence, ticks[0].counts.answered),
        _ => (entry.sequence, 0),
    };
    entries.iter().map(of).collect()
}

#[test]
fn what_is_not_stored_is_sent_again_with_the_same_name() {
    let mut outbox = Outbox::new(author(1));
    outbox.push("r", ticks(7));
    let first = outbox.poll(Nanos::ZERO).unwrap();
    assert!(outbox.poll(Nanos::ZERO).is_none(), "it is on its way");
    outbox.handle(Nanos::ZERO, &first.ticket, false);
    assert!(outbox.poll(Nanos::ZERO).is_none(), "not at once");
    let again = outbox.poll(AGAIN).unwrap();
    assert_eq!((&again.id, &again.subject, &again.bytes), (&first.id, &first.subject, &first.bytes));
    assert_eq!((again.id.as_str(), again.subject.as_str()), ("r-a1-1-0", "throng.log.r"));
    outbox.handle(AGAIN, &again.ticket, true);
    assert_eq!(outbox.unstored(), 0);
}

#[test]
fn what_a_process_left_is_sent_by_the_next_and_its_file_removed() {
    let folder = Folder::new();
    let mut outbox = Outbox::with_spool(author(1), folder.0.clone());
    (0..3).for_each(|n| outbox.push("r", ticks(n)));
    let entry = outbox.poll(Nanos::ZERO).unwrap();
    outbox.handle(Nanos::ZERO, &entry.ticket, true);
    // While the process lives, no other one uses its file.
    assert!(send_all(&mut Outbox::with_spool(author(2), folder.0.clone()), Nanos::ZERO).is_empty());
    drop(outbox);
    let mut next = Outbox::with_spool(author(2), folder.0.clone());
    assert_eq!(next.unstored(), 0, "it is not its own");
    let sent = send_all(&mut next, Nanos::ZERO);
    assert_eq!(answered(&sent), [(0, 0), (1, 1), (2, 2)]);
    assert!(sent.iter().all(|entry| entry.author == author(1)), "it is still the other's");
    assert_eq!(folder.files(), 0);
}

#[test]
fn what_was_left_a_day_ago_is_of_no_use() {
    let folder = Folder::new();
    let mut outbox = Outbox::with_spool(author(1), folder.0.clone());
    outbox.push("r", ticks(1));
    drop(outbox);
    let file = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let long_ago = units::date() - std::time::Duration::from_hours(25);
    fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    assert!(send_all(&mut Outbox::with_spool(author(2), folder.0.clone()), Nanos::ZERO).is_empty());
    assert_eq!(folder.files(), 0);
}

#[test]
fn the_file_goes_with_the_last_entry() {
    let folder = Folder::new();
    let mut outbox = Outbox::with_spool(author(1), folder.0.clone());
    outbox.push("r", ticks(1));
    assert_eq!(send_all(&mut outbox, Nanos::ZERO).len(), 1);
    assert_eq!(folder.files(), 1, "more may follow");
    outbox.push("r", sealed());
    assert_eq!((send_all(&mut outbox, Nanos::ZERO).len(), folder.files()), (1, 0));
}

#[test]
fn what_was_being_written_when_the_process_ended_is_left_out() {
    let folder = Folder::new();
    let mut outbox = Outbox::with_spool(author(1), folder.0.clone());
    (0..2).for_each(|n| outbox.push("r", ticks(n)));
    drop(outbox);
    let file = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&file).unwrap();
    for cut in 0..bytes.len() {
        fs::write(&file, &bytes[..cut]).unwrap();
        let whole = send_all(&mut Outbox::with_spool(author(2), folder.0.clone()), Nanos::ZERO).len();
        assert_eq!(whole, usize::from(cut >= bytes.len() / 2), "{cut}");
    }
    fs::write(&file, [0xff; 64]).unwrap();
    assert!(send_all(&mut Outbox::with_spool(author(2), folder.0.clone()), Nanos::ZERO).is_empty());
}

/// Adds many entries while nothing is stored, and checks that all arrive finally.
fn outlasts_an_outage(folder: &Path, entries: u64) -> Vec<(u64, u64)> {
    let mut outbox = Outbox::with_spool(author(1), folder.to_owned());
    (1..=entries).for_each(|n| outbox.push("r", ticks(n)));
    outbox.push("r", sealed());
    let in_memory = outbox.logs[0].waiting.iter().filter(|waiting| waiting.record.is_some()).count();
    assert!(in_memory <= IN_MEMORY + 2, "{in_memory}");
    answered(&send_all(&mut outbox, Nanos::ZERO))
}

#[test]
fn a_long_outage_is_outlasted_in_the_file() {
    let folder = Folder::new();
    let sent = outlasts_an_outage(&folder.0, 1_500);
    assert_eq!(sent.len(), 1_501);
    assert!((1..=1_500).zip(&sent).all(|(n, (sequence, answered))| (*sequence, *answered) == (n - 1, n)));
}

#[test]
fn where_there_is_no_file_what_is_too_much_is_added_up() {
    // A folder cannot be created below a file.
    let folder = Folder::new();
    fs::write(&folder.0, "").unwrap();
    let mut outbox = Outbox::with_spool(author(1), folder.0.join("spool"));
    outbox.push("r", ticks(1));
    let trouble = outbox.poll_trouble().unwrap();
    assert!(trouble.contains("spool") && trouble.ends_with("is kept in memory"), "{trouble}");
    let sent = outlasts_an_outage(&folder.0.join("spool"), 1_500);
    assert_eq!(sent.len(), IN_MEMORY + 1);
    assert_eq!(sent.iter().map(|(_, answered)| answered).sum::<u64>(), 1_500 * 1_501 / 2);
    assert!(sent.iter().enumerate().all(|(n, (sequence, _))| *sequence == n as u64), "{sent:?}");
    fs::remove_file(&folder.0).unwrap();
}

#[test]
fn that_there_is_no_file_is_said_once_and_when_it_is_over() {
    let folder = Folder::new();
    fs::write(&folder.0, "").unwrap();
    let mut outbox = Outbox::with_spool(author(1), folder.0.join("spool"));
    let mut said = |entries: u64| {
        let push = |n| {
            outbox.push("r", ticks(n));
            outbox.poll_trouble()
        };
        (0..entries).filter_map(push).collect::<Vec<String>>()
    };
    let more = 9;
    let full = said(IN_MEMORY as u64);
    assert!(full.len() == 1 && full[0].ends_with("is kept in memory"), "{full:?}");
    assert!(said(more).is_empty());
    fs::remove_file(&folder.0).unwrap();
    // Entries in memory are sent before another one is written.
    assert!(said(1).is_empty());
    send_all(&mut outbox, Nanos::ZERO);
    outbox.push("r", sealed());
    let over = "undelivered data is kept on disk again; 600 reports were kept in memory, and 10 more merged into \
                them, none was lost";
    assert_eq!(outbox.poll_trouble().as_deref(), Some(over));
    assert_eq!(outbox.poll_trouble(), None);
}

#[test]
fn an_entry_is_read_as_it_was_written() {
    let (mut tick, mut sums) =
        (Tick { open_ns: u128::MAX, ramped_at: Nanos::NEVER, ..Tick::default() }, Sums::default());
    tick.count_status(200);
    (1..1_000).for_each(|us| tick.latency.record(Nanos::from_micros(us)));
    sums.add(&tick);
    for record in [
        Record::Ticks(vec![tick, Tick::none()]),
        Record::Sealed(Seal { sums: vec![sums], ..Seal::default() }),
        Record::Resumed,
    ] {
        let entry = Entry { author: author(1), sequence: u64::MAX, record };
        assert_eq!(decode(&encode(&entry)).as_ref(), Some(&entry));
    }
}
