//! A column of Arrow's → numbers.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::DataType;

/// The numbers of a column of Arrow's, NaN where one is missing: those of every type of numbers, booleans, and dictionaries
/// of them. Nothing where it has no numbers.
pub fn numbers(array: &dyn Array) -> Option<Vec<f64>> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, to: impl Fn(T::Native) -> f64) -> Vec<f64> {
        array.as_primitive::<T>().iter().map(|value| value.map_or(f64::NAN, &to)).collect()
    }
    Some(match array.data_type() {
        DataType::Null => vec![f64::NAN; array.len()],
        DataType::Boolean => {
            array.as_boolean().iter().map(|value| value.map_or(f64::NAN, |value| f64::from(u8::from(value)))).collect()
        }
        DataType::Int8 => of::<Int8Type>(array, f64::from),
        DataType::Int16 => of::<Int16Type>(array, f64::from),
        DataType::Int32 => of::<Int32Type>(array, f64::from),
        DataType::Int64 => of::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => of::<UInt8Type>(array, f64::from),
        DataType::UInt16 => of::<UInt16Type>(array, f64::from),
        DataType::UInt32 => of::<UInt32Type>(array, f64::from),
        DataType::UInt64 => of::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => of::<Float16Type>(array, |value| value.to_f64()),
        DataType::Float32 => of::<Float32Type>(array, f64::from),
        DataType::Float64 => of::<Float64Type>(array, |value| value),
        DataType::Decimal128(_, scale) => {
            let unit = 10f64.powi(-i32::from(*scale));
            // Dividing rounds once where the power of ten is exact.
            let to =
                |value: i128| if *scale > 0 { value as f64 / 10f64.powi((*scale).into()) } else { value as f64 * unit };
            of::<Decimal128Type>(array, to)
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = numbers(dictionary.values().as_ref())?;
            keys(array)
                .into_iter()
                .map(|key| key.and_then(|key| values.get(key).copied()).unwrap_or(f64::NAN))
                .collect()
        }
        _ => return None,
    })
}

/// Which value of its dictionary each row has.
pub(super) fn keys(array: &dyn Array) -> Vec<Option<usize>> {
    let dictionary = array.as_any_dictionary();
    // Where there are no values, no row has one.
    if dictionary.values().is_empty() {
        return vec![None; array.len()];
    }
    let (keys, nulls) = (dictionary.normalized_keys(), dictionary.keys().logical_nulls());
    let is_there = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    keys.into_iter().enumerate().map(|(row, key)| is_there(row).then_some(key)).collect()
}
