use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use samples::{Header, HostSample, Samples, Sink, Tick};
use stats::compare::{Comparison, EqualLoad};
use units::Nanos;

use super::*;

/// The folder of a test, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-store-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.join("data/throng/runs.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Collects the messages of a writer.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    fn writer(&self, file: PathBuf, run: RunRecord) -> StoreWriter {
        let messages = self.0.clone();
        StoreWriter::new(
            file,
            run,
            Arc::new(move |line: &str| messages.lock().unwrap().push(line.to_owned())),
        )
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn run(began_ms: u64) -> RunRecord {
    let words = ["run", "http://t/", "--message", "two words"].map(str::to_owned).into();
    RunRecord { began_ms: Date(began_ms), words, version: "0.1.0".to_owned(), ..RunRecord::default() }
}

fn tick(second: u64) -> Tick {
    let (from, until) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
    let mut tick = Tick { index: 9, from, until, open: 100 + second, ..Tick::default() };
    tick.counts.answered = second;
    (0..=second).for_each(|ms| tick.latency.record(Nanos::from_millis(ms)));
    tick
}

fn summary() -> Summary {
    let figures = samples::Figures { target: "http://t/".into(), threads: 2, ..Default::default() };
    Summary { figures, ..Summary::default() }
}

/// Stores a run of this many seconds through a writer.
fn keep(mut writer: StoreWriter, seconds: u64, finish: bool) -> Option<StoredAs> {
    writer.begin(&Header { target: "http://t/".into(), connections: 200, seed: 7, ..Header::default() });
    for second in 0..seconds {
        let host = HostSample { oom_kills: second, ..HostSample::default() };
        writer.tick(&tick(second), &Samples { host: Some(host), ..Samples::default() });
    }
    if finish {
        writer.finish(&summary());
    }
    writer.end()
}

#[test]
fn what_comes_late_is_added_to_its_second() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let mut writer = messages.writer(folder.file(), run(1_700_000_000_000));
    writer.begin(&Header::default());
    (0..5).for_each(|second| writer.tick(&tick(second), &Samples::default()));
    let late = Tick { open: 7, ..tick(2) };
    writer.late(&late);
    // Later than the last tick that exists.
    writer.late(&Tick { open: 0, ..tick(9) });
    let kept = writer.end().unwrap();
    let mut stored = Vec::new();
    let store = Store::open(&folder.file()).unwrap();
    store.ticks(&kept.id, &mut |record| stored.push(record.tick.into_owned())).unwrap();
    let mut expected: Vec<Tick> = (0..5).map(tick).collect();
    expected[2].merge(&late);
    expected[4].amend(&Tick { open: 0, ..tick(9) });
    assert_eq!((stored, kept.missed), (expected, 0));
}

#[test]
fn a_run_is_stored_as_it_was_and_can_be_replayed() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let kept = keep(messages.writer(folder.file(), run(1_700_000_000_000)), 5, true).unwrap();
    assert_eq!((kept.missed, messages.lines()), (0, Vec::new()));
    let store = Store::existing(&folder.file()).unwrap().unwrap();
    let stored = store.run(&kept.id).unwrap().unwrap();
    assert_eq!(stored, store.run("latest").unwrap().unwrap());
    assert_eq!(store.runs(&RunFilter::default()).unwrap(), std::slice::from_ref(&stored));
    let header = &stored.record.header;
    assert_eq!((header.target.as_str(), header.connections, header.seed), ("http://t/", 200, 7));
    assert_eq!(
        (stored.record.words[3].as_str(), stored.record.began_ms),
        ("two words", Date(1_700_000_000_000))
    );
    assert_eq!(stored.figures, serde_json::to_value(summary()).unwrap());
    assert_eq!(stored.summary, Some(summary()));

    let (mut direct, mut replayed, mut seen) = (Tick::default(), Tick::default(), 0);
    (0..5).for_each(|second| direct.extend(&tick(second)));
    let mut each = |record: TickRecord| {
        let host = record.looks.host.as_ref().unwrap();
        assert_eq!((record.tick.counts.answered, host.oom_kills), (seen, seen), "in their order");
        replayed.extend(&record.tick);
        seen += 1;
    };
    store.ticks(&kept.id, &mut each).unwrap();
    assert_eq!((replayed, seen), (direct, 5));
}

