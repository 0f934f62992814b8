//! Rows and columns for a terminal.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};

/// Names and values, one pair a line, indented.
pub fn pairs<N: Into<String>>(rows: impl IntoIterator<Item = (N, String)>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in rows {
        table.add_row(vec![format!(" {:<18}", name.into()), value]);
    }
    table.trim_fmt() + "\n"
}

/// A header and rows; the first column is to the left, numbers to the right.
pub fn grid(header: Vec<String>, rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// For a terminal: a header over a rule, and little space between, since nine columns have to fit in 80.
pub fn tight(mut table: Table) -> String {
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(number > 0), 0));
    }
    table.trim_fmt() + "\n"
}

/// For a Markdown page.
#[cfg(feature = "paper")]
pub fn markdown(mut table: Table) -> String {
    table.load_style(presets::ASCII_MARKDOWN);
    table.to_string() + "\n"
}
