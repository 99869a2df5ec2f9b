//! Finds programs and files that a server needs and that are not installed.

use std::{env, path::Path};

use crate::{
    file::{Need, Server},
    source,
};

/// Messages about what is missing, each with its fix.
pub fn missing(server: &Server) -> Vec<String> {
    let folders = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = |program: &str| folders.split(':').any(|folder| Path::new(folder).join(program).is_file());
    let lacks = |need: &Need| {
        let program = need.program.as_deref().filter(|program| !found(program));
        let what = program.or(need.file.as_deref().filter(|file| !Path::new(file).exists()))?;
        Some(format!("{what}: apt-get install {}", need.package))
    };
    let needs = server.needs.iter().filter_map(lacks);
    let unset = |name: &str| env::var_os(name).is_none_or(|value| value.is_empty());
    let variables = server.needs_environment.iter().filter(|needed| unset(&needed.name));
    let variables = variables.map(|needed| format!("{} is not set: {}", needed.name, needed.why));
    let sources = source::missing(server, env::var_os(source::VARIABLE).as_deref());
    needs.chain(variables).chain(sources).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_fix() {
        let server: Server = toml::from_str(
            r#"
            name = "s"
            start = "true"
            needs = [
                { program = "sh", package = "dash" },
                { program = "no-such-program", package = "p1" },
                { file = "/proc/self/status", package = "p2" },
                { file = "/no/such.jar", package = "p3" },
            ]
            needs_environment = [
                { name = "PATH", why = "put a path into it" },
                { name = "NO_SUCH_VARIABLE", why = "put a path into it" },
            ]
            "#,
        )
        .unwrap();
        let expected = [
            "no-such-program: apt-get install p1",
            "/no/such.jar: apt-get install p3",
            "NO_SUCH_VARIABLE is not set: put a path into it",
        ];
        assert_eq!(missing(&server), expected);
    }
}
