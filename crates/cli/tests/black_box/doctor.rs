//! What doctor finds, fixes and undoes. Changes are made only in a network namespace that the test made itself;
//! without root those tests are skipped, with a message.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::getuid;
use serde_json::Value;

use crate::{
    causes::python,
    program::{Ended, Program, Serving, file, skip, throng},
    usage::check,
};

const URL: &str = "http://127.0.0.1:9/";

/// The findings of `throng doctor --json`.
fn findings(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
}

/// One of them: severity, value and fix.
fn one<'a>(report: &'a Value, what: &str) -> [&'a str; 3] {
    let all = report["findings"].as_array().unwrap();
    let found = all.iter().find(|f| f["what"] == what).unwrap_or_else(|| panic!("no {what}: {report}"));
    ["severity", "value", "cure"].map(|name| found[name].as_str().unwrap())
}

#[test]
fn usage_errors_are_named_all_at_once() {
    check(
        &["doctor", "gopher://x/", "-c", "many", "--sources", "here"],
        2,
        &["target: \"gopher\"", "--connections: \"many\"", "--sources: \"here\""],
    );
    check(&["doctor", "--undo", "--fix"], 2, &["--undo", "--fix"]);
    check(&["doctor", "--undo", URL], 2, &["--undo", "TARGET"]);
}

#[test]
fn the_line_of_a_run_is_taken_as_it_is() {
    let line = ["https://nowhere.example/", "-c", "5", "-k", "--connect-to", "127.0.0.1:9"];
    let outputs = ["-d", "5s", "--threshold", "errors < 1%", "--live", "off", "--observe", "nats:far"];
    let ended = Program::start(&[&["doctor"][..], &line, &outputs].concat()).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.lines().last().unwrap_or_default().starts_with("5 connections fit"), "{ended:?}");
    // As many as are open at once, with a dial and a response of a second each.
    let arrivals = Program::start(&["doctor", URL, "--arrive", "2/s", "-d", "9s", "--timeout", "1s"]).end();
    assert!(arrivals.stdout.ends_with("5 connections fit\n"), "{arrivals:?}");
    check(&["doctor", URL, "--rate", "many"], 2, &["--rate: \"many\""]);
}

#[test]
fn fitting_and_exceeding_plans() {
    let small = Program::start(&["doctor", "-c", "5"]).end();
    assert_eq!((small.status, small.stderr.as_str()), (Some(0), ""), "{small:?}");
    let last = small.stdout.lines().last().unwrap();
    assert!(last.starts_with("5 connections fit"), "{last}");
    assert!(small.stdout.lines().any(|line| line.starts_with("ok    memory ")), "{}", small.stdout);

    let large = Program::start(&["doctor", "-c", "4000m"]).end();
    assert_eq!(large.status, Some(3), "{large:?}");
    let last = large.stdout.lines().last().unwrap();
    let beginning = "4,000,000,000 connections do not fit: this machine can hold about ";
    assert!(last.starts_with(beginning) && last.contains(", limited by "), "{last}");
    assert!(large.stdout.lines().any(|line| line.starts_with("no    memory ")), "{}", large.stdout);
    // run refuses with the same text.
    let run = Program::start(&["run", URL, "-c", "4000m"]).end();
    let doctor = Program::start(&["doctor", URL, "-c", "4000m", "--json"]).end();
    let report = findings(&doctor);
    let [severity, _, cure] = one(&report, "memory");
    assert_eq!((severity, report["verdict"].as_str()), ("refuse", Some("refuse")), "{report}");
    let command = cure.split_once(" -c ").unwrap().0;
    assert!(run.stderr.contains(&format!("{command} -c ")), "{cure}: {}", run.stderr);
}

#[test]
fn what_tls_and_http2_take_is_reported() {
    let ask = |target: &str, args: &[&str]| {
        let ended = Program::start(&[&["doctor", target, "-c", "1000", "--json"], args].concat()).end();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        findings(&ended)
    };
    let memory = |report: &Value| {
        let all = report["findings"].as_array().unwrap();
        all.iter().find(|f| f["what"] == "memory").unwrap()["needed"].as_str().unwrap().to_owned()
    };
    let plain = ask(URL, &["--ramp", "1m/s"]);
    assert!(memory(&plain).ends_with("(9,056 bytes per connection, both ends here)"), "{plain}");
    assert!(!plain.to_string().contains("TLS"), "{plain}");
    let both = ask("https://127.0.0.1:9/", &["--http2"]);
    let needed = "(10,080 bytes per connection, both ends here, TLS 512 of them, HTTP/2 512 of them)";
    assert!(memory(&both).ends_with(needed), "{both}");
    assert_eq!(one(&both, "TLS handshakes")[0], "ok");
    // No processors of today do a million in a second.
    let fast = ask("https://127.0.0.1:9/", &["--ramp", "1m/s"]);
    let [severity, _, cure] = one(&fast, "TLS handshakes");
    assert!(severity == "warn" && cure.contains("-c 1000 --ramp "), "{fast}");
}

