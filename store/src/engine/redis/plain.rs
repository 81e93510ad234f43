//! Ranges out of a counter of a Redis, beside which stands who took the last one.
//!
//! The record is a hash of its own, `keywright:record:TAG`. It is watched, read together with the counter, and written in one transaction with `INCRBY`: of two
//! who take at the same time one does nothing. The transaction says once more, behind the `INCRBY`, which life of the server it was and how it keeps what it
//! acknowledges.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{Pipeline, Value, pipe};

use super::error::RedisError;
use super::judge::Record;
use super::link::{RedisLink, map, number, text, unlike};
use crate::host::holder;

/// What must be set, and to what, so that what is acknowledged is on the disk and stays there.
const DURABLE: [(&str, &str); 4] = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    ("no-appendfsync-on-rewrite", "no"),
    ("maxmemory-policy", "noeviction"),
];
/// What forks of Redis have that count in several places at once.
const SEVERAL_MASTERS: [&str; 2] = ["active-replica", "multi-master"];
/// What others say in `INFO` who call themselves redis.
const NO_REDIS: [&str; 2] = ["dragonfly_version", "garnet_version"];
/// A life's name: so many hexadecimal digits.
const LIFE_CHARS: usize = 40;

/// A counter as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter {
    /// `None`: there is none.
    pub(crate) number: Option<i64>,
    /// What stands beside it, if anything does.
    pub(crate) record: Option<Record>,
    /// Which life of the server this is.
    pub(crate) life: String,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Increased {
    /// The counter behind it.
    pub(crate) last: i64,
    /// In which life that was.
    pub(crate) life: String,
}

/// What is asked of the server's settings: older ones take one pattern at a time. Never all of them, among which are passwords.
const SETTINGS_ASKED: [&str; 5] = [
    "append*",
    "no-appendfsync-on-rewrite",
    "maxmemory-policy",
    "active-replica",
    "multi-master",
];
/// How many answers there are to that, and to what it says of itself.
const SERVER_ANSWERS: usize = 2 + SETTINGS_ASKED.len();

impl RedisLink {
    /// A counter and what is beside it, watched from here on: what is written by [`RedisLink::increase_plain`] is written only if nobody else writes the
    /// record meanwhile.
    pub(crate) async fn counter(&mut self, tag: &str) -> Result<Counter, RedisError> {
        let mut commands = pipe();
        commands.cmd("UNWATCH");
        commands.cmd("WATCH").arg(record_key(tag));
        commands.cmd("GET").arg(tag);
        commands.cmd("HGETALL").arg(record_key(tag));
        ask_server(&mut commands);
        let mut answers = self.ask_all(&mut commands).await?;
        let server = split_server(&mut answers)?;
        let life = self.life(server)?;
        let [_, _, number_now, record] = <[Value; 4]>::try_from(answers)
            .map_err(|answers| RedisError::Answer(format!("{} replies", answers.len())))?;
        let number_now = match number_now {
            Value::Nil => None,
            some => Some(number(&some).ok_or_else(|| unlike(&some))?),
        };
        Ok(Counter {
            number: number_now,
            record: record_of(map(record)?)?,
            life,
        })
    }

    /// Raises a counter, and writes beside it who did that, and how far.
    pub(crate) async fn increase_plain(
        &mut self,
        tag: &str,
        by: u64,
        record: &Record,
    ) -> Result<Increased, RedisError> {
        let mut commands = pipe();
        commands.atomic();
        commands.cmd("INCRBY").arg(tag).arg(by);
        commands
            .cmd("HSET")
            .arg(record_key(tag))
            .arg(&[
                ("life", record.life.as_str()),
                ("key_space", &record.key_space),
            ])
            .arg("bound")
            .arg(record.bound)
            .arg(&[("by", holder()), ("at_ms", now_ms().to_string())]);
        ask_server(&mut commands);
        let mut answers = self.ask_all(&mut commands).await?;
        let server = split_server(&mut answers)?;
        let [Value::Int(last), _] = answers.as_slice() else {
            return Err(RedisError::Answer(format!("{} replies", answers.len())));
        };
        let last = *last;
        Ok(Increased {
            last,
            life: self.life(server)?,
        })
    }

