//! Random commands on a key port and on a server of Redis: where both know them, they answer the same.

use keywright_testkit::Result;
use keywright_testkit::redis::{RedisServer, RedisTools, RespClient, RespValue};

use super::Port;

const REQUESTS: usize = 20_000;
const SEEDS: u64 = 4;

#[test]
fn what_redis_answers_is_answered_the_same() -> Result<()> {
    let tools = RedisTools::get()?;
    for seed in 0..SEEDS {
        let port = Port::start("")?;
        let redis = RedisServer::start(&tools, &[])?;
        let mut both = [port.client()?, RespClient::connect(redis.port())?];
        let mut random = fastrand::Rng::with_seed(seed);
        let mut done = 0;
        while done < REQUESTS {
            let requests: Vec<Vec<String>> = (0..random.usize(1..40))
                .map(|_| request(&mut random))
                .collect();
            let bytes: Vec<u8> = requests
                .iter()
                .flat_map(|request| written(request, &mut random))
                .collect();
            for client in &mut both {
                client.send(&bytes)?;
            }
            for request in &requests {
                let [ours, theirs] = &mut both;
                let (ours, theirs) = (ours.read()?, theirs.read()?);
                let (ours, theirs) = (comparable(ours), comparable(theirs));
                assert_eq!(ours, theirs, "seed {seed}: {request:?}");
            }
            done += requests.len();
        }
    }
    Ok(())
}

fn request(random: &mut fastrand::Rng) -> Vec<String> {
    let name = |random: &mut fastrand::Rng| {
        random
            .choice(["orders", "flakes"])
            .map_or("orders", |name| name)
    };
    let word = |random: &mut fastrand::Rng| {
        let bytes =
            (0..random.usize(..20)).map(|_| random.choice(*b"ab 0\r\n\"'\\$*").unwrap_or(b'x'));
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    };
    let number = |random: &mut fastrand::Rng| match random.u8(..12) {
        0 => "x".to_owned(),
        1 => "01".to_owned(),
        2 => "+1".to_owned(),
        3 => " 1".to_owned(),
        4 => "9223372036854775808".to_owned(),
        5 => String::new(),
        6 => "1.0".to_owned(),
        _ => random.i64(1..300).to_string(),
    };
    let parts: Vec<String> = match random.u8(..20) {
        0..=5 => vec!["INCR".into(), "orders".into()],
        6..=8 => vec!["INCRBY".into(), "orders".into(), number(random)],
        9 | 10 => vec!["GET".into(), "orders".into()],
        11 => {
            let names = (0..random.usize(..4)).map(|_| "orders".to_owned());
            std::iter::once("MGET".to_owned()).chain(names).collect()
        }
        12 => vec!["PING".into()],
        13 => vec!["PING".into(), word(random)],
        14 => vec!["ECHO".into(), word(random)],
        15 => vec![
            "SELECT".into(),
            random.choice(["0", "x", "99"]).unwrap_or("0").into(),
        ],
        16 => match random.u8(..4) {
            0 => vec!["CLIENT".into(), "SETNAME".into(), word(random)],
            1 => vec!["CLIENT".into(), "NOSUCH".into()],
            _ => vec!["CLIENT".into(), "GETNAME".into()],
        },
        17 => match random.u8(..6) {
            0 => vec!["RESET".into()],
            1 => vec![
                "HELLO".into(),
                random.choice(["2", "3", "4", "x"]).unwrap_or("2").into(),
            ],
            2 => vec!["ACL".into(), "WHOAMI".into()],
            3 => vec!["CLUSTER".into(), "SLOTS".into()],
            _ => vec!["COMMAND".into(), "INFO".into(), "nothing".into()],
        },
        18 => vec!["nosuch".into(), word(random)],
        _ => {
            let name = name(random).to_owned();
            match random.u8(..4) {
                0 => vec!["INCR".into()],
                1 => vec!["INCR".into(), name, "1".into()],
                2 => vec!["INCRBY".into(), name],
                _ => vec!["ECHO".into()],
            }
        }
    };
    let in_other_case = random.bool();
    let mut parts = parts;
    if in_other_case && let Some(command) = parts.first_mut() {
        *command = command.to_ascii_lowercase();
    }
    parts
}

/// As an array, or as a line where that can be.
fn written(request: &[String], random: &mut fastrand::Rng) -> Vec<u8> {
    let is_plain =
        |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if request.iter().all(is_plain) && random.u8(..4) == 0 {
        let end = if random.bool() { "\r\n" } else { "\n" };
        return format!(
            "{}{end}",
            request.join(if random.bool() { " " } else { "  " })
        )
        .into_bytes();
    }
    let words: Vec<&str> = request.iter().map(String::as_str).collect();
    RespClient::written(&words)
}

/// What may differ is taken out: what a server says of itself, and what an error says behind its first words.
fn comparable(reply: RespValue) -> RespValue {
    match reply {
        RespValue::Error(text) => {
            let is_same = |words: &&&str| text.contains(**words);
            let words = [
                "is not an integer or out of range",
                "ERR wrong number of arguments for",
                "ERR DB index is out of range",
                "NOPROTO unsupported protocol version",
            ];
            let known = words.iter().find(is_same).copied();
            let code = text.split(' ').next().unwrap_or_default();
            RespValue::Error(known.unwrap_or(code).to_owned())
        }
        // HELLO: of RESP2 and RESP3.
        RespValue::Map(_) => RespValue::Map(Vec::new()),
        RespValue::Array(all) if all.len() == 14 => RespValue::Array(Vec::new()),
        other => other,
    }
}
