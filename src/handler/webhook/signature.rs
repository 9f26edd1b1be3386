//! Signatures as the Standard Webhooks specification has them: `v1` is HMAC-SHA256, `v1a` is ed25519, both over
//! `id.timestamp.body` with the body exactly as it is sent.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::hmac;
use ring::signature::Ed25519KeyPair;

const SYMMETRIC_PREFIX: &str = "whsec_";
const ASYMMETRIC_PREFIX: &str = "whsk_";
const SEED_BYTES: usize = 32;
const KEY_PAIR_BYTES: usize = 64;

/// Secrets are copied by hand, and the padding gets lost on the way.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A key that signs deliveries. Written as `whsec_` + base64 of 24–64 bytes (the prefix may be left out), or as `whsk_`
/// + base64 of an ed25519 seed and its public key. `Debug` prints the kind alone.
#[derive(Clone)]
pub struct SigningSecret(Arc<Key>);

enum Key {
    Symmetric(hmac::Key),
    Asymmetric(Ed25519KeyPair),
}

/// Why a text is no signing secret. Says nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing, or a prefix alone.
    #[error(
        "the secret is empty: valid is whsec_ + base64 of 24 to 64 bytes, or whsk_ + base64 of an ed25519 key pair"
    )]
    Empty,
    /// Unknown prefix or other characters.
    #[error(
        "the secret is not base64: valid is whsec_ + base64 of 24 to 64 bytes, or whsk_ + base64 of an ed25519 key pair"
    )]
    NotBase64,
    /// Too short to be safe, or longer than the specification allows.
    #[error("the secret has {bytes} bytes after base64: valid are 24 to 64 with whsec_, 64 with whsk_")]
    Length {
        /// Bytes of the decoded secret.
        bytes: usize,
    },
    /// The halves of a key pair do not belong together.
    #[error("the secret is no ed25519 key pair: its public key does not belong to its seed")]
    KeyPair,
}

impl SigningSecret {
    /// Signs one delivery: `v1,…` or `v1a,…`.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let head = format!("{id}.{timestamp}.");
        match &*self.0 {
            Key::Symmetric(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head.as_bytes());
                context.update(body);
                format!("v1,{}", BASE64.encode(context.sign()))
            }
            Key::Asymmetric(key_pair) => {
                let message = [head.as_bytes(), body].concat();
                format!("v1a,{}", BASE64.encode(key_pair.sign(&message)))
            }
        }
    }
}

impl FromStr for SigningSecret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        if let Some(encoded) = text.strip_prefix(ASYMMETRIC_PREFIX) {
            let bytes = decoded(encoded)?;
            if bytes.len() != KEY_PAIR_BYTES {
                return Err(SecretError::Length { bytes: bytes.len() });
            }
            let (seed, public) = bytes.split_at(SEED_BYTES);
            let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| SecretError::KeyPair)?;
            return Ok(Self(Arc::new(Key::Asymmetric(pair))));
        }
        let bytes = decoded(text.strip_prefix(SYMMETRIC_PREFIX).unwrap_or(text))?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(SecretError::Length { bytes: bytes.len() });
        }
        Ok(Self(Arc::new(Key::Symmetric(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &*self.0 {
            Key::Symmetric(_) => "SigningSecret(v1)",
            Key::Asymmetric(_) => "SigningSecret(v1a)",
        })
    }
}

fn decoded(encoded: &str) -> Result<Vec<u8>, SecretError> {
    if encoded.is_empty() {
        return Err(SecretError::Empty);
    }
    BASE64.decode(encoded).map_err(|_| SecretError::NotBase64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_PAIR: &str =
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";

    #[test]
    fn the_published_vectors_hold() {
        let second_body: &[u8] = br#"{"test": 2432232314}"#;
        for (secret, id, timestamp, body, signature) in [
            (
                "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
                "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
                1_649_367_553,
                br#"{"email":"test@example.com","username":"test_user"}"#.as_slice(),
                "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
            ),
            (
                "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                second_body,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                KEY_PAIR,
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                second_body,
                "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
            ),
        ] {
            assert_eq!(secret.parse::<SigningSecret>().unwrap().sign(id, timestamp, body), signature, "{secret}");
        }
    }

    #[test]
    fn weak_and_broken_secrets_are_refused_without_being_told() {
        let of_bytes = |prefix: &str, bytes: &[u8]| format!("{prefix}{}", BASE64.encode(bytes));
        let parsed = |text: &str| text.parse::<SigningSecret>().map(|_| ());
        for empty in ["", " \n", "whsec_", "whsk_"] {
            assert_eq!(parsed(empty), Err(SecretError::Empty), "{empty:?}");
        }
        for unreadable in ["whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "whsec_hunter2!", "ümlaut"] {
            assert_eq!(parsed(unreadable), Err(SecretError::NotBase64), "{unreadable}");
        }
        for (length, taken) in [(1, false), (23, false), (24, true), (64, true), (65, false)] {
            assert_eq!(parsed(&of_bytes("whsec_", &vec![7; length])).is_ok(), taken, "{length}");
        }
        assert_eq!(parsed(&of_bytes("whsk_", &[7; 32])), Err(SecretError::Length { bytes: 32 }));
        assert_eq!(parsed(&of_bytes("whsk_", &[7; 64])), Err(SecretError::KeyPair));
    }

    #[test]
    fn lost_padding_and_a_final_newline_do_no_harm() {
        assert!(format!("{}\n", KEY_PAIR.trim_end_matches('=')).parse::<SigningSecret>().is_ok());
    }

    #[test]
    fn debug_tells_only_the_kind() {
        assert_eq!(format!("{:?}", KEY_PAIR.parse::<SigningSecret>().unwrap()), "SigningSecret(v1a)");
    }
}
