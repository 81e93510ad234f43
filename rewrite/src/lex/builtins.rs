//! Functions and keywords that may stand before a parenthesis and do not see LAST_INSERT_ID().

use std::cmp::Ordering;

/// Built-in functions of MariaDB and MySQL, types, and keywords of expressions, sorted. What is missing here costs an
/// extra statement now and then; what is here wrongly would cost a wrong LAST_INSERT_ID(). A stored function cannot take
/// the place of a built-in one whose parenthesis follows at once.
#[rustfmt::skip]
const BLIND: &[&str] = &[
    "abs", "acos", "adddate", "addtime", "aes_decrypt", "aes_encrypt", "against", "all", "and", "any", "any_value",
    "as", "ascii", "asin", "atan", "atan2", "avg", "between", "bigint", "bin", "bin_to_uuid", "binary", "bit",
    "bit_and", "bit_count", "bit_length", "bit_or", "bit_xor", "by", "cast", "ceil", "ceiling", "char", "char_length",
    "character_length", "charset", "chr", "coalesce", "coercibility", "collation", "column_add", "column_check",
    "column_create", "column_delete", "column_exists", "column_get", "column_json", "column_list", "compress", "concat",
    "concat_ws", "connection_id", "conv", "convert", "convert_tz", "cos", "cot", "count", "crc32", "crc32c",
    "cume_dist", "curdate", "current_date", "current_role", "current_time", "current_timestamp", "current_user",
    "curtime", "database", "date", "date_add", "date_format", "date_sub", "datediff", "datetime", "day", "dayname",
    "dayofmonth", "dayofweek", "dayofyear", "dec", "decimal", "decode", "decode_histogram", "default", "degrees",
    "dense_rank", "des_decrypt", "des_encrypt", "div", "double", "else", "elt", "encode", "encrypt", "exists", "exp",
    "export_set", "extract", "extractvalue", "field", "find_in_set", "first_value", "float", "floor", "format",
    "format_bytes", "format_pico_time", "from_base64", "from_days", "from_unixtime", "geomcollfromtext",
    "geometrycollection", "geometryfromtext", "geomfromtext", "geomfromwkb", "get_format", "get_lock", "greatest",
    "group_concat", "hex", "hour", "if", "ifnull", "in", "inet6_aton", "inet6_ntoa", "inet_aton", "inet_ntoa", "insert",
    "instr", "int", "integer", "interval", "is_free_lock", "is_ipv4", "is_ipv4_compat", "is_ipv4_mapped", "is_ipv6",
    "is_used_lock", "is_uuid", "isnull", "json_array", "json_array_append", "json_array_insert", "json_arrayagg",
    "json_compact", "json_contains", "json_contains_path", "json_depth", "json_detailed", "json_equals", "json_exists",
    "json_extract", "json_insert", "json_keys", "json_length", "json_loose", "json_merge", "json_merge_patch",
    "json_merge_preserve", "json_normalize", "json_object", "json_objectagg", "json_overlaps", "json_pretty",
    "json_query", "json_quote", "json_remove", "json_replace", "json_schema_valid", "json_search", "json_set",
    "json_storage_size", "json_table", "json_type", "json_unquote", "json_valid", "json_value", "lag", "last_day",
    "last_value", "lastval", "lcase", "lead", "least", "left", "length", "lengthb", "like", "linestring", "ln",
    "load_file", "localtime", "localtimestamp", "locate", "log", "log10", "log2", "lower", "lpad", "ltrim", "make_set",
    "makedate", "maketime", "master_pos_wait", "match", "max", "md5", "mediumint", "microsecond", "mid", "min",
    "minute", "mod", "month", "monthname", "multipoint", "natural_sort_key", "nextval", "not", "now", "nth_value",
    "ntile", "nullif", "numeric", "nvl", "nvl2", "oct", "octet_length", "on", "or", "ord", "over", "password",
    "percent_rank", "period_add", "period_diff", "pi", "point", "pointfromtext", "polygon", "polygonfromtext",
    "position", "pow", "power", "quarter", "quote", "radians", "rand", "random_bytes", "rank", "regexp", "regexp_instr",
    "regexp_like", "regexp_replace", "regexp_substr", "release_lock", "repeat", "replace", "reverse", "right", "rlike",
    "round", "row", "row_count", "row_number", "rpad", "rtrim", "schema", "sec_to_time", "second", "select",
    "session_user", "setval", "sformat", "sha", "sha1", "sha2", "sign", "signed", "sin", "sleep", "smallint", "some",
    "soundex", "space", "sqrt", "st_astext", "st_geomcollfromtext", "st_geomfromgeojson", "st_geomfromtext",
    "st_geomfromwkb", "st_linefromtext", "st_makepoint", "st_pointfromtext", "st_polyfromtext", "st_polygonfromtext",
    "std", "stddev", "stddev_pop", "stddev_samp", "str_to_date", "strcmp", "subdate", "substr", "substring",
    "substring_index", "subtime", "sum", "sys_guid", "sysdate", "system_user", "tan", "then", "time", "time_format",
    "time_to_sec", "timediff", "timestamp", "timestampadd", "timestampdiff", "tinyint", "to_base64", "to_char",
    "to_days", "to_seconds", "trim", "truncate", "ucase", "uncompress", "uncompressed_length", "unhex",
    "unix_timestamp", "unsigned", "updatexml", "upper", "user", "using", "utc_date", "utc_time", "utc_timestamp",
    "uuid", "uuid_short", "uuid_to_bin", "value", "values", "var_pop", "var_samp", "varbinary", "varchar", "variance",
    "version", "week", "weekday", "weekofyear", "weight_string", "when", "where", "xor", "year", "yearweek",
];

