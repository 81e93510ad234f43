//! Fixed ids and what they say, in files that the tests of every SQL dialect read.
#![allow(dead_code, reason = "each dialect shows some of it")]

const SNOWFLAKE: &str = include_str!("../../vectors/snowflake.tsv");
const READABLE: &str = include_str!("../../vectors/readable.tsv");

/// One snowflake id; numbers as text, as servers print them, a missing datacenter as `NULL`.
pub(crate) struct SnowflakeVector {
    pub(crate) preset: &'static str,
    pub(crate) id: &'static str,
    pub(crate) issued_at: &'static str,
    pub(crate) unix_ms: &'static str,
    pub(crate) datacenter: &'static str,
    pub(crate) worker_field: &'static str,
    pub(crate) worker_id: &'static str,
    pub(crate) sequence: &'static str,
    pub(crate) floor: &'static str,
}

/// One readable id.
pub(crate) struct ReadableVector {
    pub(crate) id: &'static str,
    pub(crate) issued_at: &'static str,
    pub(crate) biz: &'static str,
    pub(crate) bucket: &'static str,
    pub(crate) sequence: &'static str,
}

fn lines<const FIELDS: usize>(file: &'static str) -> Vec<[&'static str; FIELDS]> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let count = fields.len();
            fields
                .try_into()
                .unwrap_or_else(|_| panic!("{count} fields instead of {FIELDS}: {line}"))
        })
        .collect()
}

/// All of them.
pub(crate) fn snowflake() -> Vec<SnowflakeVector> {
    let lines = lines(SNOWFLAKE).into_iter();
    lines
        .map(
            |[
                preset,
                id,
                issued_at,
                unix_ms,
                datacenter,
                worker_field,
                worker_id,
                sequence,
                floor,
            ]| {
                SnowflakeVector {
                    preset,
                    id,
                    issued_at,
                    unix_ms,
                    datacenter,
                    worker_field,
                    worker_id,
                    sequence,
                    floor,
                }
            },
        )
        .collect()
}

/// All of them.
pub(crate) fn readable() -> Vec<ReadableVector> {
    let lines = lines(READABLE).into_iter();
    lines
        .map(|[id, issued_at, biz, bucket, sequence]| ReadableVector {
            id,
            issued_at,
            biz,
            bucket,
            sequence,
        })
        .collect()
}
