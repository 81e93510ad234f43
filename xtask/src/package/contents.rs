//! What a package is made of, and putting it where it is packed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::run;

/// A file, where it goes in a package, and its mode.
pub(super) struct Staged {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) mode: u32,
}

/// What a package is made of.
pub(super) struct Contents {
    pub(super) name: String,
    pub(super) version: String,
    /// What it says of itself in Debian's words: section, dependencies, description.
    pub(super) control: String,
    pub(super) files: Vec<Staged>,
    /// Directories that are empty at first, and their modes.
    pub(super) directories: Vec<(PathBuf, u32)>,
    /// The folder of the scripts that run when it comes and goes.
    pub(super) scripts: PathBuf,
    /// Those of its files that an administrator changes.
    pub(super) conffiles: Vec<&'static str>,
    /// Programs and libraries, without debugging symbols, whose libraries it depends on.
    pub(super) binaries: Vec<PathBuf>,
}

impl Staged {
    /// One that everybody may read.
    pub(super) fn readable(from: PathBuf, to: PathBuf) -> Self {
        Self {
            from,
            to,
            mode: 0o644,
        }
    }
}

/// Pages of the tree that others link to.
const PAGES: [&str; 7] = [
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];
/// Folders of what pages link to.
const FOLDERS: [&str; 3] = ["docs", "contrib", "sql"];

/// The manual and what it names, as they lie in the tree, so that links lead somewhere.
pub(super) fn manual(root: &Path, doc: &Path) -> Result<Vec<Staged>> {
    let pages = PAGES.map(|page| Staged::readable(root.join(page), doc.join(page)));
    let mut files = Vec::from(pages);
    for folder in FOLDERS {
        for from in files_below(&root.join(folder))? {
            let to = doc.join(from.strip_prefix(root)?);
            files.push(Staged::readable(from, to));
        }
    }
    Ok(files)
}

/// All files of a folder and those in it, but for what an editor leaves beside them.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if is_left_over(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a name is one of an editor's own: of a backup, or hidden. A tree without git cannot be asked what belongs to it.
fn is_left_over(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~')
}

/// Where a file lies below the package's root.
pub(super) fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

pub(super) fn stage_files(contents: &Contents, stage: &Path) -> Result<()> {
    for (dir, mode) in &contents.directories {
        let dir = stage.join(relative(dir));
        fs::create_dir_all(&dir)?;
        set_mode(&dir, *mode)?;
    }
    for Staged { from, to, mode } in &contents.files {
        let to = stage.join(relative(to));
        let parent = to.parent().context("a file without a directory")?;
        fs::create_dir_all(parent)?;
        fs::copy(from, &to)
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        set_mode(&to, *mode)?;
    }
    for binary in &contents.binaries {
        let staged = stage.join(relative(binary));
        run(Command::new("strip").arg("--strip-unneeded").arg(staged))?;
    }
    Ok(())
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(path, mode).with_context(|| format!("the mode of {}", path.display()))
}

pub(super) fn empty(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_editor_leaves_is_not_packed() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        fs::create_dir_all(root.join("mysql"))?;
        fs::create_dir_all(root.join(".hidden"))?;
        for name in ["a.md", "a.md~", ".a.md.swp", "mysql/b.md", ".hidden/c.md"] {
            fs::write(root.join(name), name)?;
        }
        let packed = files_below(root)?;
        assert_eq!(packed, [root.join("a.md"), root.join("mysql/b.md")]);
        Ok(())
    }

    #[test]
    fn pages_lie_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for page in PAGES {
            assert!(root.join(page).is_file(), "{page}");
        }
    }
}
