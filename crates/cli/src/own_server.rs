//! `throng serve` as a child process, for commands that need both client and server.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use crate::Failure;

/// A server on a free port of loopback, which ends when this is dropped or when this process ends.
pub(crate) struct OwnServer {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
}

impl OwnServer {
    /// Starts a server with additional arguments, and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Result<OwnServer, Failure> {
        let failed =
            |e: &dyn std::fmt::Display| Failure::machine(format!("the built-in server did not start: {e}"));
        let program = std::env::current_exe().map_err(|e| failed(&e))?;
        let child = Command::new(program)
            .args(["serve", "http", "--listen", "127.0.0.1:0", "--until-stdin-ends"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A separate process group: Ctrl-C must not end the server before this process has drained its connections.
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
        // The server ends at the end of its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
