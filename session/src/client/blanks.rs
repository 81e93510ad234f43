//! Statements that the server reads otherwise than the proxy, since their character set has blanks beyond ASCII.

use keywright_rewrite::has_blanks_beyond_ascii;

use crate::connection::Connection;
use crate::step::Step;

/// What most character sets with blanks beyond ASCII have one of.
const MOSTLY: [u8; 2] = [0xA0, 0xFF];

impl Connection {
    /// Whether a text cannot be read. `Err`: the character set is to be asked for first.
    pub(crate) fn is_beyond_reading(&mut self, text: &[u8]) -> Result<bool, Step> {
        if !self.rewrites_any() {
            return Ok(false);
        }
        let [one, other] = MOSTLY;
        if !self.context.known && memchr::memchr2(one, other, text).is_some() {
            return Err(self.ask_context());
        }
        Ok(has_blanks_beyond_ascii(text, &self.context.modes))
    }
}