#[test]
fn a_scenario_is_checked_with_what_its_connections_keep() {
    const SCENARIO: &str = r#"
target = "ws://127.0.0.1:9/"
[[population]]
name = "members"
connections = 300
expect = { number = "json:/n" }
[[population.step]]
request = "POST /login"
capture = { token = { json = "/t" } }
[[population.step]]
upgrade = "/chat?token={var token}"
[[population]]
name = "guests"
connections = 100
"#;
    let path = file("doctor.toml");
    fs::write(&path, SCENARIO).unwrap();
    let ended = Program::start(&["doctor", path.to_str().unwrap(), "--json"]).end();
    let report = findings(&ended);
    assert_eq!((report["connections"].as_u64(), ended.status), (Some(400), Some(0)), "{report}");
    let all = report["findings"].as_array().unwrap();
    let needed = all.iter().find(|f| f["what"] == "memory").unwrap()["needed"].as_str().unwrap();
    // Three in four: 56 bytes, a value of 256 with its length of 2; and twice 16 and 40.
    let each = "(9,376 bytes per connection, both ends here, captured values 236 of them, messages of the server 84 of them)";
    assert!(needed.ends_with(each), "{needed}");
    check(&["doctor", "no-such.toml"], 2, &["target: the scenario \"no-such.toml\" cannot be read"]);
}

#[test]
fn without_a_number_the_last_line_has_it() {
    let ended = Program::start(&["doctor"]).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    let number = last.strip_prefix("this machine can hold about ").and_then(|rest| rest.split_once(' '));
    let number: u64 = number.unwrap_or_else(|| panic!("{last}")).0.replace(',', "").parse().unwrap();
    assert!(number > 1_000 && last.contains(" connections, limited by "), "{last}");
    // It does not refuse what it reports as possible. Half of it: other programs take memory meanwhile.
    let half = Program::start(&["doctor", "-c", &(number / 2).to_string()]).end();
    assert_eq!(half.status, Some(0), "{half:?}");
}

#[test]
fn the_target_on_this_machine_is_checked() {
    let server = Serving::start(&[]);
    let ended = Program::start(&["doctor", &server.url("/"), "-c", "5", "--json"]).end();
    let report = findings(&ended);
    assert_eq!(report["target"], server.url("/"));
    let [severity, files, _] = one(&report, "target's open files");
    assert_eq!(severity, "ok", "{files}");
    let process = format!("throng ({}): ", server.program.pid());
    assert!(files.starts_with(&process) && files.ends_with("exceeded with tables of io_uring"), "{files}");
    let [severity, backlog, _] = one(&report, "target's backlog");
    assert!(
        severity == "ok" && backlog.starts_with("at most ") && backlog.ends_with(" waiting"),
        "{backlog}"
    );

    let few = python(&["prlimit", "--nofile=150"], ["512", "0", "0", "0"]);
    let ended = Program::start(&["doctor", &few.url("/")]).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    let room = last.strip_prefix("as set up, about 14").and_then(|rest| rest.split_once(' '));
    let (digit, rest) = room.unwrap_or_else(|| panic!("{last}"));
    assert!(digit.parse::<u8>().is_ok_and(|digit| digit < 10), "150 but a few that are open: {last}");
    let limited = "connections fit, limited by the target's open files; with the fixes above, about ";
    assert!(rest.starts_with(limited), "{last}");

    let nobody = Program::start(&["doctor", URL, "-c", "5"]).end();
    assert_eq!(nobody.status, Some(0), "{nobody:?}");
    assert!(nobody.stdout.contains("no listener on this machine: not started yet"), "{}", nobody.stdout);
}

/// A network namespace for one test, and a place for doctor's state file. Removed when dropped.
struct Namespace {
    holder: std::process::Child,
    state: PathBuf,
}

