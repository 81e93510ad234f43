//! `postgresql-NN-keywright`: the library, what `CREATE EXTENSION` reads, and the manual.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::contents::{Contents, Staged, manual};
use crate::install::Server;
use crate::tree::Tree;

pub(super) fn contents(tree: &Tree, server: &Server) -> Result<Contents> {
    let version = server.version;
    let name = format!("postgresql-{version}-keywright");
    let root = &tree.root;
    let doc = PathBuf::from("/usr/share/doc").join(&name);
    let library = server.pkglibdir.join("keywright.so");
    let file = Staged::readable;
    let mut files = vec![file(
        server.extension.library().to_path_buf(),
        library.clone(),
    )];
    files.extend(manual(root, &doc)?);
    for sql in server.extension.sql() {
        let name = sql.file_name().context("a file without a name")?;
        let to = server.sharedir.join("extension").join(name);
        files.push(file(sql.clone(), to));
    }
    let control = format!(
        "Section: database\nDepends: postgresql-{version}, ${{shlibs}}\n\
         Description: globally unique, time-ordered 64-bit keys for PostgreSQL {version}\n \
         snowflake_id() and next_biz_id('tag') for column defaults: no id is ever issued\n \
         twice, whatever crashes and whatever the clock does.\n"
    );
    Ok(Contents {
        name,
        version: tree.version.clone(),
        control,
        files,
        directories: Vec::new(),
        scripts: root.join("packaging/postgresql-keywright"),
        conffiles: Vec::new(),
        binaries: vec![library],
    })
}
