//! `obprox data`.

use crate::workshop::Workshop;

#[test]
fn inspect_shows_the_shape() {
    let shop = Workshop::with_data();
    shop.write("table.csv", "y,a,b\n1.5,0.5,0\n2,0,2\n");
    let all = shop.transcript("data inspect train.svm") + &shop.transcript("data inspect table.csv");
    insta::assert_snapshot!(all);
}

#[test]
fn a_cache_is_the_same_data() {
    let shop = Workshop::with_data();
    shop.ok("data convert train.svm train.obx");
    shop.ok("data convert train.obx again.svm --quiet");
    assert_eq!(shop.read("again.svm"), shop.read("train.svm"));
    assert_eq!(shop.ok("data convert train.obx -"), shop.read("train.svm"));
    shop.ok("fit train.svm --out text.json --quiet");
    shop.ok("fit train.obx --out cache.json --quiet");
    assert_eq!(shop.read("text.json"), shop.read("cache.json"));
}

#[test]
fn planted_problems_are_the_same_each_time() {
    let shop = Workshop::new();
    let line = "--rows 200 --cols 30 --per-row 5 --support 4 --task classes:3 --seed 2";
    shop.ok(&format!("data synth a.svm {line} --truth truth.txt"));
    assert_eq!(shop.ok(&format!("data synth - {line}")), shop.read("a.svm"));
    assert_eq!(shop.read("a.svm").lines().count(), 200);
    let truth = shop.read("truth.txt");
    assert_eq!(truth.lines().filter(|line| line.split(' ').any(|weight| weight != "0")).count(), 4);
    assert_eq!(truth.lines().count(), 30);
    shop.ok("fit a.svm --loss softmax");
}
