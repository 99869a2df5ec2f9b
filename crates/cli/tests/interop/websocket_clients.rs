//! `throng serve` as WebSocket clients see it: npm's `ws`, Python's `websockets`, Chromium.

use std::process::Command;

use serde_json::Value;

use crate::{
    curl::stats,
    program::{Program, Serving, Signal, until},
    scripted::{Scripted, ok},
    server::{PYTHON, folder, program, source},
};

fn url(server: &Serving) -> String {
    format!("ws://{}/ws/echo", server.address)
}

#[test]
fn npm_ws_has_its_echoes() {
    const CONNECTIONS: u64 = 20;
    let server = Serving::start(&[]);
    let client = source("node/ws_client.js");
    let ended = Program::from(program("node", &[&client, &url(&server), &CONNECTIONS.to_string()])).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["wrong"], Value::Array(Vec::new()));
    assert_eq!(seen["opened"], CONNECTIONS);
    // Twelve messages, nine of them in frames with a ping between, and one ping at the end.
    assert_eq!((&seen["echoes"], &seen["pongs"]), (&(12 * CONNECTIONS).into(), &(10 * CONNECTIONS).into()));
    assert_eq!(seen["codes"], serde_json::json!({ "1000": CONNECTIONS }), "closed as was asked for");
    let stats = stats(&server);
    assert_eq!((stats("open"), stats("accepted"), stats("errors")), (1, CONNECTIONS + 1, 0));
}

#[test]
fn python_websockets_has_its_echoes() {
    let server = Serving::start(&[]);
    let ended = Program::from(program(PYTHON, &[&source("python/caller.py"), &url(&server)])).end();
    assert_eq!(ended.stdout, "10 of 10, closed with 1000\n", "{ended:?}");
}

/// The page fetches its arguments but the last, one first and then the others at once; the last is the echo server that it then
/// connects to. It reports the result to its own server.
const PAGE: &str = r#"<!doctype html><title>echo</title><script>
const tell = (what) => fetch('/outcome/' + encodeURIComponent(what));
const urls = location.search.slice(1).split('&').map(decodeURIComponent);
const echo = urls.pop();
const sent = ['', 'a', 'Grüße', 'x'.repeat(125), 'x'.repeat(126), 'x'.repeat(70000), new Uint8Array([0, 255])];
let right = 0, at = 0;
const same = (a, b) => typeof a === 'string' ? a === b : [...new Uint8Array(b)].join() === [...a].join();
const connect = () => {
  const socket = new WebSocket(echo);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => socket.send(sent[0]);
  socket.onmessage = ({ data }) => {
    right += same(sent[at++], data);
    if (at < sent.length) socket.send(sent[at]); else socket.close(1000, 'done');
  };
  socket.onclose = ({ code, wasClean }) => tell(`${right}-of-${sent.length}-${code}-${wasClean}`);
};
// Without credentials it would not be on the connection that a WebSocket may use.
const get = (url) => fetch(url, { mode: 'no-cors', credentials: 'include' });
(async () => {
  for (const url of urls.splice(0, 1)) await get(url);
  await Promise.all(urls.map(get));
})().then(connect, tell);
</script>"#;

/// The browser and all its processes.
struct Browser(Program);

impl Browser {
    fn open(url: &str, more: &[&str]) -> Browser {
        let profile = format!("--user-data-dir={}", folder(&format!("chromium{}", more.len())).display());
        let args =
            ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
        let mut command: Command = program("chromium-headless-shell", &args);
        command
            .args([&profile, "--remote-debugging-port=0", "--disable-background-networking"])
            .args(more)
            .arg(url);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Browser(Program::from(command))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.0.is_ended() {
            self.0.signal_group(Signal::KILL);
        }
    }
}

#[test]
fn chromium_has_its_echoes() {
    let server = Serving::start(&[]);
    let url = url(&server);
    check_chromium(&[&url], &[]);
    until("the connection is closed here too", || stats(&server)("open") == 1);
}

/// Chromium, with these further arguments, fetches these URLs but the last, and has its echoes from that.
pub(crate) fn check_chromium(urls: &[&str], args: &[&str]) {
    let pages = Scripted::responding(
        ok(PAGE).replace("\r\n\r\n", "\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"),
    );
    let mut browser = Browser::open(&pages.url(&format!("/?{}", urls.join("&"))), args);
    let outcome =
        || pages.log.targets().into_iter().find_map(|t| t.strip_prefix("/outcome/").map(str::to_owned));
    until("the outcome", || {
        assert!(!browser.0.is_ended(), "the browser ended: {}", browser.0.stderr());
        outcome().is_some()
    });
    assert_eq!(outcome().as_deref(), Some("7-of-7-1000-true"));
}
