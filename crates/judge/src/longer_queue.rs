//! The setting that makes a server's accept queue longer.
//!
//! The length is the smaller of two numbers: the backlog that the server passes to listen(2), and `net.core.somaxconn` at that time.
//! Raising only the larger one has no effect.

/// `net.core.somaxconn` of Linux since 5.4.
pub const USUAL_SOMAXCONN: u64 = 4_096;

/// The setting for the backlog by prefix of the server's process name; `%` is replaced by the number.
const SETTINGS: &[(&str, &str)] = &[
    ("nginx", "nginx: listen … backlog=%"),
    ("haproxy", "HAProxy: backlog %"),
    ("php-fpm", "PHP-FPM: listen.backlog = %"),
    ("node", "Node.js: server.listen({ backlog: % })"),
    ("gunicorn", "gunicorn: --backlog %"),
    ("uvicorn", "uvicorn: --backlog %"),
    // Started by an interpreter, whose name the process has.
    ("python", "gunicorn and uvicorn: --backlog %"),
    ("puma", PUMA),
    ("ruby", PUMA),
    ("java", "Java: %, the second argument of ServerSocket or of HttpServer.create"),
    // Go programs and throng's servers use the maximum that is allowed.
    ("caddy", AS_IT_STARTS),
    ("traefik", AS_IT_STARTS),
    ("throng", AS_IT_STARTS),
];

const PUMA: &str = "puma: -b 'tcp://…?backlog=%'";
const AS_IT_STARTS: &str = "it takes net.core.somaxconn when it starts";

/// How to make the queue of this program longer (`program`: process name, empty if unknown): raise its backlog to `own`,
/// `net.core.somaxconn`, or both. Returns a command, if there is one, and what to do afterwards.
pub fn longer_queue(program: &str, own: Option<u64>, somaxconn: Option<u64>) -> (Option<String>, String) {
    let command = somaxconn.map(|most| format!("sysctl -w net.core.somaxconn={most}"));
    let Some(own) = own.map(|own| own.to_string()) else { return (command, "restart the target".to_owned()) };
    let setting = SETTINGS.iter().find(|(name, _)| program.starts_with(name));
    let raise = match setting {
        Some((_, how)) => format!("raise the target's listen backlog ({})", how.replace('%', &own)),
        None => format!("raise the backlog in the target's call of listen() to {own}"),
    };
    (command, format!("{raise}, and restart it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_raises_a_backlog_follows_from_the_program() {
        let check = |program: &str, expected: &str| {
            let expected = (None, format!("raise the {expected}, and restart it"));
            assert_eq!(longer_queue(program, Some(4_096), None), expected, "{program}");
        };
        check("nginx", "target's listen backlog (nginx: listen … backlog=4096)");
        check("php-fpm8.2", "target's listen backlog (PHP-FPM: listen.backlog = 4096)");
        check("node-MainThread", "target's listen backlog (Node.js: server.listen({ backlog: 4096 }))");
        check("python3", "target's listen backlog (gunicorn and uvicorn: --backlog 4096)");
        check("ruby", "target's listen backlog (puma: -b 'tcp://…?backlog=4096')");
        check(
            "java",
            "target's listen backlog (Java: 4096, the second argument of ServerSocket or of HttpServer.create)",
        );
        check("caddy", "target's listen backlog (it takes net.core.somaxconn when it starts)");
        check("a-server", "backlog in the target's call of listen() to 4096");
        check("", "backlog in the target's call of listen() to 4096");
    }

    #[test]
    fn only_what_limits_is_raised() {
        let (command, then) = longer_queue("nginx", None, Some(4_096));
        let sysctl = Some("sysctl -w net.core.somaxconn=4096".to_owned());
        assert_eq!((&command, then.as_str()), (&sysctl, "restart the target"));
        let (command, then) = longer_queue("haproxy", Some(4_096), Some(4_096));
        let both = "raise the target's listen backlog (HAProxy: backlog 4096), and restart it";
        assert_eq!((command, then.as_str()), (sysctl, both));
    }
}
