//! Assertions about texts.

/// Asserts that a text has all these parts.
///
/// # Panics
/// It lacks one.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}
