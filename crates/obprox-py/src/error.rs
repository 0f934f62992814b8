//! Each failure of the library as the Python exception of the same name, in `obprox.exceptions`.

use obprox::Error;
use pyo3::prelude::*;

mod raised {
    use pyo3::import_exception;

    import_exception!(obprox.exceptions, ParseError);
    import_exception!(obprox.exceptions, FileError);
    import_exception!(obprox.exceptions, ParameterError);
    import_exception!(obprox.exceptions, NotFiniteError);
    import_exception!(obprox.exceptions, DataError);
    import_exception!(obprox.exceptions, MemoryShortError);
}

/// The exception for an error.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Parse { .. } => raised::ParseError::new_err(text),
        Error::File { .. } => raised::FileError::new_err(text),
        Error::Parameter { name, message } => {
            raised::ParameterError::new_err(format!("{}: {message}", name_in_python(name)))
        }
        Error::Memory { .. } => raised::MemoryShortError::new_err(text),
        Error::NotFinite { row, column, value } => {
            // In scikit-learn's words, which its users search for; with the place, which they ask for. Python counts
            // from 0.
            let what = if value.is_nan() { "NaN" } else { "infinity or a value too large for its type" };
            let place = format!("X[{}, {}]", row - 1, column - 1);
            raised::NotFiniteError::new_err((format!("Input X contains {what}: {place}"), column - 1))
        }
        // OSError has subclasses by the system's reason, so that `except FileNotFoundError` works as ever.
        Error::Io { ref path, ref source, .. } => {
            let reason = (number_of(source), source.to_string(), path.clone());
            let made =
                py.import("obprox.exceptions").and_then(|module| module.call_method1("file_access_error", reason));
            made.map_or_else(|error| error, PyErr::from_value)
        }
        _ => raised::DataError::new_err(text),
    }
}

/// The name of a parameter in Python, where it has another one than in the library.
fn name_in_python(name: &str) -> &str {
    match name {
        "class weights" => "class_weight",
        "folds" | "splits" => "cv",
        "lambda" => "alpha",
        "lambdas" => "alphas",
        "nnz" => "max_features",
        "row weights" | "score weights" => "sample_weight",
        other => other,
    }
}

/// The system's number of a reason, which an error that was wrapped on its way only has as a kind.
fn number_of(source: &std::io::Error) -> Option<i32> {
    const ENOENT: i32 = 2;
    const EACCES: i32 = 13;
    source.raw_os_error().or(match source.kind() {
        std::io::ErrorKind::NotFound => Some(ENOENT),
        std::io::ErrorKind::PermissionDenied => Some(EACCES),
        _ => None,
    })
}

/// A parameter error of the binding itself.
pub fn parameter(name: &'static str, message: impl Into<String>) -> PyErr {
    raised::ParameterError::new_err(format!("{name}: {}", message.into()))
}
