//! Replaces placeholders in a lab's `findings.md` with measured figures.
//!
//! `{{EXPERIMENT/SERVER[/VARIANT] PATH}}` is the median of a figure of the summary over the stored outcomes;
//! `{{EXPERIMENT/SERVER[/VARIANT] PATH over EXPERIMENT/SERVER[/VARIANT]}}` is this median divided by that of another. The text
//! between `{{if EXPERIMENT/SERVER[/VARIANT]}}` and `{{end}}` is included if there is such an outcome; the text after `{{else}}`, if
//! there is none.

use crate::{
    figure::{NONE, shown},
    group::{Group, Spread},
    outcome::Subject,
};

/// The text with its placeholders replaced; a figure that was not measured is a dash.
///
/// # Errors
/// A placeholder is not terminated, or not known.
pub(crate) fn filled(text: &str, groups: &[Group]) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    // For each open condition, outermost first: whether it is met, and whether its `else` has been passed.
    let mut around: Vec<(bool, bool)> = Vec::new();
    while let Some((before, after)) = rest.split_once("{{") {
        let line = text[..text.len() - after.len()].matches('\n').count() + 1;
        let placed = |why: &str| format!("line {line}: {why}");
        let (placeholder, after) =
            after.split_once("}}").ok_or_else(|| placed("unterminated placeholder"))?;
        rest = after;
        let is_in = around.iter().all(|(met, _)| *met);
        if is_in {
            filled.push_str(before);
        }
        match (placeholder.strip_prefix("if "), placeholder) {
            (Some(subject), _) => around.push((group(subject, groups).is_some(), false)),
            (None, "else") => match around.last_mut() {
                Some((met, has_else @ false)) => (*met, *has_else) = (!*met, true),
                _ => return Err(placed("{{else}} without {{if …}}")),
            },
            (None, "end") => {
                around.pop().ok_or_else(|| placed("{{end}} without {{if …}}"))?;
            }
            _ if is_in => {
                let wrong = || placed(&format!("not EXPERIMENT/SERVER PATH: {placeholder}"));
                filled.push_str(&value(placeholder, groups).ok_or_else(wrong)?);
            }
            _ => {}
        }
    }
    if !around.is_empty() {
        return Err("{{if …}} without {{end}}".to_owned());
    }
    filled.push_str(rest);
    // Removes the gaps of omitted paragraphs.
    while filled.contains("\n\n\n") {
        filled = filled.replace("\n\n\n", "\n\n");
    }
    Ok(filled)
}

fn value(placeholder: &str, groups: &[Group]) -> Option<String> {
    if let Some((of, base)) = placeholder.split_once(" over ") {
        let (subject, path) = of.rsplit_once(' ')?;
        let median = |subject: &str| Some(spread(subject, path, groups)?.median);
        let ratio = median(subject).zip(median(base)).filter(|(_, base)| *base > 0.0);
        return Some(ratio.map_or(NONE.to_owned(), |(of, base)| format!("{:.2}", of / base)));
    }
    let (subject, path) = placeholder.rsplit_once(' ')?;
    if let Some(spread) = spread(subject, path, groups) {
        return Some(shown(path, spread.median));
    }
    let text = group(subject, groups).and_then(|group| group.last().text(path));
    Some(text.unwrap_or(NONE).to_owned())
}

/// The group of `EXPERIMENT/SERVER[/VARIANT]`; if there are several scales, that of the largest.
fn group<'a>(subject: &str, groups: &'a [Group<'a>]) -> Option<&'a Group<'a>> {
    let is = |group: &&Group| {
        let Subject { experiment, server, variant, .. } = group.subject;
        let variant = variant.as_ref().map_or(String::new(), |variant| format!("/{variant}"));
        subject == format!("{experiment}/{server}{variant}")
    };
    groups.iter().filter(is).max_by(|a, b| a.subject.scale.total_cmp(&b.subject.scale))
}

fn spread(subject: &str, path: &str, groups: &[Group]) -> Option<Spread> {
    Spread::of(&group(subject, groups)?.counted(), path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{group::groups, outcome::Outcome};
    use serde_json::json;

    #[test]
    fn placeholders_are_medians_texts_and_ratios() {
        let outcome = |server: &str, variant: Option<&str>, per_s: f64| Outcome {
            subject: Subject {
                experiment: "wrk".to_owned(),
                server: server.to_owned(),
                variant: variant.map(str::to_owned),
                ..Subject::default()
            },
            summary: json!({"requests": {"per_s": per_s}, "limit": {"cause": "open-files"}}),
            ..Outcome::default()
        };
        let outcomes = [
            outcome("a", None, 10_000.0),
            outcome("a", None, 30_000.0),
            outcome("a", None, 20_000.0),
            outcome("b", Some("2 workers"), 80_000.0),
        ];
        let groups = groups(&outcomes);
        let check = |text: &str, expected: &str| assert_eq!(filled(text, &groups).unwrap(), expected);
        check("of {{wrk/a requests.per_s}}/s.", "of 20,000/s.");
        check("{{wrk/b/2 workers requests.per_s}}{{wrk/a limit.cause}}", "80,000open-files");
        check("{{wrk/b/2 workers requests.per_s over wrk/a}} times", "4.00 times");
        check("{{wrk/c requests.per_s}} {{wrk/a no.path}} {{wrk/c x over wrk/a}} {one}", "– – – {one}");
        check("{{if wrk/a}}a {{wrk/a limit.cause}}{{else}}none{{end}}.", "a open-files.");
        check("{{if wrk/c}}c {{wrk/c x}}{{else}}none{{end}}.", "none.");
        check("a\n\n{{if wrk/c}}c{{end}}\n\nb", "a\n\nb");
        check(
            "{{if wrk/a}}1{{if wrk/c}}2{{else}}3{{end}}4{{end}}{{if wrk/c}}5{{if wrk/a}}6{{end}}{{end}}",
            "134",
        );
        for wrong in ["{{else}}", "{{end}}", "{{if wrk/a}}", "{{if wrk/a}}{{else}}{{else}}{{end}}"] {
            assert!(filled(wrong, &groups).is_err(), "{wrong}");
        }
        assert_eq!(filled("\n\n{{wrk", &groups), Err("line 3: unterminated placeholder".to_owned()));
        assert_eq!(filled("{{wrk}}", &groups), Err("line 1: not EXPERIMENT/SERVER PATH: wrk".to_owned()));
    }
}
