//! What a fleet refuses: targets by their addresses, and users by their rights.

use std::{fs, net::SocketAddr, process::Command};

use serde_json::Value;

use crate::{
    fleet,
    namespace::Pair,
    nats::Raw,
    program::{Ended, Program, Serving, throng, until},
    server::{Server, folder, program},
};

fn joins(agent: Program) -> Program {
    let mut agent = agent;
    until("an agent joins", || {
        assert!(!agent.is_ended(), "{}", agent.stderr());
        agent.stdout().starts_with("agent ")
    });
    agent
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The name's address is another one after the agent has checked it, and again before the next run.
#[test]
fn a_name_that_changes_its_address_leads_nowhere_else() {
    let Some(pair) = Pair::new() else { return };
    let here = &pair.server;
    let store = folder("rebinding");
    let hosts = store.join("hosts");
    // In place: what is mounted is the file, not its name.
    let is_at = |ip: &str| fs::write(&hosts, format!("127.0.0.1 localhost\n{ip} rebind.test\n")).unwrap();
    is_at("127.0.0.1");
    here.run(&format!("mount --bind {} /etc/hosts", hosts.display()));
    let serve = |at: &str| {
        let command = here.enter(&throng(&["serve", "--listen", at, "--until-stdin-ends", "--threads", "1"]));
        Serving::from(command, &[])
    };
    let allowed = serve("127.0.0.1:0");
    let port = allowed.address.port();
    let other = serve(&format!("127.0.0.2:{port}"));
    let requests = |server: &Serving| {
        let stats = here.run(&format!("curl -s --max-time 10 http://{}/stats", server.address));
        json(&stats)["requests"].as_u64().unwrap()
    };
    let nats = Program::from(here.enter(&fleet::nats_at("127.0.0.1:4222".parse().unwrap(), &store)));
    let url = "nats://127.0.0.1:4222";
    let target = format!("rebind.test:{port}");
    let agent = throng(&["agent", "--nats", url, "--name", "a", "--allow", &target]);
    let agent = joins(Program::from(here.enter(&agent)));
    let start = |args: &[&str]| {
        let run = ["run", &format!("http://{target}/"), "--fleet", url, "--live", "line", "--json", "-"];
        Program::from(here.enter(&throng(&[&run, args].concat())))
    };
    // It dials all the time, and each time what was checked.
    let mut run = start(&["--arrive", "50/s", "--total", "150", "--calls", "1"]);
    run.wait_for("  1s ");
    is_at("127.0.0.2");
    let ended = run.end();
    ended.assert_status(0);
    let opened = json(&ended.stdout)["connections"]["opened"].as_u64().unwrap();
    assert!(opened == 150 && requests(&allowed) >= 150, "{ended:?}");
    assert_eq!(requests(&other), 1, "only the question itself");
    // The next run goes there, and is refused.
    let ended = start(&["-c", "5", "-d", "1s"]).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let why = format!("agent a refuses: 127.0.0.2:{port} is not allowed here");
    assert!(ended.stderr.contains(&why), "{ended:?}");
    assert_eq!(requests(&other), 2);
    drop((agent, nats));
}

/// A target that answers every request with a redirect to another one.
#[test]
fn a_redirect_is_a_response_and_is_not_followed() {
    let other = Serving::start(&["--threads", "1"]);
    let folder = folder("redirect");
    let code = format!(
        "import http.server, sys\n\
        class H(http.server.BaseHTTPRequestHandler):\n\
        \x20   protocol_version = 'HTTP/1.1'\n\
        \x20   def do_GET(self):\n\
        \x20       self.send_response(302); self.send_header('Location', '{}'); self.send_header('Content-Length', '0')\n\
        \x20       self.end_headers()\n\
        \x20   def log_message(self, *args): pass\n\
        s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n\
        print('on port', s.server_address[1], flush=True)\n\
        s.serve_forever()\n",
        other.url("/elsewhere")
    );
    fs::write(folder.join("redirect.py"), code).unwrap();
    let script = folder.join("redirect.py").display().to_string();
    let redirecting = Server::announcing("on port ", program(crate::server::PYTHON, &[&script]));
    let nats = Server::at(|at| fleet::nats_at(at, &folder.join("js")));
    let url = format!("nats://{}", nats.address);
    let allowed = redirecting.address.to_string();
    let _agent = joins(Program::start(&["agent", "--nats", &url, "--allow", &allowed]));
    let load = ["run", &redirecting.url("/"), "-c", "3", "--think", "50ms", "-d", "1s"];
    let ended = Program::start(&[&load[..], &["--fleet", &url, "--json", "-"]].concat()).end();
    let summary = json(&ended.stdout);
    assert!(summary["requests"]["status"]["302"].as_u64().unwrap() > 0, "{ended:?}");
    let stats = crate::server::fetch(&other.url("/stats"));
    assert_eq!(json(stats.split_once("\r\n\r\n").unwrap().1)["requests"], 1, "only the question itself");
    // The other target itself is not allowed.
    let run = ["run", &other.url("/"), "-c", "3", "-d", "1s", "--fleet", &url];
    let ended = Program::start(&run).end();
    assert!(ended.status == Some(3) && ended.stderr.contains("is not allowed here"), "{ended:?}");
}

/// An announcement of an agent, as it goes over NATS, from another version.
#[test]
fn an_agent_of_another_version_is_refused_with_its_name() {
    let folder = folder("versions");
    let nats = Server::at(|at| fleet::nats_at(at, &folder));
    let url = format!("nats://{}", nats.address);
    let mut listening = Raw::new(nats.address);
    listening.send(b"SUB throng.here 1\r\nPING\r\n");
    assert_eq!(listening.line(), "PONG");
    let agent = joins(Program::start(&["agent", "--nats", &url, "--name", "elder"]));
    while !listening.line().starts_with("MSG throng.here ") {}
    let announced = listening.line();
    assert!(announced.contains("\"elder\""), "{announced}");
    drop(agent);
    let mut value = json(&announced);
    value["protocol"] = 99.into();
    value["version"] = "9.9.9\u{1b}[2J".into();
    let text = value.to_string();
    let announcement = format!("PUB throng.here {}\r\n{text}\r\n", text.len());
    let mut run = Program::start(&["run", "tcp://127.0.0.1:9", "-c", "1", "-d", "1s", "--fleet", &url]);
    let mut elder = Raw::new(nats.address);
    until("the run has ended", || {
        elder.send(announcement.as_bytes());
        std::thread::sleep(std::time::Duration::from_millis(100));
        run.is_ended()
    });
    let ended = run.end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    // What it says of itself goes to a terminal as text.
    assert!(
        ended.stderr.contains("agent elder is throng 9.9.9\u{fffd}[2J; use one version for all"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
}

/// A server with the permissions that the documentation recommends.
struct Guarded {
    nats: Server,
}

impl Guarded {
    fn new(name: &str) -> Guarded {
        let folder = folder(name);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nats/fleet.conf");
        let text = fs::read_to_string(path).unwrap();
        let store = "store_dir: \"/var/lib/throng-nats\"";
        assert!(text.contains(store));
        let own = text.replace(store, &format!("store_dir: \"{}\"", folder.join("js").display()));
        fs::write(folder.join("fleet.conf"), own).unwrap();
        let config = folder.join("fleet.conf").display().to_string();
        let start = |at: SocketAddr| {
            let mut command = program(
                "nats-server",
                &["-a", &at.ip().to_string(), "-p", &at.port().to_string(), "-c", &config],
            );
            for user in ["AGENT", "RUNNER", "VIEWER"] {
                command.env(format!("{user}_PASSWORD"), format!("{}-secret", user.to_lowercase()));
            }
            command
        };
        Guarded { nats: Server::at(start) }
    }

    fn url(&self) -> String {
        format!("nats://{}", self.nats.address)
    }

    fn by(&self, user: &str, args: &[&str]) -> Command {
        let mut command = throng(args);
        command.env("NATS_USER", user).env("NATS_PASSWORD", format!("{user}-secret"));
        command
    }

    fn fleet(&self, user: &str, args: &[&str]) -> Ended {
        Program::from(self.by(user, &[&["fleet"], args, &["--nats", &self.url()]].concat())).end()
    }
}

#[test]
fn users_do_what_their_permissions_allow_and_no_more() {
    let guarded = Guarded::new("permissions");
    let url = guarded.url();
    let agents: Vec<Program> = ["one", "two"]
        .map(|name| joins(Program::from(guarded.by("agent", &["agent", "--nats", &url, "--name", name]))))
        .into();
    let server = Serving::start(&["--threads", "1"]);
    let load = ["run", &server.url("/"), "-c", "20", "--think", "50ms", "-d", "1s"];
    let run = [&load[..], &["--fleet", &url, "--json", "-"]].concat();
    let ended = Program::from(guarded.by("runner", &run)).end();
    ended.assert_status(0);
    assert_eq!(json(&ended.stdout)["agents"].as_array().unwrap().len(), 2, "{ended:?}");
    assert!(!ended.stderr.contains("ermissions"), "{ended:?}");
    for user in ["viewer", "runner"] {
        let listed = guarded.fleet(user, &["ls"]);
        assert!(
            listed.stdout.contains("\n2 agents on 1 machine, ") && listed.stderr.is_empty(),
            "{user}: {listed:?}"
        );
    }
    let drained = guarded.fleet("runner", &["drain", "one", "two"]);
    assert_eq!(drained.stdout, "one: draining\ntwo: draining\n", "{drained:?}");
    assert_eq!(guarded.fleet("runner", &["drain", "--all", "--undo"]).status, Some(0));
    // Who looks does not steer, and an agent neither steers others nor runs anything on them.
    for (user, args) in [
        ("viewer", &["drain", "--all"][..]),
        ("viewer", &["set", "load=50%"]),
        ("agent", &["drain", "--all"]),
        ("agent", &["ls"]),
    ] {
        let ended = guarded.fleet(user, args);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""), "{user} {args:?}: {ended:?}");
    }
    let ended = Program::from(guarded.by("agent", &run)).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
    assert!(ended.stderr.contains("allow this subject for this user"), "{ended:?}");
    let listed = guarded.fleet("viewer", &["ls", "--json"]);
    let listed = json(&listed.stdout);
    assert!(listed["agents"].as_array().unwrap().iter().all(|agent| agent["state"] == "free"), "{listed:#}");
    for agent in agents {
        assert!(!agent.stderr().contains("ermissions"), "{}", agent.stderr());
    }
}
