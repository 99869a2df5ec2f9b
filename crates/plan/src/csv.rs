//! Tables of values: CSV by RFC 4180.

use std::sync::Arc;

/// A table of the scenario, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// What `{csv NAME.COLUMN}` calls it.
    pub name: String,
    /// The file as typed.
    pub file: String,
    /// In the file's order; shared by all texts that use them.
    pub columns: Vec<Arc<Column>>,
}

/// A column of a [`Csv`]: at least one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// `users.id`.
    name: String,
    /// All values, concatenated.
    text: String,
    /// Where each value ends in `text`.
    ends: Vec<usize>,
}

impl Column {
    /// `NAME.COLUMN`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column's own name.
    pub(super) fn short_name(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(_, column)| column)
    }

    /// The value in a row, from 0; wraps around after the last row.
    pub fn value(&self, row: u64) -> &str {
        let row = (row % self.ends.len() as u64) as usize;
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }

    /// All values.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u64).map(|row| self.value(row))
    }

    /// Octets of the longest value.
    pub(super) fn max_len(&self) -> usize {
        self.values().map(str::len).max().unwrap_or(0)
    }
}

impl Csv {
    /// Parses the text of a file. Its first record names the columns, and all others have as many fields. The error has the
    /// line and the fix.
    pub(super) fn parse(name: &str, file: &str, text: &str) -> Result<Csv, String> {
        let mut records = Records { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
        let titles = records.next_record()?.filter(|titles| titles != &[""]);
        let titles = titles.ok_or("no header line with the column names, such as id,name")?;
        let mut columns: Vec<Column> = Vec::new();
        for title in titles {
            let title = title.trim();
            if title.is_empty() {
                return Err(format!("line 1: column {} has no name; use id,name", columns.len() + 1));
            }
            if columns.iter().any(|column| column.short_name() == title) {
                return Err(format!("line 1: two columns have the same name: {title:?}"));
            }
            columns.push(Column { name: format!("{name}.{title}"), text: String::new(), ends: Vec::new() });
        }
        loop {
            let line = records.line;
            let Some(fields) = records.next_record()? else { break };
            if fields == [""] && columns.len() > 1 {
                continue; // an empty line, as people leave them at the end
            }
            if fields.len() != columns.len() {
                let (found, wanted) = (fields.len(), columns.len());
                return Err(format!("line {line}: {found} fields, but the header has {wanted} columns"));
            }
            for (column, field) in columns.iter_mut().zip(fields) {
                column.text.push_str(&field);
                column.ends.push(column.text.len());
            }
        }
        match columns[0].ends.is_empty() {
            true => Err("no rows after the header line".to_owned()),
            false => Ok(Csv {
                name: name.to_owned(),
                file: file.to_owned(),
                columns: columns.into_iter().map(Arc::new).collect(),
            }),
        }
    }
}

/// What is left of the text.
struct Records<'t> {
    rest: &'t str,
    /// Of the next record, from 1.
    line: usize,
}

impl Records<'_> {
    /// The fields of the next record; none at the end.
    fn next_record(&mut self) -> Result<Option<Vec<String>>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        loop {
            fields.push(self.field()?);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            let end = ["\r\n", "\n"].iter().find_map(|end| self.rest.strip_prefix(end));
            self.rest = end.unwrap_or("");
            self.line += 1;
            return Ok(Some(fields));
        }
    }

    /// The next field, up to the comma or the end of the line.
    fn field(&mut self) -> Result<String, String> {
        let Some(mut rest) = self.rest.strip_prefix('"') else {
            let line = &self.rest[..self.rest.find(['\n', ',']).unwrap_or(self.rest.len())];
            self.rest = &self.rest[line.len()..];
            let text =
                if self.rest.starts_with(',') { line } else { line.strip_suffix('\r').unwrap_or(line) };
            return Ok(text.to_owned());
        };
        let (mut field, line) = (String::new(), self.line);
        loop {
            let open = || format!("line {line}: unterminated quote; use \"\" for a quote inside a field");
            let quote = rest.find('"').ok_or_else(open)?;
            field.push_str(&rest[..quote]);
            rest = &rest[quote + 1..];
            match rest.strip_prefix('"') {
                Some(behind) => {
                    field.push('"');
                    rest = behind;
                }
                None => break,
            }
        }
        self.line += field.matches('\n').count();
        if !(rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n")) {
            return Err(format!(
                "line {}: no comma after a closing quote; use \"\" for a quote inside a field",
                self.line
            ));
        }
        self.rest = rest;
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_tables() {
        check("id,name\n1,Ann\n2,Bob\n", Ok("id=1|2; name=Ann|Bob"));
        check("id\r\n1\r\n\r\n", Ok("id=1|"));
        check("\u{feff}id,name\r\n1,\"a, \"\"b\"\"\nc\"\r\n2,", Ok("id=1|2; name=a, \"b\"\nc|"));
        check(" id , name \n 1 ,x\n\n", Ok("id= 1 ; name=x"));
        check("", Err("no header line with the column names, such as id,name"));
        check("\n1", Err("no header line with the column names, such as id,name"));
        check("id,\n1,2", Err("line 1: column 2 has no name; use id,name"));
        check("id,id\n1,2", Err("line 1: two columns have the same name: \"id\""));
        check("id,name\n", Err("no rows after the header line"));
        check("id,name\n1,\"a\n\nb\"\n2", Err("line 5: 1 fields, but the header has 2 columns"));
        check("id\n\"1", Err("line 2: unterminated quote; use \"\" for a quote inside a field"));
        check(
            "id\n\"1\"2\"\n",
            Err("line 2: no comma after a closing quote; use \"\" for a quote inside a field"),
        );
    }

    fn check(text: &str, expected: Result<&str, &str>) {
        let read = Csv::parse("t", "t.csv", text).map(|table| {
            let column = |column: &Arc<Column>| {
                format!("{}={}", column.short_name(), column.values().collect::<Vec<_>>().join("|"))
            };
            table.columns.iter().map(column).collect::<Vec<_>>().join("; ")
        });
        assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn rows_come_round() {
        let table = Csv::parse("t", "t.csv", "id\na\nbcd\n\ne").unwrap();
        let column = &table.columns[0];
        assert_eq!((0..5).map(|row| column.value(row)).collect::<Vec<_>>(), ["a", "bcd", "", "e", "a"]);
        assert_eq!((column.value(u64::MAX), column.max_len(), column.name()), ("e", 3, "t.id"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_table_or_an_error(text in "[a,\"\r\n]{0,40}|\\PC{0,20}") {
            if let Ok(table) = Csv::parse("t", "t.csv", &text) {
                let rows = table.columns[0].values().count();
                prop_assert!(rows > 0 && table.columns.iter().all(|column| column.values().count() == rows));
            }
        }

        #[test]
        fn quoted_values_come_back(values in proptest::collection::vec("[a,\"\r\n]{0,6}", 1..5)) {
            let quote = |value: &String| format!("\"{}\"\r\n", value.replace('"', "\"\""));
            let quoted: Vec<String> = values.iter().map(quote).collect();
            let table = Csv::parse("t", "t.csv", &format!("id\n{}", quoted.concat())).unwrap();
            prop_assert_eq!(table.columns[0].values().collect::<Vec<_>>(), values);
        }
    }
}
