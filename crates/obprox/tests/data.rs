//! Files of every kind in, data sets or one clear line out.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use obprox::Error;
use obprox::data::{
    Dataset, Format, Label, Matrix, ReadOptions, Synth, read, read_from, read_vector, write_cache, write_libsvm,
};
use proptest::prelude::*;

fn parse(text: impl AsRef<[u8]>) -> obprox::Result<Dataset> {
    parse_with(text, &ReadOptions::default())
}

fn parse_with(text: impl AsRef<[u8]>, options: &ReadOptions) -> obprox::Result<Dataset> {
    read_from("file", Cursor::new(text.as_ref().to_vec()), options)
}

fn libsvm() -> ReadOptions {
    ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() }
}

fn csv() -> ReadOptions {
    ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() }
}

fn error_of(text: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    parse_with(text, options).unwrap_err().to_string()
}

fn rows(dataset: &Dataset) -> Vec<Vec<(usize, f64)>> {
    let row = |row| {
        let mut entries = Vec::new();
        dataset.matrix.for_each(row, |column, value| entries.push((column, value)));
        entries
    };
    (0..dataset.matrix.n_rows()).map(row).collect()
}

/// Everything that makes two data sets the same, to the bit.
fn identity(dataset: &Dataset) -> impl PartialEq + use<> {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let entries = rows(dataset).into_iter().map(|row| row.into_iter().map(|(column, value)| (column, value.to_bits())));
    let entries: Vec<Vec<_>> = entries.map(Iterator::collect).collect();
    (dataset.matrix.storage(), dataset.matrix.n_cols(), entries, bits(&dataset.targets), dataset.names.clone())
}

// LIBSVM

#[test]
fn libsvm_takes_what_files_really_contain() {
    let text = "# head\n+1 1:1 3:2.5e-1\r\n\n-1\n 0.5\tqid:7  2:-3 # tail\n1 1:0 4:0#x\n   \n#\n2 4294967295:1";
    let dataset = parse(text).unwrap();
    assert_eq!(dataset.targets[..], [1.0, -1.0, 0.5, 1.0, 2.0]);
    let expected = [vec![(0, 1.0), (2, 0.25)], vec![], vec![(1, -3.0)], vec![], vec![(4294967294, 1.0)]];
    assert_eq!(rows(&dataset), expected);
    assert_eq!(dataset.matrix.n_cols(), 4294967295);
    assert_eq!(dataset.matrix.storage(), "f32");
}

#[test]
fn libsvm_columns_without_a_value_still_count() {
    assert_eq!(parse("1 1:1 9:0\n").unwrap().matrix.n_cols(), 9);
    let options = ReadOptions { n_cols: Some(12), ..ReadOptions::default() };
    assert_eq!(parse_with("1 1:1 9:0\n", &options).unwrap().matrix.n_cols(), 12);
}

