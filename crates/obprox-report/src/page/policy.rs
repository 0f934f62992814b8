//! What a browser may do with the page: nothing but what is in the file, and of scripts only the two that we put there.

use sha2::{Digest, Sha256};

/// The content security policy of a page with these scripts, each named by its hash.
pub(super) fn of(scripts: &[&str]) -> String {
    let allowed: Vec<String> = scripts.iter().map(|script| format!("'sha256-{}'", hash(script))).collect();
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        allowed.join(" ")
    )
}

/// SHA-256 in base64.
fn hash(script: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(script.as_bytes());
    let mut text = String::new();
    for bytes in digest.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| word << 8 | u32::from(bytes.get(at).copied().unwrap_or(0)));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= bytes.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_named_as_browsers_name_them() {
        // `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`
        assert_eq!(hash("alert(1)"), "bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
        assert!(of(&["alert(1)"]).contains("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; "));
    }
}
