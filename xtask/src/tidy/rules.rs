//! The rules for a single file: its name, size, documentation examples, paths and forbidden code.

use super::code::{code_only, has_word, is_name, without_tests};

/// All violations in one file; `path` is relative to the root, with `/`.
pub(crate) fn breaches(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    breaches.extend(name(path));
    breaches.extend(machine_paths(path, text));
    if path.ends_with(".rs") {
        breaches.extend(size(path, text));
        breaches.extend(examples(path, text));
        let code = code_only(text);
        for ban in BANS {
            breaches.extend(ban.breaches(path, &code));
        }
    }
    breaches
}

/// File and folder names that say nothing about the content.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "helper", "helpers", "common", "types", "misc", "base", "manager", "mod"];

fn name(path: &str) -> Option<String> {
    let stem = |part: &'_ str| part.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let empty = path.split('/').find(|part| EMPTY_NAMES.contains(&stem(part).as_str()))?;
    Some(format!("{path}: a name that says nothing, use the noun that it defines: {empty}"))
}

const LINES: usize = 500;

fn size(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LINES).then(|| format!("{path}: more than {LINES} lines, split it: {lines}"))
}

/// Code examples in docstrings: rustdoc would run them as tests, but `cargo xtask test` does not run doctests, as there are none.
fn examples(path: &str, text: &str) -> Vec<String> {
    let doc = |line: &'_ str| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(|line| line.trim().to_owned())
    };
    let fences = text.lines().enumerate().filter_map(|(i, line)| Some((i + 1, doc(line)?)));
    let fences = fences.filter(|(_, line)| line.starts_with("```"));
    // Every second fence begins a block.
    let code = fences.step_by(2).filter(|(_, fence)| fence == "```" || fence.starts_with("```rust"));
    code.map(|(line, _)| format!("{path}:{line}: an example that nobody runs, write a test, or ```text"))
        .collect()
}

/// Directories in which developers and machines keep checkouts; concatenated, so that this file does not contain them.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let absolute = |line: &str, part: &str| {
        // After a name, it is the middle of another path or address: `docs/…`, `example.com/…`.
        line.match_indices(part).any(|(at, _)| !line[..at].bytes().last().is_some_and(is_name))
    };
    let lines = text.lines().enumerate();
    let found =
        lines.filter_map(|(i, line)| Some((i + 1, MACHINE_PATHS.iter().find(|p| absolute(line, p))?)));
    found
        .map(|(line, part)| format!("{path}:{line}: a path of one machine, make it relative: {part}"))
        .collect()
}

/// Code that is allowed in few places.
struct Ban {
    words: &'static [&'static str],
    /// Prefixes of the paths where it is allowed.
    places: &'static [&'static str],
    /// Whether it is allowed in all tests.
    free_in_tests: bool,
    fix: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        words: &["unsafe"],
        // The test file contains the counting allocator: `GlobalAlloc` is an unsafe trait.
        places: &["crates/net/", "crates/run/tests/allocations.rs"],
        free_in_tests: false,
        fix: "only net may, each block with its invariant",
    },
    Ban {
        words: &["Instant::now", "SystemTime::now"],
        places: &["crates/units/src/clock.rs", "xtask/", "bench/"],
        free_in_tests: true,
        fix: "take `now` as an argument, from units::Clock",
    },
    Ban {
        words: &["units::date()", "since_1970()", "modified()"],
        // Records contain a date and servers report one; the others sort or remove old files.
        places: &[
            "crates/units/",
            "crates/cli/",
            "crates/lab/",
            "crates/view/src/ui.rs",
            "crates/serve/src/threads.rs",
            "crates/run/src/workers/threads.rs",
            "crates/fleet/src/outbox/spool.rs",
            "xtask/",
            "bench/",
        ],
        free_in_tests: true,
        fix: "the date may be set at any time, decide by units::Clock",
    },
    Ban {
        words: &[
            "counts.due +=",
            "counts.sent +=",
            "counts.answered +=",
            "counts.failed_requests +=",
            "counts.unanswered +=",
            "counts.missed +=",
            "counts.withdrawn +=",
            "counts.revoked +=",
            "counts.dialled +=",
            "counts.opened +=",
            "counts.redialled +=",
            "counts.failed +=",
            "counts.dropped +=",
            "counts.closed +=",
            "counts.finished +=",
        ],
        // The clients of the API count in their own records.
        places: &["crates/samples/src/books.rs", "crates/clients/", "crates/fleet/src/agent/counting.rs"],
        free_in_tests: true,
        fix: "requests, dials and connections are counted by the transitions of samples::books",
    },
    Ban {
        words: &["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "rustix::net"],
        places: &[
            "crates/net/",
            "crates/exporters/",
            "crates/webserver/",
            "crates/lab/src/process.rs",
            "crates/host/src/remote",
            "crates/fleet/",
            // Programs that throng is compared with.
            "bench/",
        ],
        free_in_tests: true,
        fix: "sockets are opened in net, webserver, exporters, host/remote and fleet",
    },
];