#[test]
fn libsvm_errors_say_where_and_what() {
    for (text, expected) in [
        ("1 0:1", "1:3: index 0: LIBSVM indices start at 1"),
        ("1 1:1\n-1 9:1 7:1", "2:8: index 7 comes after 9: indices must rise within a row"),
        ("1 3:1 3:2", "1:7: index 3 is repeated: a row has one value a column"),
        ("1 4294967296:1", "1:3: index 4294967296 is too large: indices go up to 4294967295"),
        ("1 9999999999999999999:1", "1:3: index 9999999999999999999 is too large: indices go up to 4294967295"),
        ("1 00000000000000000001:1", "1:3: `00000000000000000001` is too long for an index"),
        ("1 1:nan", "1:3: value of index 1: `nan` is not a finite number: fill it in or drop the row"),
        ("1 1:-Inf", "1:3: value of index 1: `-Inf` is not a finite number: fill it in or drop the row"),
        ("1 1:1e400", "1:3: value of index 1: `1e400` is too large for a double"),
        ("inf 1:1", "1:1: label: `inf` is not a finite number: fill it in or drop the row"),
        ("1e999 1:1", "1:1: label: `1e999` is too large for a double"),
        ("cat 1:1", "1:1: label: `cat` is not a number"),
        ("1,2 1:1", "1:1: label `1,2`: a row has one number as its label"),
        ("1:1 2:1", "1:1: the line starts with `1:1` where its label should be"),
        ("1 2", "1:3: `2` is not index:value"),
        ("1 2:", "1:3: index 2 has no value: write 2:value without blanks"),
        ("1 2: 3", "1:3: index 2 has no value: write 2:value without blanks"),
        ("1 :3", "1:3: `:3`: the index before `:` is not a whole number"),
        ("1 -2:3", "1:3: `-2:3`: the index before `:` is not a whole number"),
        ("1 1:1:1", "1:3: value of index 1: `1:1` is not a number"),
        ("1 1:1x", "1:3: value of index 1: `1x` is not a number"),
        ("1 1:0x1", "1:3: value of index 1: `0x1` is not a number"),
        ("\r\n\r\n  1 1:1  2:é\r\n", "3:10: value of index 2: `é` is not a number"),
        ("1 1:1\r-1 1:1\r", "1:3: value of index 1: a carriage return inside a line: end lines with LF or CR LF"),
    ] {
        assert_eq!(error_of(text, &libsvm()), format!("file:{expected}"), "{text:?}");
    }
    assert_eq!(error_of(b"1 1:1\n1 2:\xff\n", &libsvm()), "file:2:3: value of index 2: `\\xff` is not a number");
    assert_eq!(error_of(b"\xff\xfe1 1:1\n", &libsvm()), "file:1:1: label: `\\xff\\xfe1` is not a number");
}

#[test]
fn the_first_error_wins_whatever_the_cut() {
    let mut lines: Vec<String> = (0..60_000).map(|row| format!("{} 1:1 {}:0.5\r", row % 2, row + 2)).collect();
    lines[41_233] = "1 1:1 5:oops\r".into();
    lines[41_234] = "broken\r".into();
    lines[59_999] = "1 0:0\r".into();
    let text = lines.join("\n");
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for block in [1, 1000, 100_000, 4 << 20] {
            let options = ReadOptions { block, ..ReadOptions::default() };
            let error = pool.install(|| error_of(&text, &options));
            assert_eq!(error, "file:41234:7: value of index 5: `oops` is not a number");
        }
    }
}

#[test]
fn the_result_is_the_same_whatever_the_cut() {
    let planted = Synth { rows: 20_000, ..Synth::default() }.generate().unwrap();
    let mut text = Vec::new();
    write_libsvm(&planted.dataset, &mut text).unwrap();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for block in [10_000, 300_000, 4 << 20] {
            let back = pool.install(|| parse_with(&text, &ReadOptions { block, ..ReadOptions::default() }).unwrap());
            assert!(identity(&back) == identity(&planted.dataset), "{threads} threads, blocks of {block}");
        }
    }
}

