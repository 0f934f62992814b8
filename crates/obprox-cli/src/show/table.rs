//! Rows and columns for a terminal.

use comfy_table::{CellAlignment, Table, presets};

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
    let columns = header.len();
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in 1..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
