//! A program with an API over HTTP, and curl.

use std::process::Command;

use serde_json::Value;

use crate::{
    program::{Program, until},
    server::program,
};

/// A program that serves an API.
pub(crate) struct Api {
    pub(crate) program: Program,
    pub(crate) url: String,
}

impl Api {
    /// Starts it; a line of its output ends with these words and the URL.
    pub(crate) fn from(command: Command, before: &str) -> Api {
        let program = Program::from(command);
        let mut url = None;
        until("the API", || {
            let said = program.stdout();
            let ended = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let mut urls = ended.filter_map(|line| Some(line.trim_end().rsplit_once(before)?.1.to_owned()));
            url = urls.find(|url| url.starts_with("http://"));
            url.is_some()
        });
        Api { program, url: url.unwrap().trim_end_matches('/').to_owned() }
    }

    /// A request for a path, with more arguments for curl.
    pub(crate) fn curl(&self, path: &str, args: &[&str]) -> Response {
        run(program("curl", &[]), &[&[format!("{}{path}", self.url).as_str()], args].concat())
    }
}

/// What curl got.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Of a list of paths, the first and how many.
    pub(crate) fn paths(&self) -> (String, usize) {
        let paths = self.json();
        let paths = paths.as_array().unwrap();
        (paths.first().map_or(String::new(), |path| path.as_str().unwrap().to_owned()), paths.len())
    }
}

/// Runs a curl with these arguments.
pub(crate) fn run(mut command: Command, args: &[&str]) -> Response {
    command.args(["-sS", "-i", "-m20"]).args(args);
    let ended = Program::from(command).end();
    assert_eq!(ended.status, Some(0), "{args:?}: {ended:?}");
    let (head, body) = ended.stdout.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_lowercase(), body: body.to_owned() }
}
