//! Functions and keywords that may stand before a parenthesis and do not see LAST_INSERT_ID().

use std::cmp::Ordering;

use crate::modes::{Flavour, Server};

/// Built-in functions of MariaDB and MySQL, types, and keywords of expressions, sorted. What is missing here costs an
/// extra statement now and then, or refuses a copy of rows; what is here wrongly would cost a wrong LAST_INSERT_ID(). A stored function cannot take
/// the place of a built-in one whose parenthesis follows at once.
#[rustfmt::skip]
const BLIND: &[&str] = &[
    "abs", "acos", "adddate", "addtime", "aes_decrypt", "aes_encrypt", "against", "all", "and", "any", "any_value",
    "as", "ascii", "asin", "atan", "atan2", "avg", "benchmark", "between", "bigint", "bin", "bin_to_uuid", "binary",
    "bit", "bit_and", "bit_count", "bit_length", "bit_or", "bit_xor", "blob", "by", "cast", "ceil", "ceiling", "char",
    "char_length", "character", "character_length", "charset", "chr", "coalesce", "coercibility", "collation",
    "column_add", "column_check", "column_create", "column_delete", "column_exists", "column_get", "column_json",
    "column_list", "compress", "concat", "concat_ws", "connection_id", "conv", "convert", "convert_tz", "cos", "cot",
    "count", "crc32", "crc32c", "cume_dist", "curdate", "current_date", "current_role", "current_time",
    "current_timestamp", "current_user", "curtime", "database", "date", "date_add", "date_format", "date_sub",
    "datediff", "datetime", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "dec", "decimal", "decode",
    "decode_histogram", "default", "degrees", "dense_rank", "des_decrypt", "des_encrypt", "div", "double", "else",
    "elt", "encode", "encrypt", "exists", "exp", "export_set", "extract", "extractvalue", "field", "find_in_set",
    "first_value", "fixed", "float", "floor", "format", "format_bytes", "format_pico_time", "found_rows", "from_base64",
    "from_days", "from_unixtime", "geomcollfromtext", "geomcollfromwkb", "geometrycollection", "geometryfromtext",
    "geometryfromwkb", "geomfromtext", "geomfromwkb", "get_format", "get_lock", "greatest", "group_concat",
    "gtid_subset", "gtid_subtract", "hex", "hour", "icu_version", "if", "ifnull", "in", "inet6_aton", "inet6_ntoa",
    "inet_aton", "inet_ntoa", "insert", "instr", "int", "integer", "interval", "is_free_lock", "is_ipv4",
    "is_ipv4_compat", "is_ipv4_mapped", "is_ipv6", "is_used_lock", "is_uuid", "isnull", "json_array",
    "json_array_append", "json_array_insert", "json_arrayagg", "json_compact", "json_contains", "json_contains_path",
    "json_depth", "json_detailed", "json_equals", "json_exists", "json_extract", "json_insert", "json_keys",
    "json_length", "json_loose", "json_merge", "json_merge_patch", "json_merge_preserve", "json_normalize",
    "json_object", "json_objectagg", "json_overlaps", "json_pretty", "json_query", "json_quote", "json_remove",
    "json_replace", "json_schema_valid", "json_schema_validation_report", "json_search", "json_set",
    "json_storage_free", "json_storage_size", "json_table", "json_type", "json_unquote", "json_valid", "json_value",
    "lag", "last_day", "last_value", "lastval", "lcase", "lead", "least", "left", "length", "lengthb", "like",
    "linefromtext", "linefromwkb", "linestring", "linestringfromtext", "linestringfromwkb", "ln", "load_file",
    "localtime", "localtimestamp", "locate", "log", "log10", "log2", "lower", "lpad", "ltrim", "make_set", "makedate",
    "maketime", "master_pos_wait", "match", "max", "mbrcontains", "mbrcoveredby", "mbrcovers", "mbrdisjoint",
    "mbrequal", "mbrequals", "mbrintersects", "mbroverlaps", "mbrtouches", "mbrwithin", "md5", "mediumint",
    "microsecond", "mid", "min", "minute", "mlinefromtext", "mlinefromwkb", "mod", "month", "monthname",
    "mpointfromtext", "mpointfromwkb", "mpolyfromtext", "mpolyfromwkb", "multilinestring", "multilinestringfromtext",
    "multilinestringfromwkb", "multipoint", "multipointfromtext", "multipointfromwkb", "multipolygon",
    "multipolygonfromtext", "multipolygonfromwkb", "name_const", "national", "natural_sort_key", "nchar", "nextval",
    "not", "now", "nth_value", "ntile", "nullif", "numeric", "nvarchar", "nvl", "nvl2", "oct", "octet_length", "on",
    "or", "ord", "over", "password", "percent_rank", "period_add", "period_diff", "pi", "point", "pointfromtext",
    "pointfromwkb", "polyfromtext", "polyfromwkb", "polygon", "polygonfromtext", "polygonfromwkb", "position", "pow",
    "power", "ps_current_thread_id", "ps_thread_id", "quarter", "quote", "radians", "rand", "random_bytes", "rank",
    "real", "regexp", "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "release_all_locks",
    "release_lock", "repeat", "replace", "reverse", "right", "rlike", "round", "row", "row_count", "row_number", "rpad",
    "rtrim", "schema", "sec_to_time", "second", "select", "session_user", "setval", "sformat", "sha", "sha1", "sha2",
    "sign", "signed", "sin", "sleep", "smallint", "some", "soundex", "source_pos_wait", "space", "sqrt", "st_area",
    "st_asbinary", "st_asgeojson", "st_astext", "st_aswkb", "st_aswkt", "st_boundary", "st_buffer",
    "st_buffer_strategy", "st_centroid", "st_collect", "st_contains", "st_convexhull", "st_crosses", "st_difference",
    "st_dimension", "st_disjoint", "st_distance", "st_distance_sphere", "st_endpoint", "st_envelope", "st_equals",
    "st_exteriorring", "st_frechetdistance", "st_geohash", "st_geomcollfromtext", "st_geomcollfromtxt",
    "st_geomcollfromwkb", "st_geometrycollectionfromtext", "st_geometrycollectionfromwkb", "st_geometryfromtext",
    "st_geometryfromwkb", "st_geometryn", "st_geometrytype", "st_geomfromgeojson", "st_geomfromtext", "st_geomfromwkb",
    "st_hausdorffdistance", "st_interiorringn", "st_interpolatepoint", "st_interpolatepoints", "st_intersection",
    "st_intersects", "st_isclosed", "st_isempty", "st_isring", "st_issimple", "st_isvalid", "st_latfromgeohash",
    "st_latitude", "st_length", "st_linefromtext", "st_linefromwkb", "st_lineinterpolatepoint",
    "st_lineinterpolatepoints", "st_linestringfromtext", "st_linestringfromwkb", "st_longfromgeohash", "st_longitude",
    "st_makeenvelope", "st_makepoint", "st_mlinefromtext", "st_mlinefromwkb", "st_mpointfromtext", "st_mpointfromwkb",
    "st_mpolyfromtext", "st_mpolyfromwkb", "st_multilinestringfromtext", "st_multilinestringfromwkb",
    "st_multipointfromtext", "st_multipointfromwkb", "st_multipolygonfromtext", "st_multipolygonfromwkb",
    "st_numgeometries", "st_numinteriorring", "st_numinteriorrings", "st_numpoints", "st_overlaps",
    "st_pointatdistance", "st_pointfromgeohash", "st_pointfromtext", "st_pointfromwkb", "st_pointn",
    "st_pointonsurface", "st_polyfromtext", "st_polyfromwkb", "st_polygonfromtext", "st_polygonfromwkb", "st_relate",
    "st_simplify", "st_srid", "st_startpoint", "st_swapxy", "st_symdifference", "st_touches", "st_transform",
    "st_union", "st_validate", "st_within", "st_x", "st_y", "statement_digest", "statement_digest_text", "std",
    "stddev", "stddev_pop", "stddev_samp", "str_to_date", "strcmp", "subdate", "substr", "substring", "substring_index",
    "subtime", "sum", "sys_guid", "sysdate", "system_user", "tan", "text", "then", "time", "time_format", "time_to_sec",
    "timediff", "timestamp", "timestampadd", "timestampdiff", "tinyint", "to_base64", "to_char", "to_days",
    "to_seconds", "trim", "truncate", "ucase", "uncompress", "uncompressed_length", "unhex", "unix_timestamp",
    "unsigned", "updatexml", "upper", "user", "using", "utc_date", "utc_time", "utc_timestamp", "uuid", "uuid_short",
    "uuid_to_bin", "validate_password_strength", "value", "values", "var_pop", "var_samp", "varbinary", "varchar",
    "varcharacter", "variance", "varying", "version", "wait_for_executed_gtid_set", "week", "weekday", "weekofyear",
    "weight_string", "when", "where", "xor", "year", "yearweek",
];

