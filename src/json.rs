//! What outboxd itself demands of JSON text that it passes on unread: how deep it nests and which characters it names.
//!
//! Payloads are kept and delivered byte for byte, so nothing here parses them into values. One pass over the bytes
//! finds what would make a database or a receiver fail later: too many levels, an escaped NUL (Postgres cannot turn it
//! into text) and a lone surrogate (no Unicode text at all). Whether the text is JSON in the first place is for
//! `serde_json` to say; [`check`] expects text that is.

/// Levels of arrays and objects that an event's payload may have.
pub const MAX_DEPTH: usize = 128;

/// Why JSON text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// More than [`MAX_DEPTH`] levels.
    #[error("nests deeper than 128 levels")]
    TooDeep,
    /// The escape `\u0000`.
    #[error("contains the NUL character \\u0000")]
    Nul,
    /// A `\ud800`–`\udfff` escape without its partner.
    #[error("contains a lone surrogate escape, which is no Unicode character")]
    LoneSurrogate,
}

/// Judges valid JSON text. Runs in one pass, without recursion and without allocating.
///
/// # Errors
/// Too many levels, wherever they are; else the first problem from the left.
pub fn check(text: &str) -> Result<(), JsonProblem> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut unstorable = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(JsonProblem::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at += check_string(&bytes[at..], &mut unstorable),
            _ => {}
        }
    }
    unstorable.map_or(Ok(()), Err)
}

/// Judges the string that `bytes` begin with, its opening quote taken off, and returns its length.
fn check_string(bytes: &[u8], unstorable: &mut Option<JsonProblem>) -> usize {
    let mut at = 0;
    // Most of a payload is plain text, which is passed over in one go.
    while let Some(plain) = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        at += plain;
        if bytes[at] == b'"' {
            return at + 1;
        }
        let escape = check_escape(&bytes[at..]);
        *unstorable = unstorable.or(escape.err());
        at = (at + escape.unwrap_or(2)).min(bytes.len());
    }
    bytes.len()
}

/// Judges the escape at the start of `bytes` and returns its length; a surrogate pair is one escape of twelve bytes.
fn check_escape(bytes: &[u8]) -> Result<usize, JsonProblem> {
    match unicode_escape(bytes) {
        None => Ok(2),
        Some(0) => Err(JsonProblem::Nul),
        Some(0xD800..=0xDBFF) => match bytes.get(6..).and_then(unicode_escape) {
            Some(0xDC00..=0xDFFF) => Ok(12),
            _ => Err(JsonProblem::LoneSurrogate),
        },
        Some(0xDC00..=0xDFFF) => Err(JsonProblem::LoneSurrogate),
        Some(_) => Ok(6),
    }
}

fn unicode_escape(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_128_levels_are_allowed() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(check(&nested(128)), Ok(()));
        assert_eq!(check(&nested(129)), Err(JsonProblem::TooDeep));
    }

    #[test]
    fn brackets_and_backslashes_inside_strings_do_not_count() {
        let text = format!(r#"{{"a":"{}","b":"\\","c":"\"["}}"#, "[".repeat(500));
        assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn an_escaped_nul_is_refused_and_an_escaped_backslash_before_u0000_is_not() {
        assert_eq!(check(r#"{"a":"\u0000"}"#), Err(JsonProblem::Nul));
        assert_eq!(check(r#"{"a":"\\u0000"}"#), Ok(()));
    }

    #[test]
    fn a_strange_character_hides_no_depth() {
        let text = format!(r#"["\u0000\ud83d", {}{}]"#, "[".repeat(128), "]".repeat(128));
        assert_eq!(check(&text), Err(JsonProblem::TooDeep));
        assert_eq!(check(r#"["\ud83d", "\u0000"]"#), Err(JsonProblem::LoneSurrogate));
    }

    #[test]
    fn only_whole_surrogate_pairs_pass() {
        assert_eq!(check(r#""\ud83d\ude00""#), Ok(()));
        assert_eq!(check(r#""\ud83d""#), Err(JsonProblem::LoneSurrogate));
        assert_eq!(check(r#""\ude00\ud83d""#), Err(JsonProblem::LoneSurrogate));
        assert_eq!(check(r#""\ud83d\u0041""#), Err(JsonProblem::LoneSurrogate));
    }
}
