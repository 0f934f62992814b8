//! A small HTTP server on this machine, with the faults that real ones have.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How the server answers.
#[derive(Clone, Default)]
pub struct Manners {
    /// What every path but `/missing…` has.
    pub file: Vec<u8>,
    /// The mark of the file's version.
    pub etag: Option<&'static str>,
    /// Whether parts are sent when asked for.
    pub ranges: bool,
    /// Hangs up after so many bytes of each body.
    pub breaks_after: Option<usize>,
    /// Answers everything with this status.
    pub status: Option<u16>,
}

/// A server that lives as long as the process, and the requests it has heard.
pub struct Server {
    pub url: String,
    manners: Arc<Mutex<Manners>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sets", listener.local_addr().unwrap());
        let (manners, heard) = (Arc::new(Mutex::new(manners)), Arc::new(Mutex::new(Vec::new())));
        let (for_thread, ears) = (manners.clone(), heard.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let manners = for_thread.lock().unwrap().clone();
                // A client that hangs up is its own affair.
                let _ = answer(stream.unwrap(), &manners, &ears);
            }
        });
        Self { url, manners, heard }
    }

    pub fn change(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.manners.lock().unwrap());
    }

    /// The requests since the last time, each as its lines.
    pub fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

fn answer(stream: TcpStream, manners: &Manners, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut request = Vec::new();
    for line in BufReader::new(&stream).lines() {
        match line? {
            line if line.is_empty() => break,
            line => request.push(line),
        }
    }
    let value = |name: &str| {
        let named = |line: &&String| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        request.iter().find(named).map(|line| line[name.len() + 2..].to_owned())
    };
    heard.lock().unwrap().push(request.join("\n"));
    let mut out = &stream;
    let status = if request[0].contains("/missing") { Some(404) } else { manners.status };
    if let Some(status) = status {
        return write!(out, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let whole = manners.file.len();
    let same = value("if-range").is_none_or(|tag| manners.etag == Some(&tag[..]));
    let from = value("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let (status, from, range) = match from.filter(|_| manners.ranges && same) {
        None => ("200 OK", 0, String::new()),
        Some(from) if from < whole => {
            ("206 Partial Content", from, format!("Content-Range: bytes {from}-{}/{whole}\r\n", whole - 1))
        }
        Some(_) => ("416 Range Not Satisfiable", whole, format!("Content-Range: bytes */{whole}\r\n")),
    };
    let etag = manners.etag.map_or(String::new(), |tag| format!("ETag: {tag}\r\n"));
    let body = &manners.file[from..];
    write!(out, "HTTP/1.1 {status}\r\n{etag}{range}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    out.write_all(&body[..manners.breaks_after.unwrap_or(body.len()).min(body.len())])
}
