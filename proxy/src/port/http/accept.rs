//! What a client wants to read: the header `Accept`.

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For programs.
    Json,
    /// Lines.
    Text,
}

/// What a client likes best; JSON where it does not care.
pub(super) fn format(headers: &HeaderMap) -> Format {
    let liked = |kind| liked(headers, kind);
    match liked("text/plain") > liked("application/json") {
        true => Format::Text,
        false => Format::Json,
    }
}

/// The kind of these that a client likes best; the first where it does not care.
pub(super) fn best_of(headers: &HeaderMap, kinds: &[&'static str]) -> Option<&'static str> {
    let mut best: Option<(&'static str, u16)> = None;
    for kind in kinds {
        let liked = liked(headers, kind);
        if best.is_none_or(|(_, most)| liked > most) {
            best = Some((kind, liked));
        }
    }
    best.map(|(kind, _)| kind)
}

/// How much it likes one kind, in thousandths: what the range says that fits best.
fn liked(headers: &HeaderMap, kind: &str) -> u16 {
    let mut best = (0_u8, None);
    let values = headers.get_all(ACCEPT).into_iter();
    for range in values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|all| all.split(','))
    {
        let mut parts = range.split(';').map(str::trim);
        let fits = fits(parts.next().unwrap_or_default(), kind);
        if fits > best.0 {
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            best = (fits, Some(quality.map_or(1_000, thousandths)));
        }
    }
    let is_asked = headers.contains_key(ACCEPT);
    best.1.unwrap_or(if is_asked { 0 } else { 1_000 })
}

/// How closely a range describes a kind; 0: not.
fn fits(range: &str, kind: &str) -> u8 {
    let main = kind.split('/').next().unwrap_or_default();
    match range.split_once('/') {
        Some(_) if range.eq_ignore_ascii_case(kind) => 3,
        Some((of, "*")) if of.eq_ignore_ascii_case(main) => 2,
        Some(("*", "*")) => 1,
        Some(_) | None => 0,
    }
}

/// `0.5` is 500. What is no such number counts as 1.
fn thousandths(quality: &str) -> u16 {
    let (whole, rest) = quality.split_once('.').unwrap_or((quality, ""));
    let digits: String = rest.chars().chain("000".chars()).take(3).collect();
    match (whole, digits.parse::<u16>()) {
        ("0", Ok(thousandths)) => thousandths,
        (_, _) => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;
    use hyper::header::{ACCEPT, HeaderValue};

    use super::{Format, best_of, format};

    fn headers(accept: &[&'static str]) -> HeaderMap {
        let values = accept.iter().map(|value| HeaderValue::from_static(value));
        values.map(|value| (ACCEPT, value)).collect()
    }

    #[test]
    fn what_is_liked_best_is_written() {
        for (accept, expected) in [
            (&[] as &[&str], Format::Json),
            (&["*/*"], Format::Json),
            (&["text/plain"], Format::Text),
            (&["TEXT/PLAIN; q=0.9, application/json;q=0.5"], Format::Text),
            (&["text/plain;q=0.5", "application/json"], Format::Json),
            (&["text/*, */*;q=0.1"], Format::Text),
            (&["application/json, text/plain, */*"], Format::Json),
            (&["text/html"], Format::Json),
            (&["text/plain;q=0"], Format::Json),
            (&["text/plain;q=0.001, */*;q=0"], Format::Text),
            (&[";;,,/;q=,text"], Format::Json),
        ] {
            assert_eq!(format(&headers(accept)), expected, "{accept:?}");
        }
        let kinds = ["text/plain", "text/html"];
        assert_eq!(
            best_of(&headers(&["text/html,*/*;q=0.8"]), &kinds),
            Some("text/html")
        );
        assert_eq!(best_of(&headers(&[]), &kinds), Some("text/plain"));
    }

    #[test]
    fn whatever_a_header_says_is_read() {
        const PARTS: [&str; 12] = [
            "text/plain",
            "application/json",
            "*/*",
            "text/*",
            "/",
            "*",
            ";",
            ",",
            "q=",
            "0.",
            "1.0000000",
            " ",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let parts = (0..random.usize(..12)).map(|_| PARTS[random.usize(..PARTS.len())]);
            let text: String = parts.collect();
            let value = HeaderValue::from_str(&text).unwrap();
            let both: HeaderMap = [(ACCEPT, value.clone()), (ACCEPT, value)]
                .into_iter()
                .collect();
            let kind = best_of(&both, &["text/plain", "text/html"]);
            assert!(kind.is_some(), "{text}");
            // Said twice it says nothing else.
            let one: HeaderMap = both
                .iter()
                .take(1)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            assert_eq!(format(&both), format(&one), "{text}");
        }
    }
}
