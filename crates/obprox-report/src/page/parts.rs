//! Pieces of a page that need no script.

use maud::{Markup, html};

use crate::chart::{Bars, Colour};
use crate::report::Problem;
use crate::table::{self, Cell, Table};

/// A table; `runs` gives each row the colour of its run.
pub(super) fn table(table: &Table, runs: Option<&Problem>) -> Markup {
    let colour = |at: usize| runs.and_then(|problem| problem.entries.get(at)).map(|entry| entry.colour);
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { @for head in table.header() { th scope="col" { (head) } } } }
                tbody {
                    @for (at, cells) in table.cells().enumerate() {
                        tr {
                            @for (place, cell) in cells.iter().enumerate() {
                                @if place == 0 {
                                    th scope="row" { @if let Some(colour) = colour(at) { (swatch(colour, false)) } (cell.shown) }
                                } @else { (value(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn value(cell: &Cell) -> Markup {
    html! { @if cell.best { td.best { (cell.shown) } } @else { td { (cell.shown) } } }
}

/// A stroke of a colour, on white and on black.
fn swatch(colour: Colour, dashed: bool) -> Markup {
    let (light, dark) = colour.hex();
    html! { i.swatch.dashed[dashed] style={ "--light:" (light) ";--dark:" (dark) } {} }
}

/// Buttons that switch series on and off, in the charts of these ids; without a script they only tell the colours.
pub(super) fn legend<'a>(charts: &str, entries: impl Iterator<Item = (&'a str, Colour, bool)>) -> Markup {
    html! {
        div.legend data-charts=(charts) role="group" aria-label="Series" {
            @for (name, colour, dashed) in entries {
                button type="button" aria-pressed="true" data-series=(name) { (swatch(colour, dashed)) (name) }
            }
        }
    }
}

/// Bars beside their names.
pub(super) fn bars(bars: &Bars) -> Markup {
    let (zero, ends) = bars.shares();
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    html! {
        table.bars {
            tbody {
                @for (bar, (from, to)) in bars.bars.iter().zip(ends) {
                    @let (light, dark) = bar.colour.hex();
                    tr {
                        th scope="row" { (bar.name) }
                        td.track {
                            div {
                                b style={ "left:" (percent(from)) ";width:" (percent(to - from)) ";--light:" (light) ";--dark:" (dark) } {}
                                i style={ "left:" (percent(zero)) } {}
                            }
                        }
                        td.words { (bar.words) }
                    }
                }
            }
        }
    }
}

/// The numbers behind path and folds, folded away.
pub(super) fn many_lambdas(problem: &Problem) -> Markup {
    let one = std::slice::from_ref(problem);
    let tables = [("Every λ of the path", table::path(one)), ("Every λ of the folds", table::folds(one))];
    html! {
        @for (title, table) in tables.iter().filter(|(_, table)| !table.rows.is_empty()) {
            details { summary { (title) } (self::table(table, None)) }
        }
    }
}

/// What all runs have in common once, what differs as a table.
pub(super) fn settings(problem: &Problem) -> Markup {
    let mut all = table::settings(std::slice::from_ref(problem));
    let same = |row: &Vec<Cell>| row[1..].iter().all(|cell| cell.exact == row[1].exact);
    let common: Vec<(String, String)> =
        all.rows.iter().filter(|row| same(row)).map(|row| (row[0].shown.clone(), row[1].shown.clone())).collect();
    all.rows.retain(|row| !same(row));
    html! {
        dl.settings { @for (name, value) in &common { div { dt { (name) } dd { (value) } } } }
        @if !all.rows.is_empty() { (table(&all, None)) }
    }
}