/// Functions, and a keyword, that one flavour has since a version, and whose names stored functions of the other may well have; sorted. Those of
/// an edition that the version does not tell (DISTANCE) are not here, nor those that both have in later versions.
#[rustfmt::skip]
const OF_ONE: &[(&str, Flavour, u32)] = &[
    ("add_months", Flavour::MariaDb, 100_601), ("against", Flavour::MySql, 0), ("any_value", Flavour::MySql, 50_700),
    ("area", Flavour::MariaDb, 0),
    ("asbinary", Flavour::MariaDb, 0), ("astext", Flavour::MariaDb, 0), ("aswkb", Flavour::MariaDb, 0),
    ("aswkt", Flavour::MariaDb, 0), ("bin_to_uuid", Flavour::MySql, 80_000), ("boundary", Flavour::MariaDb, 0),
    ("centroid", Flavour::MariaDb, 0), ("chr", Flavour::MariaDb, 0), ("column_add", Flavour::MariaDb, 0),
    ("column_check", Flavour::MariaDb, 0), ("column_create", Flavour::MariaDb, 0),
    ("column_delete", Flavour::MariaDb, 0), ("column_exists", Flavour::MariaDb, 0),
    ("column_get", Flavour::MariaDb, 0), ("column_json", Flavour::MariaDb, 0), ("column_list", Flavour::MariaDb, 0),
    ("crc32c", Flavour::MariaDb, 100_800), ("decode", Flavour::MariaDb, 0), ("decode_histogram", Flavour::MariaDb, 0),
    ("des_decrypt", Flavour::MariaDb, 0), ("des_encrypt", Flavour::MariaDb, 0), ("dimension", Flavour::MariaDb, 0),
    ("encode", Flavour::MariaDb, 0), ("encrypt", Flavour::MariaDb, 0), ("endpoint", Flavour::MariaDb, 0),
    ("envelope", Flavour::MariaDb, 0), ("exteriorring", Flavour::MariaDb, 0),
    ("geomcollfromtext", Flavour::MariaDb, 0), ("geomcollfromwkb", Flavour::MariaDb, 0),
    ("geometryfromtext", Flavour::MariaDb, 0), ("geometryfromwkb", Flavour::MariaDb, 0),
    ("geometryn", Flavour::MariaDb, 0), ("geometrytype", Flavour::MariaDb, 0), ("geomfromtext", Flavour::MariaDb, 0),
    ("geomfromwkb", Flavour::MariaDb, 0), ("glength", Flavour::MariaDb, 0), ("grouping", Flavour::MySql, 80_000),
    ("gtid_subset", Flavour::MySql, 50_600), ("gtid_subtract", Flavour::MySql, 50_600),
    ("icu_version", Flavour::MySql, 80_004), ("interiorringn", Flavour::MariaDb, 0),
    ("is_uuid", Flavour::MySql, 80_000), ("isclosed", Flavour::MariaDb, 0), ("isempty", Flavour::MariaDb, 0),
    ("isring", Flavour::MariaDb, 0), ("issimple", Flavour::MariaDb, 0),
    ("json_array_intersect", Flavour::MariaDb, 110_200), ("json_compact", Flavour::MariaDb, 0),
    ("json_detailed", Flavour::MariaDb, 0), ("json_equals", Flavour::MariaDb, 100_700), ("json_exists", Flavour::MariaDb, 0),
    ("json_key_value", Flavour::MariaDb, 110_200), ("json_loose", Flavour::MariaDb, 0),
    ("json_normalize", Flavour::MariaDb, 100_700), ("json_object_filter_keys", Flavour::MariaDb, 110_200),
    ("json_object_to_array", Flavour::MariaDb, 110_200), ("json_query", Flavour::MariaDb, 0),
    ("json_storage_free", Flavour::MySql, 80_002), ("json_storage_size", Flavour::MySql, 50_722),
    ("lastval", Flavour::MariaDb, 0), ("lengthb", Flavour::MariaDb, 0), ("linefromtext", Flavour::MariaDb, 0),
    ("linefromwkb", Flavour::MariaDb, 0), ("linestringfromtext", Flavour::MariaDb, 0),
    ("linestringfromwkb", Flavour::MariaDb, 0), ("master_gtid_wait", Flavour::MariaDb, 0),
    ("mbrequal", Flavour::MariaDb, 0), ("median", Flavour::MariaDb, 0), ("mlinefromtext", Flavour::MariaDb, 0),
    ("mlinefromwkb", Flavour::MariaDb, 0), ("months_between", Flavour::MariaDb, 130_000),
    ("mpointfromtext", Flavour::MariaDb, 0), ("mpointfromwkb", Flavour::MariaDb, 0),
    ("mpolyfromtext", Flavour::MariaDb, 0), ("mpolyfromwkb", Flavour::MariaDb, 0),
    ("multilinestringfromtext", Flavour::MariaDb, 0), ("multilinestringfromwkb", Flavour::MariaDb, 0),
    ("multipointfromtext", Flavour::MariaDb, 0), ("multipointfromwkb", Flavour::MariaDb, 0),
    ("multipolygonfromtext", Flavour::MariaDb, 0), ("multipolygonfromwkb", Flavour::MariaDb, 0),
    ("natural_sort_key", Flavour::MariaDb, 100_700), ("nextval", Flavour::MariaDb, 0),
    ("numgeometries", Flavour::MariaDb, 0), ("numinteriorrings", Flavour::MariaDb, 0),
    ("numpoints", Flavour::MariaDb, 0), ("nvl", Flavour::MariaDb, 0), ("nvl2", Flavour::MariaDb, 0),
    ("password", Flavour::MariaDb, 0), ("percentile_cont", Flavour::MariaDb, 100_303),
    ("percentile_disc", Flavour::MariaDb, 100_303), ("pointfromtext", Flavour::MariaDb, 0),
    ("pointfromwkb", Flavour::MariaDb, 0), ("pointn", Flavour::MariaDb, 0), ("polyfromtext", Flavour::MariaDb, 0),
    ("polyfromwkb", Flavour::MariaDb, 0), ("polygonfromtext", Flavour::MariaDb, 0),
    ("polygonfromwkb", Flavour::MariaDb, 0), ("ps_current_thread_id", Flavour::MySql, 80_016),
    ("ps_thread_id", Flavour::MySql, 80_016), ("regexp_like", Flavour::MySql, 80_004), ("setval", Flavour::MariaDb, 0),
    ("sformat", Flavour::MariaDb, 100_700), ("source_pos_wait", Flavour::MySql, 80_026), ("srid", Flavour::MariaDb, 0),
    ("st_boundary", Flavour::MariaDb, 0), ("st_isring", Flavour::MariaDb, 0),
    ("st_pointonsurface", Flavour::MariaDb, 0), ("st_relate", Flavour::MariaDb, 0),
    ("startpoint", Flavour::MariaDb, 0), ("statement_digest", Flavour::MySql, 80_004),
    ("statement_digest_text", Flavour::MySql, 80_004), ("string_to_vector", Flavour::MySql, 90_000),
    ("sys_guid", Flavour::MariaDb, 100_601), ("to_char", Flavour::MariaDb, 100_601),
    ("to_date", Flavour::MariaDb, 130_000), ("to_number", Flavour::MariaDb, 130_000),
    ("trim_oracle", Flavour::MariaDb, 0), ("uuid_to_bin", Flavour::MySql, 80_000),
    ("uuid_v4", Flavour::MariaDb, 110_700), ("uuid_v7", Flavour::MariaDb, 110_700),
    ("validate_password_strength", Flavour::MySql, 50_600), ("vec_distance", Flavour::MariaDb, 110_800),
    ("vec_distance_cosine", Flavour::MariaDb, 110_701), ("vec_distance_euclidean", Flavour::MariaDb, 110_701),
    ("vec_fromtext", Flavour::MariaDb, 110_701), ("vec_totext", Flavour::MariaDb, 110_701),
    ("vector_dim", Flavour::MySql, 90_000), ("vector_to_string", Flavour::MySql, 90_000),
    ("wait_for_executed_gtid_set", Flavour::MySql, 50_705), ("x", Flavour::MariaDb, 0), ("y", Flavour::MariaDb, 0),
];

