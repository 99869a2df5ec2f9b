//! Writes metrics as Parquet: the columns of the CSV file, one row per second. A Parquet file has its index at the end, so it cannot
//! be read before the run has ended.

use std::{
    io::{self, Write},
    sync::{Arc, mpsc::Receiver},
};

use parquet::{
    basic::{LogicalType, Repetition, TimeUnit, Type as Physical},
    data_type::{DoubleType, Int64Type},
    errors::{ParquetError, Result},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::{Type, TypePtr},
};

use super::columns;
use crate::metrics::{Snapshot, plain};

/// Number of rows per row group, which are buffered in memory.
const GROUP: usize = 600;

/// Writes rows until the channel is closed.
pub(crate) fn write(
    out: impl Write + Send,
    blank: &Snapshot,
    rows: &Receiver<Arc<Snapshot>>,
) -> io::Result<()> {
    all(out, blank, rows).map_err(|e| match e {
        ParquetError::External(e) => io::Error::other(e),
        other => io::Error::other(other),
    })
}

fn all(out: impl Write + Send, blank: &Snapshot, rows: &Receiver<Arc<Snapshot>>) -> Result<()> {
    let mut file = SerializedFileWriter::new(out, schema(blank)?, Arc::new(WriterProperties::default()))?;
    let mut waiting: Vec<Arc<Snapshot>> = Vec::new();
    for row in rows {
        waiting.push(row);
        if waiting.len() == GROUP {
            group(&mut file, &std::mem::take(&mut waiting))?;
        }
    }
    if !waiting.is_empty() {
        group(&mut file, &waiting)?;
    }
    file.close()?;
    Ok(())
}

fn schema(blank: &Snapshot) -> Result<TypePtr> {
    let time = Type::primitive_type_builder("time", Physical::INT64)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
        .build()?;
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(repetition).build().map(Arc::new)
    };
    let mut fields = vec![Arc::new(time), number("elapsed_s", Repetition::REQUIRED)?];
    for (name, _) in columns(blank) {
        fields.push(number(&name, Repetition::OPTIONAL)?);
    }
    Ok(Arc::new(Type::group_type_builder("throng").with_fields(fields).build()?))
}

fn group<W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: &[Arc<Snapshot>]) -> Result<()> {
    let mut group = file.next_row_group()?;
    let times: Vec<i64> = rows.iter().map(|row| row.at.0 as i64).collect();
    let elapsed: Vec<f64> = rows.iter().map(|row| plain(row.elapsed.secs_f64())).collect();
    let cells: Vec<Vec<Option<f64>>> =
        rows.iter().map(|row| columns(row).into_iter().map(|(_, n)| n).collect()).collect();
    let mut nth = 0;
    while let Some(mut column) = group.next_column()? {
        match nth {
            0 => column.typed::<Int64Type>().write_batch(&times, None, None)?,
            1 => column.typed::<DoubleType>().write_batch(&elapsed, None, None)?,
            nth => {
                let own: Vec<Option<f64>> = cells.iter().map(|row| row[nth - 2]).collect();
                let known: Vec<f64> = own.iter().flatten().map(|n| plain(*n)).collect();
                // Definition level 0 means null (Parquet, "Nested Encoding").
                let levels: Vec<i16> = own.iter().map(|n| i16::from(n.is_some())).collect();
                column.typed::<DoubleType>().write_batch(&known, Some(&levels), None)?
            }
        };
        column.close()?;
        nth += 1;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::Field,
    };

    use super::*;
    use crate::metrics::made_up::two_seconds;

    #[test]
    fn parquet_read_back_equals_csv() {
        let (blank, seconds) = two_seconds();
        let (give, rows) = channel();
        seconds.clone().into_iter().for_each(|second| give.send(Arc::new(second)).unwrap());
        drop(give);
        let mut file = tempfile();
        write(&mut file, &blank, &rows).unwrap();
        let read = SerializedFileReader::new(file).unwrap();
        assert_eq!(read.metadata().file_metadata().num_rows(), 2);
        for (row, second) in read.get_row_iter(None).unwrap().zip(&seconds) {
            let row = row.unwrap();
            let mut found = row.get_column_iter();
            assert_eq!(
                found.next().map(|(_, field)| field.clone()),
                Some(Field::TimestampMillis(second.at.0 as i64))
            );
            assert_eq!(
                found.next().map(|(_, field)| field.clone()),
                Some(Field::Double(second.elapsed.secs_f64()))
            );
            let found: Vec<(String, Option<f64>)> = found
                .map(|(name, field)| match field {
                    Field::Double(n) => (name.clone(), Some(*n)),
                    Field::Null => (name.clone(), None),
                    other => panic!("{name}: {other}"),
                })
                .collect();
            let expected: Vec<_> =
                columns(second).into_iter().map(|(name, n)| (name, n.map(plain))).collect();
            assert_eq!(found, expected);
        }
    }

    /// An unnamed temporary file.
    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("throng-{}.parquet", std::process::id()));
        let file =
            std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }
}
