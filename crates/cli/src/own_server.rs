//! `throng serve` as a separate process, for commands that need both ends.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use crate::Failure;

/// Serves on loopback, at a free port, until it is dropped or this process ends.
pub(crate) struct OwnServer {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
}

impl OwnServer {
    /// Starts one with these further arguments; it listens when this returns.
    pub(crate) fn start(args: &[&str]) -> Result<OwnServer, Failure> {
        let failed =
            |e: &dyn std::fmt::Display| Failure::machine(format!("the built-in server did not start: {e}"));
        let program = std::env::current_exe().map_err(|e| failed(&e))?;
        let child = Command::new(program)
            .args(["serve", "http", "--listen", "127.0.0.1:0", "--until-stdin-ends"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its own process group: Ctrl-C is for us, and we still need the server to drain.
            .process_group(0)
            .spawn()
            .map_err(|e| failed(&e))?;
        let mut server = OwnServer { child, address: String::new() };
        let mut line = String::new();
        let out = server.child.stdout.take().expect("standard output is piped");
        BufReader::new(out).read_line(&mut line).map_err(|e| failed(&e))?;
        let url = line.split_whitespace().find_map(|part| part.strip_prefix("http://"));
        server.address = url.ok_or_else(|| failed(&"no output"))?.trim_end_matches('/').to_owned();
        Ok(server)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // Its standard input ends with this, and so does the server.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
