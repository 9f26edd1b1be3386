//! The claim token: a lease that a receiver may hold.
//!
//! A receiver that answers `accepted` settles or extends its claim later, by HTTP. What it shows for it is the lease
//! itself, sealed with a key that lives in the database, so that any instance can check it and nobody can make one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use uuid::Uuid;

use super::Lease;
use crate::event::EventId;

const LEASE_BYTES: usize = 24;
const SEAL_BYTES: usize = 32;
/// What the token of an event begins with whose id is no UUID; no other character of a token is a point.
const OF_TEXT: &str = "t.";

/// The key that seals claim tokens. `Debug` does not show it.
#[derive(Debug, Clone)]
pub struct ClaimKey(hmac::Key);

impl ClaimKey {
    /// A key of these random bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A key of one outbox: what it seals is worth nothing in another, whose events may have the same ids.
    #[must_use]
    pub fn of_outbox(&self, name: &str) -> Self {
        Self::new(hmac::sign(&self.0, name.as_bytes()).as_ref())
    }

    /// The token of a lease: 75 characters of URL-safe base64; longer where ids are no UUIDs.
    #[must_use]
    pub fn token(&self, lease: &Lease) -> String {
        let (start, mut bytes) = match &lease.event_id {
            EventId::Uuid(uuid) => ("", [uuid.as_bytes(), &lease.claim_no.to_be_bytes()[..]].concat()),
            EventId::Text(text) => (OF_TEXT, [text.as_bytes(), &lease.claim_no.to_be_bytes()].concat()),
        };
        let seal = self.seal(start, &bytes);
        bytes.extend_from_slice(seal.as_ref());
        format!("{start}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The lease of a token that this key has sealed; compared in constant time.
    #[must_use]
    pub fn lease(&self, token: &str) -> Option<Lease> {
        let (start, encoded) = match token.strip_prefix(OF_TEXT) {
            Some(encoded) => (OF_TEXT, encoded),
            None => ("", token),
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (lease, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
        hmac::verify(&self.0, &sealed(start, lease), seal).ok()?;
        let (id, claim_no) = lease.split_at_checked(lease.len().checked_sub(8)?)?;
        let event_id = match start {
            OF_TEXT => EventId::from_text(str::from_utf8(id).ok()?),
            _ if lease.len() == LEASE_BYTES => EventId::Uuid(Uuid::from_slice(id).ok()?),
            _ => return None,
        };
        Some(Lease { event_id, claim_no: i64::from_be_bytes(claim_no.try_into().ok()?) })
    }

    fn seal(&self, start: &str, lease: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, &sealed(start, lease))
    }
}

fn sealed(start: &str, lease: &[u8]) -> Vec<u8> {
    [start.as_bytes(), lease].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_its_lease_back_to_the_same_key_alone() {
        for event_id in
            [EventId::Uuid(Uuid::from_u128(7)), EventId::from_text("42"), EventId::from_text(&"ü".repeat(90))]
        {
            let lease = Lease { event_id, claim_no: 3 };
            let token = ClaimKey::new(b"one").token(&lease);
            assert_eq!(ClaimKey::new(b"two").lease(&token), None);
            assert_eq!(ClaimKey::new(b"one").of_outbox("other").lease(&token), None);
            assert_eq!(ClaimKey::new(b"one").lease(&token), Some(lease));
        }
    }

    #[test]
    fn no_part_of_a_token_can_be_changed() {
        let key = ClaimKey::new(b"key");
        let token = key.token(&Lease { event_id: Uuid::from_u128(7).into(), claim_no: 3 });
        for at in 0..token.len() - 1 {
            let mut changed: Vec<char> = token.chars().collect();
            changed[at] = if changed[at] == 'A' { 'B' } else { 'A' };
            assert_eq!(key.lease(&changed.into_iter().collect::<String>()), None, "character {at}");
        }
        for text in ["", "A", "ü", &token[1..]] {
            assert_eq!(key.lease(text), None, "{text}");
        }
    }
}
