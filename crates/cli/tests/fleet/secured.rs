//! Runs on agents against a server that asks for client certificates: the files are the coordinator's, and follow the offer.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    certificates::{Authority, ECDSA, Files, self_signed},
    fleet::{joined_at, read},
    program::{DATA, Program, Serving, throng},
    runs_api::serve,
    secrets::{Overheard, files_with},
    server::{Server, folder, program},
};

/// nginx, which opens a connection only for whom this authority has issued a certificate; it logs who that was.
fn nginx(folder: &Path, files: &Files, authority: &str) -> Server {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|of| format!("{of}_temp_path temporary;")).concat();
    Server::at(|address| {
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr warn;
            events {{ worker_connections 512; }}
            http {{ log_format who '$ssl_client_verify $ssl_client_s_dn'; {temporary} server {{
                listen {address} ssl backlog=512; ssl_certificate {}; ssl_certificate_key {};
                ssl_client_certificate {authority}; ssl_verify_client on;
                access_log who.log who; root .; location / {{ return 200 'Hello World!'; }}
            }} }}",
            files.cert, files.key
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let mut command = program("nginx", &["-c", "nginx.conf", "-e", "stderr", "-p"]);
        command.arg(folder).current_dir(folder);
        command
    })
}

/// A line of a PEM file that no other has.
fn line_of(file: &str) -> String {
    fs::read_to_string(file).unwrap().lines().nth(1).unwrap().to_owned()
}

#[test]
fn certificates_and_keys_go_to_the_agents_and_nothing_keeps_the_key() {
    let own = folder("secured-fleet");
    let [nats, data, place] = ["nats", "data", "nginx"].map(|name| own.join(name));
    fs::create_dir(&place).unwrap();
    let (files, ours) = (self_signed(&own, ECDSA), Authority::new("ours"));
    let client = ours.issue(&own, "client", |_| {});
    let server = nginx(&place, &files, &ours.file(&own));
    let fleet = joined_at(&nats, Some(&data), 2);
    let overheard = Overheard::at(fleet.nats.address);
    let (target, out) = (format!("https://{}/", server.address), own.join("out"));
    let run = |more: &[&str]| {
        let args =
            ["run", &target, "--fleet", &fleet.url(), "--agents", "2", "--json", "-", "--live", "line"];
        let load = ["-c", "20", "--think", "50ms", "-d", "1s", "--cacert", &files.cert];
        let _ = fs::remove_dir_all(&out);
        let mut run = throng(&[&args[..], &load, more].concat());
        run.args(["--out", out.to_str().unwrap()]).env(DATA, &data);
        read(Program::from(run))
    };
    // nginx opens the connection, and says what it wants in its response.
    let (ended, s) = run(&[]);
    assert_eq!(s.count("requests.status.400"), s.count("requests.answered"), "{}", ended.stderr);
    let log = || fs::read_to_string(place.join("who.log")).unwrap();
    let before = log().lines().count();
    let (ended, s) = run(&["--cert", &client.cert, "--key", &client.key]);
    ended.assert_status(0);
    let (held, sent, handshakes) = (
        s.count("connections.held"),
        s.count("requests.sent"),
        s.count("tls_us.count") + s.count("tls_resumed_us.count"),
    );
    assert_eq!((held, s.count("requests.status.200"), handshakes), (20, sent, 20), "{}", ended.stderr);
    let who: Vec<String> = log().lines().skip(before).map(str::to_owned).collect();
    assert!(
        who.len() as u64 >= sent && who.iter().all(|line| line.starts_with("SUCCESS CN=client")),
        "{who:?}"
    );
    // Both agents got the key, in messages for values only.
    let key = line_of(&client.key);
    let rows = overheard.rows(false);
    assert!(rows.len() == 2 && rows.values().all(|own| own.iter().any(|text| text.contains(&key))));
    overheard.assert_only_rows_have(&key);
    let said: String = fleet.agents.iter().map(|agent| agent.stdout() + &agent.stderr()).collect();
    assert!(!(said + &ended.stdout + &ended.stderr).contains(&key));
    assert_eq!(files_with(&key, &[&nats, &data, &out]), Vec::<std::path::PathBuf>::new());
    // They are where it would be seen.
    assert!(!files_with("client.key", &[&out]).is_empty() && !files_with("client.key", &[&data]).is_empty());
}

#[test]
fn files_that_cannot_be_used_are_a_mistake_of_the_command_line() {
    let own = folder("secured-fleet-mistakes");
    let fleet = joined_at(&own.join("nats"), None, 1);
    let file = own.join("no.pem");
    fs::write(&file, "nothing").unwrap();
    for name in [file.to_str().unwrap(), "/nowhere/ca.pem"] {
        let args = ["run", "https://127.0.0.1:1/", "--fleet", &fleet.url(), "--cacert", name];
        let ended = Program::start(&args).end();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("--cacert: "), "{ended:?}");
    }
}

#[test]
fn certificates_of_a_scenario_come_with_it_over_the_api() {
    let own = folder("secured-api");
    let files = self_signed(&own, ECDSA);
    let server = Serving::start(&["--tls-cert", &files.cert, "--tls-key", &files.key]);
    let api = serve(&[]);
    let scenario = format!(
        "target = \"https://{}/\"\nconnections = 3\nduration = \"1s\"\nthink = \"50ms\"\ncacert = \"ca.pem\"\n",
        server.address
    );
    let refused = api.curl("/runs", &["--json", &json!({ "scenario": scenario }).to_string()]);
    assert!(
        refused.status == 400 && refused.body.contains("not among the files of the request"),
        "{refused:?}"
    );
    let text = fs::read_to_string(&files.cert).unwrap();
    let body = json!({ "scenario": scenario, "files": { "ca.pem": text } });
    let url = api.post(&["--json", &body.to_string()]);
    let over = api.wait(&url, "it is over", |run| run["state"] == "done");
    assert_eq!(over["summary"]["connections"]["held"], 3, "{over:#}");
}
