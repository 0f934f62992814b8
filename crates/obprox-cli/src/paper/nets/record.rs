//! A run as its log tells it.

use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;

/// A finished run.
pub struct Record {
    pub epochs: Vec<Figures>,
    pub end: Figures,
    pub status: String,
}

/// The figures of an epoch, or of the end.
#[derive(Clone, Debug, Deserialize)]
pub struct Figures {
    #[serde(default)]
    pub epoch: u64,
    pub phase: String,
    #[serde(rename = "F")]
    pub objective: Option<f64>,
    pub f: Option<f64>,
    pub density: f64,
    #[serde(alias = "score")]
    pub accuracy: Option<f64>,
    pub seconds: f64,
}

#[derive(Deserialize)]
struct End {
    status: String,
    #[serde(flatten)]
    figures: Figures,
}

impl Record {
    /// Reads a log; nothing where there is none, or where its run did not end by itself.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
        let bad = |error: serde_json::Error| {
            Failure::input(format!("{}: is no log of a run ({error}): delete it", path.display()))
        };
        let mut epochs = Vec::new();
        for line in text.lines() {
            let event: serde_json::Value = serde_json::from_str(line).map_err(bad)?;
            match event["event"].as_str() {
                Some("epoch") => epochs.push(serde_json::from_value(event).map_err(bad)?),
                Some("end") if event["status"] != "stopped" => {
                    let end: End = serde_json::from_value(event).map_err(bad)?;
                    return Ok(Some(Self { epochs, end: end.figures, status: end.status }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The first epoch that ended with Orthant steps.
    pub fn first_orthant(&self) -> Option<u64> {
        self.epochs.iter().find(|epoch| epoch.phase == "orthant").map(|epoch| epoch.epoch)
    }
}
