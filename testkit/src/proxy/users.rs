//! Users of key ports, made as people make them.

use std::fs;

use crate::machine::scratch::Scratch;
use crate::{Account, ProxyConfig, ProxyProcess, Result};

impl ProxyProcess {
    /// Adds a user to a store, with rights and the pattern of names that each is for.
    ///
    /// # Errors
    /// The program refuses.
    pub fn add_user(
        config: &ProxyConfig,
        name: &str,
        password: &str,
        grants: &[(&str, &str)],
    ) -> Result<()> {
        let scratch = Scratch::new("user", Account::Ourselves)?;
        let file = scratch.path().join("password");
        fs::write(&file, format!("{password}\n"))?;
        let file = file.display().to_string();
        let mut add = vec!["user", "add", name, "--password-file", &file];
        let mut grants = grants.iter();
        if let Some((rights, pattern)) = grants.next() {
            add.extend(["--rights", rights, "--on", pattern]);
        }
        Self::said(config, &add)?;
        for (rights, pattern) in grants {
            let grant = ["user", "grant", name, "--rights", rights, "--on", pattern];
            Self::said(config, &grant)?;
        }
        Ok(())
    }
}
