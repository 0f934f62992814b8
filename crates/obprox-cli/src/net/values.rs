//! `--values`: what the weights of a compressed file are rounded to, and what that costs.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::images::{Data, Preprocessing};
use obprox_infer::{Model, Values};

use super::images::images;
use crate::failure::Failure;
use crate::show::percent;
use crate::watch;

/// What weights are rounded to.
#[derive(Args, Debug)]
pub struct ValueFlags {
    /// What the weights are rounded to in a compressed file: f32 (not at all), bf16, or int8 with a scale for each
    /// channel; what it costs is told
    #[arg(long, value_name = "KIND", default_value = "f32", value_parser = kinds())]
    pub values: Values,
}

fn kinds() -> impl TypedValueParser<Value = Values> {
    PossibleValuesParser::new(Values::ALL.map(Values::name)).try_map(|name| name.parse::<Values>())
}

/// Labelled images to measure on.
#[derive(Args, Debug)]
pub struct MeasureFlags {
    /// Labelled images, as for obprox net train: the accuracy on them is told, before and after
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Images of a batch.
const BATCH: usize = 256;

impl MeasureFlags {
    /// The images that are given, as the network takes them.
    pub fn read(&self, net: &Path, model: &Model, quiet: bool) -> Result<Option<Data>, Failure> {
        let Some(path) = &self.data else { return Ok(None) };
        let name = net.display();
        let preprocessing = model.training().preprocessing.as_ref().ok_or_else(|| {
            Failure::input(format!("--data: {name} does not tell how its images were normalised; say --normalize"))
        })?;
        let data = images(path, None, preprocessing, None, quiet)?;
        match model.output_shape() == [data.classes.len()] {
            true => Ok(Some(data)),
            false => Err(Failure::input(format!("--data: {name} does not tell {} classes apart", data.classes.len()))),
        }
    }
}

/// The share of the images that are for testing, or else of all, whose class is predicted.
pub fn accuracy(model: &Model, preprocessing: &Preprocessing, data: &Data) -> Result<f64, Failure> {
    let images = data.test.as_ref().unwrap_or(&data.train);
    let _waiting = watch::waiting(format!("predicting {} images", images.len()), false);
    let engine = Engine::new(model, Kernels::Auto, [preprocessing.height, preprocessing.width])?;
    let mut right = 0;
    for first in (0..images.len()).step_by(BATCH) {
        let batch = images.slice(first, BATCH);
        let scores = engine.run(&preprocessing.apply(&batch)?)?;
        let predicted = scores.chunks_exact(engine.outputs()).map(|scores| class(scores) as u32);
        right += predicted.zip(batch.labels().unwrap_or_default()).filter(|(class, label)| class == *label).count();
    }
    Ok(right as f64 / images.len() as f64)
}

/// The class of the largest score, the first of equals.
fn class(scores: &[f32]) -> usize {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().position(|score| *score == most).unwrap_or(0)
}

/// Inputs of noise that two networks are compared on.
const INPUTS: usize = 64;

/// In words, how far apart the outputs of two networks are on noise.
pub fn difference(one: &Model, other: &Model) -> Result<String, Failure> {
    let size = match one.network().input_shape() {
        &[_, height, width] => [height, width],
        _ => [1, 1],
    };
    let (one, other) = (Engine::new(one, Kernels::Auto, size)?, Engine::new(other, Kernels::Auto, size)?);
    let mut bits = 1u64;
    // Sums of uniform numbers: noise of variance 1 as normalised images have.
    let mut noise = || {
        (0..3).fold(0.0, |sum, _| {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum + (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
    };
    let inputs: Vec<f32> = (0..INPUTS * one.shape().iter().product::<usize>()).map(|_| noise()).collect();
    let (before, after) = (one.run(&inputs)?, other.run(&inputs)?);
    let most = before.iter().fold(0.0f32, |most, score| most.max(score.abs()));
    let apart = before.iter().zip(&after).fold(0.0f32, |most, (before, after)| most.max((before - after).abs()));
    let told =
        format!("outputs differ by {} of the largest at most", percent(f64::from(apart / most.max(f32::MIN_POSITIVE))));
    if one.output_shape().len() != 1 {
        return Ok(format!("{told}, on {INPUTS} inputs of noise"));
    }
    let pairs = before.chunks_exact(one.outputs()).zip(after.chunks_exact(one.outputs()));
    let same = pairs.filter(|(before, after)| class(before) == class(after)).count();
    Ok(format!("{told}, {} have the same class, on {INPUTS} inputs of noise", percent(same as f64 / INPUTS as f64)))
}
