//! A headless Chromium, spoken to in its own protocol over a pair of pipes: JSON messages that end in a zero byte.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one page.
pub struct Chromium {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
    session: String,
    number: RefCell<u64>,
    /// What the page did without being asked: requests, messages, exceptions, loads.
    events: RefCell<VecDeque<Value>>,
    _profile: tempfile::TempDir,
}

/// The browser's program, where there is one.
pub fn program() -> Option<&'static str> {
    let runs = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

impl Chromium {
    pub fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The browser reads from descriptor 3 and writes to 4; a shell can set them without unsafe code.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"])
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking"])
            .args(["--force-device-scale-factor=1", "--window-size=1280,900"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipes = RefCell::new((child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap())));
        let (number, events) = (RefCell::new(0), RefCell::default());
        let mut browser = Self { child, pipes, session: String::new(), number, events, _profile: profile };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and waits for its answer; what happens in between is kept.
    pub fn ask(&self, method: &str, parameters: Value) -> Value {
        *self.number.borrow_mut() += 1;
        let number = *self.number.borrow();
        let mut message = json!({"id": number, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut text = serde_json::to_vec(&message).unwrap();
        text.push(0);
        self.pipes.borrow_mut().0.write_all(&text).unwrap();
        loop {
            let answer = self.hear();
            if answer["id"] == number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn hear(&self) -> Value {
        let mut text = Vec::new();
        self.pipes.borrow_mut().1.read_until(0, &mut text).unwrap();
        assert_eq!(text.pop(), Some(0), "the browser is gone");
        let message: Value = serde_json::from_slice(&text).unwrap();
        if message["method"].is_string() {
            self.events.borrow_mut().push_back(message.clone());
        }
        message
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&self, address: &str) {
        self.events.borrow_mut().clear();
        self.ask("Page.navigate", json!({"url": address}));
        let loaded = |events: &VecDeque<Value>| events.iter().any(|event| event["method"] == "Page.loadEventFired");
        while !loaded(&self.events.borrow()) {
            self.hear();
        }
    }

    /// The value of an expression in the page.
    pub fn value(&self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true. The page draws when its browser finds the time.
    pub fn until(&self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != true {
            assert!(begun.elapsed() < Duration::from_secs(60), "never came true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Moves the pointer; presses and releases it there, where asked.
    pub fn point(&self, x: f64, y: f64, click: bool) {
        let event = |kind: &str, button: &str| {
            let parameters = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", parameters);
        };
        event("mouseMoved", "none");
        if click {
            event("mousePressed", "left");
            event("mouseReleased", "left");
        }
    }

    /// Everything of a kind that the page did since it was opened.
    pub fn events(&self, method: &str) -> Vec<Value> {
        let events = self.events.borrow();
        events.iter().filter(|event| event["method"] == method).map(|event| event["params"].clone()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
