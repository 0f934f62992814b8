//! `--normalize`: how images are normalised, in one way for all subcommands.

use std::str::FromStr;

use obprox_infer::images::Preprocessing;

/// Means and deviations as a flag gives them.
#[derive(Clone, Debug, PartialEq)]
pub enum Normalize {
    Imagenet,
    Plain,
    Values { mean: Vec<f32>, std: Vec<f32> },
}

impl FromStr for Normalize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = |text: &str| text.split(',').map(|number| number.trim().parse::<f32>()).collect();
        match (text, text.split_once('/')) {
            ("imagenet", _) => Ok(Self::Imagenet),
            ("plain", _) => Ok(Self::Plain),
            (_, Some((mean, std))) => match (numbers(mean), numbers(std)) {
                (Ok(mean), Ok(std)) => Ok(Self::Values { mean, std }),
                _ => Err("means and deviations are numbers: 0.485,0.456,0.406/0.229,0.224,0.225".into()),
            },
            _ => Err("one of imagenet, plain, or means/deviations such as 0.286/0.353".into()),
        }
    }
}

impl Normalize {
    /// For images of a size. What does not fit the number of channels is refused.
    pub fn preprocessing(&self, side: usize, channels: usize) -> Result<Preprocessing, String> {
        match self {
            // Grey: what ImageNet's channels come to by luma.
            Self::Imagenet if channels == 1 => {
                Ok(Preprocessing { height: side, width: side, mean: vec![0.459], std: vec![0.225] })
            }
            Self::Imagenet => Ok(Preprocessing::imagenet(side)),
            Self::Plain => Ok(Preprocessing::plain(side, channels)),
            Self::Values { mean, std } if mean.len() != channels || std.len() != channels => {
                let given = format!("{} means and {} deviations given", mean.len(), std.len());
                let plural = if channels == 1 { "" } else { "s" };
                Err(format!("--normalize: {given}, and the images have {channels} channel{plural}"))
            }
            // Written so that NaN is refused too.
            Self::Values { std, .. } if !std.iter().all(|std| *std > 0.0) => {
                Err("--normalize: deviations must be above 0".into())
            }
            Self::Values { mean, std } => {
                Ok(Preprocessing { height: side, width: side, mean: mean.clone(), std: std.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalisations_are_words_or_numbers() {
        assert_eq!("imagenet".parse(), Ok(Normalize::Imagenet));
        assert_eq!("0.5, 1/2,3".parse(), Ok(Normalize::Values { mean: vec![0.5, 1.0], std: vec![2.0, 3.0] }));
        assert!(["", "cifar", "1,x/2", "0.5"].iter().all(|text| text.parse::<Normalize>().is_err()));
    }

    #[test]
    fn they_fit_the_channels() {
        let grey: Normalize = "0.286/0.353".parse().unwrap();
        assert_eq!(grey.preprocessing(28, 1).unwrap().mean, [0.286]);
        assert!(grey.preprocessing(28, 3).is_err());
        assert!("0.5/0".parse::<Normalize>().unwrap().preprocessing(28, 1).is_err());
        assert_eq!(Normalize::Imagenet.preprocessing(28, 1).unwrap().channels(), 1);
    }
}
