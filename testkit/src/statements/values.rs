//! What may stand where a key belongs, and elsewhere.

use fastrand::Rng;

use crate::{Flavour, Param};

/// A server makes a key of each of these, in one mode or another.
const ASKS: &[&str] = &[
    "NULL",
    "null",
    "(NULL)",
    "((NULL))",
    "DEFAULT",
    "default",
    "DEFAULT(id)",
    "\\N",
    "0",
    "00",
    "+0",
    "-0",
    "(0)",
    "((0))",
    "0.0",
    "0.",
    ".0",
    "0.4",
    "-0.4",
    "(0.4)",
    "0.5e-3",
    "0e0",
    "0e100",
    "1e-100",
    "1e-400",
    "'0'",
    "\"0\"",
    "'0 '",
    "' 0'",
    "'0\\n'",
    "'0\\t'",
    "'\\n0'",
    "'\\t0'",
    "'0.4 '",
    "'0.0'",
    "'.0'",
    "'0' ' '",
    "' ' '0'",
    "'0' '0'",
    "'0e100'",
    "'1e-100'",
    "'0e'",
    "'0e999'",
    "'1e-400'",
    "'04e-1'",
    "''",
    "\"\"",
    "' '",
    "'-0'",
    "'+0'",
    "'-0.4'",
    "'0x0'",
    "'0abc'",
    "'\\0'",
    "b''",
    "B'0'",
    "b'0'",
    "0b0",
    "x''",
    "X''",
    "x'30'",
    "X'00'",
    "0x30",
    "0x00",
    "N'0'",
    "n''",
    "_utf8mb4'0'",
    "_utf8mb4 '0 '",
    "_binary'0'",
    "_latin1 '0'",
    "_latin1'0\\n'",
    "_utf8mb4 x'30'",
    "_binary b'0'",
    "FALSE",
    "false",
    "'\\'",
    "NULL ",
    "'0''0'",
];

/// The row has one, or the statement fails.
const GIVES: &[&str] = &[
    "700",
    "+701",
    "'702'",
    "'703 '",
    "' 704'",
    "'705abc'",
    "706.4",
    "706.5",
    "'707.4'",
    "'707.5'",
    "7e2",
    "'7.1e2'",
    "TRUE",
    "0x2BD",
    "b'1111'",
    "0b1110",
    "_binary'708'",
    "-5",
    "- 5",
    "-(-709)",
    "(710)",
    "N'711'",
    "'abc'",
    "'a' 'b'",
    "' abc'",
    "x'373132'",
    "X'02C9'",
    "1e30",
    "'1e30'",
    "99999999999",
    "-0.6",
    "'-0.6'",
    "0.6",
    "'0.6'",
    "DATE'2020-01-01'",
    "TIME'10:00:00'",
    "TIMESTAMP'2020-01-01 00:00:00'",
    "'2020-01-01'",
    "'é'",
    "_latin1'é'",
    "'\\Z'",
    "9223372036854775808",
    "'713' ' '",
    "DATE '0001-01-01'",
];

