//! `lab.toml`: the servers and experiments of a lab. `docs/reference/labs.md` describes each key.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use units::Nanos;

use crate::{
    error::Error,
    experiment::Experiment,
    template::{Environment, Values},
};

/// A lab, as described by its folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// The name: that of the folder.
    #[serde(skip)]
    pub name: String,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// A title of one line.
    pub title: String,
    /// The source text whose experiments the lab repeats.
    #[serde(default)]
    pub(crate) text: String,
    /// The servers; the first is the default.
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
    /// The experiments, in the order of the text.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
    /// The experiment of `throng lab soak`, which runs for hours.
    pub soak: Option<Experiment>,
    /// The pictures.
    #[serde(default, rename = "plot")]
    pub(crate) plots: Vec<Plot>,
}

/// A picture of a figure over time in some experiments, with a line for each server and variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    /// The experiments.
    pub(crate) experiments: Vec<String>,
    /// The figure.
    pub(crate) figure: Figure,
    /// The published figure over time, at scale 1: seconds and value.
    #[serde(default)]
    pub(crate) then: Vec<[f64; 2]>,
}

impl Plot {
    /// The name of its file.
    pub(crate) fn file(&self, lab: &Lab) -> String {
        let figure = format!("{:?}", self.figure).to_lowercase();
        format!("{}-{}-{figure}.svg", lab.name, self.experiments.join("-"))
    }
}

/// A figure that a picture can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Figure {
    /// Open connections.
    Open,
    /// Responses per second.
    Answers,
    /// 99th percentile of the latency.
    P99,
    /// The longest latency.
    Longest,
}

/// A server, or one build of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The name on the command line.
    pub name: String,
    /// Programs and files that must be installed.
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    /// Source checkouts from which it is built.
    #[serde(default)]
    pub(crate) sources: Vec<Source>,
    /// Environment variables that must be set.
    #[serde(default)]
    pub(crate) needs_environment: Vec<Variable>,
    /// Shell commands that build the server; run again if the folder or the sources have changed.
    #[serde(default)]
    pub(crate) build: Vec<String>,
    /// The shell command that starts the server; it replaces the shell.
    pub(crate) start: String,
    /// The environment of the commands `start` and `build`.
    #[serde(default)]
    pub(crate) environment: Environment,
    /// The file of the server's certificate. If set, the server speaks TLS, and the load trusts this certificate.
    pub(crate) certificate: Option<String>,
    /// How to detect that the server is ready.
    #[serde(default)]
    pub(crate) ready: Ready,
    /// Maximum number of connections per process if the limit on open files cannot be raised.
    pub(crate) connections_each: Option<u64>,
    /// Heap size of a Java virtual machine at scale 1: `3g`, `512m`.
    pub(crate) heap: Option<String>,
    /// A shell command that prints the server's version.
    pub(crate) version: Option<String>,
}

/// A program or a file that must be installed, with its package.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    /// The name of a program on the path; or
    pub(crate) program: Option<String>,
    /// the absolute path of a file or folder, such as a jar, a header or a library.
    pub(crate) file: Option<String>,
    /// The Debian package that contains it.
    pub(crate) package: String,
}

/// A source checkout, in the folder that `LAB_SOURCE` names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The name of its folder.
    pub folder: String,
    /// The repository to clone with `LAB_SOURCE=git`.
    pub git: String,
    /// Tag or full commit.
    pub at: String,
    /// A path in the checkout by which it is recognised.
    pub(crate) has: String,
}

/// An environment variable that must be set, and the reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: String,
    /// What to set it to, and why throng cannot determine it.
    pub(crate) why: String,
}

/// How to detect that a server is ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ready {
    /// The server is ready when a GET of this path gets a response; or,
    pub(crate) path: String,
    /// if set, when it accepts connections.
    pub(crate) tcp: bool,
    /// Maximum time until it is ready: `30s`.
    pub(crate) within: String,
}

impl Default for Ready {
    fn default() -> Ready {
        Ready { path: "/".to_owned(), tcp: false, within: "30s".to_owned() }
    }
}

/// The name of the file that describes a lab.
pub(crate) const FILE: &str = "lab.toml";

/// All labs below a folder, in the order of their names.
///
/// # Errors
/// The folder cannot be read, or files in it have mistakes; all of them are reported, one per line.
pub fn labs(folder: &Path) -> Result<Vec<Lab>, Error> {
    let entries = fs::read_dir(folder).map_err(|e| Error::usage(format!("{}: {e}", folder.display())))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(FILE).is_file());
    folders.sort();
    let (mut labs, mut mistakes) = (Vec::new(), Vec::new());
    for folder in folders {
        match Lab::read(&folder) {
            Ok(lab) => labs.push(lab),
            Err(why) => mistakes.extend(why),
        }
    }
    if mistakes.is_empty() { Ok(labs) } else { Err(Error::Usage(mistakes)) }
}