/// A plain file is read by all threads at once, a pipe from its start: the two must not differ.
#[test]
fn a_file_reads_as_its_stream() {
    let mixed: String = (1..3000u32)
        .map(|row| match row % 7 {
            0 => "# a comment\n".into(),
            1 => format!("{} qid:3 {}:0 {}:1 # rest\r\n", row % 2, row, row + 1),
            2 => "1\t3:0.25\t 17:-4e-3  \n".into(),
            3 => format!("-1 {row}:1\n"),
            // Beyond what ones, and then what single precision, can hold, late in the file.
            4 if row > 2000 => format!("+1 1:0.1234567890123456789 {row}:{row}\n"),
            4 if row > 1000 => "1 2:0.5\n".into(),
            5 => "\n".into(),
            _ => format!("1 1:1 {row}:1\n"),
        })
        .collect();
    let table: String = (0..3000).map(|row| format!("{},{},{}\n", row % 2, row, f64::from(row) / 3.0)).collect();
    let texts = [
        mixed.clone(),
        format!("\u{feff}{mixed}1 5:1"),
        format!("\u{feff}y,a,b\r\n{table}"),
        "1 1:1".into(),
        format!("{mixed}1 7:x\n"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for text in &texts {
        std::fs::write(&path, text).unwrap();
        for block in [1, 100, 4096, 1 << 20] {
            let options = ReadOptions { block, label: Label::First, ..ReadOptions::default() };
            let shown = |result: obprox::Result<Dataset>| {
                result.map(|dataset| identity(&dataset)).map_err(|error| error.to_string())
            };
            let file = shown(read(&path, &options)).map_err(|error| error.replace(path.to_str().unwrap(), "file"));
            assert!(file == shown(parse_with(text, &options)), "blocks of {block}: {:.60}", text);
        }
    }
}

#[test]
fn a_carriage_return_ends_a_line_only_before_a_line_feed() {
    for text in ["1 1:1\rx\n", "1 1:1\r2:1\n-1 1:1\n", "1 1:1\r\r\n", "1\r2 1:1\n"] {
        assert!(parse_with(text, &libsvm()).is_err(), "{text:?}");
    }
    for text in ["1,2\r3\n", "1,2\r3,4\n5,6\n", "1,2\r\r\n"] {
        assert!(parse_with(text, &csv()).is_err(), "{text:?}");
    }
    assert_eq!(parse_with("1 1:1\r\n-1 1:2\r\n", &libsvm()).unwrap().targets[..], [1.0, -1.0]);
}

#[test]
fn strange_shapes() {
    assert_eq!(error_of("", &libsvm()), "file: is empty: it has no rows");
    for text in ["\n", "# only\n# comments", "  \r\n\t\n"] {
        assert_eq!(error_of(text, &libsvm()), "file: has no rows: give a file with at least one");
    }
    assert_eq!(parse("1\n").unwrap().matrix.n_cols(), 0);
    assert_eq!(rows(&parse("-0 1:-0 2:1").unwrap()), [[(1, 1.0)]]);
    let long: String = (1..=200_000).map(|index| format!(" {index}:1")).collect();
    let options = ReadOptions { block: 1000, ..ReadOptions::default() };
    let dataset = parse_with(format!("1{long}\n-1{long}"), &options).unwrap();
    assert_eq!((dataset.matrix.nnz(), dataset.matrix.storage()), (400_000, "ones"));
}

#[test]
fn a_byte_order_mark_is_no_text() {
    assert_eq!(parse("\u{feff}1 1:1\n").unwrap().targets[..], [1.0]);
    assert_eq!(parse("\u{feff}y,a\n1,2\n").unwrap().names.unwrap(), ["a"]);
}

// CSV

#[test]
fn csv_takes_what_files_really_contain() {
    let dataset = parse("y,a,\"b, c\"\r\n1, 2 ,3\r\n\r\n0,\"4\",-5e1").unwrap();
    assert_eq!(dataset.names.as_deref().unwrap(), ["a", "b, c"]);
    assert_eq!(dataset.targets[..], [1.0, 0.0]);
    assert_eq!(rows(&dataset), [[(0, 2.0), (1, 3.0)], [(0, 4.0), (1, -50.0)]]);
    assert_eq!(dataset.matrix.storage(), "dense f32");
    for separator in [";", "\t", "|"] {
        let text = "1,2,3\n0,4,-5e1\n".replace(',', separator);
        assert_eq!(rows(&parse(text).unwrap()), rows(&dataset), "{separator:?}");
    }
}

#[test]
fn csv_finds_its_label() {
    let with = |label: &str| ReadOptions { label: label.parse().unwrap(), ..ReadOptions::default() };
    let text = "a,y,b\n1,2,3\n4,5,6\n";
    for (label, targets, names) in [
        ("first", [1.0, 4.0], ["y", "b"]),
        ("1", [1.0, 4.0], ["y", "b"]),
        ("y", [2.0, 5.0], ["a", "b"]),
        ("2", [2.0, 5.0], ["a", "b"]),
        ("last", [3.0, 6.0], ["a", "y"]),
    ] {
        let dataset = parse_with(text, &with(label)).unwrap();
        assert_eq!(dataset.targets[..], targets, "{label}");
        assert_eq!(dataset.names.unwrap(), names, "{label}");
    }
    let dataset = parse_with(text, &with("none")).unwrap();
    assert!(dataset.targets.iter().all(|target| target.is_nan()) && dataset.matrix.n_cols() == 3);
    assert_eq!(error_of(text, &with("z")), "label: no column is named `z`; the columns are a, y, b");
    assert_eq!(error_of(text, &with("4")), "label: column 4: the file has columns 1 to 3");
    assert_eq!(error_of("1,2\n", &with("z")), "label: `z`: the file has no header; give the column's number");
    assert_eq!(Label::default(), Label::First);
}

#[test]
fn csv_header_can_be_forced() {
    let with = |header| ReadOptions { header: Some(header), ..ReadOptions::default() };
    assert_eq!(parse_with("1,2\n3,4\n", &with(true)).unwrap().names.unwrap(), ["2"]);
    let expected = "file:1:3: column `2`: `a` is not a number: encode the column (categorical) or leave it out (drop)";
    assert_eq!(error_of("y,a\n3,4\n", &with(false)), expected);
}

#[test]
fn csv_errors_say_where_and_what() {
    for (text, expected) in [
        (
            "y,a,b\n1,2,x\n",
            ":2:5: column `b`: `x` is not a number: encode the column (categorical) or leave it out (drop)",
        ),
        ("y,a,b\n1,,3\n", ":2:3: column `a`: a number is missing: fill it in or drop the row"),
        ("y,a,b\n1,2,3\n1, NA,3\n", ":3:4: column `a`: `NA` is not a finite number: fill it in or drop the row"),
        ("1,2,nan\n", ":1:5: column 3: `nan` is not a finite number: fill it in or drop the row"),
        ("1,2\n1,1e999\n", ":2:3: column 2: `1e999` is too large for a double"),
        ("y,a,b\n1,2\n", ":2:4: the line has 2 fields where the first has 3"),
        ("y,a,b\n\n1,2,3,4\n", ":3:7: one field too many: the first line has 3"),
        ("y,a\n1,2\ncat,2\n", ":3:1: label column `y`: `cat` is not a number; the first row's is"),
        ("y,a\n1,\"2\n", ":2:3: a quoted field does not end on its line: close it, or take the line break out"),
        ("y,a\r1,2\r", ":1:4: a carriage return inside a line: end lines with LF or CR LF"),
        ("y\ta\n1\t2\n\t\n", ":3:1: label column `y`: a number is missing: fill it in or drop the row"),
        ("y,a\n1,\"2\"\r3,4\n", ":2:3: column `a`: a carriage return inside a line: end lines with LF or CR LF"),
        ("y\n1\n", ": has one column only, the label: separate columns by `,` `;` tab or `|`"),
        ("y,a\n", ": has no rows: give a file with at least one"),
    ] {
        assert_eq!(error_of(text, &csv()), format!("file{expected}"), "{text:?}");
    }
    assert_eq!(error_of(b"y,\xff\n1,2\n", &csv()), "file:1:3: `\\xff` is not UTF-8 text");
}

#[test]
fn csv_that_is_mostly_zero_becomes_sparse_wherever_the_zeros_are() {
    let zeros = "1,0,0,0,0,0,0,0,0\n".repeat(50);
    let full = "1,.1,.2,.3,.4,.5,.6,.7,.8\n".repeat(5);
    for text in [format!("{full}{zeros}"), format!("{zeros}{full}")] {
        for block in [1, 4 << 20] {
            let dataset = parse_with(&text, &ReadOptions { block, ..csv() }).unwrap();
            assert_eq!((dataset.matrix.storage(), dataset.matrix.nnz(), dataset.matrix.n_cols()), ("f64", 40, 8));
        }
    }
}

#[test]
fn a_long_csv_is_written_to_its_place_whatever_comes_late() {
    // Blank lines, and after many rows that single precision holds some that it does not.
    let value = |row: usize, column: usize| match row {
        ..15_000 => (row * 7 + column) as f64 / 8.0 - 1000.0,
        _ => (row + column) as f64 / 10.0,
    };
    let mut text = String::new();
    for row in 0..20_000 {
        let cells: Vec<String> = (0..5).map(|column| value(row, column).to_string()).collect();
        text += &format!(
            "{}\n{}",
            cells.join(if row % 3 == 0 { " ," } else { "," }),
            if row % 97 == 5 { "\r\n" } else { "" }
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.csv");
    std::fs::write(&path, &text).unwrap();
    for block in [100_000, 4 << 20] {
        let options = ReadOptions { block, label: obprox::data::Label::Last, ..csv() };
        for dataset in [read(&path, &options).unwrap(), parse_with(&text, &options).unwrap()] {
            assert_eq!(
                (dataset.matrix.storage(), dataset.matrix.n_rows(), dataset.matrix.n_cols()),
                ("dense f64", 20_000, 4)
            );
            for (row, entries) in rows(&dataset).into_iter().enumerate() {
                assert_eq!(dataset.targets[row], value(row, 4));
                assert_eq!(entries, (0..4).map(|column| (column, value(row, column))).collect::<Vec<_>>());
            }
        }
    }
}

// Which format

#[test]
fn the_format_is_told_by_content() {
    let is_csv = |text: &str| parse(text).unwrap().matrix.storage().starts_with("dense");
    assert!(!is_csv("1 1:.1 2:.2\n"));
    assert!(!is_csv("# a, b\n1\n-1\t1:.5\t2:.5\n"));
    assert!(is_csv("1,.2,.3\n"));
    assert!(is_csv("when,a,b\n1,2,3\n"));
    for (bytes, expected) in [
        (&b"PK\x03\x04rest"[..], "file: is a zip archive: unpack it and give the file inside"),
        (b"a\0,\0b\0", "file: is binary, or text in UTF-16: give LIBSVM or CSV as UTF-8 text"),
    ] {
        assert_eq!(parse(bytes).unwrap_err().to_string(), expected);
    }
}

// Vectors

#[test]
fn vectors() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, " 1\r\n\n-2.5e0\n3").unwrap();
    assert_eq!(read_vector(file.path()).unwrap(), [1.0, -2.5, 3.0]);
    std::fs::write(&file, "1\n 2 3\n").unwrap();
    let error = read_vector(file.path()).unwrap_err().to_string();
    assert_eq!(error, format!("{}:2:2: `2 3` is not a number", file.path().display()));
}

// Compression

const TEXT: &str = "1 1:1 2:0.5\n-1 3:1\n";

/// The same text in every compression, each as two members one after the other; and where the second starts.
fn compressed() -> Vec<(&'static str, Vec<u8>, usize)> {
    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }
    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }
    fn xz(text: &[u8]) -> Vec<u8> {
        liblzma::encode_all(text, 6).unwrap()
    }
    fn zstd(text: &[u8]) -> Vec<u8> {
        // With the checksum that the zstd command writes by default.
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }
    type Encode = fn(&[u8]) -> Vec<u8>;
    let encoders: [(_, Encode); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];
    let (first, second) = TEXT.as_bytes().split_at(12);
    encoders.map(|(name, encode)| (name, [encode(first), encode(second)].concat(), encode(first).len())).into()
}

