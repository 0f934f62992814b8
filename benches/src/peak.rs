//! The peak of memory.

/// The most memory this process has held so far, in bytes.
pub fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a high-water mark");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
    1024.0 * kilobytes
}