/// Minimum heap size in MiB.
const MIN_HEAP: f64 = 256.0;

impl Server {
    /// Whether it speaks TLS.
    pub fn is_secured(&self) -> bool {
        self.certificate.is_some()
    }

    /// The heap size at a scale, in MiB; `None` if the server has no `heap`.
    ///
    /// # Errors
    /// `heap` is not a size.
    pub(crate) fn heap_mib(&self, scale: f64) -> Result<Option<u64>, String> {
        let Some(heap) = &self.heap else { return Ok(None) };
        let wrong = || format!("heap: use 3g or 512m: {heap}");
        let (number, mib) = match heap.strip_suffix('g') {
            Some(number) => (number, 1024.0),
            None => (heap.strip_suffix('m').ok_or_else(wrong)?, 1.0),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Ok(Some((number * mib * scale).max(MIN_HEAP).round() as u64))
    }
}

impl Lab {
    /// Reads a lab's folder.
    ///
    /// # Errors
    /// All mistakes in its file, one per line, with their places.
    fn read(folder: &Path) -> Result<Lab, Vec<String>> {
        let file = folder.join(FILE);
        let placed = |why: String| format!("{}: {why}", file.display());
        let text = fs::read_to_string(&file).map_err(|e| vec![placed(e.to_string())])?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let lab = Lab::parse(&text).map_err(|why| vec![placed(why)])?;
        let lab = Lab { name, folder: folder.to_owned(), ..lab };
        let mistakes: Vec<String> = lab.mistakes().into_iter().map(placed).collect();
        if mistakes.is_empty() { Ok(lab) } else { Err(mistakes) }
    }

