//! Bits in bytes, the lowest bit of a byte first.

/// Collects bits.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    /// How many bits of `pending` are meant; fewer than 8 between calls.
    count: u32,
}

impl BitWriter {
    /// The `count` lowest bits of `bits`; at most 32.
    pub fn push(&mut self, bits: u64, count: u32) {
        self.pending |= (bits & ((1 << count) - 1)) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// So many ones.
    pub fn push_ones(&mut self, count: u64) {
        for _ in 0..count / 32 {
            self.push(u64::MAX, 32);
        }
        self.push(u64::MAX, (count % 32) as u32);
    }

    /// The bytes, the last one filled up with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Reads bits and never beyond their end.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next bits and how many of them there are: 57 or more but near the end.
    fn window(&self) -> (u64, u32) {
        let rest = &self.bytes[self.at / 8..];
        let mut word = [0; 8];
        let available = rest.len().min(8);
        word[..available].copy_from_slice(&rest[..available]);
        let skipped = (self.at % 8) as u32;
        (u64::from_le_bytes(word) >> skipped, (8 * available as u32).saturating_sub(skipped))
    }

    /// The number of ones before the next zero, which is read too.
    pub fn ones(&mut self) -> Option<u64> {
        let mut count = 0;
        loop {
            let (bits, available) = self.window();
            let ones = bits.trailing_ones().min(available);
            count += u64::from(ones);
            self.at += ones as usize;
            if ones < available {
                self.at += 1;
                return Some(count);
            }
            if available == 0 {
                return None;
            }
        }
    }

    /// A number of `count` bits; at most 32.
    pub fn number(&mut self, count: u32) -> Option<u64> {
        let (bits, available) = self.window();
        self.at += count as usize;
        (count <= available).then_some(bits & ((1 << count) - 1))
    }

    /// Whether nothing is left but zeros that fill up the last byte.
    pub fn is_finished(&self) -> bool {
        let (bits, available) = self.window();
        bits == 0 && available < 8
    }
}
