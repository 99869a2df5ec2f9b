use super::*;
use Place::{Content, Field, Path};
use proptest::prelude::*;
use units::Nanos;

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
    let all = "use {rand 1 4096}, or one of rand, seq, choice, csv, env, var, now, uuid, body, path, string, \
               base64, base64url, url, sha1, sha256, sha512, hmac-sha1, hmac-sha256, hmac-sha512, jwt";
    check("{mist}", Content, Err(&format!("unknown variable \"{{mist}}\"; {all}")));
    check("{rnd 1 2}", Content, Err("unknown variable \"{rnd 1 2}\"; use {rand 1 4096}"));
    check("{chioce a}", Content, Err("unknown variable \"{chioce a}\"; use {choice a b c}"));
    check("{choice}", Content, Err("unknown variable \"{choice}\"; use {choice a b c}"));
    check("{choice a {seq}", Content, Err("{choice} takes plain words, without braces: \"{seq\""));
    check("{seq 1}", Content, Err("unknown variable \"{seq 1}\"; use {seq}"));
    check("{rand 9 1}", Content, Err("\"{rand 9 1}\" is reversed; use {rand 1 9}"));
    check("{rand a b}", Content, Err("\"{rand a b}\" needs two integers; use {rand 1 4096}"));
    check("/{}", Path, Err(&format!("unknown variable \"{{}}\"; {all}")));
    check(
        "{rand 1 9 even}",
        Content,
        Err("\"{rand 1 9 even}\": no such distribution; use zipf or normal: \"even\""),
    );
    check(
        "{now 5s}",
        Content,
        Err("\"{now 5s}\" is no form of the time; use {now}, {now ms} or {now s +5m}"),
    );
    check("{now s +5}", Content, Err("\"{now s +5}\": \"5\" is not a time; use 5s"));
    check("{string 0}", Content, Err("\"{string 0}\" needs a length from 1 to 4096; use {string 16}"));
    check("{uuid 7}", Content, Err("unknown variable \"{uuid 7}\"; use {uuid}"));
    check("{sha265 a}", Content, Err("unknown variable \"{sha265 a}\"; use {sha256 {csv users.id}}"));
    check("{sha256}", Content, Err("\"{sha256}\" needs a text; use {sha256 {csv users.id}}"));
    check(
        "{hmac-sha1 key}",
        Field,
        Err("\"{hmac-sha1 key}\" needs a key and a text; use {hmac-sha1 {env KEY} {body}}"),
    );
    check("{base64 {seq}", Content, Err("unclosed brace; each { needs a }: \"{base64 {seq}\""));
    let deep = format!("{}{}", "{base64 ".repeat(40), "}".repeat(40));
    check(&deep, Content, Err("braces may nest 31 deep: \"{base64 {base64 {base64 \""));
    let only = |name: &str| {
        format!("{{{name}}} is for digests in a header; use {{hmac-sha256 {{env KEY}} {{{name}}}}}")
    };
    check("{body}", Field, Err(&only("body")));
    check("{sha256 {path}}", Content, Err(&only("path")));
    check("{base64 {body}}", Field, Err(&only("body")));
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
fn functions_are_those_of_their_standards() {
    // RFC 7617 (section 2), RFC 4648 (section 10), FIPS 180-4, RFC 2202 and RFC 4231 (case 2).
    check("Basic {base64 Aladdin:open sesame}", Field, Ok("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    check("{base64url >>>{base64 f}?}", Content, Ok("Pj4-Wmc9PT8"));
    check("{sha1 abc}", Content, Ok("a9993e364706816aba3e25717850c26c9cd0d89d"));
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    check("/?h={sha256 abc}", Path, Ok(&format!("/?h={abc}")));
    let text = "what do ya want for nothing?";
    check(&format!("{{hmac-sha1 Jefe {text}}}"), Field, Ok("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"));
    let tag = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    check(&format!("{{hmac-sha256 Jefe {text}}}"), Content, Ok(tag));
    // Around a digest, its octets are encoded.
    check("{base64 {sha256 abc}}", Content, Ok("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="));
    check("/?h={base64 {sha256 abc}}", Path, Ok("/?h=ungWv48Bz%2BpBQUDeXa4iI7ADYaOWF3qctBD%2FYfIAFa0%3D"));
    check("{url a/b c=&\u{e9}{seq}}", Content, Ok("a%2Fb%20c%3D%26%C3%A941"));
    // The example of jwt.io.
    let claims = r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#;
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ\
                 .SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
    check(&format!("Bearer {{jwt your-256-bit-secret {claims}}}"), Field, Ok(&format!("Bearer {token}")));
    // The signing key of AWS (Signature Version 4, "Derive a signing key"): each digest is the next key.
    let key = "{hmac-sha256 {hmac-sha256 {hmac-sha256 {hmac-sha256 AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY \
               20150830} us-east-1} iam} aws4_request}";
    check(key, Content, Ok("c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"));
    check("{base64 {{seq} {csv users.id}}!", Content, Ok("e3NlcX0gMTI=!"));
}

#[test]
fn times_have_the_forms_that_apis_expect() {
    let check = |text: &str, expected: &str| {
        let text = Text::parse(text, Field, &[]).unwrap();
        let (mut random, mut out) = (Random::new(9), vec![0; text.max_len()]);
        let now = Nanos(1_795_282_449_125_999_999);
        let length = text.write(&mut Values::new(&mut random, 0, 0).at(now, 0), &mut out);
        assert_eq!(str::from_utf8(&out[..length]).unwrap(), expected, "{text}");
    };
    check("{now}", "2026-11-21T17:34:09.125Z");
    check("{now iso -1h}", "2026-11-21T16:34:09.125Z");
    check("{now http +1s}", "Sat, 21 Nov 2026 17:34:10 GMT");
    check("{now s}.{now ms}", "1795282449.1795282449125");
    check("{now us} {now ns}", "1795282449125999 1795282449125999999");
    check("{now s +5m} {now s -999h} {now s -999999h}", "1795282749 1791686049 0");
}

#[test]
fn random_texts_have_their_form_and_differ() {
    let text = Text::parse("{uuid} {string 20}", Field, &[]).unwrap();
    let mut random = Random::new(7);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1_000 {
        let mut out = vec![0; text.max_len()];
        let length = text.write(&mut Values::new(&mut random, 0, 0), &mut out);
        let written = String::from_utf8(out[..length].to_vec()).unwrap();
        let (uuid, string) = written.split_once(' ').unwrap();
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
        assert!(parts.concat().bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        assert!(string.len() == 20 && string.bytes().all(|b| b.is_ascii_alphanumeric()), "{string}");
        assert!(seen.insert(uuid.to_owned()) && seen.insert(string.to_owned()));
    }
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
        text in "([{}a-c \"]|\\{(rand [0-9] 9|seq|choice a b|csv users.id|now s|uuid|string 3|rand 1 9 zipf|base64 \\{seq\\}|base64 ab|hmac-sha1 k \\{sha1 \\{path\\}\\}|jwt k \\{\"a\": \\{seq\\}\\})\\}){0,12}|\\PC{0,9}",
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
