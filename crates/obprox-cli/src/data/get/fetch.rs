//! URL → file, whole or not at all.
//!
//! What has arrived is kept beside the file as `NAME.part`, and with it, as `NAME.part.tag`, the server's mark of the
//! version it is of. A later try asks for the rest on condition of that mark (`Range` with `If-Range`), so that two
//! versions of a file are never joined; a server that has another version, or cannot send parts, sends the whole again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use obprox::Error;
use sha2::{Digest, Sha256};
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use crate::failure::Failure;
use crate::watch::Transfer;

/// What is to be had, and what is known of it.
pub struct Wanted<'a> {
    pub url: String,
    pub path: PathBuf,
    pub bytes: Option<u64>,
    pub sha256: Option<&'a str>,
}

/// What is there now.
pub struct Fetched {
    pub bytes: u64,
    pub sha256: String,
    /// False where it had been there before.
    pub fresh: bool,
}

/// A server that says nothing for so long has forgotten us.
const SILENCE: Duration = Duration::from_secs(60);

/// Downloads, unless the file is there.
pub fn fetch(wanted: &Wanted, quiet: bool) -> Result<Fetched, Failure> {
    if wanted.path.exists() {
        return wanted.check(&wanted.path, false);
    }
    let part = Part::of(&wanted.path);
    let mut most = 0;
    loop {
        match wanted.try_once(&part, quiet)? {
            Tried::Whole => break,
            // As long as each try brings more than any before, another is worth it.
            Tried::Broken(_) if part.len() > most => most = part.len(),
            Tried::Broken(why) => {
                let kept = part.len();
                return Err(Failure::other(format!(
                    "{}: the connection broke after {kept} bytes ({why}): run the same command again to go on from there",
                    wanted.url
                )));
            }
        }
    }
    let fetched = wanted.check(&part.data, true).inspect_err(|_| part.discard())?;
    let place = || -> io::Result<()> {
        File::open(&part.data)?.sync_all()?;
        fs::rename(&part.data, &wanted.path)
    };
    place().map_err(Error::writing(&wanted.path))?;
    part.discard();
    Ok(fetched)
}

enum Tried {
    Whole,
    /// With the reason.
    Broken(String),
}

