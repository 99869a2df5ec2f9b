//! `throng demo`: what is this, in one command.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use host::Root;
use plan::Flags;
use run::Interrupt;
use units::Count;

use crate::{Failure, answer, run as verb, say, signals};

const CONNECTIONS: u64 = 100_000;
/// Of what fits this machine's memory, the demo takes this share at most.
const SHARE: u64 = 2;

/// A server as a process of its own, and a run against it.
pub(crate) fn demo() -> Result<u8, Failure> {
    let interrupt = Interrupt::default();
    let ask = interrupt.clone();
    signals::on_signal(move || ask.set()).map_err(Failure::machine)?;
    let (mut server, url) = start_server()?;
    let result = against(&url, &interrupt);
    // Its standard input ends with this, and so does the server.
    drop(server.stdin.take());
    let _ = server.wait();
    result
}

fn against(url: &str, interrupt: &Interrupt) -> Result<u8, Failure> {
    let flags = |n: u64| Flags {
        target: Some(format!("{url}?length={{rand 1 4096}}")),
        connections: Some(n.to_string()),
        ramp: Some("18s".to_owned()),
        duration: Some("10s".to_owned()),
        think: Some("5s..15s".to_owned()),
        expect: Some("status=200,length=$1".to_owned()),
        ..Flags::default()
    };
    let full = verb::plan(&flags(CONNECTIONS * SHARE))?;
    let n = ::run::fitting(&full, &Root::real()).map_err(Failure::machine)? / SHARE;
    let n = n.clamp(1, CONNECTIONS);
    say(&format!(
        "{} keep-alive HTTP connections to a server on this machine, each asking for 1 to 4096 characters \
         and then thinking for 5 to 15 s",
        Count(n)
    ));
    let summary = verb::apply(&verb::plan(&flags(n))?, interrupt, &mut [])?;
    answer(&sinks::text(&summary))?;
    Ok(summary.verdict.exit_status())
}

fn start_server() -> Result<(Child, String), Failure> {
    let failed =
        |e: &dyn std::fmt::Display| Failure::machine(format!("the demo's server does not start: {e}"));
    let program = std::env::current_exe().map_err(|e| failed(&e))?;
    let mut server = Command::new(program)
        .args(["serve", "http", "--listen", "127.0.0.1:0", "--until-stdin-ends"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A group of its own: Ctrl-C is for the demo, which still needs the server to drain.
        .process_group(0)
        .spawn()
        .map_err(|e| failed(&e))?;
    let mut line = String::new();
    let out = server.stdout.take().expect("standard output is piped");
    BufReader::new(out).read_line(&mut line).map_err(|e| failed(&e))?;
    match line.split_whitespace().find(|word| word.starts_with("http://")) {
        Some(url) => Ok((server, url.to_owned())),
        None => Err(failed(&"it said nothing")),
    }
}