#[test]
fn compressed_files_read_like_plain_ones() {
    let plain = identity(&parse(TEXT).unwrap());
    for (name, bytes, second) in compressed() {
        assert!(identity(&parse(&bytes).unwrap()) == plain, "{name}");
        for len in (7..second).chain(second + 1..bytes.len()) {
            let error = parse(&bytes[..len]).unwrap_err().to_string();
            let expected = format!("file: the {name} data is truncated (");
            assert!(error.starts_with(&expected), "{name} cut to {len} of {second}, {}: {error}", bytes.len());
        }
        let mut mangled = bytes.clone();
        mangled[second / 2] ^= 0x55;
        assert!(matches!(parse(&mangled), Err(Error::File { .. })), "{name}");
    }
}

#[test]
fn files_that_are_none() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let error = |path: &Path| read(path, &ReadOptions::default()).unwrap_err();
    let expected = format!("{}: is a directory: give a file in it", directory.path().display());
    assert_eq!(error(directory.path()).to_string(), expected);
    assert!(error(&at("missing")).to_string().contains("cannot read: No such file"));
    std::fs::write(at("empty"), "").unwrap();
    assert!(error(&at("empty")).to_string().ends_with("is empty: it has no rows"));
    for name in [directory.path(), &at("missing"), &at("empty")] {
        assert!(error(name).is_input());
    }
}

