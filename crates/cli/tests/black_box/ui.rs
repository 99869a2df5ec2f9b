//! `throng ui`: stored runs by HTTP, and what it refuses.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::Duration,
};

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, file, until},
    stores::Data,
};

/// A run of this tag, kept in a store of the test's own.
fn stored(name: &str) -> Data {
    let (data, server) = (Data::new(name), Serving::start(&["--threads", "1"]));
    let args = ["run", &server.url("/"), "-c", "10", "-d", "200ms", "--think", "20ms", "--tag", "first"];
    data.end(&args).assert_status(0);
    data
}

/// It serves, and where.
fn serve(data: &Data, args: &[&str]) -> (Program, String) {
    let mut command = data.throng(&[&["ui", "--listen", "127.0.0.1:0", "--until-stdin-ends"], args].concat());
    command.stdin(Stdio::piped());
    let mut program = Program::from(command);
    until("it says where it serves", || {
        let is_there = program.stdout().contains("/\n");
        assert!(is_there || !program.is_ended(), "{}", program.stderr());
        is_there || program.stdout().contains("#token=…\n")
    });
    let output = program.stdout();
    let address = output.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (program, address)
}

fn get(address: &str, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, response.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn a_stored_run_is_listed_and_reported() {
    let data = stored("ui");
    let id = data.runs()[0]["id"].as_str().unwrap().to_owned();
    let (program, address) = serve(&data, &[]);
    let json = |path: &str| -> Value {
        let (status, body) = get(&address, path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    };
    // As `throng runs --json` has it.
    let (listed, own) = (&json("/api/runs?tag=first")["runs"][0], &data.runs()[0]);
    for field in
        ["id", "began", "target", "verdict", "wanted", "held", "elapsed_s", "tags", "seed", "version"]
    {
        assert_eq!(listed[field], own[field], "{field}");
    }
    let report = json(&format!("/api/runs/{id}"));
    assert_eq!(
        (&report["runs"][0]["id"], &report["runs"][0]["summary"]["verdict"]),
        (&own["id"], &own["verdict"])
    );
    // The same as the file that `throng report` writes.
    let written = data.end(&["report", &id, "--format", "json", "-o", "-"]);
    assert_eq!(serde_json::from_str::<Value>(&written.stdout).unwrap(), report);
    assert_eq!(json("/api/compare/latest/tag:first")["comparison"]["tables"].as_array().unwrap().len(), 1);
    assert_eq!(json("/api/trend/first")["runs"][0]["id"], own["id"]);
    let (status, page) = get(&address, "/", "");
    assert!(status == 200 && page.contains("<title>throng runs</title>"), "{status}");
    let (status, body) = get(&address, "/api/runs/nothing", "");
    assert!(
        status == 404 && body.contains("no run nothing; list runs with `throng runs`"),
        "{status} {body}"
    );
    // Looking changes nothing, and a signal ends it.
    assert_eq!(data.runs().len(), 1);
    program.signal(Signal::INT);
    assert_eq!(program.end().status, Some(0));
}

#[test]
fn it_ends_with_its_parent() {
    let data = stored("ui-parent");
    let (mut program, _) = serve(&data, &[]);
    program.close_stdin();
    assert_eq!(program.end().status, Some(0));
}

#[test]
fn what_it_cannot_serve_is_refused() {
    let none = Data::new("ui-none");
    let ended = none.end(&["ui", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("throng: no stored runs in ")
            && ended.stderr.contains("; make one with `throng run`"),
        "{ended:?}"
    );
    assert!(!none.0.exists(), "looking makes no file");

    let data = stored("ui-refused");
    let check = |args: &[&str], status: i32, text: &str| {
        let ended = data.end(&[&["ui"], args].concat());
        assert_eq!(ended.status, Some(status), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args:?}: {ended:?}");
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(
        &["--listen", &address],
        3,
        &format!("throng: --listen {address}: address in use: another process"),
    );
    let fix = "--listen: without --token-file only loopback is allowed; use 127.0.0.1:9920: 0.0.0.0:9920";
    check(&["--listen", "0.0.0.0:9920"], 2, fix);
    check(&["--listen", "here"], 2, "--listen: \"here\" is not an address; use 127.0.0.1:9920");
    check(&["--token-file", "/nonexistent/token"], 2, "--token-file: ");
    let (damaged, folder) = (Data::new("ui-damaged"), file("ui-damaged").join("throng"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("runs.db"),
        "this is no database, and long enough to be taken for one\n".repeat(100),
    )
    .unwrap();
    let ended = damaged.end(&["ui", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
}

#[test]
fn with_a_token_only_who_shows_it_sees_runs() {
    let data = stored("ui-token");
    let token = file("ui-token-file");
    fs::write(&token, "s3cret-0123456789abcdef\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let (_program, address) = serve(&data, &["--token-file", token.to_str().unwrap()]);
    assert_eq!(get(&address, "/api/runs", "").0, 401);
    assert_eq!(get(&address, "/api/runs", "Authorization: Bearer s3cret-0123456789abcdef\r\n").0, 200);
}
