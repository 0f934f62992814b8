//! How the time to a certificate grows with the rows, as a picture.

use std::collections::BTreeMap;

use obprox_report::chart::{Axis, Chart, Figure, Series};
use serde::Deserialize;

/// A line of the file that `race` keeps.
#[derive(Deserialize)]
struct Line {
    shape: String,
    rows: f64,
    columns: f64,
    lambda: String,
    #[serde(default)]
    pass: f64,
    #[serde(default)]
    best: f64,
    name: String,
    points: Vec<(f64, f64, Option<f64>, f64)>,
}

impl Line {
    /// The seconds until a gap proved the optimum.
    fn certified(&self, gap: f64) -> Option<f64> {
        self.points.iter().find(|point| point.2.is_some_and(|found| found <= gap)).map(|point| point.0)
    }

    fn until(&self, share: f64) -> Option<f64> {
        self.points.iter().find(|point| point.1 <= self.best * (1.0 + share)).map(|point| point.0)
    }
}

/// Draws what is in a file into a directory.
pub fn plot(file: &str, into: &str) {
    let text = std::fs::read_to_string(file).expect("a file that was kept");
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).expect("a line of race")).collect();
    let shapes: std::collections::BTreeSet<&str> = lines.iter().map(|line| line.shape.as_str()).collect();
    for shape in shapes {
        let of = |line: &&Line| line.shape == shape && line.lambda == "1/N" && line.name == "auto";
        // The last run of each size counts.
        let by_rows: BTreeMap<u64, &Line> = lines.iter().filter(of).map(|line| (line.rows as u64, line)).collect();
        if by_rows.len() < 2 {
            continue;
        }
        let runs: Vec<&Line> = by_rows.into_values().collect();
        let columns_a_row = runs[0].columns / runs[0].rows;
        let series = |name: &str, of: &dyn Fn(&Line) -> Option<f64>| {
            Series::line(name, runs.iter().filter_map(|line| Some((line.rows, of(line)?))))
        };
        let title = format!("{shape}'s shape, λ = 1/N: seconds by rows ({columns_a_row:.1} columns a row)");
        let chart = Chart::new(&title, Axis::log("rows"), Axis::log("seconds"))
            .series(series("certified to 10⁻⁶", &|line| line.certified(1e-6)))
            .series(series("certified to 10⁻⁴", &|line| line.certified(1e-4)))
            .series(series("F within 10⁻³", &|line| line.until(1e-3)))
            .series(series("F within 10⁻¹", &|line| line.until(1e-1)))
            .series(series("a bare pass", &|line| Some(line.pass)));
        let path = std::path::Path::new(into).join(format!("scale-{shape}.svg"));
        std::fs::write(&path, Figure::of(chart).to_svg()).expect("room on the disk");
        println!("{}", path.display());
    }
}
