//! What a client's answer to the greeting must be before the server hears of it. What a server cannot read it counts (`pending`).

use keywright_core::Cause;
use keywright_wire::capability::{COMPRESS, CONNECT_ATTRS, PLUGIN_AUTH, SECURE_CONNECTION, ZSTD};
use keywright_wire::handshake::response::{self, LoginRequest};

use super::leg::Refusal;
use super::login::{cannot_be_read, no_proof};
use super::proof::{self, ED25519, NATIVE, is};

/// Refuses what no server reads, or each in another way, or what holds a proof that none can be; `offered`: the greeting's capabilities.
pub(super) fn check(response: &[u8], offered: u64) -> Result<(), Refusal> {
    let login_request = LoginRequest::of_response(response).ok_or_else(cannot_be_read)?;
    let asked = response::asked(response).ok_or_else(cannot_be_read)?;
    let has = |bit: u64| asked & bit != 0;
    let has_nothing = has(PLUGIN_AUTH) && login_request.proof.is_empty();
    let is_older = !has(SECURE_CONNECTION) && !has_nothing;
    let lacks_attributes =
        has(PLUGIN_AUTH) && has(CONNECT_ATTRS & offered) && !login_request.has_attributes();
    if is_older || lacks_attributes {
        return Err(cannot_be_read());
    }
    // Whoever compresses if he is invited has left the bits out. Others compress from the first command on, and would wait for ever.
    if has((COMPRESS | ZSTD) & !offered) {
        return Err(Refusal::new(
            Cause::PacketMalformed,
            "keywright: the client compresses, and the greeting offers no compression: turn compression off in the client",
        ));
    }
    if login_request.collation.is_some_and(is_wide) {
        return Err(Refusal::new(
            Cause::PacketMalformed,
            "keywright: a client cannot have ucs2, utf16, utf16le or utf32 as its character set",
        ));
    }
    let plugin = login_request.plugin.unwrap_or(NATIVE);
    // No greeting is of this plugin: its challenge is yet to come, whatever the client brings.
    if !is(plugin, ED25519) && !proof::may_be(plugin, login_request.proof) {
        return Err(no_proof());
    }
    Ok(())
}

/// Whether characters of this collation have two bytes or more each, which no server reads statements in.
fn is_wide(collation: u16) -> bool {
    matches!(collation, 35 | 54..=56 | 60..=62 | 90 | 101..=124 | 128..=151 | 159..=183)
}

#[cfg(test)]
mod tests {
    use keywright_wire::capability::{
        COMPRESS, CONNECT_ATTRS, LONG_PASSWORD, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION, ZSTD,
    };

    use super::check;

    const USUAL: u64 = LONG_PASSWORD | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;

    fn response(capabilities: u64, collation: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = capabilities.to_le_bytes()[..4].to_vec();
        bytes.extend([0, 0, 0, 1, collation]);
        bytes.extend([0; 23]);
        bytes.extend(b"u\0");
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn what_servers_read_passes() {
        let proof = [b"\x14".as_slice(), &[7; 20], b"mysql_native_password\0"].concat();
        let attributes = [proof.as_slice(), b"\x04\x01a\x01b".as_slice()].concat();
        for (capabilities, rest) in [
            (USUAL, proof.as_slice()),
            (USUAL & !PLUGIN_AUTH, &proof[..21]),
            (
                USUAL & !SECURE_CONNECTION,
                b"\0mysql_native_password\0".as_slice(),
            ),
            (USUAL, b"\0client_ed25519\0".as_slice()),
            (USUAL, b"\x02pwdialog\0".as_slice()),
            (USUAL | CONNECT_ATTRS, attributes.as_slice()),
        ] {
            let checked = check(&response(capabilities, 45, rest), u64::MAX);
            assert_eq!(checked, Ok(()), "{rest:?}");
        }
        // Who was not offered it says nothing by it.
        let unoffered = response(USUAL | CONNECT_ATTRS, 45, &proof);
        assert_eq!(check(&unoffered, USUAL), Ok(()));
    }

    #[test]
    fn nobody_compresses_who_was_not_invited() {
        let rest = b"\0mysql_native_password\0".as_slice();
        for claimed in [COMPRESS, ZSTD, COMPRESS | ZSTD] {
            let response = response(USUAL | claimed, 45, rest);
            assert_eq!(check(&response, u64::MAX), Ok(()), "he was");
            let refusal = check(&response, USUAL).map_err(|refusal| refusal.message);
            assert!(
                refusal.is_err_and(|message| message.contains("turn compression off")),
                "{claimed:x}"
            );
        }
    }

    #[test]
    fn what_servers_count_does_not() {
        let empty = b"\0mysql_native_password\0".as_slice();
        for (capabilities, collation, rest) in [
            (USUAL & !PROTOCOL_41, 45, empty),
            (USUAL, 45, b"\x07".as_slice()),
            (USUAL, 45, b"\x02pwmysql_native_password\0".as_slice()),
            (USUAL, 45, b"\x02pwcaching_sha2_password\0".as_slice()),
            (USUAL & !PLUGIN_AUTH, 45, b"\x02pw".as_slice()),
            (USUAL & !SECURE_CONNECTION, 45, b"pw\0dialog\0".as_slice()),
            (
                USUAL & !SECURE_CONNECTION & !PLUGIN_AUTH,
                45,
                b"\0".as_slice(),
            ),
            (USUAL | CONNECT_ATTRS, 45, empty),
            (
                USUAL | CONNECT_ATTRS,
                45,
                b"\0mysql_native_password\0\x09a".as_slice(),
            ),
            (USUAL, 35, empty),
            (USUAL, 60, empty),
        ] {
            let response = response(capabilities, collation, rest);
            assert!(check(&response, u64::MAX).is_err(), "{rest:?}");
            for len in 0..response.len() {
                // Whatever is cut off, nothing panics.
                let _ = check(&response[..len], u64::MAX);
            }
        }
    }
}
