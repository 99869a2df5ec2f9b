//! The run store: what is stored of a run, also of one that is killed, and what an unusable store costs: nothing.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use serde_json::Value;

use crate::program::{DATA, Ended, Program, Serving, Signal, file, throng};

/// A store for one test.
pub(crate) struct Data(pub(crate) PathBuf);

impl Data {
    pub(crate) fn new(name: &str) -> Data {
        let folder = file(name);
        let _ = fs::remove_dir_all(&folder);
        Data(folder)
    }

    /// throng with its store here.
    pub(crate) fn throng(&self, args: &[&str]) -> Command {
        let mut command = throng(args);
        command.env(DATA, &self.0);
        command
    }

    pub(crate) fn end(&self, args: &[&str]) -> Ended {
        Program::from(self.throng(args)).end()
    }

    fn store(&self) -> PathBuf {
        self.0.join("throng/runs.db")
    }

    pub(crate) fn runs(&self) -> Vec<Value> {
        let ended = self.end(&["runs", "--json"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
    }
}

/// A short run that holds a few connections.
fn short(url: &str) -> [&str; 8] {
    ["run", url, "-c", "20", "--think", "50ms", "-d", "1s"]
}

#[test]
fn a_run_is_found_again() {
    let (data, server) = (Data::new("kept"), Serving::start(&["--threads", "1"]));
    let none = data.end(&["runs"]);
    assert_eq!((none.status, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("no stored runs in "), "{none:?}");
    assert_eq!(data.runs(), Vec::<Value>::new());
    assert!(!data.0.exists(), "looking makes no file");

    let url = server.url("/");
    let run = data.end(&short(&url));
    run.assert_status(0);
    let id = run.stderr.trim_end().rsplit(' ').next().unwrap();
    assert!(run.stderr.ends_with(&format!("throng: stored as run {id}\n")), "{}", run.stderr);
    let quiet = data.end(&[&short(&url)[..], &["--live", "off", "--seed", "7"]].concat());
    assert_eq!(quiet.stderr, "", "{quiet:?}");

    let runs = data.runs();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!((runs[0]["id"].as_str(), &runs[1]["seed"]), (Some(id), &7.into()), "the oldest first");
    for run in &runs {
        assert_eq!((&run["wanted"], &run["held"]), (&20.into(), &20.into()), "{run}");
        assert_eq!((run["target"].as_str(), &run["words"][1]), (Some(&*url), &Value::from(&*url)), "{run}");
        assert!(["pass", "invalid"].contains(&run["verdict"].as_str().unwrap()), "{run}");
        assert!((1.0..30.0).contains(&run["elapsed_s"].as_f64().unwrap()), "{run}");
        assert!(
            run["host"]["cores"].as_u64() > Some(0) && !run["host"]["kernel"].as_str().unwrap().is_empty()
        );
    }
    let latest = data.end(&["runs", "latest"]).stdout;
    assert!(latest.contains(runs[1]["id"].as_str().unwrap()) && !latest.contains(id), "{latest}");
    let unknown = data.end(&["runs", "0000000"]);
    assert_eq!(unknown.status, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("no run 0000000; list runs with `throng runs`"), "{unknown:?}");
}

/// Nothing is handed over at the end: what there was a second before is stored.
#[test]
fn a_stored_run_is_judged_again() {
    let (data, server) = (Data::new("judged_again"), Serving::start(&["--threads", "1"]));
    let [live, again, report] = ["judged.json", "again.json", "again.md"].map(file);
    let [live_to, again_to, report_to] = [&live, &again, &report].map(|file| file.to_str().unwrap());
    let strict = ["--threshold", "latency.p50 < 1us", "--json", live_to];
    let run = data.end(&[&short(&server.url("/"))[..], &strict].concat());
    run.assert_status(1);
    let judged = data.end(&["report", "latest", "--rejudge", "--json", again_to, "-o", report_to]);
    judged.assert_status(1);
    let last = |text: &str| text.trim_end().lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&judged.stdout), last(&run.stdout));
    assert!(last(&run.stdout).starts_with("fail: "), "{}", run.stdout);
    let [live, again, report] = [live, again, report].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(again, live, "all figures, too");
    assert!(report.contains("latency.p50 < 1us"), "{report}");

    // One that did not end has nothing to judge.
    let args = ["run", &server.url("/"), "-c", "2", "--think", "50ms", "-d", "forever"];
    let mut killed = Program::from(data.throng(&args));
    killed.wait_for_second(2);
    killed.signal(Signal::KILL);
    killed.end();
    let refused = data.end(&["report", "latest", "--rejudge"]);
    refused.assert_status(2);
    assert!(refused.stderr.contains("cannot be judged again: it did not end"), "{refused:?}");
    let alone = data.end(&["report", "latest", "--json", "-"]);
    alone.assert_status(2);
    assert!(alone.stderr.contains("--rejudge"), "{alone:?}");
}

#[test]
fn a_killed_run_is_there_up_to_the_last_second() {
    let (data, server) = (Data::new("killed"), Serving::start(&["--threads", "1"]));
    let args = ["run", &server.url("/"), "-c", "20", "--think", "50ms", "-d", "forever"];
    let mut run = Program::from(data.throng(&args));
    run.wait_for_second(4);
    let under_way = data.runs();
    assert_eq!((under_way.len(), &under_way[0]["verdict"]), (1, &Value::Null), "{under_way:?}");
    run.signal(Signal::KILL);
    let shown = run.end().stderr.matches(" hold ").count();
    let runs = data.runs();
    assert_eq!(
        (runs.len(), &runs[0]["verdict"], &runs[0]["held"]),
        (1, &Value::Null, &20.into()),
        "{runs:?}"
    );
    let elapsed = runs[0]["elapsed_s"].as_f64().unwrap();
    // The first line may come a moment after the start.
    assert!(elapsed > shown as f64 - 2.0, "{elapsed} s are kept of {shown} lines");
    let text = data.end(&["runs"]).stdout;
    assert!(text.contains(" unfinished ") && text.contains(" 20 of 20 "), "{text}");
}

#[test]
fn two_at_once_share_the_store() {
    let (data, server) = (Data::new("shared"), Serving::start(&["--threads", "1"]));
    let url = server.url("/");
    let both = [(); 2].map(|()| Program::from(data.throng(&short(&url))));
    for run in both {
        let ended = run.end();
        ended.assert_status(0);
        assert!(
            ended.stderr.contains("throng: stored as run ") && !ended.stderr.contains("not stored"),
            "{ended:?}"
        );
    }
    let runs = data.runs();
    assert_eq!(runs.len(), 2);
    assert!(runs[0]["id"] != runs[1]["id"] && runs.iter().all(|run| !run["verdict"].is_null()), "{runs:?}");
}

/// The run continues; one line says what is wrong.
fn check_not_kept(data: &Data, run: Command, output: &str) {
    let ended = Program::from(run).end();
    ended.assert_status(0);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(" not stored")).collect();
    assert!(lines.len() == 1 && lines[0].contains(output), "{output}: {}", ended.stderr);
    assert!(lines[0].contains(&*data.0.to_string_lossy()), "with its place: {}", lines[0]);
}