/// Whether `word(` is a call that does not see LAST_INSERT_ID().
pub(crate) fn is_harmless_call(word: &[u8]) -> bool {
    holds(BLIND, word)
}

/// Words that are reserved in both flavours, so that `word (`, with a blank between, calls no stored function; sorted.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "and", "any", "as", "between", "by", "check", "default", "distinct", "div", "else", "exists", "from",
    "having", "if", "in", "index", "interval", "into", "join", "key", "left", "like", "limit", "mod", "not", "on",
    "or", "over", "primary", "references", "regexp", "replace", "right", "rlike", "select", "set", "some", "table", "then",
    "union", "unique", "using", "values", "when", "where", "xor",
];

/// Whether `word (`, with a blank between, is certainly no call of a stored function.
pub(crate) fn is_reserved(word: &[u8]) -> bool {
    holds(RESERVED, word)
}

/// Words that begin an expression, and are reserved in both flavours; sorted.
const OPERATORS: &[&str] = &["binary", "case", "exists", "interval", "not"];

/// Whether a word without quotes begins an expression, so that it is no column.
pub(crate) fn is_prefix_operator(word: &[u8]) -> bool {
    holds(OPERATORS, word)
}

/// Aggregate functions of both flavours, sorted; their parenthesis follows at once. ANY_VALUE is none: it does not group.
#[rustfmt::skip]
const AGGREGATES: &[&str] = &[
    "avg", "bit_and", "bit_or", "bit_xor", "count", "group_concat", "json_arrayagg", "json_objectagg",
    "max", "min", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp", "variance",
];

/// Whether `word(` is a call of an aggregate function.
pub(crate) fn is_aggregate(word: &[u8]) -> bool {
    holds(AGGREGATES, word)
}

/// Built-in functions that leave something behind, so that a statement with them is not carried out twice; sorted.
const EFFECTS: &[&str] = &[
    "get_lock",
    "nextval",
    "release_all_locks",
    "release_lock",
    "setval",
];

/// Whether a word calls a built-in function that leaves something behind.
pub(crate) fn has_effects(word: &[u8]) -> bool {
    holds(EFFECTS, word)
}

/// Functions, and keywords before a parenthesis, whose values are stored as they are after a temporary table has held
/// them, sorted. Tried on MariaDB 10.11 and MySQL 9.7 with columns of 15 types. Not so, for example: AVG, PI, UNIX_TIMESTAMP
/// and divisions, which lose digits.
#[rustfmt::skip]
const PASSES: &[&str] = &[
    "abs", "and", "any_value", "as", "ascii", "between", "bit_and", "bit_or", "bit_xor", "by", "cast", "ceil",
    "ceiling", "char", "char_length", "coalesce", "concat", "concat_ws", "convert", "count", "crc32", "curdate",
    "current_date", "current_timestamp", "database", "date", "date_add", "date_format", "date_sub", "datediff", "day",
    "dayofmonth", "dayofweek", "decimal", "dense_rank", "distinct", "else", "exists", "field", "find_in_set",
    "first_value", "floor", "format", "group_concat", "hex", "hour", "if", "ifnull", "in", "instr", "lag", "last_day",
    "last_value", "lcase", "lead", "left", "length", "like", "locate", "lower", "lpad", "ltrim", "max", "md5", "min",
    "minute", "mod", "month", "not", "now", "nth_value", "ntile", "nullif", "octet_length", "or", "over", "partition",
    "quarter", "rank", "repeat", "replace", "reverse", "right", "round", "row_number", "rpad", "rtrim", "second",
    "sha1", "sha2", "sign", "strcmp", "substr", "substring", "substring_index", "sum", "then", "timestampdiff",
    "to_days", "trim", "truncate", "ucase", "unhex", "upper", "user", "utc_timestamp", "uuid", "week", "when", "xor",
    "year",
];

/// Whether the value of `word(…)` stays what it is on its way through a temporary table.
pub(crate) fn passes_call(word: &[u8]) -> bool {
    holds(PASSES, word)
}

