//! io_uring or epoll: which is chosen, what is reported, and how many connections the open-file limit allows.

use std::process::Command;

use crate::{
    caller::Caller,
    program::{Ended, Program, Serving, throng_under},
    summary::Summary,
};

/// Numbers of system calls; those of 2019 and later are the same on every machine.
const IO_URING_SETUP: u32 = 425;
const CLOSE_RANGE: u32 = 436;
const EPOLL_PWAIT2: u32 = 441;
const UNSHARE: u32 = if cfg!(target_arch = "x86_64") { 272 } else { 97 };

/// Limits on a program: open files, and system calls that are refused.
#[derive(Clone, Copy)]
pub(crate) struct Walls {
    files: u32,
    refused: &'static [u32],
}

const SANDBOX: Walls = Walls { files: 1024, refused: &[IO_URING_SETUP] };

impl Walls {
    /// All threads of a program share one table of this many open files.
    pub(crate) const fn of_one_table(files: u32) -> Walls {
        Walls { files, refused: &[IO_URING_SETUP, UNSHARE, CLOSE_RANGE] }
    }

    fn around(self, args: &[&str]) -> Command {
        let limit = format!("ulimit -n {}; exec \"$@\"", self.files);
        let numbers = self.refused.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let refuse = ["python3", "-c", include_str!("refuse.py"), &numbers];
        let refuse = if self.refused.is_empty() { &[][..] } else { &refuse };
        throng_under(&[&["sh", "-c", &limit, "sh"], refuse].concat(), args)
    }

    pub(crate) fn serve(self, args: &[&str]) -> Serving {
        Serving::from(self.around(&["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends"]), args)
    }

    fn run(self, target: &str, args: &[&str]) -> Ended {
        Program::from(self.around(&[&["run", target, "--json", "-"], args].concat())).end()
    }
}

fn summary(ended: &Ended) -> Summary {
    Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:#?}")))
}

/// Both ends hold this many at once, none is lost, and each gets a response.
fn check_held(walls: Walls, args: &[&str], connections: u64) -> (Ended, Summary) {
    let args = [args, &["--threads", "2"]].concat();
    let server = walls.serve(&args);
    let n = connections.to_string();
    let load = ["-c", &n, "-d", "500ms", "--think", "100ms..300ms"];
    let ended = walls.run(&server.url("/?length=7"), &[&load[..], &args].concat());
    let s = summary(&ended);
    ended.assert_status(0);
    assert_eq!(s.text("io"), "epoll");
    assert!(s.faults().is_empty(), "{ended:#?}");
    for (path, count) in
        [("wanted", connections), ("held", connections), ("peak", connections), ("dropped", 0)]
    {
        assert_eq!(s.count(&format!("connections.{path}")), count, "{path}: {}", ended.stderr);
    }
    assert!(s.count("requests.answered") >= connections, "each is answered at least once: {}", ended.stderr);
    let stats: serde_json::Value =
        serde_json::from_str(Caller::dial(server.address).get("/stats").text()).unwrap();
    assert_eq!((&stats["peak"], &stats["errors"]), (&connections.into(), &0.into()), "{stats}");
    assert!(!server.program.stderr().contains("failed"), "{}", server.program.stderr());
    (ended, s)
}

#[test]
fn epoll_holds_more_than_the_limit_of_open_files() {
    let walls = Walls { files: 256, refused: &[] };
    let (ended, s) = check_held(walls, &["--io", "epoll"], 1_000);
    // 240 of a table are connections.
    assert_eq!(s.count("threads"), 5, "more threads than asked for");
    assert!(!ended.stderr.contains("io_uring"), "asked for by name: nothing to explain: {}", ended.stderr);
}

#[test]
fn a_sandbox_without_io_uring_is_reported_and_held() {
    let output = "throng: io_uring is not available (Operation not permitted (os error 1)), using epoll\n";
    // What Docker's default profile refuses; and an old one, which has neither close_range nor epoll_pwait2.
    let profiles: [&[u32]; 2] = [&[IO_URING_SETUP, UNSHARE], &[IO_URING_SETUP, CLOSE_RANGE, EPOLL_PWAIT2]];
    for refused in profiles {
        let (ended, s) = check_held(Walls { files: 256, refused }, &[], 600);
        assert_eq!(ended.stderr.matches(output).count(), 1, "{}", ended.stderr);
        assert_eq!(s.count("threads"), 3, "{}", ended.stderr);
    }
    let server = SANDBOX.serve(&[]);
    assert_eq!(server.program.stderr(), output);
    let ended = SANDBOX.run(&server.url("/"), &["-c", "20", "-n", "1000", "--max-lag", "10s"]);
    let s = summary(&ended);
    assert_eq!((ended.status, s.text("verdict"), s.text("io")), (Some(0), "pass", "epoll"), "{ended:#?}");
    assert!(ended.stderr.starts_with(output), "{}", ended.stderr);
    assert!(server.program.stdout().ends_with(" threads, epoll\n"), "{}", server.program.stdout());
}

#[test]
fn one_table_for_all_threads_has_its_limit() {
    let walls = Walls::of_one_table(256);
    let (_, s) = check_held(walls, &[], 150);
    assert_eq!(s.count("threads"), 2);
    let ended = walls.run("tcp://127.0.0.1:9", &["-c", "300"]);
    assert_eq!(ended.status, Some(3), "{ended:#?}");
    let parts = ["open files: 256 allowed, ", "ulimit -n ", "close_range"];
    assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
}

#[test]
fn io_uring_by_name_is_refused_with_the_fix() {
    for verb in ["run", "serve"] {
        let args: &[&str] =
            if verb == "run" { &["run", "tcp://127.0.0.1:9"] } else { &["serve", "--listen", "127.0.0.1:0"] };
        let ended = Program::from(SANDBOX.around(&[args, &["--io", "uring"]].concat())).end();
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""), "{ended:#?}");
        let parts = ["throng: io_uring: not available (Operation not permitted", "--io epoll"];
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    }
}

#[test]
fn epoll_serves_as_io_uring_does() {
    let server = Serving::start(&["--io", "epoll", "--threads", "1"]);
    let line = format!("listening on http://{}/ with 1 thread, epoll\n", server.address);
    assert_eq!((server.program.stdout(), server.program.stderr()), (line, String::new()));
    let mut caller = Caller::dial(server.address);
    for (path, status, length) in [
        ("/", 200, 12),
        ("/?length=10240", 200, 10_240),
        ("/delay?for=20ms&length=5", 200, 5),
        ("/nothing", 404, 0),
    ] {
        let response = caller.get(path);
        assert_eq!((response.status, response.body.len()), (status, length), "{path}");
    }
    caller.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(caller.response().status, 200);
    assert!(caller.is_over());
    server.program.signal(crate::program::Signal::TERM);
    assert_eq!(server.program.end().status, Some(0));
}
