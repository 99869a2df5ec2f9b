//! Parses and checks where a population's requests go, and what they have in common.

use super::document::{Scalar, Section};
use super::{Reader, StepContext, grpc};
use crate::connect_to::ConnectTo;
use crate::request::{LONGEST_REQUEST, too_long};
use crate::text::Place;
use crate::{Act, Body, Content, Expectation, Request, Scheme, Step, Target, Text, flag, header, login};

/// Header field with a user's name and password.
const AUTHORIZATION: &str = "Authorization";

/// Header field with the content codings that throng decodes.
const ACCEPT_ENCODING: &str = "Accept-Encoding";
const CODINGS: &str = "gzip, deflate, br, zstd";

impl Reader<'_, '_> {
    /// The target of a section, or else the top-level one, and what is dialled for it.
    pub(super) fn target(&mut self, own: &Section, key: &str) -> Option<Target> {
        let section = if own.has(key) { own } else { self.top };
        if !section.has(key) {
            let fix = self.notes.written(&flag::TARGET, "\"http://host:port/\"");
            self.notes.add(own.at, &own.key(key), format!("missing; use {fix}"));
        }
        let (v4, around, tables) = (self.v4, self.around, self.tables);
        let routing = if own.has("connect-to") { own } else { self.top };
        let routes = self.routes(routing);
        let mut target = section
            .read(self.notes, key, |text| Target::of_load(text, (v4, around.resolve), tables, &routes))?;
        if own.has("connect-to") && target.route.is_none() && !routes.is_empty() {
            own.refuse(self.notes, &["connect-to"], not_routed(&target));
        }
        if !target.scheme.has_path() {
            let schemes = Scheme::list(Scheme::BOTH, "and", |scheme| !scheme.has_path());
            own.refuse(
                self.notes,
                &["host", "headers", "user"],
                format!("{schemes} have no headers; remove it"),
            );
            return Some(target);
        }
        if let Some(user) = self.inherited(own, flag::USER.name, login::literal)
            && target.login.replace(user).is_some()
        {
            let why = "the target has a user, too; remove one of the two";
            own.note(self.notes, flag::USER.name, why.to_owned());
        }
        let host = self.inherited(own, "host", header::host).or_else(|| self.host_of_headers(own));
        target.authority = host.or(target.authority);
        Some(target)
    }

    /// A stand-in with the scheme of an invalid target, so that the remaining keys can be checked.
    pub(super) fn stand_in(&self, own: &Section) -> Option<Target> {
        let section = if own.has("target") { own } else { self.top };
        let (scheme, secure, _) = Scheme::split(&section.scalar("target")?.text).ok()?;
        let path = if scheme.has_path() { "/" } else { "" };
        let text = format!("{}127.0.0.1:1{path}", scheme.text(secure));
        Target::of_load(&text, (None, self.around.resolve), self.tables, &[]).ok()
    }

    fn routes(&mut self, section: &Section) -> Vec<ConnectTo> {
        let mut routes = Vec::new();
        for scalar in section.scalars("connect-to").unwrap_or_default() {
            match ConnectTo::parse(&scalar.text) {
                Ok(route) => routes.push(route),
                Err(why) => self.notes.add(scalar.at, &section.key("connect-to"), why),
            }
        }
        routes
    }

    fn host_of_headers(&self, own: &Section) -> Option<String> {
        let fields = if own.has("headers") { own } else { self.top }.pairs("headers");
        let host = fields.iter().find(|(name, _)| name.text.eq_ignore_ascii_case("host"))?;
        header::host(&host.1.text).ok()
    }

    /// The header fields of each request or upgrade, including the authorization of the target's user. Host is part of the target.
    pub(super) fn fields(&mut self, own: &Section, target: &Target) -> Vec<(String, Text)> {
        if !target.scheme.has_path() {
            return Vec::new();
        }
        let section = if own.has("headers") { own } else { self.top };
        let mut fields: Vec<(String, Text)> = Vec::new();
        let mut has_host =
            [own, self.top].iter().any(|one| one.has("host")).then(|| self.notes.name(&flag::HOST));
        for pair in section.pairs("headers") {
            let (name, value) = self.header(section, pair, target.scheme);
            let key = format!("{}.{name}", section.key("headers"));
            if let Err(why) = own_value(&name, &value) {
                self.notes.add(pair.1.at, &key, why);
            }
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let is_again = fields.iter().any(|(other, _)| is(other));
            if is("host")
                && let Some(other) = has_host.replace(format!("another {name}"))
            {
                self.notes.add(
                    pair.0.at,
                    &key,
                    format!("{name} is also given by {other}; remove one of the two"),
                );
            } else if is(AUTHORIZATION) && target.login.is_some() {
                let why = format!("{name} is also given by the user; remove one of the two");
                self.notes.add(pair.0.at, &key, why);
            } else if is_again {
                let between = if is("cookie") { "`; ` between its parts" } else { "`, ` between its values" };
                self.notes.add(pair.0.at, &key, format!("{name} is given twice; use one, with {between}"));
            }
            fields.extend((!is("host")).then_some((name, value)));
        }
        let fields_len: usize = fields.iter().map(|(name, value)| name.len() + value.max_len() + 4).sum();
        if !target.scheme.has_requests() && target.path.max_len() + fields_len > LONGEST_REQUEST {
            section.note(self.notes, "headers", too_long(target.path.max_len() + fields_len));
        }
        let login = target.login.iter().map(|login| (AUTHORIZATION.to_owned(), Text::fixed(login)));
        let codings = self.codings(own, target, &fields);
        login.chain(fields).chain(codings).collect()
    }

