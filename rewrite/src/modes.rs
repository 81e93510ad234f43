//! What decides how a server reads the bytes of a statement.

/// How the session's server reads text at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// `ANSI_QUOTES`: `"a"` is a name, not a string.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a string is itself.
    pub no_backslash_escapes: bool,
    /// `NO_AUTO_VALUE_ON_ZERO`: 0 and DEFAULT are stored as 0. `None`: not known.
    pub no_auto_value_on_zero: Option<bool>,
    /// `STRICT_TRANS_TABLES` or `STRICT_ALL_TABLES`: a string that is no number is an error. `None`: not known.
    pub strict: Option<bool>,
    /// MariaDB's `EMPTY_STRING_IS_NULL`: `''` is NULL.
    pub empty_is_null: bool,
    /// The client's character set.
    pub charset: CharsetClass,
    /// Who reads executable comments.
    pub server: Server,
}

impl Modes {
    /// With no mode set that changes how text is read, and nothing known of the others; text in a character set that is safe.
    pub const fn plain(server: Server) -> Self {
        Self {
            ansi_quotes: false,
            no_backslash_escapes: false,
            no_auto_value_on_zero: None,
            strict: None,
            empty_is_null: false,
            charset: CharsetClass::Safe,
            server,
        }
    }
}

/// The server as far as its grammar goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Whose server it is.
    pub flavour: Flavour,
    /// `major × 10000 + minor × 100 + patch`: 101119 for 10.11.19, 90704 for 9.7.4.
    pub version: u32,
}

/// The two families of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// Oracle MySQL and what derives from it.
    MySql,
}

/// Whether bytes below 0x80 always are the ASCII characters they look like, and whether a name is the bytes that the server has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetClass {
    /// They are, all others are letters, and a name is its own bytes: UTF-8, and `binary`, in which servers take names for UTF-8.
    Safe,
    /// They are, and all others are letters, or nothing; names beyond ASCII have other bytes in UTF-8: UJIS, EUC-KR, GB2312, most
    /// single-byte character sets.
    Letters,
    /// The same, but these others are blanks or, behind `--`, control characters to the server. Tried with MariaDB 10.11 and MySQL 9.7.
    Blanks(&'static [u8]),
    /// Some of them are letters: swe7.
    NoAscii,
    /// The second byte of a character may be a backslash or a backquote: Big5, CP932, GB18030, GBK, SJIS.
    TrailByteMayBeBackslash,
}

impl CharsetClass {
    /// The class of a character set by its name, in any case.
    pub fn of_name(name: &[u8]) -> Self {
        const SAFE: [&[u8]; 4] = [b"utf8mb4", b"utf8mb3", b"utf8", b"binary"];
        const UNSAFE: [&[u8]; 5] = [b"big5", b"cp932", b"gb18030", b"gbk", b"sjis"];
        const NBSP: &[u8] = &[0xA0];
        const BLANKS: [(&[u8], &[u8]); 16] = [
            (b"latin1", NBSP),
            (b"latin2", NBSP),
            (b"latin5", NBSP),
            (b"latin7", b"\x81\x83\x88\x8A\x8C\x90\x98\x9A\x9C\x9F\xA0\xA1\xA5"),
            (b"dec8", NBSP),
            (b"greek", NBSP),
            (b"hebrew", b"\xA0\xFD\xFE"),
            (b"armscii8", NBSP),
            (b"geostd8", NBSP),
            (b"cp1250", b"\x80\x81\x83\x88\x90\x98\xA0"),
            (b"cp850", b"\xFF"),
            (b"cp852", b"\xFF"),
            (b"cp866", b"\xFF"),
            (b"keybcs2", b"\xFF"),
            (b"macroman", b"\x80\xCB\xE5"),
            (b"hp8", b"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8A\x8B\x8C\x8D\x8E\x8F\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\
                \x9A\x9B\x9C\x9D\x9E\x9F\xA0\xB1\xB2\xF2\xF3\xF4\xF5\xFF"),
        ];
        let is = |other: &[u8]| other.eq_ignore_ascii_case(name);
        if SAFE.into_iter().any(is) {
            return Self::Safe;
        }
        if UNSAFE.into_iter().any(is) {
            return Self::TrailByteMayBeBackslash;
        }
        if is(b"swe7") {
            return Self::NoAscii;
        }
        BLANKS
            .into_iter()
            .find(|(other, _)| is(other))
            .map_or(Self::Letters, |(_, blanks)| Self::Blanks(blanks))
    }

    /// Whether a text that has ASCII only is read in this class as in that.
    pub fn reads_ascii_as(self, other: Self) -> bool {
        let is_plain = |class| match class {
            Self::Safe | Self::Letters | Self::Blanks(_) | Self::TrailByteMayBeBackslash => true,
            Self::NoAscii => false,
        };
        self == other || (is_plain(self) && is_plain(other))
    }

    /// The class of a collation by its number, as the handshake names character sets; the numbers are those of
    /// `information_schema.collations` on both flavours. That it is [`Self::Safe`] says nothing of names: those are read once the server
    /// has said what the character set is.
    pub fn of_collation_id(id: u16) -> Self {
        match id {
            1
            | 84
            | 1025
            | 1108
            | 95
            | 96
            | 1119
            | 1120
            | 248..=250
            | 28
            | 87
            | 1052
            | 1111
            | 13
            | 88
            | 1037
            | 1112 => Self::TrailByteMayBeBackslash,
            10 | 82 | 1034 | 1106 => Self::NoAscii,
            _ => Self::Safe,
        }
    }
}