#[test]
fn a_run_is_tagged_and_deleted_and_others_are_left_alone() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let [one, other] = [1_700_000_000_000, 1_700_000_100_000]
        .map(|began| keep(messages.writer(folder.file(), run(began)), 3, true).unwrap().id);
    let store = Store::existing(&folder.file()).unwrap().unwrap();
    let stored = |id: &str| store.run(id).unwrap();
    let tagged = store.tag(&stored(&one).unwrap(), vec!["a".to_owned()]).unwrap();
    assert_eq!((stored(&one), tagged.record.tags.as_slice()), (Some(tagged.clone()), &["a".to_owned()][..]));
    assert!(stored(&other).unwrap().record.tags.is_empty());
    store.delete(&one).unwrap();
    let ticks = |id: &str| {
        let mut ticks = 0;
        store.ticks(id, &mut |_| ticks += 1).unwrap();
        ticks
    };
    assert_eq!((stored(&one), ticks(&one), ticks(&other)), (None, 0, 3));
}

#[test]
fn a_run_is_in_progress_until_no_more_ticks_come() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let kept = keep(messages.writer(folder.file(), run(1_700_000_000_000)), 3, false).unwrap();
    let store = Store::existing(&folder.file()).unwrap().unwrap();
    let stored = store.run(&kept.id).unwrap().unwrap();
    let at = |seconds: u64| stored.is_under_way(Date(1_700_000_000_000 + seconds * 1000));
    assert_eq!([0, 3, 17, 18, 60].map(at), [true, true, true, false, false]);
    let ended = StoredRun { summary: Some(summary()), ..stored.clone() };
    assert!(!ended.is_under_way(Date(1_700_000_000_000)));
}

#[test]
fn a_run_that_did_not_end_is_unfinished() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let kept = keep(messages.writer(folder.file(), run(0)), 3, false).unwrap();
    let stored = Store::open(&folder.file()).unwrap().run(&kept.id).unwrap().unwrap();
    assert_eq!((stored.verdict(), stored.held(), stored.elapsed_s()), (None, 102, 3.0));
}

#[test]
fn a_run_before_its_first_tick_is_there() {
    let (folder, messages) = (Folder::new(), Messages::default());
    keep(messages.writer(folder.file(), run(0)), 0, false).unwrap();
    let stored = Store::open(&folder.file()).unwrap().run("latest").unwrap().unwrap();
    assert_eq!((stored.held(), stored.elapsed_s(), stored.last), (0, 0.0, None));
}

#[test]
fn a_store_writer_that_never_began_keeps_nothing() {
    let (folder, messages) = (Folder::new(), Messages::default());
    assert_eq!(messages.writer(folder.file(), run(0)).end(), None);
    assert!(Store::existing(&folder.file()).unwrap().is_none() && messages.lines().is_empty());
}

#[test]
fn ids_are_short_different_and_in_the_order_of_time() {
    let began = [0, 99, 100, 3_299, 3_300, 1_795_282_449_000, 1_795_282_449_100, 3_000_000_000_000];
    let mut ids: Vec<String> = began.iter().map(|ms| id(Date(*ms), 0)).collect();
    assert_eq!((ids[0].as_str(), ids[2].as_str(), ids[4].as_str()), ("0000000", "0000001", "0000011"));
    assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == 7), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), began.len() - 1, "the first two began in the same tenth of a second");
}

