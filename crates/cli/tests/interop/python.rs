//! `throng run` against Python servers: `http.server` and uvicorn.

use std::fs;

use crate::{
    program::until,
    right::{self, LOOPS},
    server::{PYTHON, Server, fetch, folder, program, source},
};

/// `python3 -m http.server`: HTTP/1.0, a connection for each request.
fn http_server(name: &str) -> Server {
    let folder = folder(&format!("python-{name}"));
    fs::write(folder.join("hello"), "Hello World!").unwrap();
    let folder = folder.to_str().unwrap();
    let args = ["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "0"];
    Server::announcing("on 127.0.0.1 port ", program(PYTHON, &args))
}

/// uvicorn with these further arguments.
pub(crate) fn uvicorn(args: &[&str]) -> Server {
    let folder = source("python");
    let begin = ["-B", "-u", "-m", "uvicorn", "application:app", "--port", "0", "--app-dir", &folder];
    let is_secured = args.contains(&"--ssl-certfile");
    let before = if is_secured { "running on https://127.0.0.1:" } else { "running on http://127.0.0.1:" };
    Server::announcing(before, program(PYTHON, &[&begin, args].concat()))
}

/// hypercorn with these further arguments; it prints a line with these fields for each request.
pub(crate) fn hypercorn(fields: &str, args: &[&str]) -> Server {
    let begin = ["-B", "-u", "-m", "hypercorn", "application:app", "--bind", "127.0.0.1:0"];
    // In one process: a worker of its own would go on when its parent is killed.
    let workers = ["--workers", "0"];
    let log = ["--access-logfile", "-", "--access-logformat", fields];
    let mut command = program(PYTHON, &[&begin[..], &workers, &log, args].concat());
    command.env("PYTHONPATH", format!("{}:{}", source("python/packages"), source("python")));
    let is_secured = args.contains(&"--certfile");
    let scheme = if is_secured { "https" } else { "http" };
    Server::announcing(&format!("Running on {scheme}://127.0.0.1:"), command)
}

/// Waits until the server's log has as many correct responses as the run has.
pub(crate) fn check_log(server: &Server, output: impl Fn() -> String, mark: &str, responses: u64) {
    let count = || output().matches(mark).count() as u64;
    until(&format!("{responses} times {mark:?}"), || count() >= responses);
    assert_eq!(count(), responses, "{}", server.address);
}

#[test]
fn http_server_closes_after_each_response() {
    let server = http_server("closing");
    assert!(fetch(&server.url("/hello")).starts_with("HTTP/1.0 200 OK"));
    let mut responses = 1;
    // Its accept queue has five places.
    for args in [&["-c", "4", "-n", "200"][..], &["-c", "4", "-n", "60", "--think", "20ms..60ms"]] {
        let s = right::check(&server.url("/hello"), args);
        let (sent, redialled) = (s.count("requests.sent"), s.count("connections.redialled"));
        assert_eq!((s.count("connections.closed"), s.count("requests.answered")), (sent, sent), "{args:?}");
        assert_eq!(s.count("requests.body_bytes_in"), sent * 12, "{args:?}");
        // A connection dialled just before the end has no request.
        let dialled = s.count("connections.opened") + redialled;
        assert!(redialled > 4 && (sent..=sent + 4).contains(&dialled), "{dialled} dials, {sent} requests");
        responses += sent;
    }
    check_log(&server, || server.program.stderr(), "\"GET /hello HTTP/1.1\" 200 -", responses);
}

#[test]
fn http_server_errors_are_wrong_responses() {
    let server = http_server("errors");
    let args = ["-c", "4", "-d", "300ms", "--think", "20ms"];
    let s = right::check_wrong(&server.url("/nothing"), &args, "wrong-status");
    assert_eq!(s.count("requests.status.404"), s.count("requests.answered"));
    assert_eq!(s.count("connections.dropped"), 0, "its closes are announced all the same");
}

#[test]
fn uvicorn_responds_in_all_framings() {
    let server = uvicorn(&[]);
    assert!(fetch(&server.url("/chunked")).to_lowercase().contains("transfer-encoding: chunked"));
    for path in ["/", "/chunked"] {
        let mut responses = u64::from(path == "/chunked");
        for args in LOOPS {
            responses += right::check_kept(&server.url(path), args, 12).count("requests.sent");
        }
        check_log(&server, || server.program.stdout(), &format!("\"GET {path} HTTP/1.1\" 200 OK"), responses);
    }
    let s = right::check(&server.url("/slow"), &["-c", "5", "-d", "500ms"]);
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (5, 60));
}

#[test]
fn uvicorn_closes_idle_connections_without_announcement() {
    let server = uvicorn(&["--timeout-keep-alive", "1"]);
    let args = ["-c", "10", "-d", "1500ms", "--think", "1m"];
    let s = right::check_lost(&server.url("/"), &args, "target·hold·closed", "idle-cut", 10);
    assert_eq!(s.count("requests.answered"), 10);
}

#[test]
fn uvicorn_beyond_its_limit_responds_busy() {
    let server = uvicorn(&["--limit-concurrency", "1"]);
    let s =
        right::check_wrong(&server.url("/"), &["-c", "4", "-d", "300ms", "--think", "20ms"], "wrong-status");
    assert_eq!(s.count("requests.status.503"), s.count("requests.answered"));
}
