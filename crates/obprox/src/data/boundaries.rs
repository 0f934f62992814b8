//! Where the tokens of a text end: every byte up to the blank, and one that separates.
//!
//! They are found 64 bytes at a time. A parser that knows the ends beforehand need not wait for one token before it turns
//! to the next, which is most of the time that reading takes otherwise.

/// The ends in a text, one after the other.
pub(super) struct Boundaries<'a> {
    text: &'a [u8],
    separator: u8,
    /// The 64 bytes that the mask is of start here.
    base: usize,
    mask: u64,
}

impl<'a> Boundaries<'a> {
    /// Those from a place on.
    pub fn from(text: &'a [u8], at: usize, separator: u8) -> Self {
        Self { text, separator, base: at, mask: mask_at(text, at, separator) }
    }

    /// The next; the length of the text where there is none.
    #[inline(always)]
    pub fn next(&mut self) -> usize {
        while self.mask == 0 {
            self.base += 64;
            if self.base >= self.text.len() {
                self.base = self.text.len();
                return self.base;
            }
            self.mask = mask_at(self.text, self.base, self.separator);
        }
        let at = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        at
    }
}

#[inline(always)]
fn mask_at(text: &[u8], at: usize, separator: u8) -> u64 {
    match text.get(at..at + 64) {
        Some(bytes) => mask(bytes.try_into().expect("64 bytes"), separator),
        None => {
            // Neither a blank nor a separator of any format.
            let mut bytes = [b'0'; 64];
            let rest = text.get(at..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            mask(&bytes, separator)
        }
    }
}

/// A bit for each byte, the first lowest: whether a token ends there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mask(bytes: &[u8; 64], separator: u8) -> u64 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };

    #[target_feature(enable = "sse2")]
    #[inline]
    fn part(bytes: &[u8; 64], separator: u8, at: usize) -> u64 {
        let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let bytes = _mm_set_epi64x(word(at + 8), word(at));
        let blank = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(b' ' as i8)), bytes);
        let ends = _mm_or_si128(blank, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator as i8)));
        u64::from(_mm_movemask_epi8(ends) as u16) << at
    }
    // SAFETY: every processor of this kind has these registers.
    #[allow(unsafe_code)]
    unsafe {
        part(bytes, separator, 0) | part(bytes, separator, 16) | part(bytes, separator, 32) | part(bytes, separator, 48)
    }
}

/// The same for any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn mask_by_words(bytes: &[u8; 64], separator: u8) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = EACH * 0x80;
    let mut mask = 0;
    for (at, word) in bytes.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        // The highest bit of each byte: whether it is above the blank, and whether it does not separate.
        let above = ((word & !HIGH) + EACH * (0x7F - b' ' as u64)) | word;
        let apart = word ^ (EACH * separator as u64);
        let other = ((apart & !HIGH) + EACH * 0x7F) | apart;
        let ends = !(above & other) & HIGH;
        mask |= ((ends >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
use mask_by_words as mask;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_those_byte_by_byte(
            separator in prop_oneof![Just(b':'), Just(b','), Just(b'|'), Just(b'\t')],
            text in prop::collection::vec(prop_oneof![any::<u8>(), 0x1eu8..0x3c], 0..300), from in 0usize..300,
        ) {
            let from = from.min(text.len());
            let ends = |byte: u8| byte <= b' ' || byte == separator;
            let mut boundaries = Boundaries::from(&text, from, separator);
            for at in (from..text.len()).filter(|&at| ends(text[at])) {
                prop_assert_eq!(boundaries.next(), at);
            }
            prop_assert_eq!(boundaries.next(), text.len());
            prop_assert_eq!(boundaries.next(), text.len());
            if let Some(bytes) = text.get(from..from + 64) {
                let bytes = bytes.try_into().unwrap();
                prop_assert_eq!(mask(bytes, separator), mask_by_words(bytes, separator));
            }
        }
    }
}
