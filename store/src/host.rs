//! Which machine and process this is, for people.

/// This process, for people who read the table.
pub fn holder() -> String {
    let text = format!("{} pid {}", host(), std::process::id());
    text.chars().take(255).collect()
}

/// The name of the machine that a holder is on.
pub(crate) fn host_of(holder: &str) -> Option<&str> {
    holder.rsplit_once(" pid ").map(|(host, _)| host)
}

/// The name of this machine.
pub fn host() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "?".to_owned())
}
