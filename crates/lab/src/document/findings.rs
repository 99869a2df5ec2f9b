//! A lab's `findings.md`: text with placeholders for measured figures: `{{EXPERIMENT/SERVER[/VARIANT] PATH}}` is the median
//! of a figure of the summary over the stored outcomes, and `{{EXPERIMENT/SERVER[/VARIANT] PATH over
//! EXPERIMENT/SERVER[/VARIANT]}}` is that divided by another's. The text between `{{if EXPERIMENT/SERVER[/VARIANT]}}` and
//! `{{end}}` is included if that was run; the text after an `{{else}}`, if it was not.

use crate::{
    figure::{NONE, shown},
    group::Group,
    outcome::Subject,
    table::Spread,
};

/// The text with all placeholders replaced; what was not measured is a dash.
///
/// # Errors
/// A placeholder that is not closed, or names nothing.
pub(crate) fn filled(text: &str, groups: &[Group]) -> Result<String, String> {
    let text = &chosen(text, groups)?;
    let mut filled = String::new();
    let mut rest = text.as_str();
    while let Some((before, place)) = rest.split_once("{{") {
        let line = text[..text.len() - place.len()].matches('\n').count() + 1;
        let placed = |why: &str| format!("line {line}: {why}");
        let (place, after) = place.split_once("}}").ok_or_else(|| placed("unterminated placeholder"))?;
        filled.push_str(before);
        filled.push_str(
            &value(place, groups).ok_or_else(|| placed(&format!("not EXPERIMENT/SERVER PATH: {place}")))?,
        );
        rest = after;
    }
    filled.push_str(rest);
    // Paragraphs that were left out leave no gap.
    while filled.contains("\n\n\n") {
        filled = filled.replace("\n\n\n", "\n\n");
    }
    Ok(filled)
}

/// The text without what depends on results that do not exist, or on their absence.
fn chosen(text: &str, groups: &[Group]) -> Result<String, String> {
    let mut chosen = String::new();
    // Of each condition around: whether it is met, and whether its `else` has come.
    let mut around: Vec<(bool, bool)> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let line = text[..text.len() - rest.len() + at].matches('\n').count() + 1;
        let placed = |why: &str| format!("line {line}: {why}");
        let is_in = |around: &[(bool, bool)]| around.iter().all(|(met, _)| *met);
        let (before, after) = rest.split_at(at);
        if is_in(&around) {
            chosen.push_str(before);
        }
        let Some(end) = after.find("}}") else {
            rest = after;
            break;
        };
        let place = &after[2..end];
        rest = &after[end + 2..];
        match (place.strip_prefix("if "), place) {
            (Some(subject), _) => around.push((group(subject, groups).is_some(), false)),
            (None, "else") => match around.last_mut() {
                Some((met, has_else @ false)) => (*met, *has_else) = (!*met, true),
                _ => return Err(placed("{{else}} without {{if …}}")),
            },
            (None, "end") => {
                around.pop().ok_or_else(|| placed("{{end}} without {{if …}}"))?;
            }
            _ if is_in(&around) => chosen.push_str(&after[..end + 2]),
            _ => {}
        }
    }
    if !around.is_empty() {
        return Err("{{if …}} without {{end}}".to_owned());
    }
    Ok(chosen + rest)
}

fn value(place: &str, groups: &[Group]) -> Option<String> {
    if let Some((of, base)) = place.split_once(" over ") {
        let (subject, path) = of.rsplit_once(' ')?;
        let median = |subject: &str| Some(spread(subject, path, groups)?.median);
        let ratio = median(subject).zip(median(base)).filter(|(_, base)| *base > 0.0);
        return Some(ratio.map_or(NONE.to_owned(), |(of, base)| format!("{:.2}", of / base)));
    }
    let (subject, path) = place.rsplit_once(' ')?;
    if let Some(spread) = spread(subject, path, groups) {
        return Some(shown(path, spread.median));
    }
    let text = group(subject, groups).and_then(|group| group.last().text(path));
    Some(text.unwrap_or(NONE).to_owned())
}

/// `EXPERIMENT/SERVER[/VARIANT]`; where it was done at several scales, at the largest.
fn group<'a>(subject: &str, groups: &'a [Group<'a>]) -> Option<&'a Group<'a>> {
    let is = |group: &&Group| {
        let Subject { experiment, server, variant, .. } = group.subject;
        let variant = variant.as_ref().map_or(String::new(), |variant| format!("/{variant}"));
        subject == format!("{experiment}/{server}{variant}")
    };
    groups.iter().filter(is).max_by(|a, b| a.subject.scale.total_cmp(&b.subject.scale))
}

fn spread(subject: &str, path: &str, groups: &[Group]) -> Option<Spread> {
    group(subject, groups)?.spread(path)
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