impl Wanted<'_> {
    /// One request, its body to the end or to where it breaks off.
    fn try_once(&self, part: &Part, quiet: bool) -> Result<Tried, Failure> {
        let mut request = agent(&self.url).get(&self.url).header(header::ACCEPT_ENCODING, "identity");
        let resumed = part.tag().filter(|_| part.len() > 0);
        if let Some(tag) = &resumed {
            request = request.header(header::RANGE, format!("bytes={}-", part.len())).header(header::IF_RANGE, tag);
        }
        let unreachable = |error: ureq::Error| Failure::other(format!("{}: {}", self.url, reason(&error)));
        let response = request.call().map_err(unreachable)?;
        let writing = |error| Failure::from(Error::writing(&part.data)(error));
        match response.status().as_u16() {
            200 => part.begin(&response).map_err(writing)?,
            206 if content_range(&response).is_some_and(|range| range.first == Some(part.len())) => {}
            // There is no rest: what we have is the whole, or more than that and useless.
            416 if content_range(&response).is_some_and(|range| range.whole == Some(part.len())) => {
                return Ok(Tried::Whole);
            }
            206 | 416 => {
                part.discard();
                return Err(Failure::other(format!(
                    "{}: the server sent another part of the file: run the same command again to begin anew",
                    self.url
                )));
            }
            404 | 410 => {
                return Err(Failure::other(format!(
                    "{}: there is no such file (status {}); where it has moved, name the new directory by --from",
                    self.url,
                    response.status().as_u16()
                )));
            }
            status => return Err(Failure::other(format!("{}: the server answered with status {status}", self.url))),
        }
        let (have, coming) = (part.len(), response.body().content_length());
        let mut progress = Transfer::new(&self.path, have, coming.map(|coming| have + coming), quiet);
        let mut file = OpenOptions::new().append(true).open(&part.data).map_err(writing)?;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match body.read(&mut buffer) {
                Ok(0) => return Ok(Tried::Whole),
                // No disk is filled by a server that does not end.
                Ok(read) if self.bytes.is_some_and(|known| part.len() + read as u64 > known) => {
                    part.discard();
                    return Err(Failure::other(format!(
                        "{}: more bytes came than the {} that are known: the file was changed by its publisher, or is \
                         another's; nothing was written",
                        self.url,
                        self.bytes.unwrap_or_default()
                    )));
                }
                Ok(read) => file.write_all(&buffer[..read]).map_err(writing)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Tried::Broken(error.to_string())),
            }
            progress.at(part.len());
        }
    }

    /// Compares a file with what is known.
    fn check(&self, path: &Path, fresh: bool) -> Result<Fetched, Failure> {
        let (bytes, sha256) = digest(path).map_err(Error::reading(path))?;
        // What was there before is the user's own to delete.
        let (what, advice) = match fresh {
            true => (&self.url[..], "the file was damaged on the way or changed by its publisher; nothing was written"),
            false => (path.to_str().unwrap_or("the file"), "it is not the published file: delete it to get it anew"),
        };
        if let Some(known) = self.bytes.filter(|known| *known != bytes) {
            return Err(Failure::other(format!("{what}: {bytes} bytes where {known} are known: {advice}")));
        }
        if let Some(known) = self.sha256.filter(|known| *known != sha256) {
            return Err(Failure::other(format!("{what}: its SHA-256 is {sha256}, known is {known}: {advice}")));
        }
        Ok(Fetched { bytes, sha256, fresh })
    }
}

/// Who asks. What was to come by https is not taken from a server that sends us on to plain http.
fn agent(url: &str) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .https_only(url.starts_with("https:"))
        .timeout_connect(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("obprox/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// What has arrived so far.
struct Part {
    data: PathBuf,
    tag: PathBuf,
}

impl Part {
    fn of(path: &Path) -> Self {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        Self { data: beside(".part"), tag: beside(".part.tag") }
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.data).map_or(0, |found| found.len())
    }

    fn tag(&self) -> Option<String> {
        fs::read_to_string(&self.tag).ok().filter(|tag| !tag.is_empty())
    }

    /// From the first byte, of the version that the server is sending. A weak mark does not promise equal bytes.
    fn begin(&self, response: &Response<Body>) -> io::Result<()> {
        File::create(&self.data)?;
        let mark = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let strong = mark(header::ETAG).filter(|tag| !tag.starts_with("W/"));
        fs::write(&self.tag, strong.or(mark(header::LAST_MODIFIED)).unwrap_or_default())
    }

    fn discard(&self) {
        let _ = fs::remove_file(&self.data);
        let _ = fs::remove_file(&self.tag);
    }
}

/// `bytes first-last/whole` or `bytes */whole`.
struct ContentRange {
    first: Option<u64>,
    whole: Option<u64>,
}

fn content_range(response: &Response<Body>) -> Option<ContentRange> {
    let text = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = range.split_once('-').and_then(|(first, _)| first.parse().ok());
    Some(ContentRange { first, whole: whole.parse().ok() })
}

fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let hex = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, hex))
}

/// What went wrong before there was an answer, and what to do about it.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "the host was not found: is there a network?".into(),
        ureq::Error::Io(error) => format!("cannot connect ({error})"),
        ureq::Error::ConnectionFailed => "cannot connect".into(),
        ureq::Error::Timeout(_) => format!("no answer in {} seconds", SILENCE.as_secs()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_not_left() {
        assert!(agent("https://example.org/a").config().https_only());
        assert!(!agent("http://127.0.0.1:80/a").config().https_only());
    }
}