// Cache

fn cached(dataset: &Dataset) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.obx");
    write_cache(dataset, &path).unwrap();
    (directory, path)
}

#[test]
fn caches_of_every_storage_come_back() {
    for text in ["1 1:1 3:1\n-1\n", "1 2:.5\n", "1 9:.1\n2 1:3\n", "y,a,b\n1,2,3\n", "1,.1,.2\n", "1\n"] {
        let dataset = parse(text).unwrap();
        let (_directory, path) = cached(&dataset);
        let back = read(&path, &ReadOptions::default()).unwrap();
        assert!(identity(&back) == identity(&dataset), "{text}");
        write_cache(&back, &path).unwrap();
        assert!(identity(&back) == identity(&dataset), "written over itself while mapped");
        let wide = read(&path, &ReadOptions { n_cols: Some(20), ..ReadOptions::default() }).unwrap();
        assert_eq!(wide.matrix.n_cols(), 20);
        assert!(wide.names.is_none_or(|names| names.len() == 20));
    }
}

#[test]
fn a_broken_cache_is_refused() {
    let (_directory, path) = cached(&parse("1 1:.1 3:.2\n-1 2:.3 9:5\n2\n").unwrap());
    let bytes = std::fs::read(&path).unwrap();
    for len in 8..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err();
        assert!(
            error.to_string().ends_with("write the cache again from its source (obprox data convert)"),
            "{len}: {error}"
        );
    }
    std::fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    assert!(read(&path, &ReadOptions::default()).unwrap_err().to_string().contains("longer than its header says"));
    // Every bit counts, whether it can be seen to be wrong or not.
    for at in 64..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&path, &ReadOptions::default()).unwrap_err().to_string().contains("is damaged"), "{at}");
    }
    assert!(parse(&bytes).unwrap_err().to_string().contains("mapped, not streamed"));
}

