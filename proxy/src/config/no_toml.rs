//! Why a text is no configuration, in words that say what to type.

use keywright_core::nearest;

/// What is wrong, and where. The parser's own rendering shows the line too, and there may be a password in it.
pub(super) fn error(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let message = error.message();
    if message == "missing field `store`" {
        return anyhow::anyhow!("there is no [store]: it says where keys are reserved");
    }
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    let option = before.and_then(|before| option(before, message));
    let hint = meant(message)
        .or_else(|| quotes(message))
        .or_else(|| stores(message, text.lines().nth(line.saturating_sub(1))?));
    anyhow::anyhow!(
        "line {line}{}: {message}{}",
        option.map_or_else(String::new, |name| format!(", {name}")),
        hint.unwrap_or_default()
    )
}

/// The option that has a value of another type than it should. Nothing but a plain name is taken from the line.
fn option<'a>(before: &'a str, message: &str) -> Option<&'a str> {
    if !message.starts_with("invalid type") {
        return None;
    }
    let line = before.rsplit('\n').next()?;
    let name = line.split_once('=')?.0.trim();
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    (!name.is_empty() && name.chars().all(is_part)).then_some(name)
}

/// What was probably meant by a name that the file has and no section. The message quotes that name, then those that there are.
fn meant(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (wanted, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2);
    let near = nearest::nearest(wanted, known).into_iter().next()?;
    Some(format!(". Did you mean \"{near}\"?"))
}

/// Whether one store is written as one, and another as one of several.
fn stores(message: &str, line: &str) -> Option<String> {
    let is_store = ["[store]", "[[store]]"].contains(&line.trim());
    (message == "duplicate key" && is_store)
        .then(|| ". Several stores are written as [[store]], each of them".to_owned())
}

/// Whether quotes are missing, or too many.
fn quotes(message: &str) -> Option<String> {
    const NUMBERS: [&str; 4] = ["u16", "u32", "u64", "usize"];
    let is_number = |rest: &str| NUMBERS.iter().any(|number| rest.ends_with(number));
    // A word without quotes is read as a number, of which there are some that are words.
    if message.starts_with("invalid float") || message.starts_with("string values must be quoted") {
        return Some(". Text stands in quotes: column = \"id\"".to_owned());
    }
    if message.starts_with("invalid type: ") && message.ends_with(", expected a string") {
        return Some(". Text stands in quotes".to_owned());
    }
    let rest = message.strip_prefix("invalid type: string ")?;
    is_number(rest).then(|| ". A number stands without quotes".to_owned())
}
