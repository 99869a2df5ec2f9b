//! What a server needs, and how it is had.

use std::{env, path::Path};

use crate::file::Server;

/// What is not there, each with its cure.
pub fn missing(server: &Server) -> Vec<String> {
    let folders = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = |program: &str| folders.split(':').any(|folder| Path::new(folder).join(program).is_file());
    let programs = server.needs.iter().filter(|needed| !found(&needed.program));
    let programs = programs.map(|needed| format!("{}: apt-get install {}", needed.program, needed.package));
    let unset = |name: &str| env::var_os(name).is_none_or(|value| value.is_empty());
    let variables = server.needs_environment.iter().filter(|needed| unset(&needed.name));
    let variables = variables.map(|needed| format!("{} is not set: {}", needed.name, needed.why));
    programs.chain(variables).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Program, Ready, Variable};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_missing_is_named_with_its_cure() {
        let program =
            |program: &str| Program { program: program.to_owned(), package: format!("{program}-package") };
        let variable =
            |name: &str| Variable { name: name.to_owned(), why: "put a class path into it".to_owned() };
        let server = Server {
            name: "s".to_owned(),
            needs: vec![program("sh"), program("no-such-program")],
            needs_environment: vec![variable("PATH"), variable("NO_SUCH_VARIABLE")],
            build: Vec::new(),
            start: "true".to_owned(),
            environment: BTreeMap::new(),
            ready: Ready::default(),
            connections_each: None,
            heap: None,
            version: None,
        };
        let expected = [
            "no-such-program: apt-get install no-such-program-package",
            "NO_SUCH_VARIABLE is not set: put a class path into it",
        ];
        assert_eq!(missing(&server), expected);
    }
}