impl Namespace {
    /// `None`, with a message, without the rights.
    fn new(test: &str) -> Option<Namespace> {
        if !getuid().is_root() {
            skip(format_args!("{test}: it needs root, to make a network namespace of its own"));
            return None;
        }
        let state = file(&format!("state-{test}"));
        let _ = fs::remove_dir_all(&state);
        // Ends with its input, also when this test is killed.
        let mut holder = Command::new("unshare");
        holder.args(["-n", "sh", "-c", "ip link set lo up && echo up && exec cat"]);
        holder.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        let mut up = [0; 3];
        let output = std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut up);
        if output.is_err() {
            skip(format_args!("{test}: no network namespace can be made here"));
            let _ = holder.wait();
            return None;
        }
        Some(Namespace { holder, state })
    }

    /// A command that will run in it.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net=/proc/{}/ns/net", self.holder.id())).arg("--");
        inside.arg(command.get_program()).args(command.get_args());
        inside.env("XDG_STATE_HOME", &self.state).stdin(std::process::Stdio::null());
        inside
    }

    fn throng(&self, args: &[&str]) -> Ended {
        Program::from(self.inside(&throng(args))).end()
    }

    fn shell(&self, script: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let ended = Program::from(self.inside(&shell)).end();
        assert_eq!(ended.status, Some(0), "{script}: {ended:?}");
        ended.stdout.trim().to_owned()
    }

    fn settings(&self) -> String {
        self.shell("cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range")
    }

    fn note(&self) -> PathBuf {
        self.state.join("throng/doctor.state")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        let _ = fs::remove_dir_all(&self.state);
    }
}

#[test]
fn settings_are_fixed_and_undone() {
    let Some(namespace) = Namespace::new("settings_are_mended_and_taken_back") else { return };
    namespace.shell(
        "echo 16 > /proc/sys/net/core/somaxconn; echo '40000 40100' > /proc/sys/net/ipv4/ip_local_port_range",
    );
    let bad = "16\n40000\t40100";
    assert_eq!(namespace.settings(), bad);
    let args = ["doctor", "-c", "500", "--json"];
    let before = namespace.throng(&args);
    let report = findings(&before);
    assert_eq!((before.status, report["verdict"].as_str()), (Some(0), Some("warn")), "{report}");
    let queue = ["warn", "at most 16 waiting", "sysctl -w net.core.somaxconn=4096"];
    assert_eq!(one(&report, "accept queue"), queue);
    let [severity, range, _] = one(&report, "local port range");
    assert_eq!((severity, range), ("warn", "40000 to 40100: 101 ports"));
    assert_eq!(namespace.settings(), bad, "looking changes nothing");
    assert!(!namespace.state.exists(), "looking writes nothing");

    let fixed = namespace.throng(&["doctor", "-c", "500", "--fix"]);
    assert_eq!(fixed.status, Some(0), "{fixed:?}");
    let done = [
        "done: sysctl -w net.core.somaxconn=4096",
        "done: sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
    ];
    assert!(done.iter().all(|line| fixed.stderr.contains(line)), "{}", fixed.stderr);
    assert!(fixed.stdout.contains("ok    accept queue "), "{}", fixed.stdout);
    assert_eq!(namespace.settings(), "4096\n32768\t60999");
    assert!(namespace.note().exists());
    let report = findings(&namespace.throng(&args));
    assert_eq!([one(&report, "accept queue")[0], one(&report, "local port range")[0]], ["ok", "ok"]);
    let again = namespace.throng(&["doctor", "-c", "500", "--fix"]);
    assert!(again.stderr.contains("nothing to fix"), "{again:?}");

    // Elsewhere the state file is not used.
    let mut elsewhere = throng(&["doctor", "--undo"]);
    elsewhere.env("XDG_STATE_HOME", &namespace.state);
    let elsewhere = Program::from(elsewhere).end();
    assert_eq!(elsewhere.status, Some(3), "{elsewhere:?}");
    assert!(elsewhere.stderr.contains("another network namespace"), "{elsewhere:?}");

    let undone = namespace.throng(&["doctor", "--undo"]);
    assert_eq!(undone.status, Some(0), "{undone:?}");
    assert!(undone.stderr.contains("undone: sysctl -w net.core.somaxconn=16"), "{undone:?}");
    assert_eq!(namespace.settings(), bad);
    assert!(!namespace.note().exists());
    let twice = namespace.throng(&["doctor", "--undo"]);
    assert_eq!((twice.status, twice.stderr.contains("nothing to undo")), (Some(0), true), "{twice:?}");
    assert_eq!(namespace.settings(), bad);
}

/// A caller's file below the HOME that sudo kept.
#[test]
fn a_state_file_with_a_strange_line_is_refused() {
    let state = file("strange-state");
    let _ = fs::remove_dir_all(&state);
    fs::create_dir_all(state.join("throng")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::read_link("/proc/self/ns/net").unwrap();
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let text = format!(
        "throng.doctor.state/1\nboot {}\nnamespace {}\nsetting kernel.core_pattern = {} was throng-test\n",
        boot.trim(),
        namespace.display(),
        pattern.trim()
    );
    fs::write(state.join("throng/doctor.state"), text).unwrap();
    let mut undo = throng(&["doctor", "--undo"]);
    undo.env("XDG_STATE_HOME", &state);
    let ended = Program::from(undo).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("line 4 is not a change that doctor makes: "), "{ended:?}");
    assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern);
}

