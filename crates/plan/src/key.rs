//! What a key of a scenario file is: the reader, the JSON schema and the reference come from tables of these.

use Kind::{Number, Pairs, Text, Truth, Values};

/// A table of the file, and its keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// Where it is, as people write it.
    pub(crate) place: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// In the order in which people would write them.
    pub(crate) keys: &'static [Key],
}

/// A key of a [`Table`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As written.
    pub(crate) name: &'static str,
    /// The kind of its value.
    pub(crate) kind: Kind,
    /// What it means, its default last.
    pub(crate) about: &'static str,
    /// A value as written in TOML: the fix of a wrong type, and the example of the schema.
    pub(crate) example: &'static str,
}

/// The kind of a key's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A number with or without its unit: a text, or a whole number.
    Number,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Truth,
    /// `true`, `false` or a text.
    TruthOrText,
    /// Texts in brackets.
    Texts,
    /// A table whose keys are the user's, of texts and whole numbers.
    Pairs,
    /// The same, of `true` and `false` too.
    Values,
    /// A text in short form, or a table.
    TextOrTable(&'static Table),
    /// An array of tables: `[[name]]`.
    Tables(&'static Table),
    /// Tables with names of the user: `[key.name]`.
    Named(&'static Table),
}

impl Table {
    /// The key of this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A key of these.
pub(crate) const fn key(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Key {
    Key { name, kind, about, example }
}

/// The check of a response.
pub(crate) static ANSWER: Table = Table {
    name: "expect",
    place: "expect",
    about: "Checks of a response, in addition to complete framing; all must hold.",
    keys: &[
        key(
            "status",
            Number,
            "200",
            "http: this status; default any 2xx; grpc: this status, by name or number; default OK",
        ),
        key("length", Number, "\"$1\"", "octets of content; `$1` is the first random number of the request"),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"text/plain\" }",
            "http: header fields, each with a text that its value must contain",
        ),
        key("body", Text, "\"welcome\"", "a text that the content must contain"),
        key(
            "json",
            Values,
            "{ \"/ok\" = true }",
            "values in the content, which is JSON, each by its pointer (RFC 6901): a text, a whole number, true or \
            false",
        ),
        key("echo", Truth, "true", "ws, tcp: exactly the message that was sent"),
        key("skip", Truth, "true", "ws: ignore messages until one passes; default: check the next message"),
        key(
            "time",
            Text,
            "\"json:/ts\"",
            "of a population, ws: location of the send timestamp in pushed messages, for \
            the delay: a JSON pointer, or what follows a text (after:ts=); Unix time in seconds, ms, µs or ns, or RFC 3339",
        ),
        key(
            "number",
            Text,
            "\"json:/seq\"",
            "of a population, ws: location of their sequence number, to detect loss, duplicates and reordering",
        ),
        key(
            "receivers",
            Number,
            "\"all\"",
            "of a population, ws: each number is a broadcast to this many of its connections, or to all that are \
            open; measures the time until the last one receives it",
        ),
    ],
};

/// The probe in a table of its own.
pub(crate) static PROBE: Table = Table {
    name: "probe",
    place: "[probe]",
    about: "Requests independent of the load, to measure what an independent user sees.",
    keys: &[
        key("rate", Number, "\"10/s\"", "request rate, half of it on fresh connections; required"),
        key(
            "target",
            Text,
            "\"http://127.0.0.1:8000/\"",
            "the URL; default the top-level target, otherwise the first population's with http:// or grpc://",
        ),
    ],
};
