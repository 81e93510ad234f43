//! Modes out of the first byte of what the fuzzer sends.

use keywright_rewrite::{CharsetClass, Flavour, Modes, Server};

/// The modes that a byte stands for.
pub fn of(byte: u8) -> Modes {
    let bit = |bit: u8| byte & (1 << bit) != 0;
    Modes {
        ansi_quotes: bit(0),
        no_backslash_escapes: bit(1),
        no_auto_value_on_zero: bit(2).then(|| bit(3)),
        strict: Some(bit(4)),
        empty_is_null: bit(5) && bit(6),
        charset: CharsetClass::Safe,
        server: if bit(5) {
            Server {
                flavour: Flavour::MariaDb,
                version: 101_119,
            }
        } else {
            Server {
                flavour: Flavour::MySql,
                version: 90_704,
            }
        },
    }
}
