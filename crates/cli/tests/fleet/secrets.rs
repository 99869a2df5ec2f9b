//! Who gets the secrets of a run, and that nothing keeps them: rows of tables, headers and keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    fleet::{joined_at, nats_at, read},
    nats::Raw,
    program::{DATA, Program, Serving, throng, until},
    server::{Server, folder},
};

/// What every secret of these tests has in it.
const MARK: &str = "s3cret-";
const ROWS: u32 = 9_000;

fn token(row: u32) -> String {
    format!("{MARK}row-{row:05}-{}", "x".repeat(400))
}

/// A scenario with a table, and a key for its target.
fn scenario(folder: &Path, seconds: u32, load: &str, target: &str) -> String {
    let rows: String = (0..ROWS).map(|row| format!("{row},{},{MARK}unused-{row}\n", token(row))).collect();
    fs::write(folder.join("users.csv"), format!("id,token,mail\n{rows}")).unwrap();
    let text = format!(
        "duration = \"{seconds}s\"\n[[population]]\nname = \"users\"\ntarget = \"{target}\"\n{load}\n[[population.step]]\nrequest = \"GET /\"\n\
        headers = {{ Authorization = \"Bearer {{csv users.token}}\", X-Key = \"{MARK}key\" }}\n\
        [csv.users]\nfile = \"users.csv\"\n"
    );
    let file = folder.join("load.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// The messages to agents, as they go over NATS: each with its subject.
pub(crate) struct Overheard(Arc<Mutex<Vec<(String, Value)>>>);

impl Overheard {
    pub(crate) fn at(nats: SocketAddr) -> Overheard {
        let mut raw = Raw::new(nats);
        raw.send(b"SUB throng.agent.> 1\r\nPING\r\n");
        assert_eq!(raw.line(), "PONG");
        let all = Arc::<Mutex<Vec<_>>>::default();
        let heard = all.clone();
        // Ends with the server.
        std::thread::spawn(move || {
            while let Some((subject, payload)) = raw.message() {
                // What is no JSON is heard too.
                let text = || Value::String(String::from_utf8_lossy(&payload).into_owned());
                let message = serde_json::from_slice(&payload).unwrap_or_else(|_| text());
                heard.lock().unwrap().push((subject, message));
            }
        });
        Overheard(all)
    }

    /// The values that went to each agent; `taken`: for parts that it took over.
    pub(crate) fn rows(&self, taken: bool) -> BTreeMap<String, BTreeSet<String>> {
        let mut of = BTreeMap::<_, BTreeSet<String>>::new();
        for (subject, message) in &*self.0.lock().unwrap() {
            let rows = &message["body"]["Rows"];
            if rows.is_object() && rows["number"].is_null() != taken {
                let values = rows["values"].as_array().unwrap().iter().map(|value| value.as_str().unwrap());
                of.entry(subject.clone()).or_default().extend(values.map(str::to_owned));
            }
        }
        of
    }

    /// All other messages have no row in them.
    fn assert_rows_go_alone(&self) {
        self.assert_only_rows_have("s3cret-row");
        let all = self.0.lock().unwrap();
        assert!(all.iter().all(|(_, message)| !message.to_string().contains("s3cret-unused")));
    }
}

impl Overheard {
    /// All other messages do not have this text.
    pub(crate) fn assert_only_rows_have(&self, text: &str) {
        let all = self.0.lock().unwrap();
        let others = all.iter().filter(|(_, message)| !message["body"]["Rows"].is_object());
        others.for_each(|(_, message)| assert!(!message.to_string().contains(text), "{message}"));
    }
}

/// Files below these folders that have this in them.
pub(crate) fn files_with(text: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let (mut found, mut left) =
        (Vec::new(), folders.iter().map(|folder| folder.to_path_buf()).collect::<Vec<_>>());
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let mut bytes = Vec::new();
        // One that has just gone has nothing in it.
        let _ = fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn agents_get_the_rows_of_their_connections_and_nothing_keeps_a_secret() {
    let own = folder("secrets");
    let [nats, data] = ["nats", "data"].map(|name| own.join(name));
    let (fleet, server) = (joined_at(&nats, Some(&data), 3), Serving::start(&["--threads", "1"]));
    let overheard = Overheard::at(fleet.nats.address);
    let file = scenario(&own, 5, "arrive = \"3000/s\"\ntotal = 9000\ncalls = 1", &server.url("/"));
    let out = own.join("out");
    let mut run =
        throng(&["run", &file, "--fleet", &fleet.url(), "--agents", "3", "--json", "-", "--live", "line"]);
    run.args(["--out", out.to_str().unwrap()]).env(DATA, &data);
    let (ended, s) = read(Program::from(run));
    ended.assert_status(0);
    assert_eq!(
        (s.count("connections.finished"), s.count("requests.answered")),
        (9_000, 9_000),
        "{}",
        ended.stderr
    );
    // Each has its own, and together they have what one process has.
    let rows = overheard.rows(false);
    assert!(rows.len() == 3 && rows.values().all(|own| own.len() >= 2_000), "{:?}", rows.keys());
    let all: BTreeSet<&String> = rows.values().flatten().collect();
    assert_eq!(rows.values().map(BTreeSet::len).sum::<usize>(), all.len(), "no row goes to two agents");
    assert_eq!(all.into_iter().cloned().collect::<Vec<_>>(), (0..ROWS).map(token).collect::<Vec<_>>());
    overheard.assert_rows_go_alone();
    let said: String = fleet.agents.iter().map(|agent| agent.stdout() + &agent.stderr()).collect();
    assert!(!(said + &ended.stdout + &ended.stderr).contains(MARK));
    assert_eq!(files_with(MARK, &[&nats, &data, &out]), Vec::<PathBuf>::new());
    // They are where they would be seen.
    assert!(!files_with("X-Key", &[&out]).is_empty() && !files_with("X-Key", &[&data]).is_empty());
}

#[test]
fn a_part_that_is_taken_over_gets_its_rows_and_killed_processes_leave_no_secret() {
    let own = folder("secrets-left");
    let [nats, data] = ["nats", "data"].map(|name| own.join(name));
    let (fleet, server) = (joined_at(&nats, Some(&data), 3), Serving::start(&["--threads", "1"]));
    let overheard = Overheard::at(fleet.nats.address);
    let file = scenario(&own, 60, "connections = 600\nthink = \"200ms\"", &server.url("/"));
    let mut run = throng(&["run", &file, "--fleet", &fleet.url(), "--agents", "3", "--on-lost", "reassign"]);
    run.args(["--live", "line"]).env(DATA, &data);
    let mut run = Program::from(run);
    run.wait_for("open 600 of 600");
    let before = overheard.rows(false);
    let id = fleet.agents[1].stdout().split(' ').nth(1).unwrap().to_owned();
    fleet.agents[1].signal(Signal::KILL);
    run.wait_for(&format!(" took over the part of {id}"));
    let taken = overheard.rows(true);
    let taken: BTreeSet<&String> = taken.values().flatten().collect();
    assert_eq!(taken, before[&format!("throng.agent.{id}")].iter().collect::<BTreeSet<_>>());
    assert_eq!(taken.len(), 200);
    // What goes on is killed, so that logs and spools stay as they are.
    run.signal(Signal::KILL);
    fleet.agents[0].signal(Signal::KILL);
    fleet.agents[2].signal(Signal::KILL);
    fleet.nats.program.signal(Signal::KILL);
    assert_eq!(files_with(MARK, &[&nats, &data]), Vec::<PathBuf>::new());
    assert!(!files_with(&id, &[&nats]).is_empty(), "the log is there");
    overheard.assert_rows_go_alone();
}

#[test]
fn a_coordinator_that_is_started_again_has_the_rows_for_who_takes_over() {
    let own = folder("secrets-again");
    let [nats, data] = ["nats", "data"].map(|name| own.join(name));
    let (fleet, server) = (joined_at(&nats, Some(&data), 2), Serving::start(&["--threads", "1"]));
    let file = scenario(&own, 30, "connections = 200\nthink = \"200ms\"", &server.url("/"));
    let args = ["--agents", "2", "--on-lost", "reassign"];
    let mut run = fleet.start(&file, &args);
    run.wait_for("open 200 of 200");
    run.signal(Signal::KILL);
    let mut again = fleet.start(&file, &args);
    again.wait_for("resuming run ");
    fleet.agents[1].signal(Signal::KILL);
    let (ended, s) = read(again);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 200, "{}", ended.stderr);
    assert!(ended.stderr.contains(" took over the part of "), "{}", ended.stderr);
    // Each of the killed agent's connections may have had a request under way in its last report.
    let [sent, answered] = ["requests.sent", "requests.answered"].map(|path| s.count(path));
    assert!((answered..=answered + 100).contains(&sent), "{answered} of {sent}");
}

#[test]
fn small_messages_are_enough_for_a_run_and_what_is_too_long_names_the_setting() {
    let own = folder("secrets-small");
    let config = own.join("nats.conf");
    let store = own.join("js").display().to_string();
    fs::write(&config, format!("max_payload: 4096\njetstream {{ store_dir: \"{store}\" }}\n")).unwrap();
    let nats = Server::at(|at| {
        let (ip, port) = (at.ip().to_string(), at.port().to_string());
        crate::server::program("nats-server", &["-a", &ip, "-p", &port, "-c", config.to_str().unwrap()])
    });
    let url = format!("nats://{}", nats.address);
    let server = Serving::start(&["--threads", "1"]);
    let _agents: Vec<Program> = (0..2)
        .map(|_| {
            let agent = Program::start(&["agent", "--nats", &url]);
            until("an agent", || agent.stdout().starts_with("agent "));
            agent
        })
        .collect();
    let run = |file: &str| {
        Program::start(&["run", file, "--fleet", &url, "--agents", "2", "--json", "-", "--live", "line"])
    };
    // Ticks with their histograms are longer than a message may be.
    let file = scenario(&own, 3, "connections = 100\nthink = \"0ms..90ms\"", &server.url("/"));
    let (ended, s) = read(run(&file));
    ended.assert_status(0);
    let agents = s.at("agents").as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["sealed"] == true), "{agents:?}: {}", ended.stderr);
    assert_eq!(s.count("requests.answered"), s.count("requests.sent"), "{}", ended.stderr);
    let refused = |file: &str, why: &str| {
        let ended = run(file).end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(why) && ended.stderr.contains("max_payload"), "{ended:?}");
        assert!(!ended.stderr.contains(MARK), "{ended:?}");
    };
    fs::write(own.join("users.csv"), format!("id,token\n1,{MARK}{}\n", "x".repeat(5_000))).unwrap();
    refused(&file, "a value of {csv users.token} takes ");
    let comment = format!("# {}\n", "x".repeat(5_000));
    fs::write(own.join("long.toml"), comment + "target = \"http://127.0.0.1:1/\"\n").unwrap();
    refused(own.join("long.toml").to_str().unwrap(), "the scenario takes ");
}

#[test]
fn of_two_agents_of_one_name_that_start_together_one_is_refused() {
    let own = folder("twins");
    let nats = Server::at(|at| nats_at(at, &own));
    let url = format!("nats://{}", nats.address);
    for nth in 0..3 {
        let name = format!("twin-{nth}");
        let start = || Program::start(&["agent", "--nats", &url, "--name", &name]);
        let mut twins = [start(), start()];
        until("one is an agent, and the other has ended", || {
            let joined = twins.iter().filter(|twin| twin.stdout().starts_with("agent ")).count();
            let ended = twins.iter_mut().filter_map(|twin| twin.is_ended().then_some(())).count();
            assert!(joined < 2, "two agents are {name}");
            (joined, ended) == (1, 1)
        });
        let refused = twins.into_iter().find_map(|mut twin| twin.is_ended().then(|| twin.end())).unwrap();
        assert_eq!(refused.status, Some(3), "{refused:?}");
        let why = format!("an agent named {name} has already joined, on ");
        assert!(
            refused.stderr.contains(&why) && refused.stderr.contains("use another --name"),
            "{refused:?}"
        );
    }
}
