//! Two stores: `main`, which is in a file, and `far`, which is on any engine.

use keywright_store::{Keys, RawSnowflakeSettings, RawStoreSettings, RawStores, StoreSettings};
use keywright_testkit::Result;

use crate::common::{Engine, Schema};

pub struct Two {
    pub main: Schema,
    pub far: Schema,
}

impl Two {
    pub fn new(engine: Engine, name: &str) -> Result<Two> {
        Ok(Two {
            main: Schema::of(Engine::File, name)?,
            far: Schema::of(engine, name)?,
        })
    }

    /// The tags of that pattern are in `far`.
    pub fn raw(&self, pattern: &str) -> [RawStoreSettings; 2] {
        [
            RawStoreSettings {
                name: "main".to_owned(),
                ..self.main.raw()
            },
            RawStoreSettings {
                name: "far".to_owned(),
                tags: vec![pattern.to_owned()],
                ..self.far.raw()
            },
        ]
    }

    pub fn open(&self, pattern: &str) -> Result<Keys> {
        open_all(self.raw(pattern).into())
    }

    pub async fn init(&self, pattern: &str) -> Result<Keys> {
        let keys = self.open(pattern)?;
        for store in keys.stores() {
            store.init().await?;
        }
        Ok(keys)
    }
}

/// What a program with these stores has.
pub fn open_all(raw: Vec<RawStoreSettings>) -> Result<Keys> {
    open_with(raw, &RawSnowflakeSettings::default())
}

pub fn open_with(raw: Vec<RawStoreSettings>, snowflake: &RawSnowflakeSettings) -> Result<Keys> {
    let settings = StoreSettings::of_all(&RawStores(raw), snowflake)?;
    Ok(Keys::open(settings)?)
}