/// Whether `word(` is a call of a function that this server brings along, or a type or keyword, and does not see LAST_INSERT_ID().
pub(crate) fn is_built_in(word: &[u8], server: Server) -> bool {
    let place = OF_ONE.binary_search_by(|(known, ..)| compare(known.as_bytes(), word));
    match place.ok().and_then(|at| OF_ONE.get(at)) {
        Some((_, flavour, since)) => server.flavour == *flavour && server.version >= *since,
        None => holds(BLIND, word),
    }
}

/// Functions whose names the servers' lexers know only where the parenthesis follows at once, unless sql_mode has IGNORE_SPACE: with a blank
/// between, a stored function of that name is called; sorted.
#[rustfmt::skip]
const AT_ONCE: &[&str] = &[
    "add_months", "adddate", "bit_and", "bit_or", "bit_xor", "cast", "count", "cume_dist", "curdate", "curtime",
    "date_add", "date_format", "date_sub", "decode", "dense_rank", "extract", "first_value", "group_concat",
    "json_arrayagg", "json_objectagg", "lag", "lead", "max", "median", "mid", "min", "now", "nth_value", "ntile",
    "percent_rank", "percentile_cont", "percentile_disc", "position", "rank", "row_number", "session_user",
    "st_collect", "std", "stddev", "stddev_pop", "stddev_samp", "subdate", "substr", "substring", "sum", "sysdate",
    "system_user", "trim", "trim_oracle", "var_pop", "var_samp", "variance",
];

