//! An instant as the databases keep it: whole microseconds since the Unix epoch, UTC.
//!
//! Both databases compute every instant themselves; this type only carries what they said, to and from RFC 3339 text
//! with exactly six decimals, so that a value read from one answer can be sent back in the next request unchanged.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Microseconds since 1970-01-01T00:00:00Z, between the years 1 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is no RFC 3339 instant between the years 1 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 instant such as 2026-01-31T12:00:00Z")]
pub struct InvalidTimestamp;

const EARLIEST_MICROS: i64 = -62_135_596_800_000_000;
const LATEST_MICROS: i64 = 253_402_300_799_999_999;

impl Timestamp {
    /// An instant from microseconds since the epoch; out-of-range values are brought to the nearest year 1 or 9999.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(EARLIEST_MICROS, LATEST_MICROS))
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0
    }

    fn to_date_time(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every answer holds several: put together by hand this takes a tenth of what seven padded numbers do.
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let at = self.to_date_time();
        write_digits(&mut text[0..4], at.year().unsigned_abs());
        write_digits(&mut text[5..7], u8::from(at.month()).into());
        write_digits(&mut text[8..10], at.day().into());
        write_digits(&mut text[11..13], at.hour().into());
        write_digits(&mut text[14..16], at.minute().into());
        write_digits(&mut text[17..19], at.second().into());
        write_digits(&mut text[20..26], at.microsecond());
        formatter.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Writes a number with leading zeros that fill the place.
fn write_digits(place: &mut [u8], mut number: u32) {
    for digit in place.iter_mut().rev() {
        // A remainder of ten is one digit.
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads RFC 3339; digits beyond microseconds are cut.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| InvalidTimestamp)?;
        let micros = i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000)).map_err(|_| InvalidTimestamp)?;
        if (EARLIEST_MICROS..=LATEST_MICROS).contains(&micros) { Ok(Self(micros)) } else { Err(InvalidTimestamp) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_round_trip_with_six_decimals() {
        let at: Timestamp = "2026-11-30T16:27:54.1234567+01:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-11-30T15:27:54.123456Z");
        assert_eq!(at.to_string().parse(), Ok(at));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "now", "2026-02-30T00:00:00Z", "2026-01-01", "infinity"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }
}
