//! One self-contained page: tables and pictures that need no script, and charts that respond where there is one.
//!
//! Everything is in the file: style, script, data. A policy in its head forbids it to ask for anything else and to run any
//! other script. Words from logs are escaped by maud, and data for the script lies in a block of JSON without a `<`, so no
//! name can become code.

mod data;
mod headline;
mod parts;
mod policy;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::{Figure, Panel};
use crate::charts::{Named, charts, switch_words};
use crate::report::{Problem, Report};
use crate::table;
use crate::text::{file_name, shell};
use data::Data;
use policy::POLICY;

const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
/// The charting library, under the licence beside it.
const UPLOT: (&str, &str) =
    (include_str!("../../assets/uPlot.iife.min.js"), include_str!("../../assets/uPlot.min.css"));

/// Charts of more points than this, all together, have no pictures for those without a script: the page would be heavy.
const PICTURED: usize = 3000;

/// The page.
pub fn html(report: &Report) -> String {
    let title = title(report);
    let all: Vec<Vec<Named>> = report.problems.iter().map(charts).collect();
    let pictures = all.iter().flatten().map(points).sum::<usize>() <= PICTURED;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · obprox" }
                style { (PreEscaped(UPLOT.1)) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header.page {
                        p.kind { "obprox report" }
                        h1 { (title) }
                        @if let [only] = &report.problems[..] { p.summary { (only.summary()) } }
                        @if report.problems.iter().any(|problem| !problem.is_network()) {
                            p.formula { "min F = (1/N) Σ loss(yᵢ, x·dᵢ + b) + λ‖x‖₁ + (λ₂/2)‖x‖₂²" }
                        }
                        @if report.problems.iter().any(Problem::is_network) {
                            p.formula { "min F = (1/N) Σ cross-entropy(yᵢ, net(dᵢ; x)) + λ‖x‖₁ + (λ₂/2)‖x‖₂²" }
                        }
                        @if report.problems.len() > 1 {
                            nav {
                                @for (place, problem) in report.problems.iter().enumerate() {
                                    a href={ "#problem-" (place + 1) } { (problem.data()) span { (problem.summary()) } }
                                }
                            }
                        }
                    }
                    (notices(report))
                    @for (place, (problem, charts)) in report.problems.iter().zip(&all).enumerate() {
                        (section(place + 1, problem, charts, report.problems.len() > 1, pictures))
                    }
                    (again(report))
                    footer { p { "Made by obprox " (env!("CARGO_PKG_VERSION")) ". The page is one file: it asks nothing of the network." } }
                }
                script type="application/json" id="charts" { (PreEscaped(json(&all))) }
                script { (PreEscaped(UPLOT.0)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn title(report: &Report) -> String {
    let mut names: Vec<&str> = report.problems.iter().map(Problem::data).collect();
    names.dedup();
    match names[..] {
        [name] => file_name(name).to_owned(),
        [first, second] => format!("{} and {}", file_name(first), file_name(second)),
        _ => format!("{} problems", report.problems.len()),
    }
}

fn notices(report: &Report) -> Markup {
    let notices = report.notices();
    html! {
        @if !notices.is_empty() {
            aside.notices role="note" aria-label="What to know first" {
                @for notice in &notices { p { (notice) } }
            }
        }
    }
}

/// What the picture of a chart costs.
fn points(named: &Named) -> usize {
    match &named.panel {
        Panel::Chart(chart) => chart.series.iter().map(|series| series.points.len() + series.dots.len()).sum(),
        Panel::Bars(_) => 0,
    }
}

/// A problem, from its headline to its settings.
fn section(number: usize, problem: &Problem, charts: &[Named], among_others: bool, pictures: bool) -> Markup {
    let named = |name: &str| charts.iter().filter(|chart| chart.kind == name).collect::<Vec<_>>();
    let several = |names: &[&str]| names.iter().flat_map(|name| named(name)).collect::<Vec<_>>();
    let convergence = several(&CONVERGENCE);
    let one = std::slice::from_ref(problem);
    html! {
        section.problem id={ "problem-" (number) } {
            @if among_others { h2.problem { (problem.data()) } p.summary { (problem.summary()) } }
            (headline::cards(problem))
            @for (title, kinds) in MANY_LAMBDAS {
                @let charts = several(kinds);
                @if !charts.is_empty() {
                    h3 { (title) }
                    div.charts { @for chart in charts { (figure(number, chart, pictures)) } }
                }
            }
            (parts::many_lambdas(problem))
            @if !problem.is_path() && problem.entries.len() > 1 {
                h3 { "Runs" }
                (parts::table(&table::runs(one), Some(problem)))
                p.caption {
                    "Bold is the best of its column. "
                    @if !problem.is_network() { "gap is relative to F, " }
                    "rel. is training time against the fastest."
                }
            }
            @if !convergence.is_empty() {
                h3 { @if problem.is_network() { "Training" } @else { "Convergence" } }
                p.caption {
                    @if let Some(words) = problem.optimum_words() { (words) " " }
                    @if let Some(words) = switch_words(problem) { (words) }
                }
                (legend(number, problem, charts))
                div.charts { @for chart in convergence { (figure(number, chart, pictures)) } }
            }
            @if problem.is_network() { (networks(number, problem, charts, pictures)) }
            @if !problem.is_path() && problem.optimum.is_some() {
                h3 { "Certificate" }
                (parts::table(&table::certificates(one), None))
                div.charts.below {
                    @for chart in several(&["gap-epochs", "runtimes"]) { (figure(number, chart, pictures)) }
                }
            }
            @let rounds = table::rounds(one);
            @if !problem.is_path() && !rounds.rows.is_empty() {
                h3 { "Stages" }
                p.caption {
                    "In the stage identify the support is found, at a larger λ or on a sample of the rows; in polish Newton steps \
                     are taken at λ itself. A round works on the features that could matter, its working set, and ends with a \
                     certificate over all features."
                }
                (parts::table(&rounds, None))
            }
            @let weights = several(&["weights"]);
            @if !weights.is_empty() {
                h3 { "What was learnt" }
                div.charts { @for chart in weights { (figure(number, chart, pictures)) } }
            }
            h3 { "Settings and data" }
            (parts::settings(problem))
        }
    }
}

/// What is drawn along a run.
const CONVERGENCE: [&str; 7] = [
    "accuracy-epochs",
    "loss-epochs",
    "objective-epochs",
    "objective-seconds",
    "density-epochs",
    "density-seconds",
    "lambda-epochs",
];

/// Layers, times and confusions of networks.
fn networks(number: usize, problem: &Problem, charts: &[Named], pictures: bool) -> Markup {
    let one = std::slice::from_ref(problem);
    let bars: Vec<&Named> =
        charts.iter().filter(|chart| ["layers", "phase-times", "runtimes"].contains(&chart.kind)).collect();
    let confusion = table::confusion(one);
    html! {
        @if !bars.is_empty() {
            h3 { "Layers and time" }
            div.charts { @for chart in bars { (figure(number, chart, pictures)) } }
        }
        @if !confusion.rows.is_empty() {
            h3 { "Which class is taken for which" }
            p.caption { "Test images of each class (rows) by the class that is predicted (columns)." }
            @for entry in &problem.entries {
                @let mine = table::Table {
                    rows: confusion.rows.iter().filter(|row| row[1].shown == entry.name).cloned().collect(),
                    ..confusion.clone()
                };
                @if problem.entries.len() > 1 && !mine.rows.is_empty() { p.caption { (entry.name) } }
                @if !mine.rows.is_empty() { (parts::table(&mine, None)) }
            }
        }
    }
}

/// What comes first where there is any of it.
const MANY_LAMBDAS: [(&str, &[&str]); 2] =
    [("Cross-validation", &["cv"]), ("Path", &["path-weights", "path-nonzeros", "path-score"])];

/// The runs as buttons that switch their curves on and off, in every chart of the problem.
fn legend(number: usize, problem: &Problem, charts: &[Named]) -> Markup {
    let ids: Vec<String> =
        charts.iter().filter(|chart| is_of_runs(chart.kind)).map(|chart| id(number, chart)).collect();
    html! {
        @if problem.entries.len() > 1 {
            (parts::legend(&ids.join(" "), problem.entries.iter().map(|entry| (&entry.name[..], entry.colour, entry.dashed))))
        }
    }
}

/// Whether the series of a chart are runs.
fn is_of_runs(kind: &str) -> bool {
    kind.ends_with("-epochs") || kind.ends_with("-seconds")
}

fn id(number: usize, chart: &Named) -> String {
    format!("chart-{number}-{}", chart.name)
}

fn figure(number: usize, named: &Named, picture: bool) -> Markup {
    match &named.panel {
        Panel::Bars(bars) => html! {
            figure.bars.card {
                figcaption { strong { (bars.title) } @if !named.caption.is_empty() { span { (named.caption) } } }
                (parts::bars(bars))
            }
        },
        Panel::Chart(chart) => {
            // Curves of runs have the legend of the section; others have one of their own.
            let own = !is_of_runs(named.kind);
            let entries = || chart.series.iter().zip(chart.colours()).filter(|(series, _)| !series.name.is_empty());
            let picture = picture.then(|| Figure::of((**chart).clone()).size(540, 320).without_titles().to_svg());
            html! {
                figure.card.wide[named.kind == "path-weights"] {
                    figcaption { strong { (chart.title) } @if !named.caption.is_empty() { span { (named.caption) } } }
                    @if own && entries().count() > 1 {
                        (parts::legend(&id(number, named), entries().map(|(series, colour)| (&series.name[..], colour, series.dashed))))
                    }
                    div.chart id=(id(number, named)) { @if let Some(picture) = picture { (PreEscaped(picture)) } }
                }
            }
        }
    }
}

/// Every chart by its id. JSON knows an escape for `<`, so the block cannot be closed from within.
fn json(all: &[Vec<Named>]) -> String {
    let mut data: BTreeMap<String, Data> = BTreeMap::new();
    for (place, charts) in all.iter().enumerate() {
        for named in charts {
            if let Panel::Chart(chart) = &named.panel {
                data.insert(id(place + 1, named), Data::new(chart));
            }
        }
    }
    let text = serde_json::to_string(&data).expect("charts are plain data");
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// The command lines, ready to be pasted.
fn again(report: &Report) -> Markup {
    let mut commands: Vec<String> = Vec::new();
    for entry in report.entries().filter(|entry| !entry.run.start.command.is_empty()) {
        let command = shell(&entry.run.start.command);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    html! {
        @if !commands.is_empty() {
            section.again {
                h3 { "Do it again" }
                p.caption { "The same command on the same data gives the same bits, whatever the number of threads." }
                @for command in &commands {
                    div.command { pre { code { (command) } } button type="button" hidden { "copy" } }
                }
            }
        }
    }
}
