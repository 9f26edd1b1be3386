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

/// A duration as text that reads back as the same duration.
pub(super) fn written(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
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
