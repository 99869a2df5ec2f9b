//! What people type for curl and oha, against servers of others: no scheme, a number of requests, headers, a user, another host.

use std::{fs, process::Command};

use crate::{
    nginx::nginx,
    program::{Program, until},
    right,
    server::{PYTHON, Server, folder, program, source},
    summary,
};

/// Python's own server of files, which speaks HTTP/1.0 and closes after each response.
fn python() -> Server {
    let folder = folder("http-server");
    fs::write(folder.join("page.txt"), "Hello").unwrap();
    Server::at(|address| {
        let mut command = Command::new(PYTHON);
        command.args(["-m", "http.server", "--bind", &address.ip().to_string(), &address.port().to_string()]);
        command.current_dir(&folder);
        command
    })
}

#[test]
fn a_number_of_requests_without_a_scheme() {
    let server = python();
    let target = format!("{}/page.txt", server.address);
    let s = right::check(&target, &["-n", "200", "-c", "4", "--expect", "length=5"]);
    assert_eq!(
        (s.count("requests.sent"), s.count("requests.answered"), s.count("latency_us.count")),
        (200, 200, 200)
    );
    // Its log has a line for each: with those of another path they are counted apart.
    let s = right::check(&target, &["-n", "7", "-X", "HEAD"]);
    assert_eq!((s.count("requests.sent"), s.count("requests.body_bytes_in")), (7, 0));
    let lines = |method: &str| server.program.stderr().matches(&format!("\"{method} /page.txt")).count();
    until("the server has written its log", || lines("HEAD") == 7);
    assert_eq!(lines("GET"), 200);
}

#[test]
fn a_user_in_the_target_logs_in() {
    let users = folder("users").join("users");
    fs::write(&users, "me:{PLAIN}p@ss word\n").unwrap();
    let file = users.display();
    let directives =
        format!("location / {{ auth_basic x; auth_basic_user_file {file}; try_files /page.html =404; }}");
    let server = nginx("users", &directives);
    let target = |user: &str| format!("http://{user}{}/", server.address);
    let s = right::check(&target("me:p%40ss%20word@"), &["-n", "50", "-c", "5", "--tag", "login"]);
    assert_eq!(s.count("requests.status.200"), 50);
    // What is shown and stored has neither the password nor what stands for it.
    let said = Program::start(&["runs", "--tagged", "login", "--json"]).end().stdout;
    assert!(said.contains(&format!("http://…@{}/", server.address)), "{said}");
    assert!(!said.contains("p%40ss") && !said.contains("bWU6"), "{said}");
    for user in ["", "me:wrong@"] {
        let s = right::check_wrong(&target(user), &["-n", "10", "-c", "2"], "wrong-status");
        assert_eq!(s.count("requests.status.401"), 10, "{user}");
    }
    // Basic authentication as curl has it.
    let s = right::check(&target(""), &["-n", "5", "-H", "authorization: Basic bWU6cEBzcyB3b3Jk"]);
    assert_eq!(s.count("requests.status.200"), 5);
}

#[test]
fn another_host_is_dialled_and_named() {
    let server = nginx(
        "hosts",
        "location / { if ($http_host != $arg_host) { return 404; } return 200 'Hello World!'; }",
    );
    let at = server.address.to_string();
    for (target, args) in [
        (format!("http://{at}/?host=shop.example"), vec!["--host", "shop.example"]),
        (format!("http://{at}/?host=shop.example:81"), vec!["-H", "Host: shop.example:81"]),
        ("shop.invalid/?host=shop.invalid".to_owned(), vec!["--connect-to", &at]),
    ] {
        let s = right::check(&target, &[&["-n", "20"], &args[..]].concat());
        assert_eq!(s.count("requests.status.200"), 20, "{target}");
    }
    let rule = format!("shop.invalid:8000:{at}");
    let s = right::check(
        "http://shop.invalid:8000/?host=shop.invalid:8000",
        &["-n", "20", "--connect-to", &rule],
    );
    assert_eq!(s.count("requests.status.200"), 20);
}

const MEMBER: [&str; 8] = [
    "-H",
    "Authorization: Bearer t0ken",
    "-H",
    "Cookie: session=7; a=b",
    "-H",
    "Origin: https://shop.example",
    "--host",
    "shop.example",
];

#[test]
fn an_upgrade_has_headers_and_a_sub_protocol() {
    let server = Server::announcing("listening on ", program("node", &[&source("node/ws_server.js")]));
    let url = |path: &str| format!("ws://{}{path}", server.address);
    let messages = ["-c", "5", "-n", "100", "--ping", "0"];
    let with = |more: &[&'static str]| [&messages[..], &MEMBER, more].concat();
    let s = right::check(&url("/members"), &with(&["-H", "Sec-WebSocket-Protocol: v1.chat, v2.chat"]));
    assert_eq!((s.count("requests.answered"), s.count("connections.held")), (100, 5));
    // It may choose none of them, and then this server takes leave.
    let s = right::check(&url("/echo"), &with(&["-H", "Sec-WebSocket-Protocol: v1.chat"]));
    assert_eq!(s.count("requests.answered"), 100);
    // But none that was not offered; and without the headers it refuses.
    let stubborn = with(&["-H", "Sec-WebSocket-Protocol: v1.chat, v2.chat"]);
    for (path, args, kind) in
        [("/stubborn", &stubborn[..], "bad-answer"), ("/members", &messages[..], "wrong-status")]
    {
        let (ended, s) = summary::run(&url(path), args);
        assert_eq!(s.faults(), [(format!("target·handshake·{kind}"), 5)], "{path}: {}", ended.stderr);
        ended.assert_status(1);
    }
}