/// All runs find no file and create it at the same time.
#[test]
fn many_runs_at_once_share_a_store() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let keepers: Vec<_> = (0..8)
        .map(|_| {
            let writer = messages.writer(folder.file(), run(1_700_000_000_000));
            std::thread::spawn(move || keep(writer, 20, true))
        })
        .collect();
    let mut ids: Vec<String> =
        keepers.into_iter().map(|thread| thread.join().unwrap().expect("kept").id).collect();
    ids.sort();
    assert_eq!(messages.lines(), [""; 0]);
    let store = Store::open(&folder.file()).unwrap();
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert!(runs.iter().map(|run| &run.id).eq(&ids), "{ids:?}");
    for id in ids {
        let mut n = 0;
        store.ticks(&id, &mut |_| n += 1).unwrap();
        assert_eq!(n, 20, "{id}");
    }
}

/// A writer continues without a store that it cannot use: it reports that once, and leaves the file unchanged.
fn check_refused(prepare: impl FnOnce(&PathBuf), expected: &str) {
    let (folder, messages) = (Folder::new(), Messages::default());
    let file = folder.file();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    prepare(&file);
    let before = fs::read(&file).ok();
    assert_eq!(keep(messages.writer(file.clone(), run(0)), 100, true), None);
    let lines = messages.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("this run is not stored: "), "{lines:?}");
    assert!(lines[0].contains(expected) && lines[0].contains(&*folder.0.to_string_lossy()), "{lines:?}");
    assert_eq!(fs::read(&file).ok(), before);
    if before.is_some() {
        assert!(Store::existing(&file).is_err());
    }
}

fn with_version(file: &PathBuf, version: u32) {
    drop(Store::open(file).unwrap());
    let db = Connection::open(file).unwrap();
    db.pragma_update(None, "user_version", version).unwrap();
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    check_refused(
        |file| fs::write(file, "dear diary, ".repeat(1000)).unwrap(),
        "not a run store; move it away",
    );
    check_refused(
        |file| with_version(file, SCHEMA + 1),
        "written by a later version of throng; use that version",
    );
    let notes = |file: &PathBuf| {
        Connection::open(file).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    };
    check_refused(notes, "not a run store of throng; move it away");
    check_refused(|file| fs::create_dir_all(file.join("x")).unwrap(), "unable to open");
    // The folder is a file, which fails for root, too.
    let no_folder = |file: &PathBuf| {
        let folder = file.parent().unwrap();
        fs::remove_dir(folder).unwrap();
        fs::write(folder, "").unwrap();
    };
    check_refused(no_folder, "");
}

#[test]
fn damage_is_reported_and_undamaged_records_are_still_read() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let ids: Vec<String> =
        (0..2).map(|n| keep(messages.writer(folder.file(), run(n * 1000)), 2, true).unwrap().id).collect();
    let store = Store::open(&folder.file()).unwrap();
    store.db.execute("UPDATE ticks SET record = 'x' WHERE run = ?1", [&ids[0]]).unwrap();
    let why = store.run(&ids[0]).unwrap_err().to_string();
    assert!(why.contains("runs.db: damaged"), "{why}");
    assert!(store.run(&ids[1]).unwrap().is_some());
}

#[test]
fn a_full_disk_is_reported_once_and_loses_nothing_that_is_stored() {
    let folder = Folder::new();
    let store = Store::open(&folder.file()).unwrap();
    let id = store.begin(&run(0)).unwrap();
    store.add_tick(&id, 1, &TickRecord::default().to_json()).unwrap();
    let pages: u32 = store.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.db.pragma_update(None, "max_page_count", pages).unwrap();
    let large = format!("{{{}}}", " ".repeat(3000));
    let filled = (2..1000).find_map(|n| store.add_tick(&id, n, &large).err());
    let why = StoreTrouble::of(&folder.file(), filled.expect("it is full")).to_string();
    assert!(why.contains("full"), "{why}");
    drop(store);
    let stored = Store::open(&folder.file()).unwrap().run("latest").unwrap();
    assert_eq!(stored.map(|run| run.id), Some(id));
}

