use super::*;
use Place::{Content, Field, Path};
use proptest::prelude::*;

fn tables() -> Vec<Csv> {
    vec![Csv::parse("users", "users.csv", "id,full name,mail\n7,Ann B,a@x\n12,Bob,b@x\n").unwrap()]
}

/// The text, its place, and the filled text or the error.
fn check(text: &str, place: Place, expected: Result<&str, &str>) {
    let written = Text::parse(text, place, &tables()).map(|text| fill(&text, 41, 1).0);
    assert_eq!(written, expected.map(str::to_owned).map_err(str::to_owned), "{text:?} in {place:?}");
}

/// The filled text, and the numbers that it drew.
fn fill(text: &Text, seq: u64, row: u64) -> (String, Vec<u64>) {
    let (mut random, mut out) = (Random::new(9), vec![0; text.max_len()]);
    let mut values = Values::new(&mut random, seq, row);
    let length = text.write(&mut values, &mut out);
    (String::from_utf8(out[..length].to_vec()).unwrap(), values.numbers().to_vec())
}

#[test]
fn variables_are_filled() {
    check("/a?n={rand 5 5}&s={seq}&c={choice x}&u={csv users.id}", Path, Ok("/a?n=5&s=41&c=x&u=12"));
    check("{ rand  5  5 }", Path, Ok("5"));
    check("Bearer {csv users.mail}-{seq}", Field, Ok("Bearer b@x-41"));
    check("{csv users.mail}{rand 1k 1k}", Content, Ok("b@x1000"));
    check("", Content, Ok(""));
}

#[test]
fn json_stands_as_it_is() {
    check("{\"id\": {seq}, \"deep\": {\"a\": [{}]}}", Content, Ok("{\"id\": 41, \"deep\": {\"a\": [{}]}}"));
    check("{ rand 1 2 } {1} {", Content, Ok("{ rand 1 2 } {1} {"));
    check("{{seq}} {{rand", Content, Ok("{seq}} {rand"));
    check("{{{seq}", Content, Ok("{{seq}"));
    check("{{\"a\"}}", Content, Ok("{{\"a\"}}"));
}

#[test]
fn wrong_variables_are_named_with_their_fix() {
    let all = "use {rand 1 4096}, {seq}, {choice a b c}, {csv users.id}, {env TOKEN} or {var token}";
    check("{name}", Content, Err(&format!("unknown variable \"{{name}}\"; {all}")));
    check("{rnd 1 2}", Content, Err("unknown variable \"{rnd 1 2}\"; use {rand 1 4096}"));
    check("{chioce a}", Content, Err("unknown variable \"{chioce a}\"; use {choice a b c}"));
    check("{choice}", Content, Err("unknown variable \"{choice}\"; use {choice a b c}"));
    check("{choice a {seq}", Content, Err("{choice} takes plain words, without braces: \"{seq\""));
    check("{seq 1}", Content, Err("unknown variable \"{seq 1}\"; use {seq}"));
    check("{rand 9 1}", Content, Err("\"{rand 9 1}\" is reversed; use {rand 1 9}"));
    check("{rand a b}", Content, Err("\"{rand a b}\" needs two integers; use {rand 1 4096}"));
    check("/{}", Path, Err("unknown variable \"{}\"; use {rand 1 4096}"));
    check("/{seq", Path, Err("unclosed brace; use {rand 1 4096}: \"{seq\""));
    check("/x}", Path, Err("closing brace without an opening one; use {rand 1 4096}: \"/x}\""));
    check("{csv users}", Content, Err("\"{csv users}\" has no column; use {csv users.COLUMN}"));
    check("{csv user.id}", Content, Err("\"{csv user.id}\": no such table; use {csv users.id}: \"user\""));
    check(
        "{csv goods.id}",
        Content,
        Err("\"{csv goods.id}\": no such table; add [csv.goods] with file = \"goods.csv\": \"goods\""),
    );
    check(
        "{csv users.mial}",
        Content,
        Err("\"{csv users.mial}\": users.csv has no such column; use {csv users.mail}: \"mial\""),
    );
    check(
        "{csv users.colour}",
        Content,
        Err(
            "\"{csv users.colour}\": users.csv has no such column; use one of id, full name, mail: \"colour\"",
        ),
    );
}

#[test]
fn misplaced_keys_are_mistakes() {
    check("/a b", Path, Err("' ' is not allowed in a path; use %20"));
    check("/é", Path, Err("'é' is not allowed in a path; use %C3%A9"));
    check("a\r\nb", Field, Err("'\\r' is not allowed in a header; remove it: \"a\\r\\nb\""));
    check("{choice a b\u{e9}}", Field, Err("'é' is not allowed in a header; remove it: \"bé\""));
    let table = [Csv::parse("t", "t.csv", "v\nok\n\"a b\"").unwrap()];
    let wrong = Text::parse("/{csv t.v}", Path, &table).unwrap_err();
    assert_eq!(wrong, "{csv t.v}, row 2: ' ' is not allowed in a path; use %20");
    assert_eq!(Text::parse("{csv t.v}", Field, &table).unwrap().max_len(), 3);
}

#[test]
fn each_word_is_chosen_and_the_first_eight_numbers_are_kept() {
    let text = Text::parse("{choice a b c}", Content, &[]).unwrap();
    let mut random = Random::new(3);
    let mut seen = [0; 3];
    for _ in 0..3_000 {
        let mut out = [0];
        assert_eq!(text.write(&mut Values::new(&mut random, 0, 0), &mut out), 1);
        seen[usize::from(out[0] - b'a')] += 1;
    }
    // The standard deviation of each count is 26.
    assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    let text = Text::parse(&"{rand 0 9}".repeat(9), Content, &[]).unwrap();
    let (written, numbers) = fill(&text, 0, 0);
    assert_eq!((text.numbers(), numbers.len()), (9, MAX_NUMBERS));
    assert!(written.starts_with(&numbers.iter().map(u64::to_string).collect::<String>()));
}

proptest! {
    #[test]
    fn any_text_reads_as_it_prints(
        text in "([{}a-c \"]|\\{(rand [0-9] 9|seq|choice a b|csv users.id)\\}){0,12}|\\PC{0,9}",
        seq: u64,
    ) {
        for place in [Path, Field, Content] {
            let Ok(read) = Text::parse(&text, place, &tables()) else { continue };
            let printed = read.to_string();
            let again = Text::parse(&printed, place, &tables());
            prop_assert_eq!(again.as_ref(), Ok(&read), "{:?} printed as {:?}", text, printed);
            prop_assert!(fill(&read, seq, 0).0.len() <= read.max_len());
        }
    }
}
