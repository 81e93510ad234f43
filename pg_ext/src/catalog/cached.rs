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
        loop {
            let extension = extension::installed()?;
            let tables = [extension.tag_table, extension.node_table];
            // Else the object id may be that of an extension which was dropped meanwhile, and the tables those of the one that was made after it.
            if !tables.map(changes::watch).contains(&true) {
                break Ok(extension);
            }
        }
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
