//! The secret that a client sends.

use std::fs::File;
use std::io::{self, Read};

/// A secret: who has it may ask.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new random one of 128 bits.
    ///
    /// # Errors
    /// When the kernel has no random numbers: there is nothing to make do with.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|b| format!("{b:02x}")).collect()))
    }

    /// One that is given.
    pub fn given(text: String) -> Self {
        Self(text)
    }

    /// The secret itself.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a header `Authorization` has it. Takes as long for any header of the
    /// same length.
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        self.is(authorization.strip_prefix(b"Bearer ").unwrap_or_default())
    }

    /// Whether a text is the secret. Takes as long for any text of the same length.
    pub fn is(&self, given: &[u8]) -> bool {
        if given.len() != self.0.len() {
            return false;
        }
        let mut differences = 0;
        for (a, b) in given.iter().zip(self.0.as_bytes()) {
            // Not to be turned into a loop that ends early.
            differences |= std::hint::black_box(a ^ b);
        }
        std::hint::black_box(differences) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_passes() {
        let token = Token::random().unwrap();
        let good = format!("Bearer {}", token.text());
        assert_eq!(token.text().len(), 32);
        assert!(token.is_in(good.as_bytes()) && token.is(token.text().as_bytes()));
        assert!(!token.is(good.as_bytes()) && !token.is(b""));
        assert!(!token.is_in(&good.as_bytes()[..good.len() - 1]));
        assert!(!token.is_in(format!("{good}0").as_bytes()));
        assert!(!token.is_in(token.text().as_bytes()));
        assert!(!token.is_in(b"Bearer "));
        assert!(!token.is_in(b""));
        for i in 7..good.len() {
            let mut other = good.clone().into_bytes();
            other[i] ^= 1;
            assert!(!token.is_in(&other), "{i}");
        }
        assert_ne!(token.text(), Token::random().unwrap().text());
    }
}
