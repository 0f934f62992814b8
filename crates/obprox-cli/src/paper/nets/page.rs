//! What the runs come to: a Markdown page with its pictures.

use std::path::Path;

use obprox::MethodKind;
use obprox::output::write_whole;
use obprox_infer::Kind;
use obprox_report::chart::{Axis, Chart, Colour, Figure, Series};

use super::Cell;
use super::config::{Published, config};
use super::record::{Figures, Record};
use crate::failure::Failure;
use crate::paper::convex::title;
use crate::show::{bold, grid, markdown, seconds, tight};

/// The results of all runs of a scale.
pub struct Page {
    tables: Vec<Table>,
}

/// A network on a data set, and its runs by method.
struct Row {
    paper: &'static Published,
    runs: [Option<Record>; 5],
}

struct Table {
    title: &'static str,
    rows: Vec<(String, Vec<[Option<String>; 2]>)>,
}

impl Page {
    /// Writes `nets.md` and the density curves from the logs in a directory.
    pub fn write(scale: &str, directory: &Path) -> Result<Self, Failure> {
        let rows = rows(scale, directory)?;
        let page = Self { tables: tables(&rows) };
        let mut text = format!("# The paper's section on deep networks, scale {scale}\n\n{}\n\n", settings(scale));
        for table in &page.tables {
            text += &table.markdown();
            text.push('\n');
        }
        let charts: Vec<_> = rows.iter().filter(|row| row.runs.iter().any(Option::is_some)).map(density).collect();
        if !charts.is_empty() {
            let figure = Figure::new(charts.into_iter().map(Into::into)).columns(2).size(480, 340);
            let name = format!("nets-{scale}-density.svg");
            write_whole(&directory.join(&name), |out| out.write_all(figure.to_svg().as_bytes()))?;
            text += &format!("![density over epochs]({name})\n");
        }
        write_whole(&directory.join(format!("nets-{scale}.md")), |out| out.write_all(text.as_bytes()))?;
        Ok(page)
    }

    /// The tables for a terminal.
    pub fn terminal(&self) -> String {
        self.tables.iter().map(Table::terminal).collect::<Vec<_>>().join("\n")
    }
}

fn settings(name: &str) -> String {
    let scale = &config().scale[name];
    let some = |limit: Option<usize>| limit.map_or("all images".into(), |count| format!("{count} images"));
    let images = format!("{} to train on, {} to test on", some(scale.images), some(scale.test_images));
    format!(
        "Written by `obprox paper nets --scale {name}`: {}. Width {}, {images}, {} epochs, batches of {}, λ = {:e}, step size {} × {} every {} \
         epochs; OBProx-SG {}/{}, OBProx-SG+ {}/∞; γ of RDA 20 (CIFAR10) and 30 (Fashion-MNIST). Below each figure, in \
         italics, the paper's, which is of the full scale.",
        scale.words,
        scale.width,
        scale.epochs,
        scale.batch,
        scale.lambda,
        scale.step,
        scale.decay,
        scale.decay_every,
        scale.cycle[0],
        scale.cycle[1],
        scale.switch
    )
}

fn rows(scale: &str, directory: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for paper in &config().published {
        let data = config().data.iter().find(|data| data.name == paper.data).expect("a test checks the names");
        let kind: Kind = paper.network.parse().expect("a test checks the names");
        let mut runs = [const { None }; 5];
        for (run, method) in runs.iter_mut().zip(MethodKind::PAPER) {
            *run = Record::read(&Cell { scale, kind, data, method }.log(directory))?;
        }
        rows.push(Row { paper, runs });
    }
    Ok(rows)
}

impl Row {
    fn name(&self) -> String {
        format!("{} on {}", network(&self.paper.network), self.paper.data)
    }

