//! Why a text is no TOML, in words that say what to type.

/// What is wrong, and where. The parser's own rendering shows the line too, and there may be a password in it.
pub(super) fn error(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let message = error.message();
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    let hint = quotes(message)
        .or_else(|| stores(message, text.lines().nth(line.saturating_sub(1))?))
        .unwrap_or_default();
    anyhow::anyhow!("line {line}: {message}{hint}")
}

/// Whether one store is written as one, and another as one of several.
fn stores(message: &str, line: &str) -> Option<&'static str> {
    let is_store = ["[store]", "[[store]]"].contains(&line.trim());
    (message == "duplicate key" && is_store)
        .then_some(". Several stores are written as [[store]], each of them")
}

/// Whether quotes are missing. A word without them is read as a number, of which there are some that are words.
fn quotes(message: &str) -> Option<&'static str> {
    let is_word =
        message.starts_with("invalid float") || message.starts_with("string values must be quoted");
    is_word.then_some(". Text stands in quotes: column = \"id\"")
}