/// Nobody knows before.
const COMPUTES: &[&str] = &[
    "NULL+1",
    "0+0",
    "1-1",
    "720+1",
    "NULLIF(1,1)",
    "IF(1,NULL,2)",
    "IFNULL(NULL,NULL)",
    "COALESCE(NULL,722)",
    "@k",
    "@k:=NULL",
    "(@k)",
    "(SELECT NULL)",
    "(SELECT 0)",
    "(SELECT 723)",
    "ISNULL(7)",
    "NOT 1",
    "!1",
    "!0",
    "0 DIV 1",
    "1 AND 0",
    "1 OR 0",
    "1 XOR 1",
    "NULL IS NULL",
    "NULL IS NOT NULL",
    "'0'+0",
    "- '0'",
    "-NULL",
    "+NULL",
    "~0",
    "~1",
    "CAST(NULL AS SIGNED)",
    "CAST('0' AS UNSIGNED)",
    "CONVERT('0',UNSIGNED)",
    "BINARY '0'",
    "BINARY 0",
    "CONCAT('0')",
    "CONCAT('7','24')",
    "CASE WHEN 1 THEN NULL END",
    "CASE 1 WHEN 2 THEN 725 END",
    "NULL COLLATE utf8mb4_bin",
    "'0' COLLATE utf8mb4_bin",
    "0 = 1",
    "NULL <=> NULL",
    "1 BETWEEN 2 AND 3",
    "1 IN (2,3)",
    "'a' LIKE 'b'",
    "0 MOD 7",
    "0 % 7",
    "0 | 0",
    "0 ^ 0",
    "0 << 1",
    "726 & 1023",
    "ABS(0)",
    "ROUND(0.4)",
    "LEAST(0,1)",
    "GREATEST(NULL,1)",
    "LAST_INSERT_ID(0)",
    "LAST_INSERT_ID() DIV 100000000",
    "LAST_INSERT_ID() - LAST_INSERT_ID()",
    "@@identity DIV 100000000",
    "@k+1",
    "@k + 0",
    "-@k",
    "COALESCE(@k, NULL)",
    "COALESCE(@x, NULL)",
    "IF(@k IS NULL, 0, @k)",
    "IFNULL(@k, 727)",
    "(SELECT @k)",
    "CAST(@k AS SIGNED)",
    "CAST('7a' AS SIGNED)",
    "@s",
    "@s + 0",
    "@d",
    "ROUND(@d)",
    "CEIL(@d)",
    "@k DIV 0",
    "@k / 2",
    "9223372036854775807 + @n",
    "(SELECT 1 UNION SELECT 2)",
    "(SELECT MAX(id)+1 FROM t)",
    "(SELECT MAX(a)+770 FROM u)",
    "(SELECT a+780 FROM u WHERE b='two')",
    "(SELECT a FROM u)",
    "(SELECT minus FROM u ORDER BY a LIMIT 1)",
    "(SELECT m FROM (SELECT MAX(id)+1 AS m FROM t) d)",
    "NULL AND 1",
    "NULL OR 0",
    "EXISTS(SELECT 1 FROM u WHERE 0)",
    "(SELECT n FROM u WHERE n IS NULL LIMIT 1)",
    "(SELECT MAX(a) FROM u)",
    "id",
    "id+0",
    "t.id",
    "a",
    "0 SOUNDS LIKE 'x'",
    "0 REGEXP 'x'",
    "(0)+(0)",
    "ROW(0)",
    "(0,0)",
    "INTERVAL(0,1)",
    "VALUES(a)",
    "DEFAULT(a)",
    "'0' || ''",
    "NULL || 'x'",
    "{d '2020-01-01'}",
];

/// The same with something that is not read, or is.
const COMMENTED: &[&str] = &[
    "/**/NULL",
    "NULL/**/",
    "/* , */ 0 /* 7 */",
    "/*!NULL*/",
    "/*! NULL */",
    "/*!50000NULL*/",
    "/*!50000 NULL*/",
    "/*!99999 730*/ 0",
    "/*!999999 731*/ 0",
    "/*!0*/",
    "/*! 0 */",
    "/*!000000*/",
    "/*!732*/",
    "/*! 733 */",
    "/*M!NULL*/",
    "/*M! NULL */",
    "/*M!100000 NULL*/",
    "/*M!999999 734,*/ NULL",
    "NULL -- x\n",
    "NULL#x\n",
    "-- x\nNULL",
    "#x\n0",
    "/*x*/735/*y*/",
    "/*!50000 736*/",
    "- /**/ 5",
    "/*!50000 /* x */ NULL*/",
    "0--\n",
    "0 --\t\n",
    "/*!500000*/",
    "/*!50701 0*/",
    "/*!80000 0*/ /*!100000 */",
    "N/**/'0'",
    "_utf8mb4/**/'0'",
    "'0'/**/' '",
    "'0'\n' '",
    "b/**/''",
    "/*+ x */ NULL",
    "NULL/*!*/",
    "/*!50000*/NULL",
];

