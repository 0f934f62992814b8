//! What the user is told when something goes wrong, and the exit status that goes with it.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::show;

/// The end of a command that did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// One line for standard error.
    Said {
        /// What is wrong and what to do about it.
        message: String,
        /// 2 where the user can mend it, 1 otherwise.
        status: u8,
    },
    /// Help or version: clap knows how to print it and with which status.
    Help(clap::Error),
    /// What went wrong has been said when it happened; only the status is left, 1.
    Told,
    /// The reader of our output has gone, as in `obprox predict … | head -1`: nothing is wrong.
    Unheard,
}

impl Failure {
    /// What the user gave is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Said { message: message.into(), status: 2 }
    }

    /// Anything else.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Said { message: message.into(), status: 1 }
    }

    /// For `map_err`: the library's data errors do not know the file they are about; the command does.
    pub fn about(file: &str) -> impl FnOnce(obprox::Error) -> Self + '_ {
        move |error| match error {
            obprox::Error::Data(message) => Self::input(format!("{file}: {message}")),
            error @ obprox::Error::Memory { .. } => Self::other(format!("{file}: {error}")),
            other => other.into(),
        }
    }

    /// Writes the line and gives the status.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Said { message, status } => {
                show::say(&format!("error: {message}"));
                status.into()
            }
            Self::Help(error) => match error.print().map_err(show::stdout_failure) {
                Ok(()) | Err(Self::Unheard) => u8::try_from(error.exit_code()).unwrap_or(2).into(),
                Err(failure) => failure.report(),
            },
            Self::Told => ExitCode::FAILURE,
            Self::Unheard => ExitCode::SUCCESS,
        }
    }
}

impl From<obprox::Error> for Failure {
    fn from(error: obprox::Error) -> Self {
        let status = if error.is_input() { 2 } else { 1 };
        match error {
            obprox::Error::Parameter { name, message } => {
                Self::Said { message: format!("{}: {message}", flag(name)), status }
            }
            obprox::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => Self::Unheard,
            error => Self::Said { message: error.to_string(), status },
        }
    }
}

/// The flag behind a parameter of the library.
fn flag(parameter: &str) -> String {
    match parameter {
        "row weights" => "--weights".into(),
        "feature weights" => "--feature-weights".into(),
        "class weights" => "--class-weight".into(),
        "n_cols" => "--features".into(),
        "classes" => "--task".into(),
        name => format!("--{}", name.replace('_', "-")),
    }
}

/// clap's errors come in paragraphs with the usage below; scripts and people are better served by the one line that
/// says what is wrong.
pub fn usage(error: clap::Error) -> Failure {
    let shows_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if shows_help {
        return Failure::Help(error);
    }
    let text = error.render().to_string();
    let said = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said = said.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let mut message = String::new();
    for line in said {
        let separator = if line.starts_with("tip:") { "; " } else { " " };
        message += if message.is_empty() { "" } else { separator };
        message += line.strip_prefix("error: ").or(line.strip_prefix("tip: ")).unwrap_or(line);
    }
    Failure::input(message)
}
