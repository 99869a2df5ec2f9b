//! The flags of a command line as typed. Those of the load are read like the top level of a scenario file ([`crate::from_flags`]).

use crate::flag::{self, FLAGS, Flag, Role, Takes};
use crate::target::Resolve;
use crate::{Observe, Plan};
use std::fmt;
use std::net::IpAddr;

mod place;

/// Flags as typed: name and value of each, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(Vec<(&'static str, String)>);

impl Flags {
    /// Flags with only a target.
    pub fn new(target: impl ToString) -> Flags {
        Flags::default().with(&flag::TARGET, target)
    }

    /// Adds a value of a flag.
    #[must_use]
    pub fn with(mut self, flag: &Flag, value: impl ToString) -> Flags {
        self.0.push((flag.name, value.to_string()));
        self
    }

    /// Adds a value of a flag unless the flag was given.
    #[must_use]
    pub fn or(self, flag: &Flag, value: impl ToString) -> Flags {
        if self.get(flag).is_some() { self } else { self.with(flag, value) }
    }

    /// Removes a flag.
    #[must_use]
    pub fn without(mut self, flag: &Flag) -> Flags {
        self.0.retain(|(name, _)| *name != flag.name);
        self
    }

    /// Removes the flags that choose the machines which apply the load: each machine plans from the rest.
    #[must_use]
    pub fn without_place(mut self) -> Flags {
        self.0.retain(|(name, _)| !FLAGS.iter().any(|flag| flag.name == *name && flag.role == Role::Place));
        self
    }

    /// The first value of a flag; empty for a flag without a value.
    pub fn get(&self, flag: &Flag) -> Option<&str> {
        self.all(flag).next()
    }

    /// Each value of a flag, with its place among all flags.
    pub(crate) fn places(&self, flag: &Flag) -> impl Iterator<Item = (usize, &str)> {
        let all = self.0.iter().enumerate().map(|(at, (name, value))| (at, *name, value.as_str()));
        let name = flag.name;
        all.filter(move |(_, given, _)| *given == name).map(|(at, _, value)| (at, value))
    }

    /// Each value of a flag.
    pub fn all(&self, flag: &Flag) -> impl Iterator<Item = &str> {
        let name = flag.name;
        self.0.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Name and value of each flag, as it would be typed.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// The flags of these [pairs](Flags::pairs).
    ///
    /// # Errors
    /// A name is not that of a flag.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Flags, String> {
        let known = |name: &str| FLAGS.iter().find(|flag| flag.name == name).map(|flag| flag.name);
        let flag = |(name, value): &(String, String)| Some((known(name)?, value.clone()));
        let read = |pair| flag(pair).ok_or_else(|| format!("no such flag: {}", pair.0));
        pairs.iter().map(read).collect::<Result<_, _>>().map(Flags)
    }

    /// A mistake for each given flag that `why` refuses because of a value.
    pub fn refused(&self, why: impl Fn(&Flag, &str) -> Option<String>) -> Vec<Mistake> {
        let mut reader = FlagReader::new(self);
        for flag in FLAGS {
            if let Some(why) = self.all(flag).find_map(|value| why(flag, value)) {
                reader.refuse(flag, why);
            }
        }
        reader.mistakes
    }
}

/// The arguments that define the load: each flag with its value, sorted.
pub fn load_args(args: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        let is_flag = |arg: &str| arg.len() > 1 && arg.starts_with('-');
        if !is_flag(arg) {
            found.push(arg.clone());
            continue;
        }
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), rest.next_if(|next| !is_flag(next)).cloned()),
        };
        let flag = Flag::named(name);
        if !flag.is_some_and(|flag| flag.role.keeps_load()) {
            let name = flag.map_or(name.to_owned(), Flag::place);
            found.push(value.map_or(name.clone(), |value| format!("{name} {value}")));
        }
    }
    found.sort();
    found
}

/// Facts about the machine that the planner needs; passed in, so that tests need no real machine.
pub struct Environment<'a> {
    /// Processors that this process may use.
    pub cores: u32,
    /// Random number that is the seed unless `--seed` is given.
    pub seed: u64,
    /// Resolves a host name; the error is a short reason.
    pub resolve: &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
}

/// A usage error. Prints `--ramp: "30" is not a rate; use 30/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The flag, or `target`.
    pub place: String,
    /// What is wrong, with the text, and the fix.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Reads flags and collects their mistakes.
pub(crate) struct FlagReader<'f> {
    flags: &'f Flags,
    pub(crate) mistakes: Vec<Mistake>,
}

impl<'f> FlagReader<'f> {
    pub(crate) fn new(flags: &'f Flags) -> FlagReader<'f> {
        FlagReader { flags, mistakes: Vec::new() }
    }

    /// Flags next to a scenario file, which alone defines what each connection does.
    pub(crate) fn beside_a_scenario(flags: &'f Flags) -> FlagReader<'f> {
        let why = |flag: &Flag| {
            let key = flag.key.map_or("it", |key| key.name);
            format!("cannot be used with a scenario file; set {key} in the file")
        };
        let mistakes = flags.refused(|flag, _| (flag.role == Role::Work).then(|| why(flag)));
        FlagReader { flags, mistakes }
    }

    pub(crate) fn get(&self, flag: &Flag) -> Option<&'f str> {
        self.flags.get(flag)
    }

    /// The value of a flag; `default` if it is absent or invalid. A mistake is reported, so the default does not come into use.
    pub(crate) fn read<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        self.given(flag, parse).unwrap_or(default)
    }

    /// The value of a flag; `None` if it is absent or invalid.
    pub(crate) fn given<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(self.get(flag)?).map_err(|why| self.add(flag, why)).ok()
    }

    /// All valid values of a flag.
    pub(crate) fn all<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        self.flags.all(flag).filter_map(|text| parse(text).map_err(|why| self.add(flag, why)).ok()).collect()
    }

    pub(crate) fn add(&mut self, flag: &Flag, why: impl fmt::Display) {
        self.mistakes.push(Mistake { place: flag.place(), text: why.to_string() });
    }

    /// Reports a flag that must not be given here; the message ends with its value.
    pub(crate) fn refuse(&mut self, flag: &Flag, why: impl fmt::Display) {
        match self.get(flag) {
            Some(_) if flag.takes == Takes::Nothing || flag::is_secret(flag.name) => self.add(flag, why),
            Some(text) => self.add(flag, format!("{why}: {text:?}")),
            None => {}
        }
    }

    /// Completes the plan with what only flags can set: the observer of the target's host, and collections of its JVM.
    pub(crate) fn observed(&mut self, plan: Plan, resolve: Resolve) -> Plan {
        let observe = self.observe(resolve);
        let target_gc = self.get(&flag::TARGET_GC).is_some();
        if target_gc && self.get(&flag::OBSERVE).is_some() {
            let why = "throng observe cannot collect a JVM's heap; remove one of the two";
            self.refuse(&flag::TARGET_GC, why);
        }
        Plan { observe, target_gc, ..plan }
    }

    fn observe(&mut self, resolve: Resolve) -> Option<Observe> {
        let token_file = self.get(&flag::OBSERVE_TOKEN_FILE).map(str::to_owned);
        if self.get(&flag::OBSERVE).is_none() {
            self.refuse(&flag::OBSERVE_TOKEN_FILE, "requires --observe http://HOST:PORT");
        }
        self.given(&flag::OBSERVE, |text| Observe::parse(text, token_file, resolve))
    }
}

#[cfg(test)]
mod tests;
