//! Batches from a thread of its own, so that training never waits for images.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use burn::tensor::{Device, Int, Tensor, TensorData};
use obprox::sampler::{Batch as Size, Sampler};
use obprox_infer::images::{Images, Preprocessing};

use super::Augment;

/// Batches that are ready before they are asked for.
const AHEAD: usize = 4;

/// Images and labels as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    shape: [usize; 3],
    values: Vec<f32>,
    labels: Vec<i32>,
}

impl Batch {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The class of each image.
    pub fn labels(&self) -> &[i32] {
        &self.labels
    }

    /// The images one after the other, channel by channel, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// As tensors: images and their classes.
    pub fn tensors(self, device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
        let count = self.labels.len();
        let [channels, height, width] = self.shape;
        let images = TensorData::new(self.values, [count, channels, height, width]);
        let labels = TensorData::new(self.labels, [count]);
        (Tensor::from_data(images, device), Tensor::from_data(labels, device))
    }
}

/// Where batches come from: images, what is done to them, and the seed of both order and augmentation.
#[derive(Clone, Debug)]
pub struct Feed {
    images: Arc<Images>,
    tables: Arc<Vec<[f32; 256]>>,
    batch: usize,
    augment: Augment,
    seed: u64,
}

impl Feed {
    /// A feed of images that have the network's size already, and labels.
    pub fn new(images: Arc<Images>, preprocessing: &Preprocessing, batch: usize, augment: Augment, seed: u64) -> Self {
        let table = |(mean, std): (&f32, &f32)| std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / std);
        let tables = preprocessing.mean.iter().zip(&preprocessing.std).map(table).collect();
        Self { images, tables: Arc::new(tables), batch, augment, seed }
    }

    /// Batches in an epoch.
    pub fn batches(&self) -> usize {
        self.images.len().div_ceil(self.batch)
    }

    /// Images in an epoch.
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// The batches of an epoch in a random order, without the first `skip`; the order and every pixel are a function
    /// of seed and epoch.
    pub fn epoch(&self, epoch: u64, skip: usize) -> Loader {
        let feed = self.clone();
        Loader::new(move |send| {
            let size = if feed.batch < feed.images.len() { Size::Rows(feed.batch) } else { Size::All };
            let Ok(mut sampler) = Sampler::new(feed.images.len(), size, feed.seed) else { return };
            sampler.begin_epoch(epoch);
            for number in skip..sampler.batches() {
                if !send(feed.batch(sampler.batch(number), Some(epoch))) {
                    return;
                }
            }
        })
    }

    /// All images as they are, in their own order.
    pub fn plain(&self) -> Loader {
        let feed = self.clone();
        Loader::new(move |send| {
            let all: Vec<u32> = (0..feed.images.len() as u32).collect();
            for rows in all.chunks(feed.batch) {
                if !send(feed.batch(rows, None)) {
                    return;
                }
            }
        })
    }

    fn batch(&self, rows: &[u32], epoch: Option<u64>) -> Batch {
        let shape @ [_, height, width] = self.images.shape();
        let plane = height * width;
        let mut values = vec![0.0; rows.len() * self.images.image_len()];
        for (&row, out) in rows.iter().zip(values.chunks_exact_mut(self.images.image_len())) {
            let view = epoch.map(|epoch| self.augment.draw(self.seed, epoch, row)).unwrap_or_default();
            let planes = self.images.image(row as usize).chunks_exact(plane).zip(self.tables.iter());
            for ((from, table), to) in planes.zip(out.chunks_exact_mut(plane)) {
                view.look(from, width, table, to);
            }
        }
        let labels = self.images.labels().unwrap_or_default();
        Batch { shape, values, labels: rows.iter().map(|&row| labels[row as usize] as i32).collect() }
    }
}

/// The batches of one pass, in order.
pub struct Loader {
    batches: Option<Receiver<Batch>>,
    worker: Option<JoinHandle<()>>,
}

impl Loader {
    /// `work` is handed what sends a batch, and false from it once no one listens.
    fn new(work: impl FnOnce(&mut dyn FnMut(Batch) -> bool) + Send + 'static) -> Self {
        let (send, batches) = sync_channel(AHEAD);
        let worker = thread::spawn(move || work(&mut |batch| send.send(batch).is_ok()));
        Self { batches: Some(batches), worker: Some(worker) }
    }
}

impl Iterator for Loader {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        self.batches.as_ref()?.recv().ok()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // The worker ends as soon as no one listens; its images are not kept alive any longer than that.
        self.batches = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