/// Whether `word (`, with a blank between, may be a call of a stored function although a built-in one has that name.
pub(crate) fn is_called_at_once(word: &[u8]) -> bool {
    holds(AT_ONCE, word)
}

/// Functions that MariaDB 10.11 does not bring along, or not with so many arguments, and whose names it takes for stored functions; sorted.
#[rustfmt::skip]
const NOT_OF_MARIADB: &[&str] = &[
    "format_bytes", "format_pico_time", "geometrycollection", "json_schema_valid", "json_schema_validation_report",
    "json_table", "linestring", "mbrcoveredby", "mbrcovers", "multilinestring", "multipoint", "multipolygon", "point",
    "polygon", "st_buffer_strategy", "st_frechetdistance", "st_geohash", "st_geomcollfromtxt", "st_hausdorffdistance",
    "st_interpolatepoint", "st_interpolatepoints", "st_isvalid", "st_latfromgeohash", "st_latitude",
    "st_lineinterpolatepoint", "st_lineinterpolatepoints", "st_longfromgeohash", "st_longitude", "st_makeenvelope",
    "st_makepoint", "st_numinteriorring", "st_pointatdistance", "st_pointfromgeohash", "st_simplify", "st_swapxy",
    "st_transform", "st_validate",
];

/// Whether `word (`, with a blank between, may be a call of a stored function on this server although another one has a built-in function of that name.
pub(crate) fn may_be_stored(word: &[u8], server: Server) -> bool {
    server.flavour == Flavour::MariaDb && holds(NOT_OF_MARIADB, word)
}

