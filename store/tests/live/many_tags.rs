//! Configurations with many tags.

use keywright_core::Tag;
use keywright_store::{Keys, Severity};
use keywright_testkit::{Result, Upstream};

use crate::common::{open, own_server, raw, runtime, small_steps, tag};

/// Statements that the server has carried out, of everybody.
fn statements(server: &Upstream) -> Result<u64> {
    let rows = server.run("", "SHOW GLOBAL STATUS LIKE 'Questions'")?;
    Ok(rows[0][1].parse()?)
}

/// How many of them a look at tags takes, in which nothing is found.
async fn statements_of_check(server: &Upstream, keys: &Keys, tags: &[Tag]) -> Result<u64> {
    let before = statements(server)?;
    let findings = keys.check(tags).await;
    let mut errors = findings.iter();
    assert!(
        errors.all(|finding| finding.severity != Severity::Error),
        "{findings:?}"
    );
    Ok(statements(server)? - before)
}

/// A program looks at them before it listens, and so does who checks its configuration.
#[test]
fn a_look_at_many_tags_takes_no_more_statements_than_one_at_few() -> Result<()> {
    const TAGS: usize = 60;
    let server = own_server()?;
    runtime()?.block_on(async {
        let keys = open(&raw(server.port(), "keywright"))?;
        keys.init().await?;
        let names = (0..TAGS).map(|number| tag(&format!("t{number}")));
        let tags: Vec<Tag> = names.collect();
        for tag in &tags {
            keys.create_tag(tag, &small_steps(100)).await?;
        }
        // Not the first, which connects.
        statements_of_check(&server, &keys, &tags).await?;
        let few = statements_of_check(&server, &keys, &tags[..1]).await?;
        let many = statements_of_check(&server, &keys, &tags).await?;
        // Fewer than one for each tag, beside those of whoever looks now and then.
        assert!(many < few + 30, "{few} {many}");
        // All of them were looked at.
        server.run(
            "keywright",
            "UPDATE keywright_segment SET heir = 'store elsewhere' WHERE tag = 't59'",
        )?;
        let told = keys.not_at_home(&tags).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0]
                .to_string()
                .contains("tag \"t59\" is closed here: its ids come from another store"),
            "{told:?}"
        );
        Ok(())
    })
}
