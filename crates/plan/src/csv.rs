//! Tables of values for a scenario: CSV by RFC 4180. A machine of a fleet holds only the rows that it uses; [`TableHead`] describes a table
//! whose values are elsewhere.

use std::sync::Arc;

use units::Count;

/// A table of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// Its name in `{csv NAME.COLUMN}`.
    pub name: String,
    /// The file as typed.
    pub file: String,
    /// The columns in the file's order; shared by all texts that use them.
    pub columns: Vec<Arc<Column>>,
    /// Which row a text uses.
    pub take: Take,
    /// Whether no row may be used twice.
    pub once: bool,
}

/// Which row of a table a text uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Take {
    /// That of the connection, which keeps it.
    #[default]
    Connection,
    /// The next one for each request or message of the population.
    Request,
    /// A random one for each request or message; the same for all columns of the table.
    Random,
}

impl Take {
    const NAMES: [(&str, Take); 3] =
        [("connection", Take::Connection), ("request", Take::Request), ("random", Take::Random)];

    pub(crate) fn parse(text: &str) -> Result<Take, String> {
        let found = Take::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, take)| *take).ok_or_else(|| format!("use connection, request or random: {text:?}"))
    }

    pub(crate) fn name(self) -> &'static str {
        Take::NAMES.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

/// Most rows of a table whose values are elsewhere: the number comes from outside, and all row numbers must fit into memory.
const MOST_ROWS: u32 = 1 << 26;

/// A column of a [`Csv`], with at least one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its full name: `users.id`.
    name: String,
    /// Which of its rows a text uses.
    take: Take,
    /// Rows of the table.
    rows: u32,
    /// The rows that are present, ascending; `None`: all.
    only: Option<Vec<u32>>,
    /// The values that are present, concatenated.
    text: String,
    /// Where each value ends in `text`.
    ends: Vec<usize>,
    /// Octets of the longest value in the whole table.
    max_len: usize,
}

/// The shape of a table, without its values.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TableHead {
    /// Rows after the header line.
    pub rows: u32,
    /// Name of each column, and octets of its longest value.
    pub columns: Vec<(String, usize)>,
}

/// A file that a scenario names, or what is known about it.
#[derive(Clone, Debug)]
pub enum Source {
    /// Its text.
    Text(String),
    /// The shape of a table whose values are elsewhere.
    Head(TableHead),
}

impl Column {
    fn new(name: String) -> Column {
        Column {
            name,
            take: Take::Connection,
            rows: 0,
            only: None,
            text: String::new(),
            ends: Vec::new(),
            max_len: 0,
        }
    }

    fn push(&mut self, value: &str) {
        self.text.push_str(value);
        self.ends.push(self.text.len());
        self.max_len = self.max_len.max(value.len());
    }

    /// The same column with the given values, which belong to `rows`, ascending.
    ///
    /// # Errors
    /// A value is longer than the longest of the table, or the numbers of values and rows differ.
    pub(crate) fn with_rows(
        &self,
        rows: Vec<u32>,
        values: impl IntoIterator<Item = String>,
    ) -> Result<Column, String> {
        let mut column = Column { rows: self.rows, take: self.take, ..Column::new(self.name.clone()) };
        values.into_iter().for_each(|value| column.push(&value));
        if column.max_len > self.max_len || column.ends.len() != rows.len() {
            return Err(format!("the values of column {} are not those of its table", self.name));
        }
        Ok(Column { only: Some(rows), max_len: self.max_len, ..column })
    }

    /// `NAME.COLUMN`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its table.
    pub(crate) fn table(&self) -> &str {
        self.name.split_once('.').map_or("", |(table, _)| table)
    }

    /// Which row a text uses.
    pub(crate) fn take(&self) -> Take {
        self.take
    }

