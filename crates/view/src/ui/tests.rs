use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use samples::{Figures, Header, RunRecord, Samples, Sink, Summary, Tick, Verdict};
use serde_json::Value;
use store::StoreWriter;
use units::{Date, Nanos};

use super::*;

/// The store of a test and the server that shows it; both are removed when this is dropped.
struct Served {
    folder: PathBuf,
    at: SocketAddr,
    ui: Option<Ui>,
}

impl Served {
    /// Stores runs that begin a second apart, and serves them.
    fn start(runs: &[StoredAs], opens: Option<Opens>) -> Served {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-ui-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        let file = folder.join("runs.db");
        (0..).zip(runs).for_each(|(nth, run)| run.keep(&file, 1_700_000_000_000 + 1_000 * nth));
        // Creates the store even if there are no runs.
        drop(Store::open(&file).unwrap());
        let none = |_: &[String]| Vec::new();
        let (ui, at) = Ui::start("127.0.0.1:0".parse().unwrap(), file, none, opens).unwrap();
        Served { folder, at, ui: Some(ui) }
    }

    /// Sends a GET; returns status and body.
    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.send("GET", path, headers)
    }

    fn send(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = if headers.contains("Host:") { "" } else { "Host: 127.0.0.1\r\n" };
        let request = format!("{method} {path} HTTP/1.0\r\n{host}{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
        (status.unwrap_or_else(|| panic!("{path}: {response}")), body)
    }

    fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"))
    }

    /// Checks that a refusal contains the reason.
    fn check_refused(&self, path: &str, status: u16, why: &str) {
        let (seen, body) = self.get(path, "");
        assert_eq!(seen, status, "{path}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"));
        assert!(body["error"].as_str().is_some_and(|text| text.contains(why)), "{path}: {body}");
    }

    /// The runs of a list, as indices in the order in which they began.
    fn listed(&self, query: &str) -> Vec<usize> {
        let all = self.json("/api/runs");
        let ids = |json: &Value| -> Vec<String> {
            json["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let mut places = ids(&all);
        places.sort();
        let found = ids(&self.json(&format!("/api/runs{query}")));
        found.iter().map(|id| places.iter().position(|own| own == id).unwrap()).collect()
    }

    fn id(&self, place: usize) -> String {
        let all = self.json("/api/runs");
        let mut ids: Vec<&str> =
            all["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids[place].to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.ui.take().into_iter().for_each(Ui::end);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A run to store before the server starts.
#[derive(Clone, Default)]
struct StoredAs {
    target: &'static str,
    tags: &'static [&'static str],
    /// `None` if the run has not finished.
    verdict: Option<Verdict>,
    per_s: f64,
}

impl StoredAs {
    fn keep(&self, file: &std::path::Path, began_ms: u64) {
        let header = Header { target: self.target.to_owned(), connections: 50, ..Header::default() };
        let tags = self.tags.iter().map(|tag| (*tag).to_owned()).collect();
        let record =
            RunRecord { began_ms: Date(began_ms), tags, header: header.clone(), ..RunRecord::default() };
        let mut writer = StoreWriter::new(file.to_owned(), record, Arc::new(|line: &str| panic!("{line}")));
        writer.begin(&header);
        for second in 0..3 {
            let (from, until) = (Nanos::from_secs(5 + second), Nanos::from_secs(6 + second));
            let mut tick = Tick { from, until, open: 40 + second, ..Tick::default() };
            (0..600).for_each(|_| tick.latency.record(Nanos::from_millis(3)));
            writer.tick(&tick, &Samples::default());
        }
        if let Some(verdict) = self.verdict {
            let mut figures = Figures { elapsed_s: 2.5, ..Figures::default() };
            (figures.connections.wanted, figures.requests.due, figures.errors.of) = (50, 100, 100);
            (figures.connections.held, figures.requests.per_s) = (49, self.per_s);
            (figures.errors.count, figures.errors.of) = (3, 1_000);
            writer.finish(&Summary { verdict, figures, ..Summary::default() });
        }
        writer.end().expect("it is kept");
    }
}

fn run(target: &'static str, tags: &'static [&'static str], verdict: Verdict, per_s: f64) -> StoredAs {
    StoredAs { target, tags, verdict: Some(verdict), per_s }
}

fn three() -> Served {
    Served::start(
        &[
            run("http://a/", &["old"], Verdict::Pass, 100.0),
            run("http://b/", &["old", "new"], Verdict::Fail, 200.0),
            StoredAs { target: "http://a/x", ..StoredAs::default() },
        ],
        None,
    )
}

#[test]
fn runs_are_listed_latest_first_and_narrowed_down() {
    let served = three();
    for (query, expected) in [
        ("", &[2, 1, 0][..]),
        ("?target=http%3A%2F%2Fa", &[2, 0]),
        ("?verdict=fail", &[1]),
        ("?verdict=unfinished", &[2]),
        ("?tag=old", &[1, 0]),
        ("?tag=old&verdict=pass", &[0]),
        ("?tag=ol", &[]),
        // A value is never part of the SQL query.
        ("?tag=%27+OR+1%3D1+--", &[]),
        ("?target=%25", &[]),
    ] {
        assert_eq!(served.listed(query), expected, "{query}");
    }
    assert_eq!(served.listed(&format!("?before={}", served.id(1))), [0]);
    // A list can be continued after its last run has been deleted, because identifiers are in the order of time.
    assert_eq!(served.listed(&format!("?before={}0", served.id(1))), [1, 0]);
    let list = served.json("/api/runs");
    assert_eq!(list["more"], false);
    assert_eq!(list["tags"], serde_json::json!([{ "tag": "old", "runs": 2 }, { "tag": "new", "runs": 1 }]));
    let [unfinished, failed] = [&list["runs"][0], &list["runs"][1]];
    assert_eq!((&failed["verdict"], &failed["held"]), (&"fail".into(), &49.into()));
    assert_eq!((&failed["elapsed_s"], &failed["requests_per_s"]), (&2.5.into(), &200.0.into()));
    assert_eq!((&failed["errors"], &failed["is_under_way"]), (&3.0.into(), &false.into()));
    // The last tick, with the time since the beginning of the first.
    assert_eq!((&unfinished["held"], &unfinished["elapsed_s"]), (&42.into(), &3.0.into()));
    assert_eq!((&unfinished["verdict"], &unfinished["errors"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_list_has_a_hundred_runs_and_the_next_ones_follow() {
    let one = run("http://a/", &[], Verdict::Pass, 1.0);
    let served = Served::start(&vec![one; 103], None);
    let list = served.json("/api/runs");
    let runs = list["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &list["more"]), (100, &true.into()));
    let next = served.json(&format!("/api/runs?before={}", runs[99]["id"].as_str().unwrap()));
    assert_eq!((next["runs"].as_array().unwrap().len(), &next["more"]), (3, &false.into()));
}

#[test]
fn a_run_and_a_comparison_are_what_reports_are_made_of() {
    let served = three();
    let id = served.id(1);
    let report = served.json(&format!("/api/runs/{id}"));
    assert_eq!(
        (&report["schema"], &report["runs"][0]["id"]),
        (&"throng.report/1".into(), &id.clone().into())
    );
    assert_eq!(report["runs"][0]["ticks"].as_array().unwrap().len(), 3);
    assert_eq!(report["comparison"], Value::Null);
    assert_eq!(served.json("/api/runs/latest")["runs"][0]["id"], served.id(2));

    let report = served.json(&format!("/api/compare/{}/{id}", served.id(0)));
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    let rows = report["comparison"]["tables"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row[0] == "response rate").expect("it was measured");
    assert_eq!((&row[1], &row[2], &row[3]), (&"100/s".into(), &"200/s".into(), &"+100.0 %".into()));
    // For a tag, all its runs are compared.
    let report = served.json(&format!("/api/compare/tag:old/{id}"));
    assert_eq!(report["runs"].as_array().unwrap().len(), 3);
    assert_eq!(report["comparison"]["tables"][0]["head"][1], "tag:old");
}

#[test]
fn a_trend_has_the_slope_over_the_runs_that_ended() {
    let mut runs: Vec<StoredAs> = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0]
        .map(|per_s| run("http://a/", &["n"], Verdict::Pass, per_s))
        .into();
    runs.insert(3, StoredAs { tags: &["n"], ..StoredAs::default() });
    let served = Served::start(&runs, None);
    let trend = served.json("/api/trend/n");
    assert_eq!((trend["runs"].as_array().unwrap().len(), &trend["unfinished"]), (6, &1.into()));
    let figure = |name: &str| {
        let all = trend["figures"].as_array().unwrap();
        all.iter()
            .find(|figure| figure["figure"] == name)
            .unwrap_or_else(|| panic!("{name}: {all:?}"))
            .clone()
    };
    let rate = figure("requests.per_s");
    assert_eq!(rate["values"], serde_json::json!([100.0, 110.0, 120.0, 130.0, 140.0, 150.0]));
    assert_eq!(rate["slope_per_run"], 10.0);
    // S = 15 of 15 pairs; its variance is 6 · 5 · 17 / 18 = 28.3, z = 14 / √28.3 = 2.63.
    let p = rate["p"].as_f64().unwrap();
    assert!((p - 0.0085).abs() < 1e-4, "{p}");
    assert_eq!(
        (&rate["trend"], &rate["unit"]),
        (&"rises by 10.0/s a run (p = 0.009)".into(), &"per_s".into())
    );
    assert_eq!(figure("connections.held")["trend"], "no trend (p = 1.000)");

    let few = Served::start(&runs[..3], None);
    let trend = few.json("/api/trend/n");
    let text = "trend unknown: 3 runs have a value, and at least 5 are needed";
    assert_eq!(trend["figures"][0]["trend"], text);
}

#[test]
fn what_is_not_there_is_refused_and_no_file_is_served() {
    let served = three();
    served.check_refused("/api/runs/nothing", 404, "no run nothing; list runs with `throng runs`");
    served.check_refused("/api/compare/latest/tag:none", 404, "no run has the tag none");
    served.check_refused("/api/trend/none", 404, "no run has the tag none");
    served.check_refused("/api/runs?verdict=good", 400, "use pass, fail");
    served.check_refused("/api/runs?limit=1000000", 400, "limit: use target");
    served.check_refused("/api/runs/..%2F..%2Fetc%2Fpasswd", 404, "no run ../../etc/passwd");
    served.check_refused("/api/runs/%27%20OR%201=1", 404, "no run ' OR 1=1");
    for path in [
        "/../etc/passwd",
        "/runs.db",
        "/api/runs/../../runs.db",
        "/run/../runs.db",
        "//etc/passwd",
        "/api/",
        "/%2e%2e/runs.db",
    ] {
        served.check_refused(path, 404, "no such path; use /, /run/RUN");
    }
    served.check_refused("/api/runs/%ff", 400, "UTF-8");
    served.check_refused("/api/compare/latest/%ff", 400, "UTF-8");
    for path in ["/", "/run/nothing", "/compare/a/b", "/trend/x"] {
        let (status, body) = served.get(path, "");
        assert!(status == 200 && body.starts_with("<!doctype html>"), "{path}: {status}");
    }
}

#[test]
fn nothing_can_be_changed() {
    let served = three();
    for method in ["POST", "PUT", "DELETE"] {
        for path in ["/", "/api/runs", "/api/runs/latest"] {
            let (status, body) = served.send(method, path, "");
            let expected = (405, r#"{"error":"method not allowed; use GET"}"#);
            assert_eq!((status, body.as_str()), expected, "{method} {path}");
        }
    }
}

#[test]
fn a_group_of_too_many_runs_is_refused_and_one_of_many_is_not_drawn() {
    let one = run("http://a/", &["many"], Verdict::Pass, 1.0);
    let served = Served::start(&vec![one.clone(); 65], None);
    served.check_refused("/api/compare/tag:many/latest", 400, "too many runs have the tag many, at most 64");
    let served = Served::start(&vec![one; 17], None);
    let report = served.json("/api/compare/tag:many/latest");
    assert_eq!((report["runs"].as_array().unwrap().len(), report["comparison"].is_null()), (0, false));
}

#[test]
fn without_a_token_it_is_for_this_machine_and_with_one_for_who_has_it() {
    let served = three();
    assert_eq!(served.get("/api/runs", "Host: localhost:1\r\n").0, 200);
    assert_eq!(served.get("/api/runs", "Host: evil.example\r\n").0, 403);
    let opens: Opens = Arc::new(|shown: &[u8]| shown == b"s3cret");
    let served = Served::start(&[run("http://a/", &[], Verdict::Pass, 1.0)], Some(opens));
    for path in [
        "/api/runs",
        "/api/runs/latest",
        "/api/compare/latest/latest",
        "/api/trend/x",
        "/api/runs?token=s3cret",
    ] {
        assert_eq!(served.get(path, "").0, 401, "{path}");
        assert_eq!(served.get(path, "Authorization: Bearer wrong\r\n").0, 401, "{path}");
    }
    // The page is public at each of its addresses.
    assert_eq!((served.get("/", "").0, served.get("/run/latest", "").0), (200, 200));
    assert_eq!(served.get("/api/runs", "Authorization: Bearer s3cret\r\n").0, 200);
    assert_eq!(served.get("/run/latest?token=s3cret", "").0, 303);
    assert_eq!(served.get("/run/latest?token=wrong", "").0, 401);
}

#[test]
fn a_store_that_is_removed_meanwhile_is_said() {
    let served = three();
    fs::remove_dir_all(&served.folder).unwrap();
    served.check_refused("/api/runs", 500, "there is no store any more");
}
