//! Scenarios that log in, as a user writes them: `{env}`, what is captured, and what is said when it cannot be.

use std::{fs, path::PathBuf};

use crate::{
    program::{Program, throng},
    scripted::Scripted,
    summary::{Summary, run},
};

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("throng-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that gives each login a token, in two pieces, and refuses all else that has none.
fn service() -> Scripted {
    Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let (status, body) = match head.lines().find_map(|line| line.strip_prefix("Authorization: ")) {
                Some(token) if token.starts_with("Bearer t-") => ("200 OK", token.to_owned()),
                _ if head.starts_with("GET /login?key=the%20secret") => {
                    ("200 OK", "{\"access_token\": \"t-1\"}".to_owned())
                }
                _ => ("401 Unauthorized", String::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            let (one, two) = body.split_at(body.len() / 2);
            if !(peer.send(&format!("{head}{one}")) && peer.send(two)) {
                return;
            }
        }
    })
}

const STEPS: &str = r#"
duration = "500ms"
[[population]]
name = "users"
connections = 5
think = "20ms"
loop = "me"
[[population.step]]
name = "login"
request = "GET /login?key={env KEY_OF_TEST}"
capture = { token = { json = "/access_token" } }
[[population.step]]
name = "me"
request = "GET /me"
headers = { Authorization = "Bearer {var token}" }
expect = { body = "Bearer t-1" }
"#;

#[test]
fn a_secret_of_the_environment_is_sent_and_is_nowhere_else() {
    let (server, folder) = (service(), Folder::new("secret"));
    let path = folder.write("load.toml", format!("target = \"{}\"\n{STEPS}", server.url("/")));
    let (report, stored) = (folder.0.join("report.html"), folder.0.join("data"));
    let mut command = throng(&["run", &path, "--json", "-", "--report", report.to_str().unwrap()]);
    command.env("KEY_OF_TEST", "the%20secret").env("XDG_DATA_HOME", &stored);
    let ended = Program::from(command).end();
    ended.assert_status(0);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!((s.faults(), s.count("connections.held")), (vec![], 5));
    assert!(server.log.targets().iter().filter(|target| *target == "/login?key=the%20secret").count() == 5);
    assert!(!(ended.stdout + &ended.stderr).contains("the%20secret"));
    let mut folders = vec![folder.0.clone()];
    let mut files = 0;
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            files += 1;
            let bytes = fs::read(&entry).unwrap();
            assert!(!bytes.windows(12).any(|part| part == b"the%20secret"), "{}", entry.display());
        }
    }
    assert!(files >= 3, "scenario, report and store: {files}");
}

#[test]
fn a_variable_that_is_not_set_is_named_with_its_line() {
    let folder = Folder::new("unset");
    let path = folder.write("load.toml", format!("target = \"http://127.0.0.1:9/\"\n{STEPS}"));
    let mut command = throng(&["run", &path]);
    command.env_remove("KEY_OF_TEST");
    let ended = Program::from(command).end();
    ended.assert_status(2);
    let expected = format!(
        "throng: {path}:11:27: the environment has no KEY_OF_TEST; set it, as export KEY_OF_TEST=…\n"
    );
    assert_eq!(ended.stderr, expected);
    // With what else a plan needs that is not there: a mistake hides no other one.
    let with_file =
        STEPS.replace("request = \"GET /me\"", "request = \"POST /me\"\nbody-file = \"absent.bin\"");
    let both = folder.write("both.toml", format!("target = \"http://127.0.0.1:9/\"\n{with_file}"));
    let mut command = throng(&["run", &both]);
    command.env_remove("KEY_OF_TEST");
    let ended = Program::from(command).end();
    ended.assert_status(2);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [env, file] = &lines[..] else { panic!("{lines:?}") };
    assert!(env.contains(":11:27: the environment has no KEY_OF_TEST"), "{env}");
    assert!(file.contains("both.toml:16:13: body-file: \"absent.bin\" cannot be read"), "{file}");
    let wrong = STEPS.replace("loop = \"me\"", "loop = \"nope\"");
    let wrong = folder.write("loop.toml", format!("target = \"http://127.0.0.1:9/\"\n{wrong}"));
    let mut command = throng(&["run", &wrong]);
    command.env_remove("KEY_OF_TEST");
    let ended = Program::from(command).end();
    ended.assert_status(2);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [no_step, env] = &lines[..] else { panic!("{lines:?}") };
    assert!(no_step.contains("loop.toml:8:8: population.users.loop: no such step; use "), "{no_step}");
    assert!(env.contains("loop.toml:11:27: the environment has no KEY_OF_TEST"), "{env}");
    let mut command = throng(&["run", &path]);
    command.env("KEY_OF_TEST", "a\nb");
    let ended = Program::from(command).end();
    ended.assert_status(2);
    assert!(ended.stderr.contains("{env KEY_OF_TEST}: '\\n' is not allowed in a path"), "{}", ended.stderr);
}

