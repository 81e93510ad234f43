//! Parameters of a request: those behind the `?`, and those of a form in the body.

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use keywright_core::Cause;
use keywright_store::Failure;

/// What browsers and clients send forms as.
const FORM: &str = "application/x-www-form-urlencoded";

/// The parameters, in their order.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Of what stands behind the `?` and a form, which may be empty.
    pub(super) fn new(query: &str, form: &[u8]) -> Self {
        let of = |bytes| form_urlencoded::parse(bytes).into_owned();
        Self(of(query.as_bytes()).chain(of(form)).collect())
    }

    /// The first of this name.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().filter(|(its, _)| its == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// The only one there may be, of this name.
    ///
    /// # Errors
    /// There are others.
    pub(super) fn only(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.0.as_slice() {
            [] => Ok(None),
            [(its, value)] if its == name => Ok(Some(value)),
            all => {
                let mut names = all.iter().map(|(name, _)| name.as_str());
                let other = names.find(|its| *its != name).unwrap_or(name);
                let failure = Failure::new(
                    Cause::CommandRefused,
                    format!(
                        "parameter \"{}\" has no meaning here, or is there twice",
                        shown(other)
                    ),
                );
                Err(failure.hint(format!("the only parameter is {name}, once")))
            }
        }
    }
}

/// What a client sent, in an error that says so.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

/// Whether the body is a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM))
}

#[cfg(test)]
mod tests {
    use super::Parameters;

    #[test]
    fn parameters_are_read_from_both_places() {
        let both = Parameters::new("bizType=a%2Fb&x", b"token=p+q&bizType=c");
        assert_eq!(both.first("bizType"), Some("a/b"));
        assert_eq!(both.first("token"), Some("p q"));
        assert_eq!(both.first("x"), Some(""));
        assert_eq!(both.first("none"), None);
    }

    #[test]
    fn others_than_the_only_one_are_refused() {
        let only = |query| {
            Parameters::new(query, b"")
                .only("count")
                .map(|it| it.map(str::to_owned))
        };
        assert_eq!(only("").ok().flatten(), None);
        assert_eq!(only("count=5").ok().flatten().as_deref(), Some("5"));
        for query in ["cuont=5", "count=5&count=5", "count=5&x=1", "x=1&count=5"] {
            assert!(only(query).is_err(), "{query}");
        }
    }
}