/// Addresses that `ip` lists, and routes of type local to whole networks.
fn places(namespace: &Namespace) -> (usize, String) {
    let listed = namespace.shell("ip -o addr show dev lo | grep -c '10\\.77\\.0\\.' || true");
    (listed.parse().unwrap(), namespace.shell("ip route show table local type local | grep 10.78 || true"))
}

#[test]
fn sources_are_added_dialled_from_and_removed() {
    let Some(namespace) = Namespace::new("sources_are_added_dialled_from_and_removed") else { return };
    let mut server = throng(&["serve", "--listen", "0.0.0.0:0", "--until-stdin-ends"]);
    server.stdin(std::process::Stdio::null());
    let server = Serving::from(namespace.inside(&server), &[]);
    let target = format!("http://127.0.0.1:{}/", server.address.port());
    let sources = "10.77.0.0/24,10.78.0.0/16";
    let args = ["doctor", target.as_str(), "-c", "300", "--sources", sources];
    let refused = namespace.throng(&args);
    assert_eq!(refused.status, Some(3), "{refused:?}");
    let value = "10.77.0.1 and 65,787 more are not local addresses";
    assert!(refused.stdout.contains(value), "{}", refused.stdout);
    assert!(refused.stdout.trim_end().ends_with("300 connections do not fit: sources"), "{}", refused.stdout);
    assert_eq!(places(&namespace), (0, String::new()));

    let fixed = namespace.throng(&[&args[..], &["--fix"]].concat());
    assert_eq!(fixed.status, Some(0), "{fixed:?}");
    let (listed, route) = places(&namespace);
    assert_eq!((listed, route.contains("10.78.0.0/16 dev lo")), (254, true), "{route}");

    for source in ["10.77.0.0/24", "10.78.0.0/16"] {
        let args = ["run", &target, "-c", "300", "-d", "50ms", "--think", "1m", "--sources", source];
        let run = namespace.throng(&args);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert!(run.stdout.contains("300 held of 300 wanted"), "{}", run.stdout);
    }
    let undone = namespace.throng(&["doctor", "--undo"]);
    assert_eq!(undone.status, Some(0), "{undone:?}");
    assert_eq!(places(&namespace), (0, String::new()));
    assert_eq!(namespace.throng(&args).status, Some(3));
}

/// Towards another machine the addresses belong on the device with the route, and nothing is dialled.
#[test]
fn addresses_go_to_the_device_that_routes_to_the_target() {
    let name = "addresses_go_to_the_device_that_routes_to_the_target";
    let Some(namespace) = Namespace::new(name) else { return };
    namespace.shell(
        "ip link add near type veth peer name far && ip addr add 192.0.2.1/24 dev near && ip link set near up",
    );
    let listed = || namespace.shell("ip -o -4 addr show dev near | awk '{ print $4 }' | xargs");
    let args = ["doctor", "http://192.0.2.7/", "-c", "5", "--sources", "192.0.2.64/30"];
    let fixed = namespace.throng(&[&args[..], &["--fix"]].concat());
    assert_eq!(fixed.status, Some(0), "{fixed:?}");
    assert_eq!(listed(), "192.0.2.1/24 192.0.2.65/32 192.0.2.66/32");
    // One of them is removed otherwise meanwhile: the others are still undone.
    namespace.shell("ip addr del 192.0.2.66/32 dev near");
    let undone = namespace.throng(&["doctor", "--undo"]);
    assert_eq!((undone.status, listed().as_str()), (Some(0), "192.0.2.1/24"), "{undone:?}");
    assert_eq!(undone.stderr, "undone: ip addr del 192.0.2.65/32 dev near\n");
}

/// A user without rights is shown which commands need them, and nothing happens.
#[test]
fn without_root_nothing_is_changed() {
    let state = file("state-without-root");
    let _ = fs::remove_dir_all(&state);
    let mut fix = throng(&["doctor", "-c", "5", "--sources", "192.0.2.1", "--fix"]);
    let copy = getuid().is_root().then(|| readable_copy(Path::new(fix.get_program())));
    if let Some(binary) = &copy {
        // An administrator runs it as the user nobody.
        let mut nobody = Command::new("setpriv");
        nobody.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ]);
        nobody.arg(binary).args(fix.get_args()).stdin(std::process::Stdio::null());
        fix = nobody;
    }
    fix.env("XDG_STATE_HOME", &state);
    let ended = Program::from(fix).end();
    copy.iter().for_each(|copy| fs::remove_file(copy).unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
    let parts = ["nothing was changed; these require root:", "ip addr add 192.0.2.1/32 dev lo"];
    assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    assert!(!state.exists());
}

/// A folder that everyone may read and execute; a checkout may be closed to the user nobody.
fn readable_copy(binary: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let copy = std::env::temp_dir().join(format!("throng-for-nobody-{}", std::process::id()));
    fs::copy(binary, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}
