//! Ranges out of a key port of another program.

use redis::{Value, cmd, pipe};

use super::error::RedisError;
use super::link::{RedisLink, map, number, text, unlike};

/// What a key port says of the state of a name that gives keys.
pub const GIVES_KEYS: &str = "gives keys";

/// What a key port says of a name, by `KEYWRIGHT ABOUT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Where its keys come from there: `segment:orders`.
    pub(crate) key: String,
    /// Whether it gives keys now, in words; `None`: a program of an earlier version, which does not say.
    pub(crate) state: Option<String>,
    /// In which order they are given; `None`: not known there yet.
    pub(crate) order: Option<String>,
    /// Which of all tags of its name the tag is; `None`: not known there yet, and empty where the store there does not tell.
    pub(crate) key_space: Option<String>,
    /// How wide its keys are, where they hide how many there are.
    pub(crate) hide_bits: Option<String>,
    /// Numbers of one range at most.
    pub(crate) run_max: u64,
}

impl RedisLink {
    /// What the key port says of a name.
    pub(crate) async fn about(&mut self, name: &str) -> Result<About, RedisError> {
        let asked = self.ask(cmd("KEYWRIGHT").arg("ABOUT").arg(name)).await?;
        about(asked)
    }

    /// Takes so many consecutive numbers; the last of them, and what the key port says of the name behind that.
    pub(crate) async fn increase(
        &mut self,
        name: &str,
        count: u64,
    ) -> Result<(i64, About), RedisError> {
        let mut commands = pipe();
        commands.cmd("INCRBY").arg(name).arg(count);
        commands.cmd("KEYWRIGHT").arg("ABOUT").arg(name);
        let answers = self.ask_all(&mut commands).await?;
        let [last, behind] = <[Value; 2]>::try_from(answers).map_err(|answers| {
            RedisError::Answer(format!("{} replies to two requests", answers.len()))
        })?;
        let Value::Int(last) = last else {
            return Err(unlike(&last));
        };
        Ok((last, about(behind)?))
    }
}

fn about(answer: Value) -> Result<About, RedisError> {
    let said = map(answer)?;
    let missing = |what: &str| RedisError::Answer(format!("no {what} to KEYWRIGHT ABOUT"));
    let word = |key: &str| said.get(key).and_then(text);
    let run_max = said.get("run_max").and_then(number);
    let run_max = run_max.and_then(|most| u64::try_from(most).ok());
    Ok(About {
        key: word("key").ok_or_else(|| missing("key"))?,
        state: word("state"),
        order: word("order"),
        key_space: word("key_space"),
        hide_bits: word("hide_bits"),
        run_max: run_max.ok_or_else(|| missing("run_max"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    /// Programs of other versions say more, or less.
    #[test]
    fn a_state_is_read_where_one_is_told() {
        let known = [("key", "segment:orders"), ("run_max", "50")];
        let read = |more: &[(&str, &str)]| {
            let told = known.iter().chain(more);
            let told = told.flat_map(|(key, value)| [bulk(key), bulk(value)]);
            about(Value::Array(told.collect())).unwrap()
        };
        assert_eq!(read(&[]).state, None);
        let state = read(&[("state", GIVES_KEYS), ("weather", "fine")]).state;
        assert_eq!(state.as_deref(), Some(GIVES_KEYS));
    }
}
