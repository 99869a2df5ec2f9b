//! `lab.toml`: servers and experiments. Each key is in `docs/reference/labs.md`.

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

/// A lab, as its folder has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// One line.
    pub title: String,
    /// Which of the source texts it repeats.
    #[serde(default)]
    pub(crate) text: String,
    /// The first is the default.
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
    /// In the text's order.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
    /// What `throng lab soak` does for hours.
    pub soak: Option<Experiment>,
    /// Its pictures.
    #[serde(default, rename = "plot")]
    pub(crate) plots: Vec<Plot>,
}

/// A picture: a figure of some experiments over time, a line for each server and variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    /// The experiments.
    pub(crate) experiments: Vec<String>,
    /// The figure.
    pub(crate) figure: Figure,
    /// The published figure over time: seconds and value, at full scale.
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
    /// Connections.
    Open,
    /// Responses per second.
    Answers,
    /// 99th percentile of the latency.
    P99,
    /// The longest latency.
    Longest,
}

/// A server, or a build of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name on the command line.
    pub name: String,
    /// Programs and files that must be there.
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    /// Source checkouts that it is built from.
    #[serde(default)]
    pub(crate) sources: Vec<Source>,
    /// Variables of the environment that must be set.
    #[serde(default)]
    pub(crate) needs_environment: Vec<Variable>,
    /// Shell lines, run if anything in the folder or its sources has changed.
    #[serde(default)]
    pub(crate) build: Vec<String>,
    /// A shell line that becomes the server.
    pub(crate) start: String,
    /// For that line, and for those of `build`.
    #[serde(default)]
    pub(crate) environment: Environment,
    /// The file of the certificate that it shows: it speaks TLS, and the load trusts this certificate.
    pub(crate) certificate: Option<String>,
    /// When it is ready.
    #[serde(default)]
    pub(crate) ready: Ready,
    /// Connections a process may hold if its limit on open files cannot be raised.
    pub(crate) connections_each: Option<u64>,
    /// Heap of a Java virtual machine at full scale: `3g`, `512m`.
    pub(crate) heap: Option<String>,
    /// A shell line that prints the version.
    pub(crate) version: Option<String>,
}

/// A program or a file, and how to install it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    /// A program on the path; or
    pub(crate) program: Option<String>,
    /// a file or folder by its absolute path: a jar, a header, a library.
    pub(crate) file: Option<String>,
    /// Debian's package.
    pub(crate) package: String,
}

/// A source checkout: a folder in the one that `LAB_SOURCE` names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name there.
    pub folder: String,
    /// Where `LAB_SOURCE=git` clones it from.
    pub git: String,
    /// Tag or full commit.
    pub at: String,
    /// A path in it that shows that it is a checkout of this project.
    pub(crate) has: String,
}

/// A variable, and why it is wanted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: String,
    /// What to put into it, and why throng cannot.
    pub(crate) why: String,
}

/// When a server is ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ready {
    /// When a GET of this path gets a response; or
    pub(crate) path: String,
    /// when it accepts connections.
    pub(crate) tcp: bool,
    /// Timeout: `30s`.
    pub(crate) within: String,
}

impl Default for Ready {
    fn default() -> Ready {
        Ready { path: "/".to_owned(), tcp: false, within: "30s".to_owned() }
    }
}

/// The file in each folder.
pub(crate) const FILE: &str = "lab.toml";

/// All labs below a folder, by their names.
///
/// # Errors
/// The folder cannot be read, or a file in it has mistakes: all of them, a line each.
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

/// Minimum heap, MiB.
const MIN_HEAP: f64 = 256.0;

impl Server {
    /// Whether it speaks TLS.
    pub fn is_secured(&self) -> bool {
        self.certificate.is_some()
    }

    /// Its heap at a scale, MiB; none if it is no Java virtual machine.
    ///
    /// # Errors
    /// It is no size.
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
    /// What is wrong with its file, a line each, with the place.
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

    /// Mistakes that the types do not exclude.
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
            // Agents are given no files of certificates.
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

    /// A server by its name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// An experiment, or the soak, by its name.
    pub(crate) fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().chain(&self.soak).find(|experiment| experiment.name == name)
    }

    /// The servers that an experiment applies to: those that it names, else the first.
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
