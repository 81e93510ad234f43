//! Which machine and process this is, for people.

/// For people who read the table.
pub(crate) fn holder() -> String {
    let text = format!("{} pid {}", host(), std::process::id());
    text.chars().take(255).collect()
}

/// The name of this machine.
pub fn host() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "?".to_owned())
}