    fn cells(
        &self,
        ours: impl Fn(&Figures) -> Option<String>,
        paper: impl Fn(usize) -> String,
    ) -> Vec<[Option<String>; 2]> {
        let cell = |(number, run): (usize, &Option<Record>)| {
            let words = |run: &Record| match &run.status[..] {
                "diverged" => Some("diverged".into()),
                _ => ours(&run.end),
            };
            [run.as_ref().and_then(words), Some(paper(number))]
        };
        self.runs.iter().enumerate().map(cell).collect()
    }
}

fn tables(rows: &[Row]) -> Vec<Table> {
    let table = |title, cells: &dyn Fn(&Row) -> Vec<[Option<String>; 2]>| Table {
        title,
        rows: rows.iter().map(|row| (row.name(), cells(row))).collect(),
    };
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    vec![
        table("F / f", &|row| {
            let ours = |end: &Figures| Some(format!("{:.3} / {:.3}", end.objective?, end.f?));
            row.cells(ours, |at| format!("{:.3} / {:.3}", row.paper.objective[at], row.paper.loss[at]))
        }),
        table("Density / test accuracy, %", &|row| {
            let ours = |end: &Figures| Some(format!("{} / {}", percent(end.density), percent(end.accuracy?)));
            row.cells(ours, |at| format!("{:.2} / {:.2}", row.paper.density[at], row.paper.accuracy[at]))
        }),
        table("How many times sparser than Prox-SG", &|row| {
            let base = row.runs[0].as_ref().map(|run| run.end.density);
            let ours = |end: &Figures| Some(format!("{:.2}×", base? / end.density));
            row.cells(ours, |at| format!("{:.2}×", row.paper.density[0] / row.paper.density[at]))
        }),
        table("Training time", &|row| {
            let mut cells = row.cells(|end| Some(seconds(end.seconds)), |_| String::new());
            cells.iter_mut().for_each(|cell| cell[1] = None);
            cells
        }),
    ]
}

impl Table {
    fn header(&self) -> Vec<String> {
        std::iter::once(self.title.to_owned()).chain(MethodKind::PAPER.map(|method| title(method).to_owned())).collect()
    }

    fn markdown(&self) -> String {
        let cell = |[ours, paper]: &[Option<String>; 2]| {
            let ours = ours.clone().unwrap_or("–".into());
            paper.as_ref().map_or(ours.clone(), |paper| format!("{ours}<br>*{paper}*"))
        };
        let rows =
            self.rows.iter().map(|(name, cells)| std::iter::once(name.clone()).chain(cells.iter().map(cell)).collect());
        markdown(grid(self.header(), rows.collect()))
    }

    fn terminal(&self) -> String {
        let rows = self.rows.iter().map(|(name, cells)| {
            let paper = if cells.iter().any(|cell| cell[1].is_some()) { "\n  paper" } else { "" };
            let cell = |[ours, paper]: &[Option<String>; 2]| {
                let ours = ours.clone().unwrap_or("–".into());
                paper.as_ref().map_or(ours.clone(), |paper| format!("{ours}\n{paper}"))
            };
            std::iter::once(format!("{name}{paper}")).chain(cells.iter().map(cell)).collect()
        });
        format!("{}\n{}", bold(self.title), tight(grid(self.header(), rows.collect())))
    }
}

/// Density by epoch, the paper's last figure.
fn density(row: &Row) -> Chart {
    let mut chart = Chart::new(row.name(), Axis::linear("epoch"), Axis::log("density").percent());
    for (number, (run, method)) in row.runs.iter().zip(MethodKind::PAPER).enumerate() {
        let Some(run) = run else { continue };
        let points = run.epochs.iter().map(|epoch| (epoch.epoch as f64, epoch.density));
        chart = chart.series(Series::line(title(method), points).coloured(Colour::Palette(number)));
        if let Some(epoch) = run.first_orthant().filter(|_| method == MethodKind::ObproxSgPlus) {
            chart = chart.mark(epoch as f64 - 1.0, "OBProx-SG+ switches");
        }
    }
    chart
}

fn network(name: &str) -> &str {
    match name {
        "resnet18" => "ResNet18",
        "mobilenet-v1" => "MobileNetV1",
        other => other,
    }
}
