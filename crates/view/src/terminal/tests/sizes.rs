//! Terminals of all sizes, and the use of colours.

use ratatui::style::Color;
use samples::ThresholdResult;

use super::*;

#[test]
fn small_terminals_have_the_compact_view() {
    let mut run = in_trouble(3);
    run.second.thresholds = thresholds();
    for (width, height) in [(60, 15), (40, 10), (200, 15), (44, 34)] {
        check(&format!("terminal-{width}x{height}"), &frame(&run.scene(None), width, height));
    }
    let text = frame(&run.scene(Some("press d again to drain")), 40, 10);
    assert!(text.contains("\n press d again to drain\n p + - d q ?\n"), "{text}");
    for (width, height) in
        [(0, 0), (1, 1), (3, 2), (9, 50), (160, 2), (79, 24), (80, 23), (24, 6), (300, 100)]
    {
        for is_help in [false, true] {
            let text = frame(&Scene { is_help, ..run.scene(Some("press d again to drain")) }, width, height);
            assert_eq!(text.lines().count(), usize::from(height), "{width}x{height}");
        }
    }
}

#[test]
fn the_least_room_has_all_curves_the_sums_and_the_keys() {
    for (width, height) in [(80, 24), (117, 24), (118, 24), (118, 30), (200, 24)] {
        let mut run = in_trouble(3);
        run.second.thresholds = thresholds();
        let text = frame(&run.scene(None), width, height);
        let words = [
            " hold ",
            "open 100,000 of 100,000",
            "── connections ─",
            "── requests ─",
            "── latency p99 ─",
            "── errors ─",
            "p99",
            "target ",
            "faults   51,095",
            "thresholds  1 of 3 met",
            "200 ",
            "q stop    ? help",
        ];
        for word in words {
            assert!(text.contains(word), "{word:?} in {width}x{height}:\n{text}");
        }
        assert!(text.lines().filter(|line| line.contains('█')).count() >= 3, "{text}");
        assert_eq!(text.lines().count(), usize::from(height));
    }
}

/// One threshold that is met, one that is not, and one without a measurement.
fn thresholds() -> Vec<ThresholdResult> {
    let own = |expr: &str, value, shown: &str, pass| ThresholdResult {
        expr: expr.to_owned(),
        value,
        shown: shown.to_owned(),
        pass,
        unreliable: false,
    };
    vec![
        own("latency.p99 < 200ms", Some(9_900.0), "9.90 ms", true),
        own("errors < 1%", Some(3.4), "3.4 %", false),
        own("target_cost.cpu_s < 5s", None, "", false),
    ]
}

#[test]
fn large_terminals_are_filled() {
    let mut run = in_trouble(3);
    run.second.thresholds = thresholds();
    for (width, height) in [(120, 40), (200, 50)] {
        let text = frame(&run.scene(None), width, height);
        check(&format!("terminal-{width}x{height}"), &text);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest >= Some(usize::from(width) - 1), "{text}");
    }
    let text = frame(&Scene { is_help: true, ..run.scene(None) }, 80, 24);
    check("terminal-help-80x24", &text);
}

#[test]
fn help_has_all_that_fits() {
    let run = in_trouble(3);
    for (width, height) in [(60, 15), (80, 15), (200, 10), (80, 24)] {
        let text = frame(&Scene { is_help: true, ..run.scene(None) }, width, height);
        let is_there = |name: &&str| text.split([' ', '\n']).any(|word| word == *name);
        let missing: Vec<&str> = ["p", "Ctrl-C", "?", "waiting", "lag", "thresholds", "▔", "curves"]
            .into_iter()
            .filter(|name| !is_there(name))
            .collect();
        assert!(missing.is_empty() && !text.contains('…'), "{missing:?} in {width}x{height}:\n{text}");
    }
    let text = frame(&Scene { is_help: true, ..run.scene(None) }, 40, 10);
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        " p pause or resume",
        " + - a tenth more or less load",
        " d d drain   q q stop",
        " Ctrl-C drain, again: stop",
        " ? close the help",
        " open connections open now",
    ];
    assert_eq!(lines[..6], expected, "{text}");
    assert_eq!(lines[9], " ? close the help", "{text}");
}

/// The colours of a text that occurs once.
fn colours(scene: &Scene, text: &str) -> Vec<Color> {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(120, 40)).unwrap();
    terminal.draw(|frame| view::draw(scene, frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let at = buffer
        .content()
        .windows(letters.len())
        .position(|cells| cells.iter().zip(&letters).all(|(cell, letter)| cell.symbol() == letter));
    let at = at.unwrap_or_else(|| panic!("{text:?} is not there"));
    buffer.content()[at..at + letters.len()].iter().map(|cell| cell.fg).collect()
}

#[test]
fn what_is_missing_at_full_load_is_red() {
    let mut run = in_trouble(0);
    run.tick(&second(20, Phase::Hold, 61_250, 0));
    let missing = "61,250 of 100,000  38,750 missing";
    assert_eq!(colours(&run.scene(None), missing)[..6], [Color::Red; 6]);
    assert_eq!(colours(&run.scene(None), "38,750 missing"), [Color::Red; 14]);
    // Without colours, the text says the same. During a ramp, missing connections are normal.
    assert!(frame(&run.scene(None), 44, 10).contains("38,750 missing"));
    for phase in [Phase::Ramp, Phase::Pause, Phase::Drain] {
        run.tick(&second(21, phase, 61_250, 0));
        assert!(!frame(&run.scene(None), 120, 40).contains("missing"), "{phase:?}");
    }
    run.tick(&second(22, Phase::Hold, 100_000, 0));
    assert!(!colours(&run.scene(None), "100,000 of 100,000").contains(&Color::Red));
}