#[test]
fn a_login_that_fails_is_the_limit_of_the_run() {
    let (server, folder) = (service(), Folder::new("refused"));
    let steps = STEPS.replace("{env KEY_OF_TEST}", "wrong");
    let path = folder.write("load.toml", format!("target = \"{}\"\n{steps}", server.url("/")));
    let (ended, s) = run(&path, &[]);
    ended.assert_status(1);
    assert_eq!(
        s.faults(),
        [("target·exchange·wrong-status".to_owned(), 5), ("target·hold·missing-value".to_owned(), 5)]
    );
    assert_eq!((s.count("connections.dropped"), server.log.requests()), (5, 5));
    assert_eq!((s.count("errors.count"), s.count("errors.of")), (5, 5));
    assert!(s.text("limit.sentence").contains("401"), "{}", s.text("limit.sentence"));

    let missing = Scripted::responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let path = folder.write("missing.toml", format!("target = \"{}\"\n{steps}", missing.url("/")));
    let (ended, s) = run(&path, &[]);
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·exchange·missing-value".to_owned(), 5)]);
    assert_eq!((s.count("errors.count"), s.count("errors.of")), (5, 5));
    assert!(ended.stderr.contains("value to capture"), "{}", ended.stderr);
}

#[test]
fn bodies_and_messages_come_from_files() {
    let folder = Folder::new("files");
    let binary: Vec<u8> = (0..=255).collect();
    folder.write("message.bin", &binary);
    let server = Scripted::start(|peer| while peer.echo() {});
    let path = folder.write(
        "load.toml",
        format!(
            "target = \"tcp://{}\"\nduration = \"1s\"\n[[population]]\nname = \"raw\"\nconnections = 3\n\
             think = \"10ms\"\n[[population.step]]\nsend-file = \"message.bin\"\nexpect = {{ echo = true }}\n\
             [[population.step]]\nsend-base64 = \"AP8=\"\nexpect = {{ echo = true }}\n",
            server.address
        ),
    );
    let (ended, s) = run(&path, &[]);
    ended.assert_status(0);
    assert!(s.faults().is_empty() && s.count("requests.answered") >= 6, "{}", ended.stderr);
    let received = server.log.bytes();
    assert!(
        received.windows(258).any(|part| part == [&binary[..], &[0, 255]].concat()),
        "one after the other"
    );
    let wrong = folder.write(
        "wrong.toml",
        "target = \"tcp://127.0.0.1:9\"\n[[population]]\nname = \"raw\"\n[[population.step]]\nsend-file = \"absent\"\n\
         expect = { echo = true }\n",
    );
    let ended = Program::start(&["run", &wrong]).end();
    ended.assert_status(2);
    assert!(ended.stderr.contains("send-file: \"absent\" cannot be read"), "{}", ended.stderr);
}

/// Each page has a link to the next one, in another form each time; the last one is followed by a redirect.
#[test]
fn a_captured_link_is_requested_whatever_its_form() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let host = head.split("Host: ").nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let (status, field, link) = match path.as_str() {
                "/v1/items" => ("200 OK", "X-A: b", "/v1/items?page=é 2".to_owned()),
                "/v1/items?page=%C3%A9%202" => ("200 OK", "X-A: b", format!("http://{host}/v1/items/3#top")),
                "/v1/items/3" => ("200 OK", "X-A: b", "../last".to_owned()),
                "/v1/last" => ("302 Found", "Location:\r\n ./a/.././end", String::new()),
                "/v1/end" => ("200 OK", "X-A: b", "http://127.0.0.1:1/elsewhere".to_owned()),
                _ => ("404 Not Found", "X-A: b", String::new()),
            };
            let body = format!("{{\"next\": \"{link}\"}}");
            let head = format!("HTTP/1.1 {status}\r\n{field}\r\nContent-Length: {}\r\n\r\n", body.len());
            if !peer.send(&(head + &body)) {
                return;
            }
        }
    });
    let next =
        "capture = { next = { json = \"/next\" } }\n[[population.step]]\nrequest = \"GET {var next}\"\n";
    let steps = format!(
        "[[population.step]]\nrequest = \"GET /v1/items\"\n{next}{next}{next}redirects = 1\nthink = \"1m\"\n"
    );
    let load =
        "duration = \"300ms\"\nreconnect = \"never\"\n[[population]]\nname = \"users\"\nconnections = 2\n";
    let folder = Folder::new("links");
    let path = folder.write("load.toml", format!("target = \"{}\"\n{load}{steps}", server.url("/")));
    let ended = Program::start(&["run", &path, "--json", "-"]).end();
    ended.assert_status(0);
    let expected =
        ["/v1/items", "/v1/items?page=%C3%A9%202", "/v1/items/3", "/v1/last", "/v1/end"].map(str::to_owned);
    let targets = server.log.targets();
    assert_eq!(targets.len(), 10, "{targets:?}");
    assert!(expected.iter().all(|one| targets.iter().filter(|it| *it == one).count() == 2), "{targets:?}");
    // One that leads to another server is no value.
    let steps = steps.replace("think = \"1m\"\n", next);
    let path = folder.write("more.toml", format!("target = \"{}\"\n{load}{steps}", server.url("/")));
    let ended = Program::start(&["run", &path, "--json", "-"]).end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(s.faults(), vec![("target·exchange·missing-value".to_owned(), 2)], "{}", ended.stderr);
}
