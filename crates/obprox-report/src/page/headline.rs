//! The figures that are read first.

use maud::{Markup, html};
use obprox::Status;

use crate::log::{Ending, Run};
use crate::report::{Entry, Problem};
use crate::text::{digits, file_name, grouped, percent, plural, rough, seconds, significant, trimmed};

/// A figure, what it is, and what goes with it.
struct Card {
    what: String,
    figure: String,
    with: String,
}

/// A few cards, as many as there is something to say.
pub(super) fn cards(problem: &Problem) -> Markup {
    let cards = match (&problem.entries[..], problem.is_path()) {
        ([only], _) if problem.is_network() => of_network(&only.run),
        ([only], true) => of_path(problem, only),
        ([only], false) => of_run(problem, only),
        _ => of_several(problem),
    };
    html! {
        div.headline {
            @for card in cards.into_iter().flatten() {
                div.card { p.what { (card.what) } p.figure { (card.figure) } p.with { (card.with) } }
            }
        }
    }
}

fn card(what: impl Into<String>, figure: Option<String>, with: impl Into<String>) -> Option<Card> {
    figure.map(|figure| Card { what: what.into(), figure, with: with.into() })
}

fn of_run(problem: &Problem, entry: &Entry) -> Vec<Option<Card>> {
    let (run, figures) = (&entry.run, entry.run.figures());
    let proved = match run.ending() {
        Ending::With(Status::Converged) => "the optimum is certified".to_owned(),
        status => format!("{}: the optimum is not certified", status.words()),
    };
    let gap = figures.relative_gap.map(rough);
    let certificate = match gap {
        Some(gap) => card("Certified gap / F", Some(gap), proved),
        None => card("KKT distance", figures.kkt.map(rough), proved),
    };
    let explained = run.end.as_ref().and_then(|end| end.deviance_explained);
    let measured = |name: &str| run.end.as_ref()?.test.as_ref()?.pointer(name)?.as_f64();
    let calibration = measured("/calibration/error");
    let calibration = calibration.map_or(String::new(), |error| format!("calibration error {}", digits(error, 3)));
    let mut cards = vec![
        card("Objective F", figures.objective.map(significant), format!("by {}", entry.name)),
        card("Density", figures.density.map(percent), nonzeros(run)),
        certificate,
        card("Training time", run.seconds().map(seconds), lasted(run)),
        card("Deviance explained", explained.map(percent), "of the training data"),
        card(format!("Test {}", problem.score_word()), run.score().map(|score| digits(score, 4)), test(run)),
        card("Test AUC", measured("/auc").map(|auc| digits(auc, 4)), calibration),
    ];
    if let Some(folds) = &run.folds {
        let rule = match folds.rule.as_deref() {
            Some("1se") => "the largest within one standard error of the best",
            _ => "the best held-out loss",
        };
        cards.insert(0, card("λ by cross-validation", run.start.lambda.map(|lambda| digits(lambda, 4)), rule));
    }
    cards
}

fn of_network(run: &Run) -> Vec<Option<Card>> {
    let figures = run.figures();
    let asked = run.start.network.target_density;
    let density = match (asked, figures.density) {
        (Some(asked), Some(density)) if density > asked => format!("the target was {}", percent(asked)),
        (Some(asked), _) => format!("the target was at most {}", percent(asked)),
        (None, _) => nonzeros(run),
    };
    let train = run.end.as_ref().and_then(|end| end.network.train_accuracy);
    let trained = train.map_or(String::new(), |accuracy| format!("{} on the training images", percent(accuracy)));
    vec![
        card("Test accuracy", run.score().map(percent), trained),
        card("Density", figures.density.map(percent), density),
        card("Objective F", figures.objective.map(significant), format!("by {}", run.solver())),
        card("Training time", run.seconds().map(seconds), lasted(run)),
    ]
}

fn of_several(problem: &Problem) -> Vec<Option<Card>> {
    let best = |what: &str, measure: fn(&Run) -> Option<f64>, shown: fn(f64) -> String, with: fn(&Run) -> String| {
        let (entry, value) = problem.best(measure)?;
        let with = with(&entry.run);
        let words = if with.is_empty() { entry.name.clone() } else { format!("{}, {with}", entry.name) };
        card(what, Some(shown(value)), words)
    };
    let certified = |run: &Run| match run.figures().relative_gap {
        Some(gap) => format!("gap {}", rough(gap)),
        None => String::new(),
    };
    let smallest = match problem.is_network() {
        // Networks with other λ have another F.
        true => None,
        false => best("Smallest F", |run| run.figures().objective, significant, certified),
    };
    vec![
        smallest,
        best("Sparsest", |run| run.figures().density, percent, nonzeros),
        best("Fastest", Run::seconds, seconds, lasted),
        best(
            &format!("Best test {}", problem.score_word()),
            |run| run.score().map(|score| -score),
            |score| digits(-score, 4),
            |_| String::new(),
        ),
    ]
}

fn of_path(problem: &Problem, entry: &Entry) -> Vec<Option<Card>> {
    let run = &entry.run;
    let steps = &run.steps;
    let ends = steps.first().and_then(|step| step.lambda).zip(steps.last().and_then(|step| step.lambda));
    let range = ends.map_or(String::new(), |(from, to)| format!("from {} to {}", digits(from, 3), digits(to, 3)));
    let most = steps.iter().filter_map(|step| step.figures.nnz).max();
    let open = steps.iter().filter(|step| step.status.as_deref() != Some("converged")).count();
    let proved = match open {
        0 => "every λ is certified".to_owned(),
        open => format!("{open} λ are not certified"),
    };
    let scored = steps.iter().filter_map(|step| Some((step.lambda?, step.score?)));
    let best = scored.reduce(|best, step| if step.1 > best.1 { step } else { best });
    let of = run.start.n_features.map_or(String::new(), |features| format!("of {} features", grouped(features)));
    vec![
        card("Path", Some(format!("{} λ", steps.len())), range),
        card("Nonzeros at most", most.map(grouped), of),
        card("Training time", run.seconds().map(seconds), proved),
        card(
            format!("Best test {}", problem.score_word()),
            best.map(|(_, score)| digits(score, 4)),
            best.map_or(String::new(), |(lambda, _)| format!("at λ = {}", trimmed(lambda))),
        ),
    ]
}

fn nonzeros(run: &Run) -> String {
    match (run.figures().nnz, run.start.n_features) {
        (Some(nnz), Some(features)) => format!("{} of {} features", grouped(nnz), grouped(features)),
        (Some(nnz), None) => format!("{} nonzeros", grouped(nnz)),
        _ => String::new(),
    }
}

/// How long it ran: a round of `auto` is no epoch.
fn lasted(run: &Run) -> String {
    let noun = if run.solver() == "auto" { "round" } else { "epoch" };
    run.epochs_done().map_or(String::new(), |epochs| plural(epochs, noun))
}

fn test(run: &Run) -> String {
    run.start.test.as_ref().map_or(String::new(), |test| format!("on {}", file_name(test)))
}
