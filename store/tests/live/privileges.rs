//! What the store's account may do, as `check` tells it.

use keywright_store::{OWN_TABLES, RawStoreSettings, Severity};
use keywright_testkit::{Flavour, Result};

use crate::common::{Schema, open, runtime, small_steps, tag};

const ALL: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/// Whatever of the four an account lacks, on one table or on all, is said before anybody waits for keys.
#[test]
fn what_the_account_lacks_is_told() -> Result<()> {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let schema = Schema::on(flavour, "kw_privileges")?;
        let as_user = |name: &str| {
            let raw = schema.raw();
            let url = raw.url.replace("root@", &format!("{name}:p@"));
            RawStoreSettings { url, ..raw }
        };
        runtime()?.block_on(async {
            let owner = open(&schema.raw())?;
            owner.init().await?;
            owner.create_tag(&tag("a"), &small_steps(100)).await?;
            schema.sql("CREATE USER kw_may@'%' IDENTIFIED BY 'p'")?;
            schema.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON kw_privileges.* TO kw_may@'%'")?;
            let told = open(&as_user("kw_may"))?.check(&[tag("a")]).await;
            let is_error = |severity| severity == Severity::Error;
            assert!(!told.iter().any(|told| is_error(told.severity)), "{told:?}");

            for (at, lacking) in ALL.iter().enumerate() {
                let user = format!("kw_lacks_{at}");
                schema.sql(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'p'"))?;
                for table in OWN_TABLES {
                    let granted = ALL.iter().filter(|privilege| *privilege != lacking);
                    let granted: Vec<&str> = granted.copied().collect();
                    let granted = granted.join(", ");
                    schema.sql(&format!("GRANT {granted} ON {table} TO {user}@'%'"))?;
                }
                let last = OWN_TABLES.last().copied().unwrap_or_default();
                let (first, all) = (OWN_TABLES[0], OWN_TABLES.join(", "));
                let keys = open(&as_user(&user))?;
                let told = keys.check(&[]).await;
                let lacks = |on: &str| {
                    let expected = format!("lacks {lacking} on {on}: GRANT");
                    let mut errors = told.iter().filter(|told| is_error(told.severity));
                    errors.any(|told| told.message.contains(&expected))
                };
                assert!(lacks(&all), "{lacking}: {told:?}");
                for table in OWN_TABLES.iter().filter(|table| **table != last) {
                    schema.sql(&format!("GRANT {lacking} ON {table} TO {user}@'%'"))?;
                }
                let told = keys.check(&[]).await;
                let errors: Vec<_> = told.iter().filter(|told| is_error(told.severity)).collect();
                let [one] = errors.as_slice() else {
                    panic!("{lacking}: {errors:?}");
                };
                let expected = format!("lacks {lacking} on {last}: GRANT");
                assert!(one.message.contains(&expected), "{one:?}");
                assert!(!one.message.contains(first), "{one:?}");
            }
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
