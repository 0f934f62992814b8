//! `obprox data get`, against a server on this machine.

use crate::server::{Manners, Server};
use crate::workshop::Workshop;

/// Bytes that no other offset has.
fn bytes(count: usize) -> Vec<u8> {
    (0..count as u32).flat_map(|number| number.to_le_bytes()).take(count).collect()
}

/// A server of a file of which nothing is known: rcv1 has no checksum in the table.
fn server(count: usize) -> Server {
    Server::start(Manners { file: bytes(count), etag: Some("\"one\""), ranges: true, ..Manners::default() })
}

/// Runs a line that fails with status 1 and one line of words.
fn fails(shop: &Workshop, line: &str) -> String {
    let output = shop.run(line);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().count() == 1 && output.stdout.is_empty(), "{stderr}");
    stderr
}

fn got(shop: &Workshop, name: &str) -> Vec<u8> {
    std::fs::read(shop.path(name)).unwrap()
}

#[test]
fn the_sets_are_listed() {
    insta::assert_snapshot!(Workshop::new().transcript("data get"));
}

#[test]
fn a_file_arrives_whole_under_the_papers_name() {
    let (shop, server) = (Workshop::new(), server(300_000));
    let said = shop.ok(&format!("data get rcv1 --dir sets --from {}/", server.url));
    assert!(said.starts_with("sets/rcv1.bz2: 300.0 kB, no checksum is known"), "{said}");
    assert_eq!(shop.listing(), ["sets", "sets/rcv1.bz2"]);
    assert!(got(&shop, "sets/rcv1.bz2") == bytes(300_000));
    let heard = server.heard();
    assert!(heard.len() == 1 && heard[0].starts_with("GET /sets/rcv1_train.binary.bz2 "), "{heard:?}");
    // It is there: nothing is asked again.
    let said = shop.ok(&format!("data get rcv1 --dir sets --from {}", server.url));
    assert!(said.contains("was there already") && server.heard().is_empty(), "{said}");
}

#[test]
fn a_broken_connection_goes_on_by_itself() {
    let (shop, server) = (Workshop::new(), server(250_000));
    server.change(|manners| manners.breaks_after = Some(100_000));
    shop.ok(&format!("data get rcv1 --from {} --quiet", server.url));
    assert!(got(&shop, "rcv1.bz2") == bytes(250_000));
    assert_eq!(shop.listing(), ["rcv1.bz2"]);
    let heard = server.heard();
    assert_eq!(heard.len(), 3);
    assert!(heard[1].contains("bytes=100000-") && heard[1].contains("\"one\""), "{}", heard[1]);
    assert!(heard[2].contains("bytes=200000-"), "{}", heard[2]);
}

#[test]
fn what_has_arrived_is_kept_for_the_next_time() {
    let (shop, server) = (Workshop::new(), server(250_000));
    let line = format!("data get rcv1 --from {}", server.url);
    // A server that cannot send parts, and breaks off: a second try brings no more than the first.
    server.change(|manners| (manners.ranges, manners.breaks_after) = (false, Some(100_000)));
    let said = fails(&shop, &line);
    assert!(said.contains("the connection broke after 100000 bytes") && said.contains("again to go on"), "{said}");
    assert_eq!(shop.listing(), ["rcv1.bz2.part", "rcv1.bz2.part.tag"]);
    server.heard();
    server.change(|manners| (manners.ranges, manners.breaks_after) = (true, None));
    shop.ok(&line);
    let heard = server.heard();
    assert!(heard.len() == 1 && heard[0].contains("bytes=100000-"), "{heard:?}");
    assert!(got(&shop, "rcv1.bz2") == bytes(250_000));
    assert_eq!(shop.listing(), ["rcv1.bz2"]);
}

