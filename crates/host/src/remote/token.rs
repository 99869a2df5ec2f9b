//! The token that authorises requests.

use std::{fmt, fs::File, io::Read, os::unix::fs::PermissionsExt};

/// A secret that both sides read from a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Maximum number of bytes to read; longer files are not token files.
const MOST: u64 = 4096;

impl Token {
    /// Reads the first line of a file that only its owner may read.
    ///
    /// # Errors
    /// It cannot be read, other users can read it, or it has no token (visible ASCII characters); with the fix.
    pub fn read(path: &str) -> Result<Token, String> {
        let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
        // Checks the open file, not its name, so that it cannot be replaced in between.
        let mode = file.metadata().map_err(|e| format!("{path}: {e}"))?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(format!("other users can access this file; run chmod 600 {path}: mode {mode:04o}"));
        }
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text).map_err(|e| format!("{path}: {e}"))?;
        let token = text.lines().next().unwrap_or_default().trim();
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!(
                "no token in this file; create one with openssl rand -hex 32 > {path}: {path:?}"
            ));
        }
        Ok(Token(token.to_owned()))
    }

    /// The secret itself, for protocols with their own scheme.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// The value of an `Authorization` header.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether the value of an `Authorization` header contains this token. Takes constant time.
    pub(super) fn opens(&self, authorization: &[u8]) -> bool {
        let Some((scheme, offered)) = authorization.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && self.is(offered)
    }

    /// Whether this is the secret. Takes constant time.
    pub fn is(&self, offered: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let difference = own.iter().zip(offered).fold(0, |sum, (a, b)| sum | (a ^ b));
        own.len() == offered.len() && std::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fake::Machine;
    use std::fs;

    pub(crate) fn token(text: &str) -> Token {
        Token(text.to_owned())
    }

    fn check(text: &str, mode: u32, expected: Result<&str, &str>) {
        let machine = Machine::with(&[("token", text)]);
        let path = machine.root().path("token");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match (Token::read(path.to_str().unwrap()), expected) {
            (Ok(token), Ok(expected)) => assert_eq!(token.header(), format!("Bearer {expected}")),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (other, _) => panic!("{text:?} {mode:o}: {other:?}"),
        }
    }

    #[test]
    fn a_file_must_be_its_owners_alone() {
        check("secret\n", 0o600, Ok("secret"));
        check("  a1-b2 \nmore\n", 0o400, Ok("a1-b2"));
        for mode in [0o640, 0o604, 0o644, 0o610, 0o602] {
            check("secret\n", mode, Err("chmod 600 "));
        }
        check("", 0o600, Err("no token"));
        check("\n", 0o600, Err("no token"));
        check("two words\n", 0o600, Err("no token"));
        check("gehe\u{ed}m\n", 0o600, Err("no token"));
        assert!(Token::read("/nowhere/token").is_err_and(|why| why.starts_with("/nowhere/token: ")));
        assert_eq!(format!("{:?}", token("secret")), "Token(…)");
    }

    #[test]
    fn only_the_whole_token_opens() {
        let own = token("secret");
        for right in ["Bearer secret", "bearer secret"] {
            assert!(own.opens(right.as_bytes()), "{right}");
        }
        for wrong in
            ["", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret", "secret"]
        {
            assert!(!own.opens(wrong.as_bytes()), "{wrong}");
        }
    }
}
