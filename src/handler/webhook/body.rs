//! Reads a bounded part of an answer's body, so that no receiver can fill the memory.

use reqwest::Response;

/// Bytes of a body that are read at most.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Bytes of a body that are kept for the attempt log.
const MAX_EXCERPT_BYTES: usize = 4 * 1024;
/// The longest UTF-8 character begins at most this far before its end.
const LONGEST_CHAR_TAIL: usize = 3;

/// How reading a body ended.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// The whole body was read.
    Complete,
    /// There is more than anybody wants to know.
    LimitReached,
    /// The connection broke first.
    Broken(reqwest::Error),
}

/// Reads the body and hands each longer excerpt to `note`, so that the beginning is known even when the attempt is cut
/// off in the middle. Has no deadline of its own.
pub(super) async fn read(mut answer: Response, note: impl Fn(String)) -> BodyEnd {
    let mut kept: Vec<u8> = Vec::new();
    let mut read_bytes = 0;
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return BodyEnd::Complete,
            Err(error) => return BodyEnd::Broken(error),
        };
        let room = (MAX_EXCERPT_BYTES + LONGEST_CHAR_TAIL).saturating_sub(kept.len());
        if room > 0 {
            kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
            note(excerpt(&kept));
        }
        read_bytes += chunk.len();
        if read_bytes >= MAX_READ_BYTES {
            return BodyEnd::LimitReached;
        }
    }
}

/// The beginning of a body as text that a database can store, cut between two characters.
fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).replace('\0', "\u{FFFD}");
    text.truncate(text.floor_char_boundary(MAX_EXCERPT_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_cut_between_characters_and_holds_no_nul() {
        let long = "ü".repeat(MAX_EXCERPT_BYTES);
        assert_eq!(excerpt(&long.as_bytes()[..4099]), "ü".repeat(2048));
        let odd = format!("a{long}");
        assert_eq!(excerpt(&odd.as_bytes()[..4099]), format!("a{}", "ü".repeat(2047)));
        assert_eq!(excerpt(b"a\0\xFFb"), "a\u{FFFD}\u{FFFD}b");
        assert!(excerpt(&[0xFF; 4099]).len() <= MAX_EXCERPT_BYTES);
    }
}