impl Ban {
    fn breaches(&self, path: &str, code: &str) -> Vec<String> {
        let tests = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        if self.places.iter().any(|place| path.starts_with(place)) || (tests && self.free_in_tests) {
            return Vec::new();
        }
        let code = if self.free_in_tests { without_tests(code) } else { code };
        let lines = code.lines().enumerate();
        let found =
            lines.filter_map(|(i, line)| Some((i + 1, self.words.iter().find(|w| has_word(line, w))?)));
        found.map(|(line, word)| format!("{path}:{line}: not here, {}: {word}", self.fix)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the violations in a file, without the path at their beginning.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = breaches(path, text);
        let found: Vec<&str> = found.iter().map(|b| b.strip_prefix(path).expect("path first")).collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn names_say_what_is_inside() {
        let refused = |name| format!(": a name that says nothing, use the noun that it defines: {name}");
        for path in
            ["crates/net/src/slab.rs", "web/model/common_names.ts", "crates/units/src/module.rs", "model/a"]
        {
            check(path, "", &[]);
        }
        check("crates/net/src/utils.rs", "", &[&refused("utils.rs")]);
        check("crates/net/src/io/mod.rs", "", &[&refused("mod.rs")]);
        check("crates/cli/tests/common/start.rs", "", &[&refused("common")]);
        check("web/Types.d.ts", "", &[&refused("Types.d.ts")]);
        check("bench/helpers.sh", "", &[&refused("helpers.sh")]);
    }

    #[test]
    fn files_have_an_end() {
        check("crates/net/src/slab.rs", &"//\n".repeat(500), &[]);
        check("crates/net/src/slab.rs", &"//\n".repeat(501), &[": more than 500 lines, split it: 501"]);
        check("docs/guide.md", &"text\n".repeat(501), &[]);
    }

    #[test]
    fn an_example_is_a_test_or_no_code() {
        let fix = "an example that nobody runs, write a test, or ```text";
        let text = "//! ```text\n//! a\n//! ```\n\n    /// ```\n    /// f();\n    /// ```\n";
        check("crates/net/src/slab.rs", text, &[&format!(":5: {fix}")]);
        check("crates/net/src/slab.rs", "/// ```rust,ignore\n/// ```\n", &[&format!(":1: {fix}")]);
    }

    #[test]
    fn only_net_is_unsafe() {
        let text = "fn f() {}\nfn g() { unsafe { h() } }\n";
        let breach = ":2: not here, only net may, each block with its invariant: unsafe";
        check("crates/wire/src/http1.rs", text, &[breach]);
        check("crates/wire/tests/all.rs", text, &[breach]);
        check(
            "crates/wire/src/lib.rs",
            &format!("#[cfg(test)] mod tests {{\n{text}}}"),
            &[&breach.replace('2', "3")],
        );
        check("crates/net/src/io/uring.rs", text, &[]);
        check("crates/run/tests/allocations.rs", text, &[]);
        for harmless in
            ["// unsafe", "/// unsafe", "\"unsafe\"", "#![forbid(unsafe_code)]", "r#\"unsafe\"#", "my_unsafe"]
        {
            check("crates/wire/src/http1.rs", harmless, &[]);
        }
    }

    #[test]
    fn the_clock_is_read_in_one_place() {
        let fix = "not here, take `now` as an argument, from units::Clock";
        let text = "let a = Instant::now();\nlet b: Instant = a;\nlet c = std::time::SystemTime::now();\n";
        let both = [&*format!(":1: {fix}: Instant::now"), &*format!(":3: {fix}: SystemTime::now")];
        check("crates/engine/src/shard.rs", text, &both);
        check("crates/units/src/rate.rs", text, &both);
        for path in [
            "crates/units/src/clock.rs",
            "xtask/src/test.rs",
            "crates/run/tests/million.rs",
            "crates/run/src/judge/tests.rs",
        ] {
            check(path, text, &[]);
        }
        check(
            "crates/run/src/judge.rs",
            &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{text}}}\n"),
            &[],
        );
        check(
            "crates/run/src/judge.rs",
            &format!("#[cfg(test)]\nmod fake;\n{}", "Instant::now()"),
            &[&format!(":3: {fix}: Instant::now")],
        );
    }

    #[test]
    fn nothing_is_decided_by_the_date() {
        let fix = "not here, the date may be set at any time, decide by units::Clock";
        let text = "let a = units::date();\nlet b = file.modified();\n";
        let both = [&*format!(":1: {fix}: units::date()"), &*format!(":2: {fix}: modified()")];
        check("crates/fleet/src/coordinator.rs", text, &both);
        check("crates/fleet/src/outbox/spool.rs", text, &[]);
        check("crates/fleet/src/outbox/tests.rs", text, &[]);
    }

    #[test]
    fn sockets_are_opened_in_few_places() {
        let fix = "not here, sockets are opened in net, webserver, exporters, host/remote and fleet";
        let text = "use std::net::{SocketAddr, TcpStream};\nuse rustix::net::bind;\n";
        let both = [&*format!(":1: {fix}: TcpStream"), &*format!(":2: {fix}: rustix::net")];
        check("crates/cli/src/main.rs", text, &both);
        check("crates/view/src/terminal.rs", text, &both);
        check("crates/host/src/ports.rs", text, &both);
        for path in [
            "crates/net/src/io/epoll.rs",
            "crates/webserver/src/lib.rs",
            "crates/exporters/src/influx.rs",
            "crates/host/src/remote.rs",
            "crates/fleet/src/agent.rs",
            "crates/cli/tests/black_box.rs",
        ] {
            check(path, text, &[]);
        }
        check("crates/cli/src/main.rs", "use std::net::{IpAddr, SocketAddr};\n", &[]);
    }

    #[test]
    fn no_file_knows_a_machine() {
        for folder in MACHINE_PATHS {
            let breach = format!(":2: a path of one machine, make it relative: {folder}");
            check("README.md", &format!("a\ncd {folder}me/throng\n"), &[&breach]);
            check("crates/cli/src/main.rs", &format!("\n// see {folder}x\n"), &[&breach]);
            check(".ci/run", &format!("\n\"{folder}x\""), &[&breach]);
            check("README.md", &format!("docs{folder}x, example.com{folder}\n"), &[]);
        }
        check("README.md", "target/release/throng, /proc/self, /usr/sbin/nginx\n", &[]);
    }
}