// Properties

/// Doubles of all sizes, none of them zero, so that a written row has them all.
fn number() -> impl Strategy<Value = f64> {
    let any_finite = any::<f64>().prop_filter("finite", |value| value.is_finite());
    prop_oneof![Just(1.0), (-1000..1000i32).prop_map(|value| f64::from(value) / 8.0), any_finite]
        .prop_map(|value| if value == 0.0 { 1.0 } else { value })
}

fn dataset() -> impl Strategy<Value = Dataset> {
    let row = (number(), prop::collection::btree_map(0u32..50, number(), 0..8));
    prop::collection::vec(row, 1..40).prop_map(|rows| {
        let (targets, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let rows: Vec<Vec<_>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
        let n_cols = rows.iter().flatten().map(|&(column, _)| column as usize + 1).max().unwrap_or(0);
        Dataset::new(Matrix::from_rows(n_cols, &rows), targets)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn written_text_reads_back_to_the_bit(dataset in dataset(), block in 1usize..200) {
        let mut text = Vec::new();
        write_libsvm(&dataset, &mut text).unwrap();
        let back = parse_with(&text, &ReadOptions { block, ..libsvm() }).unwrap();
        prop_assert!(identity(&back) == identity(&dataset));
    }

    #[test]
    fn a_cache_reads_back_to_the_bit(dataset in dataset()) {
        let (_directory, path) = cached(&dataset);
        prop_assert!(identity(&read(&path, &ReadOptions::default()).unwrap()) == identity(&dataset));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), block in 1usize..50) {
        for format in [None, Some(Format::Libsvm), Some(Format::Csv)] {
            let _ = parse_with(&bytes, &ReadOptions { format, block, ..ReadOptions::default() });
        }
    }

    /// A line that starts with a blank goes the slow way, byte by byte.
    #[test]
    fn usual_lines_are_read_as_any_others(
        lines in prop::collection::vec("[-+]?1( [0-9]{1,10}:[-+]?[0-9]{0,10}\\.?[0-9]{0,18}(e-?[0-9]{1,3})?){0,4}[ \t\r:#x]{0,2}", 0..8),
    ) {
        let text = |start: &str| lines.iter().map(|line| format!("{start}{line}\n")).collect::<String>();
        let (fast, slow) = (parse_with(text(""), &libsvm()), parse_with(text(" "), &libsvm()));
        match (fast, slow) {
            (Ok(fast), Ok(slow)) => prop_assert!(identity(&fast) == identity(&slow)),
            (fast, slow) => prop_assert!(fast.is_err() && slow.is_err(), "{:?} and {:?}", fast.err(), slow.err()),
        }
    }

    #[test]
    fn any_text_gives_the_same_whatever_the_block(text in "[-+0-9eE.:, \\t\\r\\n#qidx\"]{0,120}", block in 1usize..20) {
        for options in [libsvm(), csv()] {
            let small = parse_with(&text, &ReadOptions { block, ..options.clone() });
            match (small, parse_with(&text, &options)) {
                (Ok(small), Ok(large)) => prop_assert!(identity(&small) == identity(&large)),
                (Err(small), Err(large)) => prop_assert_eq!(small.to_string(), large.to_string()),
                (small, large) => prop_assert!(false, "{small:?} against {large:?}"),
            }
        }
    }

    #[test]
    fn quotes_change_nothing(rows in prop::collection::vec(prop::collection::vec("[-+]?[0-9]{0,3}[.]?[0-9]{0,9}(e-?[0-9])?[x ]?", 3), 1..5)) {
        let text = |quote: &str| {
            let line = |row: &Vec<String>| row.iter().map(|field| format!("{quote}{field}{quote}")).collect::<Vec<_>>().join(",");
            rows.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let options = ReadOptions { header: Some(false), ..csv() };
        match (parse_with(text(""), &options), parse_with(text("\""), &options)) {
            (Ok(plain), Ok(quoted)) => prop_assert!(identity(&plain) == identity(&quoted)),
            (Err(Error::Parse { line, message, .. }), Err(Error::Parse { line: same, message: alike, .. })) => {
                prop_assert_eq!((line, message), (same, alike));
            }
            // Of a column: where the first label is a word, this is a table.
            (Err(Error::File { message, .. }), Err(Error::File { message: alike, .. })) => prop_assert_eq!(message, alike),
            (plain, quoted) => prop_assert!(false, "{plain:?} against {quoted:?}"),
        }
    }

    #[test]
    fn a_mutated_file_is_read_or_refused(dataset in dataset(), at in 0.0..1.0, byte: u8, block in 1usize..50) {
        let mut text = Vec::new();
        write_libsvm(&dataset, &mut text).unwrap();
        let at = (at * text.len() as f64) as usize;
        text[at] = byte;
        let _ = parse_with(&text, &ReadOptions { block, ..ReadOptions::default() });
    }

    #[test]
    fn a_mutated_archive_is_read_or_refused(at in 0.0..1.0, byte: u8, cut in 0.0..2.0) {
        for (_, mut bytes, _) in compressed() {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] = byte;
            bytes.truncate((cut * bytes.len() as f64) as usize);
            let _ = parse(&bytes);
        }
    }
}

// Real files

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn real_files_have_their_known_shapes() {
    let Ok(directory) = std::env::var("OBPROX_DATA") else {
        eprintln!("skipped: set OBPROX_DATA");
        return;
    };
    for (file, n_rows, n_cols, nnz) in [
        ("a9a.xz", 32561, 123, 451592),
        ("w8a.xz", 49749, 300, 579586),
        ("20news_bigram_binary.svm.xz", 18811, 1572529, 6973877),
        ("20news_unigram_tfidf.svm.xz", 18809, 49389, 2507823),
        ("sector.scale.xz", 6412, 55197, 1045412),
        ("abalone_scale.xz", 4177, 8, 32080),
        ("diabetes.svm.xz", 442, 10, 4420),
        ("ALLAML.svm.xz", 72, 7129, 513271),
        ("higgs_subset.csv.xz", 51233, 28, 1321341),
    ] {
        let matrix = read(Path::new(&directory).join(file), &ReadOptions::default()).unwrap().matrix;
        assert_eq!((matrix.n_rows(), matrix.n_cols(), matrix.nnz()), (n_rows, n_cols, nnz), "{file}");
    }
}
