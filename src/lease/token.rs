//! The claim token: a lease that a receiver may hold.
//!
//! A receiver that answers `accepted` settles or extends its claim later, by HTTP. What it shows for it is the lease
//! itself, sealed with a key that lives in the database, so that any instance can check it and nobody can make one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use uuid::Uuid;

use super::Lease;

const LEASE_BYTES: usize = 24;
const TOKEN_BYTES: usize = LEASE_BYTES + 32;

/// The key that seals claim tokens. `Debug` does not show it.
#[derive(Debug, Clone)]
pub struct ClaimKey(hmac::Key);

impl ClaimKey {
    /// A key of these random bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The token of a lease: 75 characters of URL-safe base64.
    #[must_use]
    pub fn token(&self, lease: Lease) -> String {
        let mut bytes = lease_bytes(lease).to_vec();
        let seal = hmac::sign(&self.0, &bytes);
        bytes.extend_from_slice(seal.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The lease of a token that this key has sealed; compared in constant time.
    #[must_use]
    pub fn lease(&self, token: &str) -> Option<Lease> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok().filter(|bytes| bytes.len() == TOKEN_BYTES)?;
        let (lease, seal) = bytes.split_at(LEASE_BYTES);
        hmac::verify(&self.0, lease, seal).ok()?;
        let (id, claim_no) = lease.split_at(16);
        Some(Lease { event_id: Uuid::from_slice(id).ok()?, claim_no: i64::from_be_bytes(claim_no.try_into().ok()?) })
    }
}

fn lease_bytes(lease: Lease) -> [u8; LEASE_BYTES] {
    let mut bytes = [0; LEASE_BYTES];
    bytes[..16].copy_from_slice(lease.event_id.as_bytes());
    bytes[16..].copy_from_slice(&lease.claim_no.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_its_lease_back_to_the_same_key_alone() {
        let lease = Lease { event_id: Uuid::from_u128(7), claim_no: 3 };
        let token = ClaimKey::new(b"one").token(lease);
        assert_eq!(ClaimKey::new(b"one").lease(&token), Some(lease));
        assert_eq!(ClaimKey::new(b"two").lease(&token), None);
    }

    #[test]
    fn no_part_of_a_token_can_be_changed() {
        let key = ClaimKey::new(b"key");
        let token = key.token(Lease { event_id: Uuid::from_u128(7), claim_no: 3 });
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