#[test]
fn two_versions_are_never_joined() {
    let (shop, server) = (Workshop::new(), server(250_000));
    let line = format!("data get rcv1 --from {} --quiet", server.url);
    server.change(|manners| (manners.ranges, manners.breaks_after) = (false, Some(100_000)));
    fails(&shop, &line);
    let newer: Vec<u8> = bytes(250_000).into_iter().rev().collect();
    server.change(|manners| {
        *manners = Manners { file: newer.clone(), etag: Some("\"two\""), ranges: true, ..Manners::default() };
    });
    shop.ok(&line);
    assert!(got(&shop, "rcv1.bz2") == newer);
    // A server without marks: parts of it cannot be told from parts of another version.
    let (shop, unmarked) =
        (Workshop::new(), Server::start(Manners { file: bytes(9_000), ranges: true, ..Manners::default() }));
    unmarked.change(|manners| manners.breaks_after = Some(5_000));
    let line = format!("data get rcv1 --from {} --quiet", unmarked.url);
    fails(&shop, &line);
    unmarked.change(|manners| manners.breaks_after = None);
    shop.ok(&line);
    assert!(got(&shop, "rcv1.bz2") == bytes(9_000));
    assert!(unmarked.heard().iter().all(|request| !request.contains("bytes=")));
}

#[test]
fn a_part_that_is_the_whole_is_taken() {
    let (shop, server) = (Workshop::new(), server(9_000));
    shop.write("rcv1.bz2.part", bytes(9_000));
    shop.write("rcv1.bz2.part.tag", "\"one\"");
    shop.ok(&format!("data get rcv1 --from {} --quiet", server.url));
    assert!(got(&shop, "rcv1.bz2") == bytes(9_000));
    // More than there is cannot be of this file.
    let shop = Workshop::new();
    shop.write("rcv1.bz2.part", bytes(10_000));
    shop.write("rcv1.bz2.part.tag", "\"one\"");
    let said = fails(&shop, &format!("data get rcv1 --from {}", server.url));
    assert!(said.contains("begin anew") && shop.listing().is_empty(), "{said}");
    shop.ok(&format!("data get rcv1 --from {} --quiet", server.url));
}

#[test]
fn what_is_known_is_verified() {
    let shop = Workshop::new();
    // a9a has 2329875 bytes, and a known checksum.
    let server = server(2_329_874);
    let line = format!("data get a9a --from {}", server.url);
    let said = fails(&shop, &line);
    assert!(said.contains("2329874 bytes where 2329875 are known") && said.contains("nothing was written"), "{said}");
    server.change(|manners| manners.file = bytes(2_400_000));
    let said = fails(&shop, &line);
    assert!(said.contains("more bytes came than the 2329875 that are known") && shop.listing().is_empty(), "{said}");
    server.change(|manners| manners.file = bytes(2_329_875));
    let said = fails(&shop, &line);
    assert!(said.contains("its SHA-256 is") && said.contains("known is f5d5ffd8"), "{said}");
    assert!(shop.listing().is_empty());
    // A file that lies there under the name is not taken for the published one, nor touched.
    shop.write("a9a", "mine");
    assert!(fails(&shop, &line).contains("a9a: 4 bytes where 2329875 are known: it is not the published file"));
    assert_eq!(shop.read("a9a"), "mine");
    // The real file, where it is at hand.
    let Some(real) = std::env::var_os("OBPROX_DATA").and_then(|data| {
        let packed = std::path::Path::new(&data).join("a9a.xz");
        Some(std::process::Command::new("xz").arg("-dc").arg(packed).output().ok()?.stdout)
            .filter(|file| !file.is_empty())
    }) else {
        return;
    };
    server.change(|manners| manners.file = real);
    std::fs::remove_file(shop.path("a9a")).unwrap();
    let said = shop.ok(&line);
    assert!(said.contains("size and checksum are as they should be"), "{said}");
}

#[test]
fn servers_that_do_not_have_it() {
    let (shop, server) = (Workshop::new(), server(10));
    let said = fails(&shop, &format!("data get w8a --from {}/missing", server.url));
    assert!(said.contains("/missing/w8a: there is no such file (status 404)") && said.contains("--from"), "{said}");
    server.change(|manners| manners.status = Some(503));
    assert!(fails(&shop, &format!("data get w8a --from {}", server.url)).contains("answered with status 503"));
    // A port that was free a moment ago: no one listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = fails(&shop, &format!("data get w8a --from http://127.0.0.1:{port}/"));
    assert!(said.contains("cannot connect"), "{said}");
    assert!(shop.listing().is_empty());
}