    /// The field that asks for compressed responses, if they are wanted and nothing else asks for them.
    fn codings(
        &mut self,
        own: &Section,
        target: &Target,
        fields: &[(String, Text)],
    ) -> Option<(String, Text)> {
        let is_wanted = own.truth("compressed").or_else(|| self.top.truth("compressed")).unwrap_or(false);
        if is_wanted && !target.scheme.has_plain_requests() {
            let why = Scheme::required(Scheme::BOTH, Scheme::has_plain_requests);
            own.refuse(self.notes, &["compressed"], why);
            return None;
        }
        let has_own = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(ACCEPT_ENCODING));
        (is_wanted && !has_own).then(|| (ACCEPT_ENCODING.to_owned(), Text::fixed(CODINGS)))
    }

    /// A checked header field.
    pub(super) fn header(
        &mut self,
        section: &Section,
        (name, value): &(Scalar, Scalar),
        scheme: Scheme,
    ) -> (String, Text) {
        let key = section.key("headers");
        if let Err(why) = header::check_name(&name.text, scheme) {
            self.notes.add(name.at, &key, why);
        }
        let text = Text::parse(value.text.trim(), Place::Field, self.tables);
        let text = text.map_err(|why| self.notes.add(value.at, &format!("{key}.{}", name.text), why));
        (name.text.clone(), text.unwrap_or_default())
    }

    /// The content of an HTTP request.
    pub(super) fn body(&mut self, section: &Section) -> Option<Body> {
        let tables = self.tables;
        self.one_body(section);
        let from_file = self.notes.name(&flag::BODY_FILE);
        let text = section.read(self.notes, "body", |text| match curls_file(text) {
            Some(file) => Err(format!(
                "{text:?} would be sent as it is; for the content of a file use {from_file} {file}"
            )),
            None => Text::parse(text, Place::Content, tables),
        });
        let file = section.read(self.notes, "body-file", Content::named);
        text.map(Body::Text).or(file.map(Body::File))
    }

    /// Reports a second content.
    pub(super) fn one_body(&mut self, section: &Section) {
        if section.has("body") {
            let body = self.notes.name(&flag::BODY);
            let why = format!("cannot be used with {body}; remove one of the two");
            section.refuse(self.notes, &["body-file"], why);
        }
    }

    /// The request of a population without steps.
    pub(super) fn only_request(&mut self, context: &StepContext) -> Step {
        let (own, target) = (context.own, context.target);
        let expect = Request::get(target.path.clone(), Expectation::default());
        let is_own = ["body", "body-file"].iter().any(|key| own.has(key));
        let with_body = if is_own { own } else { self.top };
        let headers = context.headers.to_vec();
        let mut request = match context.grpc {
            Some(shared) => {
                own.refuse(self.notes, &["method"], format!("not for {}; remove it", target.scheme));
                let body = self.grpc_body(with_body, context);
                let call = grpc::call(target, body, shared, Expectation::default());
                Request { headers, ..call }
            }
            None => {
                let body = self.body(with_body);
                let method = self.inherited(own, "method", header::method);
                // The default of curl.
                let usual = if body.is_some() { "POST" } else { "GET" };
                let method = method.unwrap_or_else(|| usual.to_owned());
                Request { method, headers, body, ..expect }
            }
        };
        request.expect = self.expected(own, context, request.numbers());
        let longest = request.max_len(target.host_header(0).len());
        if longest > LONGEST_REQUEST {
            let (key, fix) = match with_body.has("body") {
                true => ("body", format!("; use {}", self.notes.name(&flag::BODY_FILE))),
                false => ("headers", String::new()),
            };
            with_body.note(self.notes, key, format!("{}{fix}", too_long(longest)));
        }
        Step::new("get", Act::Request { request, think: context.think })
    }
}

/// The file that curl's `-d @FILE` would read.
fn curls_file(text: &str) -> Option<&str> {
    text.strip_prefix('@').filter(|file| !file.is_empty() && !file.contains(char::is_whitespace))
}

/// Checks a field whose value throng itself uses.
fn own_value(name: &str, value: &Text) -> Result<(), String> {
    match value.fixed_text() {
        None if name.eq_ignore_ascii_case("sec-websocket-protocol") => {
            Err(format!("{name} has no variables, because the server's choice is checked: \"{value}\""))
        }
        Some(text) if name.eq_ignore_ascii_case("host") => header::host(text).map(drop),
        None if name.eq_ignore_ascii_case("host") => {
            Err(format!("{name} has no variables here: \"{value}\""))
        }
        _ => Ok(()),
    }
}

/// The error if no rule of connect-to applies to the target.
fn not_routed(target: &Target) -> String {
    let port = target.destinations[0].port();
    match target.is_single() {
        true => format!("none is for {}:{port}; use {}:{port}:HOST2:PORT2", target.host, target.host),
        false => {
            "cannot be used with several destinations; use one host and one port in the target".to_owned()
        }
    }
}

/// The defaults that `own` does not override, followed by `own`.
pub(super) fn with_defaults(own: Vec<(String, Text)>, defaults: &[(String, Text)]) -> Vec<(String, Text)> {
    let is_free = |name: &str| !own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut all: Vec<_> = defaults.iter().filter(|(name, _)| is_free(name)).cloned().collect();
    all.extend(own);
    all
}
