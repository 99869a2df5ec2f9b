//! Checks that the modules of a crate do not use each other in circles. Sibling modules are compared, at every depth, together with
//! the modules below them. A module and its descendants may use each other.

use super::code::{code_only, is_name, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// For each module, the modules it uses, each with the first place where it does.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// A module's path below `src`; empty for the crate root.
type Path<'a> = Vec<&'a str>;

/// A source file: its module, its path from the root, and its code without tests.
type File<'a> = (Path<'a>, &'a str, String);

/// A violation for each set of modules that use one another. `sources` are paths from the root with their texts. Tests are left
/// out, since they may use any module.
pub(crate) fn breaches<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<File>> = BTreeMap::new();
    for (path, text) in sources {
        let Some((package, file)) = path.split_once("/src/") else { continue };
        let Some(module) = file.strip_suffix(".rs") else { continue };
        let mut module: Path = module.split('/').collect();
        if module.contains(&"tests") {
            continue;
        }
        if let ["lib" | "main"] = module[..] {
            module.clear();
        }
        let code = code_only(text);
        crates.entry(package).or_default().push((module, path, without_tests(&code).to_owned()));
    }
    crates.values().flat_map(|files| circles(&uses(files))).collect()
}

fn uses(files: &[File]) -> Uses {
    // Every prefix of a path is a module, even if it has no file, such as the root of some tests.
    let mut modules: BTreeSet<&[&str]> = BTreeSet::new();
    for (module, ..) in files {
        modules.extend((0..=module.len()).map(|depth| &module[..depth]));
    }
    let is_module = |parent: &[&str], name: &str| modules.contains(&[parent, &[name]].concat()[..]);
    // Names that a module re-exports from a child module: a use of such a name counts as a use of the child.
    let mut reexports: BTreeMap<(&[&str], &str), &str> = BTreeMap::new();
    for (module, _, code) in files {
        for (at, found) in code.match_indices("use ") {
            for leaf in leaves(&code[at + found.len()..]) {
                if let [below, .., name] = leaf[..]
                    && is_module(module, below)
                {
                    reexports.insert((module, name), below);
                }
            }
        }
    }
    let mut uses = Uses::new();
    for (module, path, code) in files {
        for (at, used) in references(code, module) {
            let mut to: Path = Vec::new();
            for name in used {
                let below =
                    if is_module(&to, name) { Some(name) } else { reexports.get(&(&to[..], name)).copied() };
                let Some(below) = below else { break };
                to.push(below);
            }
            let shared = module.iter().zip(&to).take_while(|(own, other)| own == other).count();
            if shared == module.len() || shared == to.len() {
                continue;
            }
            let line = code[..at].lines().count().max(1);
            let edges = uses.entry(module[..=shared].join("::")).or_default();
            edges.entry(to[..=shared].join("::")).or_insert_with(|| format!("{path}:{line}"));
        }
    }
    uses
}

/// Each path after `crate::` or `super::` in the code of `module`, resolved from the crate root, with its position in the code.
fn references<'a>(code: &'a str, module: &[&'a str]) -> Vec<(usize, Path<'a>)> {
    let mut found = Vec::new();
    let starts = ["crate::", "super::"].into_iter().flat_map(|start| code.match_indices(start));
    for (at, start) in starts {
        let is_inside = code[..at].bytes().last().is_some_and(|before| is_name(before) || before == b':');
        if is_inside {
            continue;
        }
        let (mut above, mut tree) = (0, &code[at..]);
        while let Some(rest) = tree.strip_prefix("super::") {
            (above, tree) = (above + 1, rest);
        }
        let tree = tree.strip_prefix("crate::").unwrap_or(tree);
        let base = if start == "crate::" { 0 } else { module.len().saturating_sub(above) };
        found.extend(leaves(tree).into_iter().map(|leaf| (at, [&module[..base], &leaf].concat())));
    }
    found
}

/// The paths in a use tree: `a::b` and `a::c::d` for `a::{b, c::d}`. Text after the tree is ignored.
fn leaves(tree: &str) -> Vec<Path<'_>> {
    let mut names: Path = Vec::new();
    let mut rest = tree;
    loop {
        let end = rest.bytes().take_while(|b| is_name(*b)).count();
        if end > 0 {
            names.push(&rest[..end]);
        }
        match rest[end..].strip_prefix("::") {
            Some(after) if after.starts_with('{') => return inside(&after[1..], &names),
            Some(after) if end > 0 => rest = after,
            _ if rest.starts_with('{') => return inside(&rest[1..], &names),
            _ => {
                // After `as`, the new name is appended to the path, since a re-export is known by it.
                let other = rest[end..].strip_prefix(" as ").unwrap_or_default();
                let end = other.bytes().take_while(|b| is_name(*b)).count();
                names.extend(Some(&other[..end]).filter(|name| !name.is_empty()));
                return vec![names];
            }
        }
    }
}

/// The paths inside a group (the text after its `{`), each prefixed with the names before the group.
fn inside<'a>(group: &'a str, before: &[&'a str]) -> Vec<Path<'a>> {
    let (mut depth, mut from, mut found) = (0usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        let is_end = c == '}' && depth == 0;
        if is_end || c == ',' && depth == 0 {
            let below = leaves(group[from..at].trim_start());
            found.extend(below.into_iter().map(|leaf| [before, &leaf].concat()));
            from = at + 1;
        }
        match c {
            _ if is_end => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

/// One line for each set of modules that reach one another.
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
        // Tests may use any module, comments do not count, and modules below a file belong to it.
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
        // Text after the closing brace of a group is not part of the path.
        check(&[("a.rs", "use crate::{c}; use {x, b};"), ("b.rs", "use crate::a;")], &[]);
    }

    #[test]
    fn modules_below_one_another_form_no_circle_but_those_beside_one_another_do() {
        check(&[("a.rs", "mod b; use b::B; struct A;"), ("a/b.rs", "use super::A;")], &[]);
        let circle = "modules that use one another, cut the circle: a::b → a::c (crates/x/src/a/b.rs:1), a::c → \
                      a::b (crates/x/src/a/c/d.rs:1)";
        let c = ("a/c/d.rs", "use crate::a::b::B;");
        check(&[("a.rs", ""), ("a/b.rs", "use super::c;"), c], &[circle]);
        // By way of the parent module.
        check(&[("a.rs", "use c::d::D;"), ("a/b.rs", "use super::D;"), c], &[circle]);
    }
}