#[test]
fn a_store_that_cannot_be_used_costs_one_line() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let check = |name: &str, prepare: &dyn Fn(&Data), output: &str| {
        let data = Data::new(name);
        fs::create_dir_all(data.0.join("throng")).unwrap();
        prepare(&data);
        let before = fs::read(data.store()).ok();
        check_not_kept(&data, data.throng(&short(&url)), output);
        assert_eq!(fs::read(data.store()).ok(), before, "{name}: it is left as it was");
        let listed = data.end(&["runs", "--json"]);
        assert_eq!((listed.status, listed.stdout.as_str()), (Some(3), ""), "{listed:?}");
        assert!(listed.stderr.contains(output), "{listed:?}");
    };
    check("damaged", &|data| fs::write(data.store(), [7; 9000]).unwrap(), "move it away");
    let later = |data: &Data| {
        let mut head = b"SQLite format 3\0".to_vec();
        // An empty database of one page, whose user_version (bytes 60..64, sqlite.org/fileformat.html) is 9.
        head.extend([16, 0, 1, 1, 0, 64, 32, 32, 0, 0, 0, 1, 0, 0, 0, 1]);
        head.resize(44, 0);
        head.extend([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9]);
        head.resize(92, 0);
        head.extend([0, 0, 0, 1, 0, 46, 126, 88, 13, 0, 0, 0, 0, 16, 0, 0]);
        head.resize(4096, 0);
        fs::write(data.store(), head).unwrap();
    };
    check("later", &later, "written by a later version of throng");
    check("folder", &|data| fs::create_dir(data.store()).unwrap(), "unable to open");
}

#[test]
fn no_place_for_a_store_costs_one_line() {
    let (data, server) = (Data::new("no-place"), Serving::start(&["--threads", "1"]));
    // Not even root can write to this.
    fs::write(&data.0, "").unwrap();
    check_not_kept(&data, data.throng(&short(&server.url("/"))), "");
    let mut homeless = throng(&short(&server.url("/")));
    // A relative path counts as none.
    homeless.env(DATA, "here").env_remove("HOME");
    let ended = Program::from(homeless).end();
    ended.assert_status(0);
    assert!(ended.stderr.contains("no folder for the run store; set HOME or XDG_DATA_HOME"), "{ended:?}");
}

/// No file may grow beyond 80 KiB, as on a full disk.
#[test]
fn a_full_disk_is_reported_once_and_what_was_stored_stays() {
    let (data, server) = (Data::new("full"), Serving::start(&["--threads", "1"]));
    let bare = data.throng(&["run", &server.url("/"), "-c", "20", "--think", "2ms..6ms", "-d", "6s"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 160; exec \"$0\" \"$@\""]).arg(bare.get_program());
    command.args(bare.get_args()).env(DATA, &data.0);
    let ended = Program::from(command).end_within(Duration::from_secs(60));
    ended.assert_status(0);
    let reported = ended.stderr.matches("this run is not stored completely: ").count();
    assert!(reported == 1 && ended.stderr.contains("throng: stored as run "), "{}", ended.stderr);
    let runs = data.runs();
    assert!(runs.len() == 1 && runs[0]["elapsed_s"].as_f64() >= Some(0.5), "{runs:?}");
}