/// Functions that change nothing and whose value depends on nothing but their arguments, sorted; their parenthesis follows at once.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "abs", "ascii", "bit_count", "cast", "ceil", "ceiling", "char_length", "coalesce", "conv", "convert", "crc32", "elt",
    "field", "find_in_set", "floor", "greatest", "if", "ifnull", "interval", "isnull", "least", "length", "mod", "nullif",
    "octet_length", "ord", "pow", "power", "round", "sign", "strcmp", "truncate",
];

/// Whether `word(…)` is a call that may be carried out before the statement it stands in.
pub(crate) fn is_pure_call(word: &[u8]) -> bool {
    holds(PURE, word)
}

/// Functions, and types in them, beside the pure ones and aggregates, that leave nothing behind and come to the same however often one statement calls
/// them for a row, sorted; their parenthesis follows at once. Not so, for example: RAND, SYSDATE, UUID and UUID_SHORT.
#[rustfmt::skip]
const STEADY: &[&str] = &[
    "any_value", "char", "character_length", "concat", "concat_ws", "curdate", "current_date", "current_timestamp", "curtime",
    "database", "date", "date_add", "date_format", "date_sub", "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "dense_rank",
    "extract", "first_value", "format", "from_unixtime", "hex", "hour", "instr", "json_array", "json_extract", "json_object",
    "json_table", "json_unquote", "json_value", "lag", "last_day", "last_value", "lcase", "lead", "left", "locate", "lower", "lpad",
    "ltrim", "md5", "mid", "minute", "month", "now", "nth_value", "ntile", "nvl", "quarter", "rank", "repeat", "replace", "reverse",
    "right", "row_number", "rpad", "rtrim", "second", "sha1", "sha2", "str_to_date", "substr", "substring", "substring_index", "time",
    "timestamp", "timestampdiff", "to_days", "trim", "ucase", "unhex", "unix_timestamp", "upper", "utc_timestamp", "week", "weekday",
    "year",
];

/// Whether `word(…)` is a call that a statement may carry out twice for a row.
pub(crate) fn is_steady_call(word: &[u8]) -> bool {
    is_pure_call(word) || is_aggregate(word) || holds(STEADY, word)
}

/// Functions whose arguments are values between commas, and whose value is the same whether these come out of a table or of a temporary one with
/// its columns, sorted; their parenthesis follows at once.
#[rustfmt::skip]
const COMPUTED_ALIKE: &[&str] = &[
    "abs", "ceil", "ceiling", "coalesce", "concat", "floor", "greatest", "ifnull", "least", "lower", "mod", "nullif", "round",
    "sign", "truncate", "upper",
];

/// Whether `word(…)` is such a call.
pub(crate) fn is_computed_alike(word: &[u8]) -> bool {
    holds(COMPUTED_ALIKE, word)
}

fn holds(table: &[&str], word: &[u8]) -> bool {
    table
        .binary_search_by(|known| compare(known.as_bytes(), word))
        .is_ok()
}

/// Compares a word of the table with a word in any case.
fn compare(known: &[u8], word: &[u8]) -> Ordering {
    known
        .iter()
        .copied()
        .cmp(word.iter().map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::{
        AGGREGATES, BLIND, COMPUTED_ALIKE, EFFECTS, OPERATORS, PASSES, PURE, RESERVED, STEADY,
        is_harmless_call, is_prefix_operator, is_reserved, is_steady_call,
    };

    #[test]
    fn the_tables_are_sorted() {
        for table in [
            BLIND,
            RESERVED,
            OPERATORS,
            AGGREGATES,
            EFFECTS,
            PASSES,
            PURE,
            STEADY,
            COMPUTED_ALIKE,
        ] {
            assert!(table.is_sorted(), "{table:?}");
        }
        assert!(is_reserved(b"Values"));
    }

    #[test]
    fn what_comes_to_another_value_or_leaves_something_behind_is_not_steady() {
        assert!(is_steady_call(b"Now") && is_steady_call(b"MAX") && is_steady_call(b"coalesce"));
        for other in ["rand", "sysdate", "uuid", "uuid_short", "sleep", "nextval"] {
            assert!(!is_steady_call(other.as_bytes()), "{other}");
        }
        assert!(EFFECTS.iter().all(|call| !is_steady_call(call.as_bytes())));
    }

    #[test]
    fn operators_are_no_columns() {
        for word in ["NOT", "binary", "Case", "EXISTS", "interval"] {
            assert!(is_prefix_operator(word.as_bytes()), "{word}");
        }
        assert!(!is_prefix_operator(b"id"));
    }

    #[test]
    fn what_sees_the_last_id_is_not_in_it() {
        assert!(is_harmless_call(b"NOW"));
        assert!(!is_harmless_call(b"last_insert_id"));
        assert!(!is_harmless_call(b"my_function"));
    }
}
