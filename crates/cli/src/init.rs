//! `throng init`: a commented scenario for a running service.

use std::fmt::Write;

use ::import::Imported;
use ::run::Interrupt;
use host::Root;
use plan::{Flags, Plan, Scheme};
use samples::transcript::{Content, Event, Piece};

use crate::{Failure, args::InitArgs, import, plans, signals};

/// Where services have their OpenAPI document: FastAPI, Spring, ASP.NET, Express with swagger-ui, NestJS, and others.
const DOCUMENTS: [&str; 8] = [
    "/openapi.json",
    "/v3/api-docs",
    "/swagger/v1/swagger.json",
    "/swagger.json",
    "/api-docs",
    "/api-json",
    "/api/openapi.json",
    "/docs/openapi.json",
];

/// Looks at the service, and writes the scenario; returns the exit status.
pub(crate) fn init(args: &InitArgs, flags: &Flags) -> Result<u8, Failure> {
    let plan = plans::plan(flags)?;
    let target = &plan.populations[0].target;
    if target.scheme != Scheme::Http {
        return Err(Failure::usage([format!("target: requires http:// or https://: {:?}", plan.text)]));
    }
    let origin = target.origin();
    let path = &target.path.to_string();
    let interrupt = signals::interrupt()?;
    let pages = pages(&plan, &origin, path, &interrupt)?;
    let document = pages.iter().find_map(|page| {
        let name = page.path.trim_start_matches('/');
        import::import_document(name, &page.content, &origin)
    });
    let first = pages.first().filter(|page| page.status.is_some());
    let first = first.ok_or_else(|| Failure::machine(format!("{origin}: no response; is it running?")))?;
    let imported = document.unwrap_or_else(|| alone(&origin, path, first));
    let framework = first.fields(&["server", "x-powered-by"]);
    let says = if framework.is_empty() {
        String::new()
    } else {
        format!("# The service says: {}\n", framework.join(", "))
    };
    import::write(Imported { scenario: says + &imported.scenario, ..imported }, args.output.as_deref())
}

/// A page of the service.
struct Page {
    path: String,
    status: Option<u16>,
    head: String,
    content: String,
}

impl Page {
    /// The header fields with these names: `server: nginx`.
    fn fields(&self, names: &[&str]) -> Vec<String> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let own = fields.filter(|(name, _)| names.iter().any(|own| name.eq_ignore_ascii_case(own)));
        own.map(|(name, value)| format!("{}:{value}", name.to_ascii_lowercase())).collect()
    }
}

/// Requests the path and the usual documents, by the steps of one user.
fn pages(plan: &Plan, origin: &str, path: &str, interrupt: &Interrupt) -> Result<Vec<Page>, Failure> {
    let mut text =
        format!("target = {:?}\n[[population]]\nname = \"init\"\nconnections = 1\n", format!("{origin}/"));
    let paths: Vec<&str> = std::iter::once(path).chain(DOCUMENTS).collect();
    for (nth, path) in paths.iter().enumerate() {
        let _ = write!(
            text,
            "[[population.step]]\nname = \"step-{nth}\"\nrequest = {:?}\n",
            format!("GET {path}")
        );
    }
    let mut own = plans::read_text("init.toml", &text, &Flags::default()).map_err(Failure::usage)?;
    // What is dialled, and how, is that of the command line.
    let user = &mut own.populations[0];
    user.target.clone_from(&plan.populations[0].target);
    user.tls.clone_from(&plan.populations[0].tls);
    user.streams = plan.populations[0].streams;
    let mut pages: Vec<Page> = Vec::new();
    let mut take = |entry: &samples::transcript::Entry| match &entry.event {
        Event::Step(step) => pages.push(Page {
            path: paths[usize::from(*step)].to_owned(),
            status: None,
            head: String::new(),
            content: String::new(),
        }),
        Event::Received(Piece::Head(head)) => {
            pages.last_mut().into_iter().for_each(|page| page.head.clone_from(head))
        }
        Event::Received(Piece::Content(Content { bytes, .. })) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            pages.last_mut().into_iter().for_each(|page| page.content.clone_from(&text));
        }
        Event::Response(response) => {
            pages.last_mut().into_iter().for_each(|page| page.status = response.status)
        }
        _ => {}
    };
    let one = own.of_one_user(0, 1).expect("a few steps have places");
    ::run::one_user(&one, &Root::real(), (1, true), interrupt, &mut take).map_err(Failure::machine)?;
    Ok(pages)
}

/// A scenario with the only path that is known.
fn alone(origin: &str, path: &str, page: &Page) -> Imported {
    let status = page.status.unwrap_or(200);
    let expect = if (200..300).contains(&status) {
        String::new()
    } else {
        format!("expect = {{ status = {status} }}\n")
    };
    let scenario = format!(
        "# Made by `throng init {origin}{path}`. One user, step by step: throng try FILE. A load: throng run FILE\n\
        target = {:?}\n\
        # How long the load lasts once all connections are open.\n\
        duration = \"30s\"\n\
        # When the run passes; without thresholds, if nothing was lost or wrong.\n\
        # thresholds = [\"latency.p95 < 200ms\", \"errors < 1%\"]\n\n\
        [[population]]\n\
        name = \"users\"\n\
        # Connections that are open at once, each of them a user.\n\
        connections = 50\n\
        # Each user keeps the cookies of its responses.\n\
        # cookies = true\n\n\
        [[population.step]]\n\
        name = \"first\"\n\
        request = {:?}\n{expect}\
        # The pause of a user before the next step.\n\
        think = \"1s..5s\"\n\n\
        # Add a step for each further request of a user, such as a login whose token the next steps send:\n\
        # [[population.step]]\n\
        # request = \"POST /login\"\n\
        # headers = {{ Content-Type = \"application/json\" }}\n\
        # body = '{{\"user\": \"{{seq}}\", \"password\": \"{{env PASSWORD}}\"}}'\n\
        # capture = {{ token = {{ json = \"/token\" }} }}\n",
        format!("{origin}/"),
        format!("GET {path}"),
    );
    let why = format!("routes: no OpenAPI document at {}", DOCUMENTS.join(", "));
    Imported::new("a running service", scenario, vec![why])
}