/// Values of columns that are no keys.
const PLAIN: &[&str] = &[
    "1",
    "2",
    "3",
    "NULL",
    "'7'",
    "DEFAULT",
    "(1)",
    "1+1",
    "ABS(-4)",
    "-5",
    "@k",
    "(SELECT 6)",
    "TRUE",
    "0x08",
    "9.0",
    "LENGTH('abc')",
    "a",
    "n'9'",
    "/**/1",
    "IF(1,2,3)",
];

/// Values of texts.
const TEXTS: &[&str] = &[
    "'x'",
    "'it''s'",
    "'it\\'s'",
    "\"q\"",
    "'\\\\'",
    "N'it\\'s'",
    "'a' 'b'",
    "_utf8mb4'z'",
    "x'41'",
    "NULL",
    "DEFAULT",
    "CONCAT('a','b')",
    "'(),;'",
    "'-- '",
    "'/*'",
    "'é'",
    "UPPER('k')",
    "b'1000001'",
    "'?'",
    "''",
];

/// What keys mostly are: none of these is refused, so that what stands around them is seen.
const USUAL: &[&str] = &[
    "NULL", "NULL", "0", "'0'", "DEFAULT", "700", "701", "702", "'703'",
];

/// The same in a query.
const USUAL_IN_QUERY: &[&str] = &["NULL", "NULL", "0", "700", "701", "702"];

/// Where a key belongs.
pub(super) fn key(random: &mut Rng) -> &'static str {
    let pool = match random.u8(0..30) {
        0..9 => ASKS,
        9..14 => GIVES,
        14..17 => COMPUTES,
        17..20 => COMMENTED,
        _ => USUAL,
    };
    choose(random, pool)
}

/// The same in a query.
pub(super) fn usual_key_in_query(random: &mut Rng) -> &'static str {
    choose(random, USUAL_IN_QUERY)
}

/// Where a number belongs.
pub(super) fn number(random: &mut Rng) -> &'static str {
    choose(random, PLAIN)
}

/// Where a text belongs.
pub(super) fn text(random: &mut Rng) -> &'static str {
    choose(random, TEXTS)
}

/// One of a pool.
pub(super) fn choose<'a>(random: &mut Rng, pool: &[&'a str]) -> &'a str {
    random.choice(pool).copied().unwrap_or_default()
}

/// A value that is bound where a key belongs.
pub(super) fn bound_key(random: &mut Rng, flavour: Flavour) -> Param {
    match random.u8(0..14) {
        0..4 => Param::Null,
        4 => Param::Signed(0),
        5 => Param::Unsigned(0),
        6 => Param::Signed(740),
        7 => Param::Signed(-7),
        8 => Param::Real(
            random
                .choice([0.0, -0.0, 0.4, -0.4, 0.5, 741.4, 1e-300])
                .unwrap_or(0.0),
        ),
        9 => Param::Blob(choose(random, &["0", "742", "", "0 "]).into()),
        10 if flavour == Flavour::MariaDb => Param::Unsigned(743),
        _ => Param::Text(
            choose(
                random,
                &[
                    "0", "744", "", "0 ", " 0", "0\n", "abc", "0.4", "-0.4", "0e", "745abc",
                    "0e999", "\t0", "1e-400",
                ],
            )
            .into(),
        ),
    }
}

/// A value that is bound elsewhere.
pub(super) fn bound(random: &mut Rng) -> Param {
    match random.u8(0..5) {
        0 => Param::Null,
        1 => Param::Text("8".into()),
        2 => Param::Unsigned(9),
        _ => Param::Signed(10),
    }
}