    /// Which life of the server this is, if it is a master that keeps what it acknowledges.
    fn life(&self, answers: Vec<Value>) -> Result<String, RedisError> {
        let mut answers = answers.into_iter();
        let mut told = || of_info(&answers.next().unwrap_or_default());
        let (info, replication) = (told(), told());
        let mut config = HashMap::new();
        for answer in answers {
            config.extend(map(answer)?);
        }
        let host = &self.host;
        let unfit = |what: String| RedisError::Unfit(format!("{host} {what}"));
        if let Some(other) = NO_REDIS.iter().find(|name| info.contains_key(**name)) {
            return Err(unfit(format!("is no Redis: it has {other}")));
        }
        match replication.get("role").map(String::as_str) {
            Some("master") => {}
            Some(role) => return Err(unfit(format!("has the role \"{role}\", and no master's"))),
            None => return Err(unfit("does not say its role".to_owned())),
        }
        durable(&config).map_err(|what| RedisError::NotDurable(format!("{host} {what}")))?;
        let life = replication
            .get("master_replid")
            .cloned()
            .unwrap_or_default();
        let is_one = life.len() == LIFE_CHARS && life.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_one {
            true => Ok(life),
            false => Err(unfit("does not say its master_replid".to_owned())),
        }
    }
}

/// Where it stands who took the last range of a tag.
fn record_key(tag: &str) -> String {
    format!("keywright:record:{tag}")
}

fn now_ms() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}

fn ask_server(commands: &mut Pipeline) {
    commands.cmd("INFO").arg("server");
    commands.cmd("INFO").arg("replication");
    for pattern in SETTINGS_ASKED {
        commands.cmd("CONFIG").arg("GET").arg(pattern);
    }
}

/// The answers to [`ask_server`], which are the last ones.
fn split_server(answers: &mut Vec<Value>) -> Result<Vec<Value>, RedisError> {
    match answers.len().checked_sub(SERVER_ANSWERS) {
        Some(at) => Ok(answers.split_off(at)),
        None => Err(RedisError::Answer(format!("{} replies", answers.len()))),
    }
}

/// The lines of an answer to `INFO`.
fn of_info(answer: &Value) -> HashMap<String, String> {
    let told = text(answer).unwrap_or_default();
    let lines = told.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
        .collect()
}

/// Whether what is acknowledged is on the disk, and stays.
fn durable(config: &HashMap<String, Value>) -> Result<(), String> {
    for (name, wanted) in DURABLE {
        match config.get(name).and_then(text) {
            Some(value) if value == wanted => {}
            Some(value) => return Err(format!("has {name} {value}, and not {wanted}")),
            None => return Err(format!("does not say what its {name} is")),
        }
    }
    match SEVERAL_MASTERS
        .iter()
        .find(|name| config.contains_key(**name))
    {
        Some(name) => Err(format!(
            "has {name}: it may count in several places at once"
        )),
        None => Ok(()),
    }
}

/// What a record says; one that lacks something is damaged.
fn record_of(fields: HashMap<String, Value>) -> Result<Option<Record>, RedisError> {
    if fields.is_empty() {
        return Ok(None);
    }
    let word = |name: &str| fields.get(name).and_then(text);
    let bound = fields.get("bound").and_then(number);
    let bound = bound.and_then(|bound| u64::try_from(bound).ok());
    match (word("life"), bound, word("key_space")) {
        (Some(life), Some(bound), Some(key_space)) => Ok(Some(Record {
            life,
            bound,
            key_space,
        })),
        _ => Err(RedisError::Answer(
            "a record without life, bound or key_space".to_owned(),
        )),
    }
}