    fn parse(text: &str) -> Result<Lab, String> {
        toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("line {line}: {}", e.message())
        })
    }

    /// The mistakes that the types do not exclude.
    fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let servers: BTreeSet<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        if servers.is_empty() || servers.len() < self.servers.len() {
            mistakes.push("server: names must be unique".to_owned());
        }
        for server in &self.servers {
            let of = |why: String| format!("server {}: {why}", server.name);
            mistakes.extend(server.heap_mib(1.0).err().map(of));
            mistakes
                .extend(Nanos::parse(&server.ready.within).err().map(|e| of(format!("ready.within: {e}"))));
            let is_one = |need: &&Need| need.program.is_some() == need.file.is_some();
            let needs = server.needs.iter().filter(is_one);
            mistakes.extend(needs.map(|need| of(format!("needs: use program or file: {}", need.package))));
            let lines = server.build.iter().chain([&server.start]).chain(server.environment.values());
            let lines = lines.chain(&server.certificate);
            mistakes.extend(lines.filter_map(|line| Values::default().fill(line).err()).map(of));
        }
        let times = self.soak.as_ref().is_none_or(|soak| soak.text(&self.folder).contains("{for "));
        mistakes.extend((!times).then(|| "soak: its arguments must contain {for TIME}".to_owned()));
        let mut names = BTreeSet::new();
        for experiment in self.experiments.iter().chain(&self.soak) {
            if !names.insert(experiment.name.as_str()) {
                mistakes.push(format!("experiment: duplicate name: {}", experiment.name));
            }
            let of = |why: String| format!("experiment {}: {why}", experiment.name);
            mistakes.extend(experiment.mistakes(&self.folder).into_iter().map(of));
            let unknown = experiment.servers.iter().filter(|name| !servers.contains(name.as_str()));
            mistakes.extend(unknown.map(|name| of(format!("no such server: {name}"))));
            // Agents cannot be given a file of certificates to trust.
            let secured = self.servers_of(experiment).into_iter().find(|server| server.is_secured());
            let secured = secured.filter(|_| experiment.agents > 0);
            mistakes.extend(secured.map(|server| of(format!("agents: no server with TLS: {}", server.name))));
            let lifted = experiment.lifted.iter().filter(|name| self.experiment(name).is_none());
            mistakes.extend(lifted.map(|name| of(format!("lifted: no such experiment: {name}"))));
        }
        let shown = self.plots.iter().flat_map(|plot| &plot.experiments);
        let unknown = shown.filter(|name| self.experiment(name).is_none());
        mistakes.extend(unknown.map(|name| format!("plot: no such experiment: {name}")));
        mistakes
    }

    /// The server with this name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// The experiment or soak with this name.
    pub(crate) fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().chain(&self.soak).find(|experiment| experiment.name == name)
    }

    /// The servers of an experiment: those that it names, or else the lab's first.
    pub(crate) fn servers_of(&self, experiment: &Experiment) -> Vec<&Server> {
        let named: Vec<&Server> = experiment.servers.iter().filter_map(|name| self.server(name)).collect();
        if named.is_empty() { self.servers.iter().take(1).collect() } else { named }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = r#"
        title = "A server"
        [[server]]
        name = "one"
        start = "true"
        [[experiment]]
        name = "hold"
        title = "hold 100"
        words = ["{url}/", "-c", "{scale 100}"]
    "#;

    #[test]
    fn ten_lines_are_a_lab() {
        let lab = Lab::parse(LAB).unwrap();
        assert_eq!(lab.mistakes(), Vec::<String>::new());
        assert_eq!((lab.servers[0].ready.path.as_str(), lab.servers[0].ready.within.as_str()), ("/", "30s"));
        let names: Vec<&str> =
            lab.servers_of(&lab.experiments[0]).iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["one"]);
    }

    #[test]
    fn heaps_go_with_the_scale() {
        let heap = |heap: &str, scale: f64| {
            let text = LAB.replace("start =", &format!("heap = \"{heap}\"\nstart ="));
            Lab::parse(&text).unwrap().servers[0].heap_mib(scale)
        };
        assert_eq!(heap("4g", 0.5), Ok(Some(2048)));
        assert_eq!(heap("512m", 1.0), Ok(Some(512)));
        assert_eq!(heap("1g", 0.01), Ok(Some(256)));
        for wrong in ["4", "g", "4t", ""] {
            assert_eq!(heap(wrong, 1.0), Err(format!("heap: use 3g or 512m: {wrong}")));
        }
        assert_eq!(Lab::parse(LAB).unwrap().servers[0].heap_mib(1.0), Ok(None));
    }

    #[test]
    fn mistakes_have_their_place() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = LAB.replace(from, to);
            let found = match Lab::parse(&text) {
                Ok(lab) => lab.mistakes().join("\n"),
                Err(why) => why,
            };
            assert!(found.contains(expected), "{found}");
        };
        check("start = ", "begin = ", "line 5: ");
        check(
            "name = \"hold\"",
            "name = \"hold\"\nservers = [\"two\"]",
            "experiment hold: no such server: two",
        );
        check(
            "words = [\"{url}/\", \"-c\", \"{scale 100}\"]",
            "",
            "experiment hold: missing words or scenario",
        );
        check(
            "words = ",
            "scenario = \"no.toml\"\nwords = ",
            "experiment hold: use words or scenario, not both",
        );
        check(
            "title = \"hold 100\"",
            "title = \"hold 100\"\nlifted = \"more\"",
            "experiment hold: lifted: no such experiment: more",
        );
        check(
            "[[experiment]]",
            "[[plot]]\nexperiments = [\"other\"]\nfigure = \"open\"\n[[experiment]]",
            "plot: no such experiment: other",
        );
        check("start = \"true\"", "start = \"true\"\nheap = \"4t\"", "server one: heap: use 3g or 512m: 4t");
        check(
            "start = \"true\"",
            "start = \"true\"\nneeds = [{ package = \"cl-cffi\" }]",
            "server one: needs: use program or file: cl-cffi",
        );
        check("start = \"true\"", "start = \"true {for ever}\"", "server one: not a time: {for ever}");
        check(
            "start = \"true\"",
            "start = \"true\"\ncertificate = \"{scale all}\"",
            "server one: not a number: {scale all}",
        );
        let secured = LAB.replace("start =", "certificate = \"cert.pem\"\nstart =");
        let driven = secured.replace("words =", "agents = 2\nhold = \"1s\"\nwords =");
        let found = |text: &str| Lab::parse(text).unwrap().mistakes();
        assert_eq!(found(&secured), [""; 0]);
        assert_eq!(found(&driven), ["experiment hold: agents: no server with TLS: one"]);
        check(
            "start = \"true\"",
            "start = \"true\"\nready = { within = \"soon\" }",
            "server one: ready.within: ",
        );
        check(
            "[[experiment]]",
            "[soak]\nname = \"long\"\ntitle = \"long\"\nwords = [\"x\"]\n[[experiment]]",
            "soak: its arguments must contain {for TIME}",
        );
        check("{scale 100}", "{scale many}", "experiment hold: not a number: {scale many}");
    }
}
