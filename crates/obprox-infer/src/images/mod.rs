//! Images as networks take them: read from idx and CIFAR-10 files, pictures and folders of pictures; resized;
//! normalised.

mod cifar;
mod directory;
mod folder;
mod idx;
mod picture;
mod preprocessing;
mod resize;

use std::path::Path;

use obprox::data::read_bytes;
use obprox::{Error, Result};

pub use cifar::CIFAR10_LABELS;
pub use directory::{Data, read_directory};
pub use folder::{Folder, read_folder};
pub use idx::read_labels;
pub use preprocessing::Preprocessing;

/// The largest file of images that is read, after decompression.
const MOST_BYTES: u64 = 8 << 30;

/// Images of one size, with their classes where the source tells them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Images {
    channels: usize,
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    labels: Option<Vec<u32>>,
}

impl Images {
    /// Images of `channels × height × width` bytes each, one after the other, and their classes.
    pub fn new([channels, height, width]: [usize; 3], pixels: Vec<u8>, labels: Option<Vec<u32>>) -> Result<Self> {
        let size = channels.checked_mul(height).and_then(|size| size.checked_mul(width)).unwrap_or(0);
        if size == 0 || !pixels.len().is_multiple_of(size) {
            let count = pixels.len();
            return Err(Error::Data(format!("{count} bytes are no images of {channels}×{height}×{width}")));
        }
        let count = pixels.len() / size;
        match &labels {
            Some(labels) if labels.len() != count => {
                Err(Error::Data(format!("{count} images and {} labels do not go together", labels.len())))
            }
            _ => Ok(Self { channels, height, width, pixels, labels }),
        }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.len() / self.image_len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// Channels, height and width of an image.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// Bytes of an image.
    pub fn image_len(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// The bytes of an image, channel by channel, row by row.
    pub fn image(&self, index: usize) -> &[u8] {
        &self.pixels[index * self.image_len()..][..self.image_len()]
    }

    /// All bytes, image by image.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The class of each image, where the source tells it.
    pub fn labels(&self) -> Option<&[u32]> {
        self.labels.as_deref()
    }

    /// Keeps the first `count` images only.
    pub fn truncate(&mut self, count: usize) {
        self.pixels.truncate(count.saturating_mul(self.image_len()));
        if let Some(labels) = &mut self.labels {
            labels.truncate(count);
        }
    }

    /// At most `count` images from the given one on.
    pub fn slice(&self, first: usize, count: usize) -> Self {
        let end = first.saturating_add(count).min(self.len());
        let start = first.min(end);
        Self {
            pixels: self.pixels[start * self.image_len()..end * self.image_len()].to_vec(),
            labels: self.labels.as_ref().map(|labels| labels[start..end].to_vec()),
            ..*self
        }
    }

    /// The same images with other labels, given for each label they have.
    pub fn relabelled(mut self, label: impl Fn(u32) -> u32) -> Self {
        self.labels.iter_mut().flatten().for_each(|known| *known = label(*known));
        self
    }

    /// The same images without labels.
    pub fn unlabelled(self) -> Self {
        Self { labels: None, ..self }
    }

    /// Adds images of the same size; the labels stay only where both have them.
    pub fn append(&mut self, other: Self) -> Result<()> {
        if self.shape() != other.shape() {
            let (one, two) = (self.shape(), other.shape());
            return Err(Error::Data(format!("images of {one:?} and of {two:?} do not go together")));
        }
        self.pixels.extend(other.pixels);
        self.labels = self.labels.take().zip(other.labels).map(|(mut labels, more)| {
            labels.extend(more);
            labels
        });
        Ok(())
    }
}

/// Reads a file of images, plain or compressed: an idx file (with the labels beside it, where they lie under the usual
/// name), a CIFAR-10 binary file, a PNG or JPEG picture. Which of them is told by content.
pub fn read(path: impl AsRef<Path>) -> Result<Images> {
    let path = path.as_ref();
    let bytes = read_bytes(path, MOST_BYTES)?;
    let name = path.display().to_string();
    if idx::is_images(&bytes) {
        return idx::parse_images(&name, bytes, idx::labels_beside(path)?);
    }
    if picture::is_picture(&bytes) {
        return picture::decode(&name, &bytes);
    }
    if idx::is_labels(&bytes) {
        return Err(Error::file(name, "holds labels: give the images, labels are found beside them"));
    }
    cifar::parse(&name, &bytes)
}
