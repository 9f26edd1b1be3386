//! Whole numbers in JSON bodies, as JSON itself understands them.
//!
//! JSON has one kind of number and its schemas call `57.0` an integer; many writers send every number that way. Here it
//! is one, too, where serde would take it for something else. What has a fraction, is negative or is too large for its
//! field is refused.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// The first whole number that a double cannot tell from its neighbour.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// Reads a whole number, or null for none. For `deserialize_with`, together with `default`.
pub(super) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_any(WholeNumber(PhantomData))
}

struct WholeNumber<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for WholeNumber<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number that is not negative")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<T>, E> {
        T::try_from(number).map(Some).map_err(|_| E::custom("is too large a number"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<T>, E> {
        if number.fract() != 0.0 || !(0.0..EXACT_DOUBLES).contains(&number) {
            return Err(E::custom("must be a whole number that is not negative, written exactly"));
        }
        // Just judged: nothing is cut off, and no sign is lost.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^53")]
        self.visit_u64(number as u64)
    }
}

#[cfg(test)]
mod tests {
    fn read(text: &str) -> Result<Option<i32>, serde_json::Error> {
        super::optional(&mut serde_json::Deserializer::from_str(text))
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_decimal() {
        for text in ["57", "57.0", "5.7e1", "570e-1"] {
            assert_eq!(read(text).unwrap(), Some(57), "{text}");
        }
        assert_eq!((read("null").unwrap(), read("-0.0").unwrap()), (None, Some(0)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["1.5", "-1", "-1.0", "1e300", "2147483648", "9007199254740993.0", "\"1\"", "true", "[1]", "{}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