/// Stores a run with these numbers of open connections at the ends of its ticks; each tick has 600 responses that take as many
/// microseconds.
fn at_loads(messages: &Messages, file: PathBuf, began_ms: u64, loads: &[u64], tags: &[&str]) -> String {
    let record = RunRecord { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..run(began_ms) };
    let mut writer = messages.writer(file, record);
    writer.begin(&Header::default());
    let mut before = 0;
    for (second, &open) in (0..).zip(loads) {
        let (from, until) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
        let open_ns = u128::from(before + open) * 500_000_000;
        let mut tick = Tick { from, until, open, open_ns, ..Tick::default() };
        let latency = if second < 3 { &mut tick.ramp_latency } else { &mut tick.latency };
        (0..600).for_each(|_| latency.record(Nanos::from_micros(open)));
        writer.tick(&tick, &Samples::default());
        before = open;
    }
    writer.end().unwrap().id
}

#[test]
fn runs_are_compared_where_their_loads_were_equal() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let [steps, held, idle] =
        [&[99, 101, 100, 103, 200, 200, 200, 50][..], &[100, 100, 100, 100, 95, 80], &[100, 100]];
    at_loads(&messages, folder.file(), 1_700_000_000_000, steps, &["a", "both"]);
    at_loads(&messages, folder.file(), 1_700_000_100_000, held, &["both"]);
    at_loads(&messages, folder.file(), 1_700_000_200_000, idle, &[]);
    let store = Store::existing(&folder.file()).unwrap().unwrap();
    let tagged = |tag| store.runs(&RunFilter::of_tag(tag)).unwrap();
    let (a, both) = (tagged("a"), tagged("both"));
    assert_eq!((a.len(), both.len(), tagged("bot").len()), (1, 2, 0));
    let groups = vec![("all".to_owned(), store.runs(&RunFilter::default()).unwrap())];
    let (groups, load) = store.compared(groups).unwrap();
    assert_eq!(load.map(EqualLoad::connections), Some(100));
    let figures = Comparison::new(groups, load, &[], &<[String]>::to_vec).figures;
    let p99 = figures.iter().find(|compared| compared.named.figure.key == "equal_load_us.p99").unwrap();
    let values: Vec<Option<u64>> =
        p99.sides[0].values.iter().map(|us| us.map(|us| us.round() as u64)).collect();
    // Seconds of the ramp count while it stalls, but the first one, in which it rises, does not.
    assert_eq!(values, [Some(103), Some(100), None]);
}

#[test]
fn a_run_that_is_taken_up_is_one_run() {
    let (folder, messages) = (Folder::new(), Messages::default());
    let file = folder.file();
    let on_fleet = |began_ms, name: &str, fleet_term| RunRecord {
        fleet_run: Some(name.to_owned()),
        fleet_term,
        ..run(began_ms)
    };
    let keep = |record: RunRecord, seconds, finish| {
        keep(messages.writer(file.clone(), record), seconds, finish).unwrap().id
    };
    let begun = keep(on_fleet(1_000_000, "r1", 0), 3, false);
    let others = [keep(on_fleet(2_000_000, "r2", 0), 3, false), keep(run(3_000_000), 3, false)];
    let again = keep(on_fleet(9_000_000, "r1", 1), 5, true);
    assert_eq!(again, begun);
    let store = Store::open(&file).unwrap();
    let ids: Vec<String> = store.runs(&RunFilter::default()).unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(ids, [begun.clone(), others[0].clone(), others[1].clone()]);
    let taken_up = || store.run(&begun).unwrap().unwrap();
    assert_eq!((taken_up().record.began_ms, taken_up().record.fleet_term), (Date(1_000_000), 1));
    let mut ticks = 0;
    store.ticks(&begun, &mut |_| ticks += 1).unwrap();
    assert_eq!((ticks, taken_up().summary), (5, Some(summary())));
    // The earlier process, which may only have been suspended, does not overwrite the result.
    let interrupted = Summary { verdict: samples::Verdict::Interrupted, ..summary() };
    store.finish(&begun, 0, &summary_text(&interrupted)).unwrap();
    assert_eq!(taken_up().summary, Some(summary()));
    // A run that is over is not continued.
    assert_ne!(keep(on_fleet(9_500_000, "r1", 2), 1, true), begun);
    assert_eq!(messages.lines(), Vec::<String>::new());
}