/// Those of them that MariaDB has with the arguments that all give them; sorted. Where the parenthesis follows at once, nobody means a stored function.
#[rustfmt::skip]
const WITH_OTHER_ARGUMENTS: &[&str] = &[
    "geometrycollection", "json_table", "linestring", "multilinestring", "multipoint", "multipolygon", "point", "polygon",
];

/// Whether `word(`, with nothing between, is a call of a function that this server brings along, or a type or keyword, and does not see
/// LAST_INSERT_ID().
pub(crate) fn is_built_in_at_once(word: &[u8], server: Server) -> bool {
    let may_be_stored = may_be_stored(word, server) && !holds(WITH_OTHER_ARGUMENTS, word);
    is_built_in(word, server) && !may_be_stored
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

/// Functions of texts of which the same holds, sorted.
#[rustfmt::skip]
const PURE_OF_TEXT: &[&str] = &[
    "concat", "concat_ws", "hex", "lcase", "left", "lower", "ltrim", "repeat", "replace", "reverse", "right", "rtrim", "substr",
    "substring", "to_base64", "trim", "ucase", "unhex", "upper",
];

/// Those of UUIDs, which MySQL has: elsewhere stored functions may have their names.
const PURE_OF_UUID: &[&str] = &["bin_to_uuid", "is_uuid", "uuid_to_bin"];

/// Whether `word(…)` is such a call, of a text.
pub(crate) fn is_pure_call_of_text(word: &[u8], server: Server) -> bool {
    let is_of_uuid = server.flavour == Flavour::MySql && holds(PURE_OF_UUID, word);
    is_of_uuid || holds(PURE_OF_TEXT, word)
}

/// Built-in functions that leave something behind, wait, or may come to another value when one statement calls them once more for a row; sorted.
#[rustfmt::skip]
const UNSTEADY: &[&str] = &[
    "benchmark", "default", "des_encrypt", "encrypt", "found_rows", "get_lock", "is_free_lock", "is_used_lock",
    "last_insert_id", "lastval", "load_file", "master_gtid_wait", "master_pos_wait", "nextval", "rand", "random_bytes",
    "release_all_locks", "release_lock", "row_count", "rownum", "setval", "sleep", "source_pos_wait", "sys_guid",
    "sysdate", "uuid", "uuid_short", "uuid_v4", "uuid_v7", "value", "wait_for_executed_gtid_set",
    "wait_until_sql_thread_after_gtids",
];

/// Whether `word(…)` is a call that a statement may carry out twice for a row.
pub(crate) fn is_steady_call(word: &[u8], server: Server) -> bool {
    is_built_in(word, server) && !holds(UNSTEADY, word)
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

pub(crate) fn holds(table: &[&str], word: &[u8]) -> bool {
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
        AGGREGATES, AT_ONCE, BLIND, COMPUTED_ALIKE, EFFECTS, NOT_OF_MARIADB, OF_ONE, OPERATORS,
        PASSES, PURE, PURE_OF_TEXT, PURE_OF_UUID, UNSTEADY, WITH_OTHER_ARGUMENTS, is_built_in,
        is_built_in_at_once, is_called_at_once, is_prefix_operator, is_steady_call,
    };
    use crate::modes::{Flavour, Server};

    const MARIA: Server = Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    };
    const MYSQL: Server = Server {
        flavour: Flavour::MySql,
        version: 90_704,
    };

    #[test]
    fn the_tables_are_sorted() {
        for table in [
            BLIND,
            OPERATORS,
            AGGREGATES,
            EFFECTS,
            PASSES,
            PURE,
            PURE_OF_TEXT,
            PURE_OF_UUID,
            UNSTEADY,
            AT_ONCE,
            NOT_OF_MARIADB,
            WITH_OTHER_ARGUMENTS,
            COMPUTED_ALIKE,
        ] {
            assert!(table.is_sorted(), "{table:?}");
        }
        assert!(OF_ONE.is_sorted_by_key(|(name, ..)| name));
    }

    #[test]
    fn what_comes_to_another_value_or_leaves_something_behind_is_not_steady() {
        for call in [
            "Now",
            "MAX",
            "coalesce",
            "DECIMAL",
            "Mid",
            "st_x",
            "json_keys",
            "nchar",
        ] {
            assert!(is_steady_call(call.as_bytes(), MARIA), "{call}");
            assert!(is_steady_call(call.as_bytes(), MYSQL), "{call}");
        }
        for other in UNSTEADY.iter().chain(EFFECTS) {
            assert!(!is_steady_call(other.as_bytes(), MARIA), "{other}");
            assert!(!is_steady_call(other.as_bytes(), MYSQL), "{other}");
        }
        for other in ["rand", "sysdate", "uuid", "uuid_short", "sleep", "nextval"] {
            assert!(UNSTEADY.contains(&other), "{other}");
        }
    }

    #[test]
    fn what_only_the_other_flavour_or_a_later_version_brings_along_may_be_a_stored_function() {
        assert!(is_built_in(b"Median", MARIA) && !is_built_in(b"median", MYSQL));
        assert!(is_built_in(b"vector_dim", MYSQL) && !is_built_in(b"vector_dim", MARIA));
        assert!(!is_built_in(b"vec_totext", MARIA) && !is_built_in(b"distance", MYSQL));
    }

    #[test]
    fn with_a_blank_between_few_built_in_functions_are_others() {
        assert!(is_called_at_once(b"Count") && is_called_at_once(b"SUBSTRING"));
        assert!(!is_called_at_once(b"ifnull") && !is_called_at_once(b"datediff"));
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
        for server in [MARIA, MYSQL] {
            assert!(is_built_in_at_once(b"NOW", server));
            assert!(!is_built_in_at_once(b"last_insert_id", server));
            assert!(!is_built_in_at_once(b"my_function", server));
        }
    }

    #[test]
    fn a_stored_function_has_the_name_of_one_that_only_the_other_flavour_brings_along() {
        for (word, of_maria, of_mysql) in [
            ("NVL", true, false),
            ("decode", true, false),
            ("uuid_to_bin", false, true),
            ("st_isvalid", false, true),
            ("Point", true, true),
            ("json_table", true, true),
        ] {
            let word = word.as_bytes();
            assert_eq!(is_built_in_at_once(word, MARIA), of_maria, "{word:?}");
            assert_eq!(is_built_in_at_once(word, MYSQL), of_mysql, "{word:?}");
        }
        assert!(
            WITH_OTHER_ARGUMENTS
                .iter()
                .all(|word| NOT_OF_MARIADB.contains(word))
        );
    }
}