    /// Number of rows of the table.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// The column's name without that of the table.
    pub(super) fn short_name(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(_, column)| column)
    }

    /// The value in a row, from 0; wraps around after the last row.
    ///
    /// # Panics
    /// The row is not [present](crate::Rows).
    pub fn value(&self, row: u64) -> &str {
        let row = (row % u64::from(self.rows)) as u32;
        let nth = match &self.only {
            None => row as usize,
            Some(rows) => rows.binary_search(&row).expect("a part has the rows that it uses"),
        };
        self.nth(nth)
    }

    fn nth(&self, nth: usize) -> &str {
        let start = nth.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[nth]]
    }

    /// All values that are present, each with its row, from 0.
    pub(super) fn values(&self) -> impl Iterator<Item = (u32, &str)> {
        let row = |nth: usize| self.only.as_ref().map_or(nth as u32, |rows| rows[nth]);
        (0..self.ends.len()).map(move |nth| (row(nth), self.nth(nth)))
    }

    /// Octets of the longest value in the whole table.
    pub(super) fn max_len(&self) -> usize {
        self.max_len
    }
}

impl Csv {
    /// A stand-in for a table that cannot be read: its columns are unknown.
    pub(super) fn unread(name: &str) -> Csv {
        Csv::with(name, "", std::iter::empty())
    }

    /// The column of this name. An unread table accepts any name, so that only the unreadable file is reported.
    pub(super) fn column(&self, name: &str) -> Option<Arc<Column>> {
        if self.columns.is_empty() {
            let mut column = Column { rows: 1, ..Column::new(format!("{}.{name}", self.name)) };
            column.push("");
            return Some(Arc::new(column));
        }
        self.columns.iter().find(|column| column.short_name() == name).cloned()
    }

    /// Parses the text of a file. The first record names the columns; all others must have as many fields. The error has the line and the
    /// fix.
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
            columns.push(Column::new(format!("{name}.{title}")));
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
                column.push(&field);
            }
        }
        let rows = u32::try_from(columns[0].ends.len()).map_err(|_| "more than 2^32 rows")?;
        if rows == 0 {
            return Err("no rows after the header line".to_owned());
        }
        Ok(Csv::with(name, file, columns.into_iter().map(|column| Column { rows, ..column })))
    }

    /// A table whose values are elsewhere.
    pub(super) fn of_head(name: &str, file: &str, head: &TableHead) -> Result<Csv, String> {
        if head.rows == 0 || head.columns.is_empty() {
            return Err("no rows or no columns".to_owned());
        }
        if head.rows > MOST_ROWS {
            return Err(format!("at most {} rows: {}", Count(MOST_ROWS.into()), Count(head.rows.into())));
        }
        let column = |(title, max_len): &(String, usize)| {
            let column = Column::new(format!("{name}.{title}"));
            Column { rows: head.rows, only: Some(Vec::new()), max_len: *max_len, ..column }
        };
        Ok(Csv::with(name, file, head.columns.iter().map(column)))
    }

    fn with(name: &str, file: &str, columns: impl Iterator<Item = Column>) -> Csv {
        let columns = columns.map(Arc::new).collect();
        Csv { name: name.to_owned(), file: file.to_owned(), columns, take: Take::Connection, once: false }
    }

    /// The same table, of which texts use other rows.
    pub(super) fn taken(self, take: Take, once: bool) -> Csv {
        let columns = self.columns.iter().map(|column| Arc::new(Column { take, ..(**column).clone() }));
        Csv { columns: columns.collect(), take, once, ..self }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> u32 {
        self.columns.first().map_or(0, |column| column.rows)
    }

    /// The shape of the table.
    pub fn head(&self) -> TableHead {
        let column = |column: &Arc<Column>| (column.short_name().to_owned(), column.max_len);
        TableHead { rows: self.rows(), columns: self.columns.iter().map(column).collect() }
    }
}

/// The text that is still to be parsed.
struct Records<'t> {
    rest: &'t str,
    /// Line of the next record, from 1.
    line: usize,
}

impl Records<'_> {
    /// The fields of the next record; `None` at the end.
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
                format!(
                    "{}={}",
                    column.short_name(),
                    column.values().map(|(_, value)| value).collect::<Vec<_>>().join("|")
                )
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
            prop_assert_eq!(table.columns[0].values().map(|(_, value)| value).collect::<Vec<_>>(), values);
        }
    }
}
