//! A case: what a trial runs, that is an experiment with a server in one of its variants.

use crate::{
    error::Error,
    experiment::Experiment,
    file::{Lab, Server},
    template::Environment,
};

/// An experiment with one server, in one variant.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The lab.
    pub(crate) lab: &'a Lab,
    /// The load.
    pub experiment: &'a Experiment,
    /// The server, one of the lab's.
    pub server: &'a Server,
    /// Name and environment of the variant; `None` if the experiment has none.
    pub(crate) variant: Option<(&'a str, &'a Environment)>,
}

impl<'a> Case<'a> {
    /// The cases of these experiments that match all `names`, each being that of an experiment, a server or a variant.
    ///
    /// # Errors
    /// No case matches.
    pub fn select(
        lab: &'a Lab,
        experiments: impl IntoIterator<Item = &'a Experiment>,
        names: &[String],
    ) -> Result<Vec<Case<'a>>, Error> {
        let mut all = Vec::new();
        for experiment in experiments {
            for server in lab.servers_of(experiment) {
                let case = |variant| Case { lab, experiment, server, variant };
                if experiment.variants.is_empty() {
                    all.push(case(None));
                }
                all.extend(experiment.variants.iter().map(|(name, own)| case(Some((name, own)))));
            }
        }
        all.retain(|case| names.iter().all(|name| case.names().any(|own| own == name)));
        if all.is_empty() {
            let (lab, names) = (&lab.name, names.join(" "));
            let why = format!("--variant: {lab} has no experiment, server or variant {names}");
            return Err(Error::usage(why));
        }
        Ok(all)
    }

    /// The names of the experiment, the server and the variant.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        let variant = self.variant.map(|(name, _)| name);
        [self.experiment.name.as_str(), self.server.name.as_str()].into_iter().chain(variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_narrowed_down_by_names() {
        let lab = r#"
            title = "A server"
            server = [{ name = "a", start = "true" }, { name = "b", start = "true" }]
            [[experiment]]
            name = "hold"
            title = "hold"
            servers = ["a", "b"]
            words = ["{url}/"]
            variants = { "one" = { N = "1" }, "two" = { N = "2" } }
            [[experiment]]
            name = "wrk"
            title = "wrk"
            words = ["{url}/"]
        "#;
        let lab: Lab = toml::from_str(lab).unwrap();
        let check = |names: &[&str], expected: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let cases = Case::select(&lab, &lab.experiments, &names).unwrap_or_default();
            let found: Vec<String> =
                cases.iter().map(|case| case.names().collect::<Vec<_>>().join(" ")).collect();
            assert_eq!(found, expected, "{names:?}");
        };
        check(&[], &["hold a one", "hold a two", "hold b one", "hold b two", "wrk a"]);
        check(&["a", "two"], &["hold a two"]);
        check(&["wrk"], &["wrk a"]);
        check(&["wrk", "two"], &[]);
    }
}
