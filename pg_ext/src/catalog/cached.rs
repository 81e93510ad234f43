//! What this session looked up in tables: the extension, the layout and the time zone.

use keywright_core::layout::Layout;
use keywright_core::zone::Zone;

use crate::catalog::extension::{self, Extension};
use crate::catalog::node;
use crate::catalog::stamped::{self, Stamped};
use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::changes;

static EXTENSION: BackendCell<Option<Stamped<Extension>>> = BackendCell::new(None);
static LAYOUT: BackendCell<Option<Stamped<Layout>>> = BackendCell::new(None);
static ZONE: BackendCell<Option<Stamped<Zone>>> = BackendCell::new(None);

/// The extension of this database.
///
/// # Errors
/// When it is not installed, or installed in a version this library does not serve.
pub fn extension() -> Result<Extension, Failure> {
    stamped::remember(&EXTENSION, || {
        let extension = extension::installed()?;
        changes::watch(extension.tag_table);
        changes::watch(extension.node_table);
        Ok(extension)
    })
}

/// The layout that this database's ids are decoded with.
///
/// # Errors
/// The extension's tables cannot be read.
pub fn layout() -> Result<Layout, Failure> {
    stamped::remember(&LAYOUT, || node::layout_of(&extension()?))
}

/// The time zone that this database's readable ids are decoded with.
///
/// # Errors
/// The extension's tables cannot be read.
pub fn zone() -> Result<Zone, Failure> {
    stamped::remember(&ZONE, || Ok(node::read(&extension()?)?.zone))
}

/// Forgets what was looked up.
pub fn forget() {
    EXTENSION.set(None);
    LAYOUT.set(None);
    ZONE.set(None);
}
