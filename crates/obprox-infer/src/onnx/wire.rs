//! The encoding of protocol buffers: numbered fields, each a number of variable length, four or eight bytes, or a length
//! and as many bytes.

/// What does not follow the encoding.
pub struct Malformed;

/// The value of a field.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Number(u64),
    Four([u8; 4]),
    /// Eight bytes, which nothing here is told in.
    Eight,
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed),
        }
    }

    pub fn text(self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed)
    }

    pub fn number(self) -> Result<i64, Malformed> {
        match self {
            Self::Number(number) => Ok(number as i64),
            _ => Err(Malformed),
        }
    }

    pub fn float(self) -> Result<f32, Malformed> {
        match self {
            Self::Four(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(Malformed),
        }
    }

    /// Numbers in one field, or this one of several fields.
    pub fn push_numbers(self, numbers: &mut Vec<i64>) -> Result<(), Malformed> {
        match self {
            Self::Number(number) => numbers.push(number as i64),
            Self::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    numbers.push(varint(&mut bytes)? as i64);
                }
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    /// The same for floats.
    pub fn push_floats(self, floats: &mut Vec<f32>) -> Result<(), Malformed> {
        match self {
            Self::Four(bytes) => floats.push(f32::from_le_bytes(bytes)),
            Self::Bytes(bytes) if bytes.len() % 4 == 0 => {
                floats.extend(bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)));
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

/// The fields of a message, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| self.field())
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), Malformed> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => {
                self.0.split_off_first_chunk::<8>()?;
                Value::Eight
            }
            5 => Value::Four(*self.0.split_off_first_chunk()?),
            2 => {
                let len = usize::try_from(varint(&mut self.0)?).map_err(|_| Malformed)?;
                Value::Bytes(self.0.split_off(..len).ok_or(Malformed)?)
            }
            _ => return Err(Malformed),
        };
        Ok((key >> 3, value))
    }
}

trait SplitChunk<'a> {
    fn split_off_first_chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed>;
}

impl<'a> SplitChunk<'a> for &'a [u8] {
    fn split_off_first_chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (first, rest) = self.split_first_chunk().ok_or(Malformed)?;
        *self = rest;
        Ok(first)
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// A message that is being written.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn number(&mut self, field: u64, number: i64) {
        self.varint(field << 3);
        self.varint(number as u64);
    }

    pub fn float(&mut self, field: u64, number: f32) {
        self.varint(field << 3 | 5);
        self.0.extend(number.to_le_bytes());
    }

    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    pub fn numbers(&mut self, field: u64, numbers: &[i64]) {
        numbers.iter().for_each(|&number| self.number(field, number));
    }

    pub fn message(&mut self, field: u64, message: Message) {
        self.bytes(field, &message.0);
    }
}
