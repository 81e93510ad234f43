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

/// Files of the tree that pages link to.
const NAMED: [&str; 10] = [
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "proxy/keywright.toml",
    "core/src/hiding.rs",
    "core/tests/unit/hidden_keys.rs",
];
/// Folders of what pages link to.
const FOLDERS: [&str; 3] = ["docs", "contrib", "sql"];

/// The manual and what it names, as they lie in the tree, so that links lead somewhere.
pub(super) fn manual(root: &Path, doc: &Path) -> Result<Vec<Staged>> {
    let named = NAMED.map(|name| Staged::readable(root.join(name), doc.join(name)));
    let mut files = Vec::from(named);
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

    /// The targets of a page's links, without those of other sites and within the page.
    fn links(text: &str) -> Vec<&str> {
        let mut is_code = false;
        let mut found = Vec::new();
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code {
                continue;
            }
            let targets = line.split("](").skip(1);
            let targets = targets.filter_map(|rest| rest.split(')').next());
            let files = targets.filter_map(|target| target.split('#').next());
            found.extend(files.filter(|file| !file.is_empty() && !file.contains(':')));
        }
        found
    }

    /// Where a link of a page leads.
    fn led_to(page: &Path, link: &str) -> PathBuf {
        let mut path = page.parent().unwrap().to_path_buf();
        for part in link.split('/') {
            match part {
                ".." => {
                    path.pop();
                }
                name => path.push(name),
            }
        }
        path
    }

    #[test]
    fn links_of_the_manual_lead_to_what_is_packed() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = manual(&root, Path::new("/doc"))?;
        let is_packed = |path: &Path| files.iter().any(|file| file.to.starts_with(path));
        let (mut followed, mut dead) = (0, Vec::new());
        for file in &files {
            assert!(file.from.is_file(), "{}", file.from.display());
            if file
                .from
                .extension()
                .is_none_or(|extension| extension != "md")
            {
                continue;
            }
            for link in links(&fs::read_to_string(&file.from)?) {
                followed += 1;
                let path = led_to(&file.to, link);
                if !is_packed(&path) {
                    dead.push(format!("{}: {link}", file.to.display()));
                }
            }
        }
        assert!(followed > 100, "only {followed} links");
        assert!(dead.is_empty(), "{dead:#?}");
        Ok(())
    }
}
