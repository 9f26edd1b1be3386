//! How durations are written in settings: as text with a unit, or as the one word that a setting allows instead.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};

/// Reads a duration, or `None` for the word `word` where one is allowed.
struct DurationText {
    word: Option<&'static str>,
}

impl Visitor<'_> for DurationText {
    type Value = Option<Duration>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration as text, such as \"250ms\", \"30s\" or \"7d\"")?;
        match self.word {
            Some(word) => write!(formatter, ", or \"{word}\""),
            None => Ok(()),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if self.word == Some(text) {
            return Ok(None);
        }
        let parsed = humantime::parse_duration(text);
        parsed.map(Some).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D, word: Option<&'static str>) -> Result<Option<Duration>, D::Error> {
    deserializer.deserialize_str(DurationText { word })
}

/// A duration as text that reads back as the same duration, in the units that the documents use: `7d`, `17m 2s`.
pub(super) fn written(duration: Duration) -> String {
    const UNITS: [(u128, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let mut left = duration.as_nanos();
    let mut parts = Vec::new();
    for (nanos, unit) in UNITS {
        if left >= nanos {
            parts.push(format!("{}{unit}", left / nanos));
            left %= nanos;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// A duration that must be given as one.
pub(super) mod duration {
    use std::time::Duration;

    use serde::{Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        super::read(deserializer, None)?.ok_or_else(|| D::Error::custom("a duration is missing"))
    }

    pub(in super::super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::written(*duration))
    }
}

/// A duration that may be left out.
pub(super) mod optional_duration {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::duration::deserialize(deserializer).map(Some)
    }

    #[allow(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration.map(super::written).unwrap_or_default())
    }
}

/// A list of durations that may be left out.
pub(super) mod durations {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Item(#[serde(with = "super::duration")] Duration);

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<Duration>>, D::Error> {
        let items = Vec::<Item>::deserialize(deserializer)?;
        Ok(Some(items.into_iter().map(|item| item.0).collect()))
    }

    #[allow(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        durations: &Option<Vec<Duration>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = durations.iter().flatten().map(|duration| super::written(*duration)).collect();
        texts.serialize(serializer)
    }
}

/// Makes the module of a duration that may be one word instead.
macro_rules! duration_or_word {
    ($name:ident, $word:literal) => {
        /// A duration, or the word in the module's name.
        pub(super) mod $name {
            use std::time::Duration;

            use serde::{Deserializer, Serializer};

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<Duration>, D::Error> {
                super::read(deserializer, Some($word))
            }

            #[allow(clippy::ref_option, reason = "serde hands over a reference to the field")]
            pub(in super::super) fn serialize<S: Serializer>(
                duration: &Option<Duration>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&duration.map_or_else(|| $word.to_owned(), super::written))
            }
        }
    };
}

duration_or_word!(duration_or_auto, "auto");
duration_or_word!(duration_or_off, "off");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_in_the_units_of_the_documents_and_reads_back() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (840_000, "14m"),
            (1_022_000, "17m 2s"),
            (7 * 86_400_000, "7d"),
            (3650 * 86_400_000, "3650d"),
            (90_061_001, "1d 1h 1m 1s 1ms"),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(written(duration), text);
            assert_eq!(humantime::parse_duration(text), Ok(duration));
        }
        assert_eq!(written(Duration::from_nanos(1_001)), "1us 1ns");
    }
}
