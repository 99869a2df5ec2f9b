//! `deploy/machines`: unit, user data and playbook of permanent agents.
#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/machines")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(deploy().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&text(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A value in the unit file.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let line = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("the unit has no {name}"))
}

/// The content and the permissions of a file that the user data writes.
fn written(path: &str) -> (String, Option<String>) {
    let user_data = yaml("cloud-init.yaml");
    let files = user_data["write_files"].as_array().unwrap();
    let file =
        files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path} is not written"));
    (file["content"].as_str().unwrap().to_owned(), file["permissions"].as_str().map(str::to_owned))
}

#[test]
fn systemd_takes_the_unit() {
    let unit = text("throng-agent.service");
    assert_eq!(setting(&unit, "EnvironmentFile"), "/etc/throng/agent.env");
    // Where the agent may write, and what persists: undelivered counts, and its name.
    assert_eq!(setting(&unit, "StateDirectory"), "throng");
    for variable in ["XDG_DATA_HOME", "XDG_STATE_HOME"] {
        let is_kept = setting(&unit, "Environment").contains(&format!("{variable}=/var/lib/throng"));
        assert!(is_kept, "{variable}: {unit}");
    }
    // A unit does not verify if its program is not installed.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
    std::fs::create_dir_all(&folder).unwrap();
    let verify = |unit: &str| {
        let file = folder.join("throng-agent.service");
        std::fs::write(&file, unit.replace("/usr/local/bin/throng", "/bin/true")).unwrap();
        let output = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Problems of other units on this machine are not relevant.
        said.lines().filter(|line| line.contains("throng-agent")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(verify(&unit), [""; 0]);
    let wrong = verify(&unit.replace("RestartSec=5", "RestartSecs=5"));
    assert!(wrong.iter().any(|line| line.contains("RestartSecs")), "{wrong:?}");
}

/// The arguments of `throng agent` in a text of settings.
fn arguments(settings: &str) -> Vec<&str> {
    let line = settings.lines().find_map(|line| line.strip_prefix("THRONG_AGENT_ARGS=")).unwrap();
    line.split_whitespace()
        .map(|word| word.trim_start_matches("%}"))
        .filter(|word| word.starts_with("--"))
        .collect()
}

#[test]
fn the_settings_are_those_that_an_agent_has() {
    let help = include_str!("../../cli/tests/golden/agent.txt");
    let (settings, rights) = written("/etc/throng/agent.env");
    assert_eq!(rights.as_deref(), Some("0600"), "it has a password");
    for settings in [settings, text("ansible/templates/agent.env.j2")] {
        for name in ["NATS_URL", "NATS_USER", "NATS_PASSWORD"] {
            assert!(settings.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}: {settings}");
            assert!(help.contains(name), "{name} is not in throng agent --help");
        }
        assert!(!arguments(&settings).is_empty(), "{settings}");
        for argument in arguments(&settings) {
            assert!(help.contains(&format!("{argument} ")), "throng agent has no {argument}");
        }
    }
}

#[test]
fn the_user_data_has_the_unit_and_starts_it() {
    let user_data = yaml("cloud-init.yaml");
    assert!(text("cloud-init.yaml").starts_with("#cloud-config\n"));
    let (unit, _) = written("/etc/systemd/system/throng-agent.service");
    assert_eq!(unit, text("throng-agent.service"));
    let commands = user_data["runcmd"].as_array().unwrap();
    let program = setting(&unit, "ExecStart").split(' ').next().unwrap();
    assert!(commands.iter().any(|command| command[0] == "curl" && command.to_string().contains(program)));
    assert_eq!(commands.last().unwrap().to_string(), r#"["systemctl","enable","--now","throng-agent"]"#);
}

#[test]
fn the_kernels_limits_are_the_same_in_both() {
    let limits = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    let playbook = yaml("ansible/playbook.yaml");
    let tasks = playbook[0]["tasks"].as_array().unwrap();
    let theirs = tasks.iter().find(|task| task["name"] == "The kernel's limits").unwrap();
    let theirs = limits(theirs["ansible.builtin.copy"]["content"].as_str().unwrap());
    assert_eq!(limits(&written("/etc/sysctl.d/90-throng.conf").0), theirs);
    assert!(theirs.contains(&"net.ipv4.ip_local_port_range = 1024 65535".to_owned()), "{theirs:?}");
}

#[test]
fn every_file_and_handler_of_the_playbook_is_there() {
    let playbook = yaml("ansible/playbook.yaml");
    let tasks = playbook[0]["tasks"].as_array().unwrap();
    let handlers = playbook[0]["handlers"].as_array().unwrap();
    for handler in tasks.iter().filter_map(|task| task["notify"].as_str()) {
        assert!(handlers.iter().any(|known| known["name"] == handler), "{handler}");
    }
    let folder = deploy().join("ansible");
    let copied = tasks.iter().filter_map(|task| task["ansible.builtin.copy"]["src"].as_str());
    let copied: Vec<_> = copied.filter(|source| !source.contains("{{")).collect();
    assert!(!copied.is_empty() && copied.iter().all(|source| folder.join(source).is_file()), "{copied:?}");
    let check = ["--syntax-check", "-i", "localhost,", "playbook.yaml"];
    let output = Command::new("ansible-playbook").args(check).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
