//! Settings of the file of kept ranges.

use super::problems::Problems;
use super::raw::RawStoreSettings;
use super::redis;
use crate::dialect::Dialect;
use crate::kept::keeper::KeptSettings;

pub(super) fn settings(
    store: &RawStoreSettings,
    dialect: Dialect,
    problems: &mut Problems,
) -> Option<KeptSettings> {
    const SETTING: &str = "store.kept_ranges_file";
    let path = store.kept_ranges_file.as_ref()?;
    if redis::is_one(&store.url) {
        problems.add(
            SETTING,
            "needs a store that keeps tags: redis:// gives ranges only",
        );
    } else if !dialect.is_own() {
        let problem = "is for tags of dialect = \"keywright\": other tables know no key spaces and no generations";
        problems.add(SETTING, problem);
    }
    if !path.is_absolute() || path.file_name().is_none() {
        problems.add(SETTING, "is not an absolute path of a file");
    }
    if store
        .url
        .strip_prefix(super::file::SCHEME)
        .is_some_and(|of| of.strip_prefix("//").unwrap_or(of) == path.as_os_str())
    {
        problems.add(SETTING, "is the file of the store");
    }
    Some(KeptSettings {
        path: path.clone(),
        any_file_system: store.any_file_system,
    })
}
