//! `throng lab`: real servers, and the experiments of the source texts against them.

mod clients;
mod combined;
mod compare;
mod settings;
mod soak;
mod trials;

use std::{env, path::PathBuf, thread, time::Duration};

use lab::{Experiment, Lab, Times, now_head, wide};

use crate::{
    Failure, answer,
    args::{LabArgs, LabVerb},
    say, signals,
};
use settings::Settings;

/// Executes the command; returns the exit status.
pub(crate) fn lab(args: &LabArgs) -> Result<u8, Failure> {
    let labs = labs()?;
    match &args.verb {
        LabVerb::List => list(&labs),
        LabVerb::Up { name, server, env, scale } => up(find(&labs, name)?, server.as_deref(), env, *scale),
        LabVerb::Run(run) => trials::run(find(&labs, &run.name)?, run),
        LabVerb::Soak(soak) => soak::soak(find(&labs, &soak.name)?, soak),
        LabVerb::Compare(compare) => {
            compare.name.as_ref().map(|name| find(&labs, name)).transpose()?;
            compare::compare(&labs, compare)
        }
    }
}

/// All labs: in `THRONG_LABS`, else in `labs` of the folder one is in.
fn labs() -> Result<Vec<Lab>, Failure> {
    let folder = env::var_os("THRONG_LABS").map_or_else(|| PathBuf::from("labs"), PathBuf::from);
    let folder = folder.canonicalize().map_err(|e| {
        let cure = "change to throng's source folder, or set THRONG_LABS to the folder with the labs";
        Failure::words([format!("no labs found; {cure}: {}: {e}", folder.display())])
    })?;
    lab::labs(&folder).map_err(Failure::words)
}

fn find<'a>(labs: &'a [Lab], name: &str) -> Result<&'a Lab, Failure> {
    let names = || labs.iter().map(|lab| lab.name.as_str()).collect::<Vec<_>>().join(", ");
    let none = || Failure::words([format!("no such lab; use {}: {name}", names())]);
    labs.iter().find(|lab| lab.name == name).ok_or_else(none)
}

/// What there is, and what is missing for it.
fn list(labs: &[Lab]) -> Result<u8, Failure> {
    let mut text = String::new();
    for lab in labs {
        text += &format!("{}  ({})\n", lab.name, lab.title);
        for server in &lab.servers {
            let mut missing = lab::missing(server);
            let work = settings::work(lab)?;
            let to_clone = if missing.is_empty() { lab::to_clone(server, &work) } else { Vec::new() };
            let standing = match (missing.is_empty(), to_clone.is_empty()) {
                (true, true) => "ready",
                (true, false) => "cloned first",
                (false, _) => "cannot run here",
            };
            let clones = to_clone.iter().map(|own| format!("{}: {} at {}", own.folder, own.git, own.at));
            missing.extend(clones);
            text += &format!("  server       {:<20} {standing}\n", server.name);
            text.extend(missing.iter().map(|what| format!("                 {what}\n")));
        }
        let mut one = |what: &str, experiment: &Experiment| {
            text += &format!("  {what:<12} {:<20} {}\n", experiment.name, experiment.title);
        };
        lab.experiments.iter().for_each(|experiment| one("experiment", experiment));
        lab.soak.iter().for_each(|soak| one("soak", soak));
    }
    answer(&text)?;
    Ok(0)
}

/// Starts a server, prints its address, and stops it on a signal.
fn up(lab: &Lab, server: Option<&str>, env: &[String], scale: f64) -> Result<u8, Failure> {
    let server = match server {
        None => &lab.servers[0],
        Some(name) => lab
            .server(name)
            .ok_or_else(|| Failure::words([format!("--server: {} has no server {name}", lab.name)]))?,
    };
    let missing = lab::missing(server);
    if !missing.is_empty() {
        return Err(Failure::machine(missing.join("\n")));
    }
    let stop = signals::order_to_stop(false).map_err(Failure::machine)?;
    let variable = |word: &String| {
        let (name, value) = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("--env: {word} is not NAME=VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let env =
        env.iter().map(variable).collect::<Result<Vec<_>, String>>().map_err(|e| Failure::words([e]))?;
    let settings = Settings::new(lab, scale, Times::default(), &format!("up-{}", server.name))?;
    let mut running = settings.start(lab, server, 1, &env).map_err(Failure::machine)?;
    answer(&format!("{} listens at http://{}/\n", server.name, running.addresses[0]))?;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        if let Some(ended) = running.stopped().pop() {
            return Err(Failure::machine(ended));
        }
        thread::sleep(Duration::from_millis(100));
    }
    drop(running);
    say(&format!("throng: {} stopped", server.name));
    Ok(0)
}

/// Then and now of a trial at a scale, under its name.
fn table(title: &str, scale: f64, rows: &[[String; 3]]) -> String {
    format!("{title}\n{}", wide(["", "then", &now_head(scale)], rows))
}
