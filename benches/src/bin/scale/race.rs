//! `auto` beside the paper's methods: how long each takes to come within 10⁻¹, 10⁻², … of F*.

use std::io::Write;
use std::time::Instant;

use obprox::schedule::StepSize;
use obprox::switch::{Switch, Unit};
use obprox::{Control, EpochRecord, Method, MethodKind, Observer, Problem, Run, Settings};

use crate::passes::bare_pass;
use crate::shapes::Shape;

/// What a run had after each epoch or round: seconds of training, F, relative gap, features.
#[derive(Default)]
pub struct Course {
    pub name: String,
    pub points: Vec<(f64, f64, f64, usize)>,
    began: Option<Instant>,
}

impl Observer for Course {
    fn epoch(&mut self, record: &EpochRecord) -> Control {
        if let Some(at) = &record.certificate {
            let point = (record.seconds, at.objective, at.relative_gap().unwrap_or(f64::NAN), at.nnz);
            self.points.push(point);
            let since = self.began.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
            eprintln!("  {} {point:.6?} {since:.1}", record.epoch);
        }
        Control::Continue
    }
}

impl Course {
    /// The seconds until F was within a share of the best.
    fn until(&self, best: f64, share: f64) -> f64 {
        let near = |&&(_, objective, ..): &&(f64, f64, f64, usize)| objective <= best * (1.0 + share);
        self.points.iter().find(near).map_or(f64::INFINITY, |point| point.0)
    }

    /// The seconds until the gap proved it.
    fn certified(&self, gap: f64) -> f64 {
        self.points.iter().find(|point| point.2 <= gap).map_or(f64::INFINITY, |point| point.0)
    }
}

/// A method with each of its step sizes.
fn tuned(kind: MethodKind) -> Vec<(String, Settings)> {
    const EPOCHS: u64 = 10;
    let steps = [1.0, 8.0, 32.0];
    let gammas = [0.1, 0.01, 0.001];
    let method = |turn: usize| match kind {
        // Of ten epochs the paper's share of Prox-SG steps would be half.
        MethodKind::ObproxSgPlus => {
            Method::ObproxSgPlus { switch: Switch::Fixed { prox: 6, orthant: None, unit: Unit::Epochs } }
        }
        MethodKind::ObproxSg => {
            Method::ObproxSg { switch: Switch::Fixed { prox: 2, orthant: Some(2), unit: Unit::Epochs } }
        }
        MethodKind::Rda => Method::Rda { gamma: gammas[turn] },
        kind => Method::from(kind),
    };
    let of = |turn: usize| {
        let step = StepSize::Value(steps[turn]);
        let what = match kind {
            MethodKind::Rda => format!("{}, γ = {}", kind.name(), gammas[turn]),
            _ => format!("{}, step {}", kind.name(), steps[turn]),
        };
        (what, Settings { epochs: EPOCHS, step, ..Settings::with_method(method(turn)) })
    };
    (0..steps.len()).map(of).collect()
}

fn run(problem: &Problem, name: String, settings: Settings) -> Course {
    eprintln!("{name}");
    let mut course = Course { name, ..Course::default() };
    Run::new(problem, settings).observe(&mut course).fit().expect("a fit");
    course
}

/// Runs all; the courses are appended to a file, a line each, where one is named.
pub fn race(shape: &Shape, lambda: &str, kinds: &[MethodKind], keep: Option<&str>) {
    let problem = shape.problem(lambda);
    let pass = bare_pass(&problem);
    let matrix = problem.matrix();
    println!(
        "{} × {}, {} nonzeros, λ = {lambda} = {:.2e} λ_max; a bare pass {pass:.2} s\n",
        matrix.n_rows(),
        matrix.n_cols(),
        matrix.nnz(),
        problem.lambda() / problem.lambda_max()
    );
    let auto = run(&problem, "auto".into(), Settings { tolerance: 1e-7, ..Settings::default() });
    let best = auto.points.iter().fold(f64::INFINITY, |best, point| best.min(point.1));
    let mut courses = vec![auto];
    for kind in kinds {
        courses.extend(tuned(*kind).into_iter().map(|(name, settings)| run(&problem, name, settings)));
    }
    if let Some(keep) = keep {
        let mut out = std::fs::OpenOptions::new().create(true).append(true).open(keep).expect("a file");
        for Course { name, points, .. } in &courses {
            let (shape, part, n_rows) = (&shape.name, shape.part, matrix.n_rows());
            let points: Vec<String> =
                points.iter().map(|p| format!("[{:.4},{:.9},{:.3e},{}]", p.0, p.1, p.2, p.3)).collect();
            let points = points.join(",");
            writeln!(out, "{{\"shape\":\"{shape}\",\"part\":{part},\"rows\":{n_rows},\"columns\":{},\"lambda\":\"{lambda}\",\"pass\":{pass:.4},\"best\":{best:.9},\"name\":\"{name}\",\"points\":[{points}]}}", matrix.n_cols()).expect("room on the disk");
        }
    }
    println!(
        "| | 10⁻¹ | 10⁻² | 10⁻³ | 10⁻⁴ | gap 10⁻⁴ | gap 10⁻⁶ | F at the end | features |\n|---|---|---|---|---|---|---|---|---|"
    );
    let shown = |seconds: f64| match seconds.is_finite() {
        true => format!("{seconds:.1}"),
        false => "–".into(),
    };
    for course in &courses {
        let near = [1e-1, 1e-2, 1e-3, 1e-4].map(|share| shown(course.until(best, share)));
        let proved = [1e-4, 1e-6].map(|gap| course.certified(gap)).map(|seconds| match seconds.is_finite() {
            true => format!("{seconds:.1} = {:.0} passes", seconds / pass),
            false => "–".into(),
        });
        let (_, objective, _, nnz) = course.points.last().copied().unwrap_or_default();
        println!("| {} | {} | {} | {objective:.6} | {nnz} |", course.name, near.join(" | "), proved.join(" | "));
    }
}
