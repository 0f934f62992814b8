//! Sound files made unsound: bits flipped, pieces cut out, doubled or taken from another file, ends torn off, numbers made
//! huge. Every case is a function of its number, so that a failure names what to try again.

/// SplitMix64: enough to draw from, and the same on every machine.
pub struct Draw(u64);

impl Draw {
    /// What is drawn for a case.
    pub fn of_case(number: u64) -> Self {
        Self(number.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// What is drawn for a file, so that the same file is always tried in the same way.
    pub fn of_file(bytes: &[u8]) -> Self {
        Self(u64::from(crc32fast::hash(bytes)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `most`, which is not 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}

/// The file of a case: one of the sound ones, changed in up to four places.
pub fn case(number: u64, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut draw = Draw::of_case(number);
    let seed = &seeds[draw.below(seeds.len())];
    mutated(seed, seeds, &mut draw)
}

/// What breaks parsers, in text and in binary.
const TOKENS: [&[u8]; 22] = [
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999999",
    b"1e400",
    b"-1e-400",
    b"nan",
    b"-inf",
    b"0x1p3",
    b"-",
    b":",
    b",",
    b"\"",
    b"\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"[[[[",
    b"{\"",
    b"#",
    b"1:1 1:1",
    b"  ",
];

const WORDS: [u64; 8] = [0, 1, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, 1 << 48, i64::MAX as u64, u64::MAX];

fn mutated(seed: &[u8], seeds: &[Vec<u8>], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=draw.below(4) {
        if bytes.is_empty() {
            break;
        }
        let (at, other) = (draw.below(bytes.len()), &seeds[draw.below(seeds.len())]);
        let end = at + draw.below((bytes.len() - at).min(64)) + 1;
        match draw.below(9) {
            0 => bytes[at] ^= 1 << draw.below(8),
            1 => bytes[at] = draw.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let from = draw.below(other.len().max(1)).min(other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            6 => {
                let token = TOKENS[draw.below(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            7 => {
                let token = TOKENS[draw.below(TOKENS.len())];
                bytes.splice(at..end, token.iter().copied());
            }
            _ => {
                // Headers have their numbers at multiples of four.
                let at = at / 4 * 4;
                let word = WORDS[draw.below(WORDS.len())].to_le_bytes();
                let len = (if draw.below(2) == 0 { 4 } else { 8 }).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&word[..len]);
            }
        }
    }
    bytes
}
