//! The list of the shards that files were parsed into.

use std::fs;
use std::sync::Arc;

use obprox::data::{ReadOptions, ShardedData, Sharding};
use obprox::loss::LossKind;
use obprox::{Problem, Terms};

use crate::{Reader, Scratch};

/// Whatever is in the place of the list, the rows are those of the files: a list that is not what was written is made anew.
pub fn list() -> Reader {
    let scratch = Scratch::new("rows.svm");
    let source = scratch.holding(b"1 1:0.5 3:2\n-1 2:1\n1 1:1\n-1 3:0.5\n1 2:4\n").to_owned();
    let sharding = Sharding { cache: scratch.directory.path().join("cache"), memory: 1 << 30, rows: Some(2) };
    let open =
        move || ShardedData::open(std::slice::from_ref(&source), &ReadOptions::default(), &sharding, &mut |_, _| {});
    let place = open().expect("the rows are sound").directory().join("shards.json");
    let seed = fs::read(&place).expect("it was written");
    Reader::new("shards", vec![seed.clone()], move |bytes| {
        let _files = &scratch;
        fs::write(&place, bytes).expect("the temporary directory can be written to");
        let shards = Arc::new(open().expect("the files are as they were"));
        let shape = (shards.n_rows(), shards.n_cols(), shards.nnz(), shards.n_shards());
        assert_eq!(shape, (5, 3, 6, 3));
        Problem::of_shards(shards, LossKind::Logistic.build(2), &Terms::default()).expect("sound rows");
        bytes == seed
    })
}
