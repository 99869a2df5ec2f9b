//! The guides: each command is run as written, against a third-party server, ends as the guide says, and prints the lines that the
//! guide shows. Only addresses, times and sizes may differ.

use std::{fs, net::SocketAddr, path::Path, path::PathBuf};

use crate::{
    nginx::nginx,
    program::{ASKS, DATA, Ended, Program, throng},
    server::{Server, folder, program, source},
};

/// What would take longer than a test may, or never ends; other tests run both.
const LEFT_OUT: &[&str] = &["throng demo", "throng serve --listen 127.0.0.1:8000"];
/// Shorter and smaller than in the guides.
const SMALLER: &[(&str, &str)] = &[
    ("-d 2s", "-d 1s"),
    ("-d 10s", "-d 1s"),
    ("-d 20s", "-d 1s"),
    ("-d 30s", "-d 1s"),
    ("-d 10m", "-d 1s"),
    ("--ramp 5s", "--ramp 1s"),
    ("--max 2k", "--max 50"),
    ("--max 500", "--max 100"),
    ("duration = \"10s\"", "duration = \"1s\""),
];

/// A guide, in a folder of its own.
struct Guide {
    text: String,
    folder: PathBuf,
    /// Instead of the addresses in the text.
    places: Vec<(&'static str, String)>,
}

/// A command, and what the guide shows of its output.
#[derive(Debug, PartialEq)]
struct Shown {
    command: String,
    output: Vec<String>,
}

impl Guide {
    fn open(name: &str, places: &[(&'static str, SocketAddr)]) -> Guide {
        let text = fs::read_to_string(source(&format!("../../../../docs/guide/{name}.md"))).unwrap();
        let places = places.iter().map(|(place, address)| (*place, address.to_string())).collect();
        Guide { text, folder: folder(&format!("guide-{name}")), places }
    }

    /// A text of the guide as it is for this test.
    fn here(&self, text: &str) -> String {
        let places = self.places.iter().map(|(place, address)| (*place, &**address));
        SMALLER.iter().copied().chain(places).fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// The blocks of this language.
    fn blocks(&self, language: &str) -> Vec<&str> {
        let fence = format!("\n```{language}\n");
        self.text.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
    }

    /// Runs a command line as a shell would, in the guide's folder.
    fn run_once(&self, command: &str) -> Ended {
        // With the priority that other tests give it.
        let under_test = throng(&["run", ASKS]);
        let args = under_test.get_args().map(|arg| arg.to_str().unwrap());
        let mut words: Vec<&str> =
            [under_test.get_program().to_str().unwrap()].into_iter().chain(args).collect();
        words.pop();
        let binary = Path::new(words.pop().unwrap()).parent().unwrap();
        let line = self.here(command);
        words.extend(["sh", "-c", &line]);
        let mut shell = program(words[0], &words[1..]);
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).env(DATA, self.folder.join("data")).env("GITHUB_STEP_SUMMARY", "job.md");
        shell.current_dir(&self.folder);
        Program::from(shell).end()
    }

    /// Runs one of its commands; again where throng was late, or stopped: then it judges nothing, and says so.
    fn run(&self, command: &str) -> Ended {
        let excuses = ["throng was late", "throng itself was stopped"];
        let is_late = |ended: &Ended| {
            let said = ended.stdout.clone() + &ended.stderr;
            ended.status == Some(4) && excuses.iter().any(|excuse| said.contains(excuse))
        };
        let mut ended = self.run_once(command);
        for _ in 0..AGAIN {
            if !is_late(&ended) {
                break;
            }
            ended = self.run_once(command);
        }
        ended
    }

    /// Runs all of its commands.
    fn check(&self) {
        let shown: Vec<Shown> = self.blocks("console").into_iter().flat_map(shown).collect();
        assert!(!shown.is_empty(), "a guide has commands");
        for Shown { command, output } in shown {
            if LEFT_OUT.contains(&&*command) {
                continue;
            }
            let ended = self.run(&command);
            assert_eq!(ended.status, Some(0), "{command}: {ended:#?}");
            let missing: Vec<_> = output.iter().filter(|line| !has(&ended.stdout, line)).collect();
            assert!(missing.is_empty(), "{command}: not printed: {missing:#?}\n{}", ended.stdout);
        }
    }
}

/// On a busy machine throng may be late several times in a row.
const AGAIN: usize = 4;

/// Each command of a console block, behind `$ `, with the lines below it.
fn shown(block: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown { command: command.to_owned(), output: vec![] }),
            (None, Some(last)) => last.output.push(line.to_owned()),
            (None, None) => panic!("output before a command: {line}"),
        }
    }
    shown
}

/// Whether an output has a line like this one: the same row of the summary, or the same words with other numbers.
fn has(output: &str, line: &str) -> bool {
    let key = key(line);
    output.lines().any(|own| self::key(own).starts_with(&key))
}

