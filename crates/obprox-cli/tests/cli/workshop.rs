//! A directory of its own for each test, and the command run in it.

use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A directory that holds `train.svm`: 120 rows, 12 columns, labels −1 and 1.
    pub fn with_data() -> Self {
        let shop = Self::new();
        shop.write("train.svm", rows(120, 12, |score| if score > 0.0 { "1".into() } else { "-1".into() }));
        shop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Everything in the directory, in order.
    pub fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut open = vec![self.0.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.strip_prefix(self.0.path()).unwrap().display().to_string());
                open.extend(path.is_dir().then_some(path));
            }
        }
        names.sort();
        names
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_obprox"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        // What decides width, colour and the way to a server must not come from whoever runs the tests.
        for name in
            ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs and expects success; standard output.
    pub fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "obprox {line}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn run_with_input(&self, line: &str, input: &str) -> Output {
        let mut child =
            self.command(line).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The command, what it said and how it ended, with times masked.
    pub fn transcript(&self, line: &str) -> String {
        let output = self.run(line);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        let mut transcript = format!("$ obprox {line}\n{}{}", text(&output.stdout), text(&output.stderr));
        writeln!(transcript, "[{}]", output.status.code().expect("it was not killed")).unwrap();
        transcript.lines().map(|line| mask_time(line) + "\n").collect()
    }

    pub fn exists(&self, name: &str) -> bool {
        Path::exists(&self.path(name))
    }
}

fn mask_time(line: &str) -> String {
    let timed = ["training time", "one image", "each of a batch"];
    match timed.iter().find_map(|what| Some(line.find(what)? + what.len())) {
        Some(end) => line[..end].to_owned() + " …",
        None => line.to_owned(),
    }
}

/// LIBSVM text of a planted problem: some columns matter, most do not.
pub fn rows(n_rows: usize, n_cols: usize, label: impl Fn(f64) -> String) -> String {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut text = String::new();
    for _ in 0..n_rows {
        let mut score = next() - 0.5;
        let mut features = String::new();
        for column in 1..=n_cols {
            if next() < 0.6 {
                let value = ((next() - 0.5) * 64.0).round() / 16.0;
                if value != 0.0 {
                    score += value * [2.0, -1.0, 1.5].get(column - 1).copied().unwrap_or(0.0);
                    write!(features, " {column}:{value}").unwrap();
                }
            }
        }
        writeln!(text, "{}{features}", label(score)).unwrap();
    }
    text
}
