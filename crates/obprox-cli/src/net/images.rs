//! Images for networks: flags, and directories of them.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox_infer::images::{Data, Preprocessing, read_directory};

use super::normalize::Normalize;
use crate::failure::Failure;
use crate::watch;

/// How images are brought to a network: the same flags wherever it is trained, measured or compressed.
#[derive(Args, Debug)]
#[command(next_help_heading = "The images")]
pub struct ImageFlags {
    /// Pixels of a side that images are resized to [default: as the file of the network says, else 32]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u16).range(8..=1024))]
    size: Option<u16>,

    /// How images are normalised: imagenet, plain (0 to 1), or means/deviations by channel [default: as the
    /// file of the network says; imagenet where one is trained]
    #[arg(long, value_name = "HOW")]
    normalize: Option<Normalize>,
}

impl ImageFlags {
    /// The side that was asked for.
    pub fn side(&self) -> Option<usize> {
        self.size.map(usize::from)
    }

    /// Whether anything is said of how images are normalised.
    pub fn is_given(&self) -> bool {
        self.normalize.is_some()
    }

    /// Size and normalisation of images that a network is to be trained on.
    #[cfg(any(test, feature = "net"))]
    pub fn for_training(&self, channels: usize) -> Result<Preprocessing, Failure> {
        let normalize = self.normalize.as_ref().unwrap_or(&Normalize::Imagenet);
        normalize.preprocessing(self.size.unwrap_or(SIDE).into(), channels).map_err(Failure::input)
    }

    /// What the file of a network says of its images, where no flag says otherwise.
    pub fn of_file(
        &self,
        file: &Path,
        known: Option<Preprocessing>,
        channels: usize,
    ) -> Result<Preprocessing, Failure> {
        let side = self.size.map(usize::from);
        match (&self.normalize, known) {
            (Some(normalize), known) => {
                let side = side.or(known.map(|known| known.height)).unwrap_or(SIDE.into());
                normalize.preprocessing(side, channels).map_err(Failure::input)
            }
            (None, Some(known)) => {
                let (height, width) = side.map_or((known.height, known.width), |side| (side, side));
                Ok(Preprocessing { height, width, ..known })
            }
            // A guess would be a wrong accuracy that looks like a right one.
            (None, None) => Err(Failure::input(format!(
                "{}: does not tell how its images were normalised; say --normalize imagenet, plain or means/deviations",
                file.display()
            ))),
        }
    }
}

/// Pixels of a side where nobody says: those of CIFAR-10, and of the paper's networks.
const SIDE: u16 = 32;

/// Reads training images and, from their own directory or another one, test images.
pub fn images(
    path: &Path,
    test: Option<&PathBuf>,
    preprocessing: &Preprocessing,
    limit: Option<u64>,
    quiet: bool,
) -> Result<Data, Failure> {
    let _waiting = watch::waiting(format!("reading {}", path.display()), quiet);
    let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut data = read_directory(path, preprocessing.shape(), limit)?;
    if let Some(test) = test {
        let other = read_directory(test, preprocessing.shape(), None)?;
        if other.classes != data.classes {
            let (one, two) = (other.classes.join(", "), data.classes.join(", "));
            let message = format!("--test {}: has the classes {one}, and the training images {two}", test.display());
            return Err(Failure::input(message));
        }
        // A directory with two parts is asked for the part that is for testing.
        data.test = Some(other.test.unwrap_or(other.train));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        images: ImageFlags,
    }

    fn line(text: &str) -> Result<Line, String> {
        let words = std::iter::once("test").chain(text.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn bad_values_are_refused() {
        assert!(line("--normalize cifar").is_err() && line("--size 4").is_err());
        assert!(line("--normalize 0.5/0.2").unwrap().images.for_training(3).is_err());
        let given = line("--normalize 0.1,0.2,0.3/1,1,1").unwrap().images.for_training(3).unwrap();
        assert_eq!(given.mean, [0.1, 0.2, 0.3]);
    }

    #[test]
    fn a_flag_goes_before_what_a_file_says_of_its_images() {
        let images = |text: &str| line(text).unwrap().images;
        let known = || Some(Preprocessing::plain(28, 1));
        let of = |text: &str, known| images(text).of_file(Path::new("net.obz"), known, 1).ok();
        assert_eq!(of("", known()), known());
        assert_eq!(of("--size 16", known()), Some(Preprocessing::plain(16, 1)));
        let grey = of("--normalize 0.5/0.25", known()).unwrap();
        assert_eq!((grey.height, grey.mean, grey.std), (28, vec![0.5], vec![0.25]));
        assert_eq!(of("--normalize plain", None), Some(Preprocessing::plain(32, 1)));
        assert_eq!(of("--size 16", None), None, "nobody says how they were normalised");
    }
}
