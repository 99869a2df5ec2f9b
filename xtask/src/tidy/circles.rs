//! Which top-level modules of a crate use which: no circle. What lies in a file's own folder (`foo.rs` and `foo/`) is one module here.

use super::code::{code_only, is_name, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

/// Edges between the modules of one crate, each with the first place that makes it.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// A source file: its module path below `src`, its path from the root, its code without tests.
type File<'a> = (Vec<&'a str>, &'a str, String);

/// A breach for each set of modules that use one another. `sources` are paths from the root and their texts; tests are left out, since
/// they may look at everything.
pub(crate) fn breaches<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<File>> = BTreeMap::new();
    for (path, text) in sources {
        let Some((package, file)) = path.split_once("/src/") else { continue };
        let Some(module) = file.strip_suffix(".rs") else { continue };
        let module: Vec<&str> = module.split('/').collect();
        if module.contains(&"tests") {
            continue;
        }
        let code = code_only(text);
        crates.entry(package).or_default().push((module, path, without_tests(&code).to_owned()));
    }
    crates.values().flat_map(|files| circles(&uses(files))).collect()
}

fn uses(files: &[File]) -> Uses {
    let is_root = |module: &[&str]| matches!(module, ["lib" | "main"]);
    let modules: BTreeSet<&str> =
        files.iter().filter(|(module, ..)| !is_root(module)).map(|(module, ..)| module[0]).collect();
    let reexports: BTreeMap<String, String> = files
        .iter()
        .filter(|(module, ..)| is_root(module))
        .flat_map(|(.., code)| code.match_indices("use ").map(|(at, found)| &code[at + found.len()..]))
        .filter_map(|tree| tree.split_once("::"))
        .filter(|(module, _)| modules.contains(module))
        .flat_map(|(module, names)| leaves(names).map(|name| (name.to_owned(), module.to_owned())))
        .collect();
    let mut uses = Uses::new();
    for (module, path, code) in files.iter().filter(|(module, ..)| !is_root(module)) {
        for (at, name) in from_root(code, module.len()) {
            let used = modules.get(name).copied().or_else(|| reexports.get(name).map(String::as_str));
            let Some(used) = used.filter(|used| *used != module[0]) else { continue };
            let line = code[..at].lines().count().max(1);
            let edges = uses.entry(module[0].to_owned()).or_default();
            edges.entry(used.to_owned()).or_insert_with(|| format!("{path}:{line}"));
        }
    }
    uses
}

/// The names that the tree of a `use` brings in, up to its semicolon.
fn leaves(tree: &str) -> impl Iterator<Item = &str> {
    let tree = tree.split(';').next().unwrap_or_default();
    tree.split(['{', '}', ',']).filter_map(|leaf| leaf.split([':', ' ']).rfind(|name| !name.is_empty()))
}

/// Each name that `code`, `depth` modules below the root, takes from the root, by `crate::` or enough `super::`, and where.
fn from_root(code: &str, depth: usize) -> impl Iterator<Item = (usize, &str)> {
    let root = "super::".repeat(depth);
    let behind = move |at: usize, path: &str| {
        let begins = !code[..at].bytes().last().is_some_and(|before| is_name(before) || before == b':');
        begins.then(|| (at, &code[at + path.len()..]))
    };
    let by_name = code.match_indices("crate::").filter_map(move |(at, path)| behind(at, path));
    let by_super: Vec<(usize, &str)> =
        code.match_indices(&root).filter_map(|(at, path)| behind(at, path)).collect();
    by_name.chain(by_super).flat_map(|(at, tree)| heads(tree).map(move |head| (at, head)))
}

/// `a` of `a::b`, and all heads of `{a::b, c}`.
fn heads(tree: &str) -> impl Iterator<Item = &str> {
    let head = |part: &'_ str| part.bytes().take_while(|&b| is_name(b)).count();
    let group = tree.strip_prefix('{').unwrap_or_default();
    let mut depth = 0usize;
    let parts = group.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return true,
            '}' => depth -= 1,
            ',' => return depth == 0,
            _ => {}
        }
        false
    });
    let closed = closing(group);
    let inside = parts.map(str::trim_start).take_while(move |part| offset(group, part) < closed);
    iter::once(tree).filter(|tree| !tree.starts_with('{')).chain(inside).map(move |part| &part[..head(part)])
}

/// Where the brace that was opened before `group` is closed.
fn closing(group: &str) -> usize {
    let mut depth = 1usize;
    let closing = group.bytes().position(|b| {
        depth = depth + usize::from(b == b'{') - usize::from(b == b'}');
        depth == 0
    });
    closing.unwrap_or(group.len())
}

fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// One line for each set of modules that all reach one another.
fn circles(uses: &Uses) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), reached(uses, module))).collect();
    let mutual = |a: &str, b: &str| {
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reached| reached.contains(to));
        reaches(a, b) && reaches(b, a)
    };
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    let mut lines = Vec::new();
    for module in uses.keys().filter(|module| mutual(module, module)) {
        if !listed.insert(module) {
            continue;
        }
        let circle: Vec<&str> =
            uses.keys().map(String::as_str).filter(|other| mutual(module, other)).collect();
        listed.extend(&circle);
        let edges =
            circle.iter().flat_map(|from| uses[*from].iter().map(move |(to, place)| (from, to, place)));
        let edges = edges.filter(|(_, to, _)| circle.contains(&to.as_str()));
        let edges: Vec<String> = edges.map(|(from, to, place)| format!("{from} → {to} ({place})")).collect();
        lines.push(format!("modules that use one another, cut the circle: {}", edges.join(", ")));
    }
    lines
}

fn reached<'a>(uses: &'a Uses, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = uses.get(module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.map(String::as_str).filter(|module| reached.insert(*module)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sources: &[(&str, &str)], expected: &[&str]) {
        let sources = sources.iter().map(|(file, text)| (format!("crates/x/src/{file}"), *text));
        let sources: Vec<(String, &str)> = sources.collect();
        assert_eq!(breaches(sources.iter().map(|(path, text)| (path.as_str(), *text))), expected);
    }

    #[test]
    fn a_line_is_no_circle() {
        check(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use std::x::a;")], &[]);
        // Tests look at everything, comments at nothing, and a file's folder is the file's own.
        check(
            &[
                ("a.rs", "use crate::b;"),
                ("b.rs", "// crate::a\nuse c::d;\n#[cfg(test)]\nmod tests { use crate::a; }"),
                ("b/tests.rs", "use crate::a;"),
                ("b/c.rs", "use super::B;"),
            ],
            &[],
        );
    }

    #[test]
    fn each_way_to_name_a_module_counts() {
        let circle = |line| {
            format!(
                "modules that use one another, cut the circle: a → b (crates/x/src/a.rs:{line}), b → a (crates/x/src/b/c.rs:1)"
            )
        };
        for (line, a) in [
            (1, "use crate::b::B;"),
            (1, "use super::{y::{b, Z}, b::{B, Z}, z};"),
            (2, "\nfn f() { crate::b::g() }"),
            (1, "use crate::B;"),
        ] {
            check(
                &[("lib.rs", "pub use b::{c::X, D as B};"), ("a.rs", a), ("b/c.rs", "use super::super::a;")],
                &[&circle(line)],
            );
        }
        // What is named behind the group is not of the root.
        check(&[("a.rs", "use crate::{c}; use {x, b};"), ("b.rs", "use crate::a;")], &[]);
    }
}