/// What does not depend on what was measured.
fn key(line: &str) -> String {
    match line.strip_prefix("  ") {
        // A threshold and whether it was met, not by how much.
        Some(row) if row.starts_with("threshold") => {
            row.rsplit_once(", ").map_or(row, |(row, _)| row).to_owned()
        }
        Some(row) => format!("  {}  ", row.split("  ").next().unwrap_or_default()),
        None => {
            let words = line.split(' ').map(|word| match word.starts_with(|c: char| c.is_ascii_digit()) {
                true => "N",
                false => word,
            });
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

fn page() -> Server {
    nginx("guide", "keepalive_requests 1000000; location / { return 200 'Hello World!'; }")
}

#[test]
fn five_minutes() {
    let server = page();
    let guide = Guide::open("five-minutes", &[("localhost:8000", server.address)]);
    guide.check();
    for report in ["run.html", "latest.html"] {
        assert!(guide.folder.join(report).exists(), "{report}");
    }
}

#[test]
fn the_servers_capacity() {
    let server = page();
    Guide::open("capacity", &[("localhost:8000", server.address)]).check();
}

#[test]
fn the_report() {
    let server = page();
    let guide = Guide::open("report", &[("localhost:8000", server.address)]);
    guide.check();
    let page = fs::read_to_string(guide.folder.join("run.html")).unwrap();
    assert!(page.contains("<script id=\"data\""), "the page has its data");
}

#[test]
fn other_tools() {
    let server = page();
    Guide::open("coming-from", &[("localhost:8000", server.address)]).check();
}

/// The flags in the second column of the tables of other tools, each once.
fn translations(text: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| wrk | "));
    let columns = rows.filter_map(|row| row.split(" | ").nth(1));
    let code = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    let words = code.flat_map(str::split_whitespace);
    let mut flags: Vec<String> = words.filter(|word| word.starts_with('-')).map(str::to_owned).collect();
    flags.sort();
    flags.dedup();
    flags
}

#[test]
fn flags_that_other_tools_words_become_exist() {
    let guide = Guide::open("coming-from", &[]);
    let flags = translations(&guide.text);
    assert!(flags.len() > 15 && flags.contains(&"--arrive".to_owned()), "{flags:?}");
    let help = Program::start(&["run", "--help"]).end().stdout;
    let has = |flag: &str| help.split([' ', '\n', ',']).any(|word| word == flag);
    let missing = flags.iter().filter(|flag| !has(flag));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_websocket_server() {
    let guide = Guide::open("websocket", &[]);
    let modules = source("node/node_modules");
    let script = guide.folder.join("server.js");
    fs::write(&script, guide.blocks("js")[0]).unwrap();
    let mut node = program("node", &[script.to_str().unwrap()]);
    node.env("NODE_PATH", modules).env("PORT", "0");
    let server = Server::announcing("listening on ", node);
    let guide = Guide { places: vec![("localhost:3000", server.address.to_string())], ..guide };
    fs::write(guide.folder.join("chat.toml"), guide.here(guide.blocks("toml")[0])).unwrap();
    guide.check();
}

#[test]
fn a_gate_in_ci() {
    let server = page();
    let guide = Guide::open("ci", &[("localhost:8000", server.address), ("service:8000", server.address)]);
    guide.check();
    let read = |name: &str| fs::read_to_string(guide.folder.join(name)).unwrap();
    let is_judged = |text: &str| text.contains("errors &lt; 1%") && text.contains(r#"tests="3""#);
    assert!(is_judged(&read("junit.xml")), "{}", read("junit.xml"));
    // After those of runs that were repeated.
    let has_passed = |text: String| {
        let last = text.rsplit("## Load test ").next().unwrap_or_default();
        assert!(text.starts_with("## Load test ") && last.starts_with("passed: "), "{text}");
    };
    has_passed(read("summary.md"));
    let jobs: Vec<String> = guide.blocks("yaml").into_iter().flat_map(commands).collect();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    for job in jobs {
        fs::remove_file(guide.folder.join("junit.xml")).unwrap();
        guide.run(&job).assert_status(0);
        assert!(is_judged(&read("junit.xml")), "{job}: {}", read("junit.xml"));
    }
    has_passed(read("job.md"));
}

/// The lines of a job's file that start throng, each with those that continue it.
fn commands(yaml: &str) -> Vec<String> {
    let joined = yaml.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.filter(|line| line.starts_with("throng ")).map(str::to_owned).collect()
}

#[test]
fn a_shown_line_is_found_by_its_words() {
    let output = "  latency       p50 1.0 ms\n  threshold     errors < 1%: met, 0 %\npass: all 1,000 connections held, no faults\n";
    let check = |line: &str, expected: bool| assert_eq!(has(output, line), expected, "{line}");
    check("  latency       p50 9 µs", true);
    check("  late          p50 9 µs", false);
    check("  threshold     errors < 1%: met, 0.2 %", true);
    check("  threshold     errors < 1%: failed, 2 %", false);
    check("  threshold     errors < 2%: met, 0 %", false);
    check("pass: all 1,000 connections held", true);
    check("pass: all 100 connections held, no faults, more", false);
    check("fail: ", false);
    let expected = Shown { command: "a b".to_owned(), output: vec!["c".to_owned()] };
    assert_eq!(shown("$ a b\nc"), [expected]);
}
