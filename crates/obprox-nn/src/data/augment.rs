//! Each image a little different in each epoch: mirrored half of the time, and shifted by a few pixels.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// What is done to an image before it is trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Augment {
    /// Mirrors left and right, half of the time.
    pub flip: bool,
    /// Cuts the image out of one with so many black pixels around it, anywhere.
    pub pad: usize,
}

impl Augment {
    /// Mirrored half of the time, cut out of a border of 4 pixels: the usual choice for 32 × 32.
    pub const USUAL: Self = Self { flip: true, pad: 4 };
    /// Nothing.
    pub const NONE: Self = Self { flip: false, pad: 0 };

    /// What happens to an image in an epoch: a function of the seed, the epoch and the image alone.
    pub(crate) fn draw(self, seed: u64, epoch: u64, image: u32) -> View {
        if self == Self::NONE {
            return View::default();
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ AUGMENT);
        rng.set_stream((epoch << 32) | u64::from(image));
        let shift = |word: u32| {
            let places = 2 * self.pad as u64 + 1;
            ((u64::from(word) * places) >> 32) as isize - self.pad as isize
        };
        View {
            mirrored: self.flip && rng.next_u32() & 1 == 1,
            down: shift(rng.next_u32()),
            right: shift(rng.next_u32()),
        }
    }
}

/// Keeps these numbers apart from the order of the epochs, which is drawn from the same seed.
const AUGMENT: u64 = 0x6f62_7072_6f78_6e6e;

/// One way to look at an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Left is right.
    pub mirrored: bool,
    /// Rows by which the window lies lower than the image.
    pub down: isize,
    /// Columns by which it lies further right.
    pub right: isize,
}

impl View {
    /// Looks at one channel; `table` says what each byte becomes, black outside of the image.
    pub fn look(self, plane: &[u8], width: usize, table: &[f32; 256], out: &mut [f32]) {
        let height = plane.len() / width;
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let from = row as isize + self.down;
            if !(0..height as isize).contains(&from) {
                out.fill(table[0]);
                continue;
            }
            let line = &plane[from as usize * width..][..width];
            for (column, out) in out.iter_mut().enumerate() {
                let column = if self.mirrored { width - 1 - column } else { column } as isize + self.right;
                *out =
                    table[usize::from(if (0..width as isize).contains(&column) { line[column as usize] } else { 0 })];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(view: View) -> Vec<f32> {
        let table = std::array::from_fn(|byte| byte as f32);
        let mut out = vec![f32::NAN; 6];
        view.look(&[1, 2, 3, 4, 5, 6], 3, &table, &mut out);
        out
    }

    #[test]
    fn views_mirror_and_shift() {
        assert_eq!(look(View::default()), [1., 2., 3., 4., 5., 6.]);
        assert_eq!(look(View { mirrored: true, ..View::default() }), [3., 2., 1., 6., 5., 4.]);
        assert_eq!(look(View { down: 1, ..View::default() }), [4., 5., 6., 0., 0., 0.]);
        assert_eq!(look(View { right: -2, ..View::default() }), [0., 0., 1., 0., 0., 4.]);
        assert_eq!(look(View { mirrored: true, down: -1, right: 1 }), [0., 0., 0., 0., 3., 2.]);
    }

    #[test]
    fn views_are_drawn_from_seed_epoch_and_image() {
        let views = |seed, epoch| (0..500).map(|image| Augment::USUAL.draw(seed, epoch, image)).collect::<Vec<_>>();
        let first = views(1, 0);
        assert_eq!(first, views(1, 0));
        assert!(first != views(1, 1) && first != views(2, 0));
        let mirrored = first.iter().filter(|view| view.mirrored).count();
        assert!((200..300).contains(&mirrored), "{mirrored} of 500");
        assert!((-4..=4).all(|shift| first.iter().any(|view| view.down == shift)));
        assert!(first.iter().all(|view| view.right.abs() <= 4));
        assert_eq!(Augment::NONE.draw(1, 0, 3), View::default());
    }
}
