//! What a column holds, and whether keys have room in it.

use keywright_store::{KeyKind, KeySpec};

use crate::config::Configured;

/// A column's type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnType {
    /// As the server writes it, in lower case.
    pub name: String,
    /// Characters of a column of text.
    pub length: u64,
}

impl ColumnType {
    /// The largest number that a column of integers holds; `None` for others.
    pub fn integer_max(&self) -> Option<u64> {
        let bits = [("tinyint", 8), ("smallint", 16), ("mediumint", 24)]
            .into_iter()
            .chain([("int", 32), ("bigint", 64)])
            .find(|(name, _)| self.name.starts_with(name))
            .map(|(_, bits): (&str, u32)| bits)?;
        let signed = u32::from(!self.name.contains("unsigned"));
        Some(u64::MAX >> (64 - bits + signed))
    }

    /// Whether it is one of integers that has numbers below 0.
    pub(super) fn is_signed_integer(&self) -> bool {
        self.integer_max().is_some() && !self.name.contains("unsigned")
    }

    /// What keeps the keys of a rule from fitting in, if anything.
    pub(super) fn lacks_room(&self, configured: &Configured) -> Option<String> {
        let kind = &self.name;
        match configured.spec.kind() {
            KeyKind::Number => {
                let bits_max = configured.rule.bits_max;
                let largest = u64::MAX >> 64_u32.saturating_sub(bits_max);
                let has_room = self.integer_max().is_some_and(|max| max >= largest);
                (!has_room).then(|| {
                    format!(
                        "is {kind}, which has no room for keys of {bits_max} bits: make it bigint, or lower bits_max"
                    )
                })
            }
            KeyKind::Text { chars } => {
                let has_room = match kind.split('(').next() {
                    Some("uuid") => matches!(configured.spec, KeySpec::Uuid { .. }),
                    // As long as the longest of their members, and hold no others.
                    Some("enum" | "set") => false,
                    Some(_) | None => self.length >= u64::from(chars),
                };
                (!has_room).then(|| format!("is {kind}, and keys have {chars} characters"))
            }
            KeyKind::Bytes16 => {
                let has_room = kind.starts_with("binary(16)")
                    || kind.starts_with("varbinary") && self.length >= 16;
                (!has_room).then(|| format!("is {kind}, and keys have 16 bytes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ColumnType;
    use crate::config::Config;

    #[test]
    fn columns_of_text_and_bytes_have_room_or_not() {
        for (key, data_type, length, has_room) in [
            ("uuid_v7", "char(36)", 36, true),
            ("uuid_v7", "char(35)", 35, false),
            ("uuid_v7:text32", "uuid", 0, true),
            ("readable:ORD", "uuid", 0, false),
            ("readable:ORD", "varchar(27)", 27, true),
            (
                "readable:ORD",
                "enum('of these, none is one of ours')",
                32,
                false,
            ),
            ("uuid_v4:bytes16", "binary(16)", 16, true),
            ("uuid_v4:bytes16", "varbinary(16)", 16, true),
            ("uuid_v4:bytes16", "varbinary(15)", 15, false),
            ("uuid_v4:bytes16", "char(36)", 36, false),
            ("uuid_v4", "bigint", 0, false),
        ] {
            let text = format!(
                "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\n\
                 upstream = \"127.0.0.1:2\"\n[[rule]]\ntable = \"d.t\"\ncolumn = \"id\"\nkey = \"{key}\"\n"
            );
            let config = Config::parse(&text).unwrap();
            let column = ColumnType {
                name: data_type.to_owned(),
                length,
            };
            let lack = column.lacks_room(&config.rules[0]);
            assert_eq!(lack.is_none(), has_room, "{key} in {data_type}: {lack:?}");
        }
    }

    #[test]
    fn integers_have_their_limits() {
        for (data_type, max) in [
            ("tinyint(4)", Some(127)),
            ("tinyint unsigned", Some(255)),
            ("smallint(6)", Some(32_767)),
            ("mediumint(9) unsigned", Some(16_777_215)),
            ("int(11)", Some(2_147_483_647)),
            ("int unsigned", Some(4_294_967_295)),
            ("bigint(20)", Some(9_223_372_036_854_775_807)),
            ("bigint unsigned", Some(u64::MAX)),
            ("char(36)", None),
            ("decimal(20,0)", None),
        ] {
            let column = ColumnType {
                name: data_type.to_owned(),
                ..ColumnType::default()
            };
            assert_eq!(column.integer_max(), max, "{data_type}");
        }
    }
}
