//! The examples of RFC 7541 (appendix C), and cases that they do not cover.

use super::{Dynamic, ENTRIES, Fields, Stop, Table};
use crate::http2::MAX_LIST;
use proptest::collection::vec;
use proptest::prelude::*;

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn read(block: &[u8], dynamic: Dynamic<'_>) -> Result<List, Stop> {
    let mut text = vec![0; MAX_LIST];
    let mut fields = Fields::new(block, &mut text, dynamic);
    let mut list = Vec::new();
    while let Some(field) = fields.next()? {
        list.push((field.name.to_vec(), field.value.to_vec()));
    }
    Ok(list)
}

fn list(fields: &[(&str, &str)]) -> List {
    fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Bytes in the notation of the RFC.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Checks the fields of a block, and the size of the table after it.
fn check(table: &mut Table, hex: &str, fields: &[(&str, &str)], size: usize) {
    assert_eq!(read(&bytes(hex), Dynamic::Table(table)), Ok(list(fields)), "{hex}");
    assert_eq!(table.size(), size, "{hex}");
}

/// Checks a block that needs no table.
fn check_off(block: &[u8], expected: Result<&[(&str, &str)], Stop>) {
    let said = block.escape_ascii();
    assert_eq!(read(block, Dynamic::Off), expected.map(list), "{said}");
}

#[test]
fn c_1_integers() {
    // The lengths of a value; the RFC's examples have prefixes of 5 and 8 bits, here they have 7 bits.
    for (length, encoded) in [(10, &b"\x0a"[..]), (126, b"\x7e"), (127, b"\x7f\x00"), (1337, b"\x7f\xba\x09")]
    {
        let block = [b"\0\x01a", encoded, &vec![b'x'; length]].concat();
        check_off(&block, Ok(&[("a", &"x".repeat(length))]));
        assert_eq!(read(&block[..block.len() - 1], Dynamic::Off), Err(Stop::Invalid), "cut at {length}");
    }
    // Trailing zero digits do not change the value, up to the limit.
    check_off(b"\0\x01a\x7f\x80\x80\x80\x00", Err(Stop::Invalid));
    check_off(&[&b"\0\x01a\x7f\x80\x80\x80\x00"[..], &[b'x'; 127]].concat(), Ok(&[("a", &"x".repeat(127))]));
    check_off(b"\0\x01a\x7f\x80\x80\x80\x80\x00", Err(Stop::Invalid));
    check_off(b"\0\x01a\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Err(Stop::Invalid));
    check_off(b"\0\x01a\x7f", Err(Stop::Invalid));
}

#[test]
fn c_2_fields() {
    let mut table = Table::new();
    check(
        &mut table,
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        &[("custom-key", "custom-header")],
        55,
    );
    check(&mut table, "040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], 55);
    check(&mut table, "1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], 55);
    check(&mut table, "82", &[(":method", "GET")], 55);
    check(&mut table, "be", &[("custom-key", "custom-header")], 55);
}

const FIRST: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const THIRD: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];

#[test]
fn c_3_and_c_4_requests() {
    let second = [FIRST, &[("cache-control", "no-cache")]].concat();
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let huffman = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, huffman] {
        let mut table = Table::new();
        check(&mut table, blocks[0], FIRST, 57);
        check(&mut table, blocks[1], &second, 110);
        check(&mut table, blocks[2], THIRD, 164);
    }
}

#[test]
fn c_5_and_c_6_responses() {
    let fields = |status, date, rest: &[(&'static str, &'static str)]| {
        let front = [(":status", status), ("cache-control", "private"), ("date", date)];
        [&front[..], &[("location", "https://www.example.com")], rest].concat()
    };
    let (early, late) = ("Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT");
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
         3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let huffman = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
         63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, huffman] {
        let mut table = Table::new();
        // The examples use a table of 256 bytes, so that entries are evicted.
        let first = format!("3fe101 {}", blocks[0]);
        check(&mut table, &first, &fields("302", early, &[]), 222);
        check(&mut table, blocks[1], &fields("307", early, &[]), 222);
        let mut third = fields("200", late, &[("content-encoding", "gzip"), ("set-cookie", cookie)]);
        third[3] = ("location", "https://www.example.com");
        check(&mut table, blocks[2], &third, 215);
    }
}

#[test]
fn the_static_table_is_all_there() {
    for (nth, (name, value)) in ENTRIES.iter().enumerate() {
        let expected = [(str::from_utf8(name).unwrap(), str::from_utf8(value).unwrap())];
        check_off(&[0x81 + nth as u8], Ok(&expected));
    }
    assert_eq!(
        (ENTRIES[7].1, ENTRIES[13].1, ENTRIES[27].0),
        (&b"200"[..], &b"500"[..], &b"content-length"[..])
    );
    check_off(b"\x80", Err(Stop::Invalid));
    check_off(b"\xbe", Err(Stop::Invalid));
    check_off(b"\x0f\x2f\x01a", Err(Stop::Invalid));
}

#[test]
fn a_table_of_no_bytes_stores_nothing() {
    check_off(b"\x40\x01a\x01b", Ok(&[("a", "b")]));
    check_off(b"\x40\x01a\x01b\xbe", Err(Stop::Invalid));
    check_off(b"\x20\x88", Ok(&[(":status", "200")]));
    check_off(b"\x20\x20\x88", Ok(&[(":status", "200")]));
    check_off(b"\x21\x88", Err(Stop::Invalid));
    check_off(b"\x88\x20", Err(Stop::Invalid));
}

#[test]
fn a_table_is_wanted_where_one_is_used() {
    let absent = |block: &[u8]| read(block, Dynamic::Absent);
    assert_eq!(absent(b"\x88\x0f\x0d\x0212\0\x01a\x01b").map(|list| list.len()), Ok(3));
    assert_eq!(absent(b"\x88\x40\x01a\x01b"), Err(Stop::TableNeeded));
    assert_eq!(absent(b"\x20\x88"), Err(Stop::TableNeeded));
    assert_eq!(absent(b"\x88\xbe"), Err(Stop::Invalid));
}

#[test]
fn sizes_of_the_table() {
    let mut table = Table::new();
    let mut read = |block: &[u8]| read(block, Dynamic::Table(&mut table)).map(|list| list.len());
    assert_eq!(read(b"\x40\x01a\x01b\x40\x01c\x01d\xbe\xbf"), Ok(4));
    assert_eq!(read(b"\xc0"), Err(Stop::Invalid));
    // To 34 bytes: the older entry is evicted.
    assert_eq!(read(b"\x3f\x03\xbe"), Ok(1));
    assert_eq!(read(b"\xbf"), Err(Stop::Invalid));
    // A field larger than the table empties it.
    assert_eq!(read(b"\x40\x01a\x02bc"), Ok(1));
    assert_eq!(read(b"\xbe"), Err(Stop::Invalid));
    // 4,096 bytes are allowed, one more is not.
    assert_eq!(read(b"\x3f\xe1\x1f\x88"), Ok(1));
    assert_eq!(read(b"\x3f\xe2\x1f\x88"), Err(Stop::Invalid));
}

#[test]
fn strings_of_huffmans_code() {
    let value =
        |code: &[u8]| read(&[&b"\0\x01a"[..], &[0x80 | code.len() as u8], code].concat(), Dynamic::Off);
    let is = |text: &str| Ok(list(&[("a", text)]));
    assert_eq!(value(b""), is(""));
    assert_eq!(value(b"\x1f"), is("a"));
    // Padding consists of ones, and is shorter than a byte (section 5.2).
    assert_eq!(value(b"\x1e"), Err(Stop::Invalid));
    assert_eq!(value(b"\x18"), Err(Stop::Invalid));
    assert_eq!(value(b"\xff"), Err(Stop::Invalid));
    assert_eq!(value(b"\x1f\xff"), Err(Stop::Invalid));
    // The end-of-string symbol must not occur.
    assert_eq!(value(b"\xff\xff\xff\xff"), Err(Stop::Invalid));
    assert_eq!(value(b"\x1f\xff\xff\xff\xff\xff\xff\xff\xff"), Err(Stop::Invalid));
    // An incomplete code.
    assert_eq!(value(b"\xff\xc0"), Err(Stop::Invalid));
    assert_eq!(value(b"\xf8"), is("&"));
}

/// The table as the RFC describes it, without optimisation.
#[derive(Default)]
struct Model {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    largest: usize,
}

impl Model {
    fn evict(&mut self, room: usize) {
        let size = |entries: &List| entries.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>();
        while !self.entries.is_empty() && size(&self.entries) + room > self.largest {
            self.entries.pop();
        }
    }
}

/// Values with short codes, with long codes, and with both alternately.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let text = || "[ -~]{0,60}".prop_map(String::into_bytes);
    let mixed =
        vec(prop_oneof![8 => text(), 1 => vec(any::<u8>(), 0..3)], 0..4).prop_map(|parts| parts.concat());
    prop_oneof![vec(any::<u8>(), 0..200), text(), mixed]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_table_is_as_its_model(
        steps in vec((0..20u8, 0..60usize, 0..1500usize, 0..4097usize), 1..120),
    ) {
        let (mut table, mut model) = (Table::new(), Model { largest: 4096, ..Model::default() });
        for (nth, (kind, name, value, size)) in steps.into_iter().enumerate() {
            if kind == 0 {
                model.largest = size;
                model.evict(0);
                prop_assert!(table.resize(size).is_some());
            } else {
                let value = if kind < 4 { value * 3 } else { value / 20 };
                let field = (vec![nth as u8; name], vec![!nth as u8; value]);
                table.insert(&field.0, &field.1);
                model.evict(name + value + 32);
                if name + value + 32 <= model.largest {
                    model.entries.insert(0, field);
                }
            }
            for (nth, (name, value)) in model.entries.iter().enumerate() {
                prop_assert_eq!(table.get(nth), Some((&name[..], &value[..])));
            }
            prop_assert_eq!(table.get(model.entries.len()), None);
        }
    }

    #[test]
    fn what_is_written_is_read(fields in vec(("[a-z:-]{0,20}", value()), 0..10)) {
        let mut block = vec![0; 8192];
        let mut at = 0;
        for (name, value) in &fields {
            at += super::write_field(&mut block[at..], name, value).expect("there is room");
        }
        let fields: List = fields.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
        prop_assert_eq!(read(&block[..at], Dynamic::Off), Ok(fields));
    }

    /// No input causes a panic, or more text than there is memory for, however small the memory is.
    #[test]
    fn any_bytes_are_survived(block in vec(any::<u8>(), 0..200), room in 0..300usize, dynamic in any::<bool>()) {
        let (mut text, mut table) = (vec![0; room], Table::new());
        let dynamic = if dynamic { Dynamic::Table(&mut table) } else { Dynamic::Off };
        let mut fields = Fields::new(&block, &mut text, dynamic);
        let mut size = 0;
        while let Ok(Some(field)) = fields.next() {
            size += field.name.len() + field.value.len() + 32;
        }
        prop_assert!(size <= room);
    }
}
