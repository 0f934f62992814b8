//! What a browser may do with the page: nothing but what is in the file, and of scripts only the two that we put there.

/// The content security policy of the page. It names its scripts, the charting library and ours, by their SHA-256;
/// a test says the new one where a script has changed.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
     script-src 'sha256-GcjUxq2Ikpp59K5J1vcWFWbf0Lo9FcxJXpdPeH63jx8=' \
     'sha256-yV4AHx0/dVagy7dZw9+TX6AlbpBYK0kkduHkG33m88I='; \
     img-src data:; base-uri 'none'; form-action 'none'";

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::page::{SCRIPT, UPLOT};

    /// SHA-256 in base64, as browsers name a script.
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

    #[test]
    fn the_scripts_of_the_page_are_allowed_and_no_others() {
        // `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`
        assert_eq!(hash("alert(1)"), "bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
        let scripts = [UPLOT.0, SCRIPT].map(|script| format!("'sha256-{}'", hash(script))).join(" ");
        assert!(POLICY.contains(&format!("; script-src {scripts}; ")), "the scripts are now {scripts}");
    }
}
