//! Rows and columns for a terminal.

use unicode_width::UnicodeWidthStr;

/// A header and rows; the first column is to the left, numbers to the right.
#[derive(Clone, Debug)]
pub struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

pub fn grid(header: Vec<String>, rows: Vec<Vec<String>>) -> Grid {
    Grid { header, rows: rows.iter().flat_map(|row| by_lines(row)).collect() }
}

/// A row whose cells have several lines is as many rows.
fn by_lines(row: &[String]) -> impl Iterator<Item = Vec<String>> + '_ {
    let count = row.iter().map(|cell| cell.lines().count()).max().unwrap_or(0).max(1);
    (0..count).map(|line| row.iter().map(|cell| cell.lines().nth(line).unwrap_or_default().to_owned()).collect())
}

/// Names and values, one pair a line, indented.
pub fn pairs<N: Into<String>>(rows: impl IntoIterator<Item = (N, String)>) -> String {
    let rows: Vec<(String, String)> = rows.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let wide = rows.iter().map(|(name, _)| name.width()).fold(18, usize::max);
    rows.iter()
        .map(|(name, value)| format!("  {}  {value}", padded(name, wide, false)).trim_end().to_owned() + "\n")
        .collect()
}

/// Between columns: nine of them have to fit in 80.
const GAP: &str = "  ";

/// For a terminal: a header over a rule.
pub fn tight(grid: Grid) -> String {
    let widths = grid.widths();
    let rule = "─".repeat(widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1));
    let line = |cells: &Vec<String>| grid.cells(cells, &widths).join(GAP).trim_end().to_owned() + "\n";
    let rows: String = grid.rows.iter().map(line).collect();
    format!("{}{rule}\n{rows}", line(&grid.header))
}

/// For a Markdown page.
#[cfg(feature = "paper")]
pub fn markdown(grid: Grid) -> String {
    let widths = grid.widths();
    let line = |cells: &Vec<String>| format!("| {} |\n", grid.cells(cells, &widths).join(" | "));
    let rule: Vec<String> = widths.iter().map(|wide| "-".repeat(wide + 2)).collect();
    let rows: String = grid.rows.iter().map(line).collect();
    format!("{}|{}|\n{rows}", line(&grid.header), rule.join("|"))
}

impl Grid {
    /// The widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let columns = lines().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| lines().filter_map(|cells| cells.get(at)).map(|cell| cell.width()).max();
        (0..columns).map(|at| widest(at).unwrap_or(0)).collect()
    }

    /// The cells of a line, as wide as their columns; there may be fewer cells than columns.
    fn cells(&self, cells: &[String], widths: &[usize]) -> Vec<String> {
        let cell = |at: usize| cells.get(at).map_or("", String::as_str);
        widths.iter().enumerate().map(|(at, &wide)| padded(cell(at), wide, at > 0)).collect()
    }
}

/// Words as wide as a column: signs of the East are two columns wide.
fn padded(text: &str, wide: usize, right: bool) -> String {
    let blanks = " ".repeat(wide.saturating_sub(text.width()));
    if right { blanks + text } else { text.to_owned() + &blanks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let grid = grid(words(&["name", "F", ""]), vec![words(&["日本", "0.25"]), words(&["a", "3", "!"])]);
        assert_eq!(tight(grid.clone()), "name     F\n─────────────\n日本  0.25\na        3  !\n");
        #[cfg(feature = "paper")]
        assert_eq!(
            markdown(grid),
            "| name |    F |   |\n|------|------|---|\n| 日本 | 0.25 |   |\n| a    |    3 | ! |\n"
        );
    }

    #[test]
    fn cells_of_several_lines_are_in_line() {
        let grid = grid(words(&["set", "F"]), vec![words(&["a9a\n  paper", "0.33\n0.3"]), words(&["w8a", "0.1"])]);
        assert_eq!(tight(grid), "set         F\n─────────────\na9a      0.33\n  paper   0.3\nw8a       0.1\n");
    }

    #[test]
    fn pairs_are_in_line() {
        assert_eq!(pairs([("λ", "1".into()), ("", "2".into())]), "  λ                   1\n                      2\n");
    }
}
