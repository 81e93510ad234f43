//! Tags begin and go on above the ids that their tables have.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire, assert_has,
    make_store, wait_until,
};

keywright_testkit::on_both_flavours!(
    tags_begin_above_what_tables_have,
    a_reload_goes_on_above_what_tables_have_that_come_to_a_tag,
    a_reload_that_cannot_see_what_tables_have_is_refused,
    a_start_gives_no_rest_among_the_ids_of_a_table_that_comes_to_a_tag,
    a_tag_that_went_back_keeps_no_other_from_being_made,
);

fn tags_begin_above_what_tables_have(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE had; CREATE DATABASE store_had; USE had;
         CREATE TABLE t_0 (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE t_1 LIKE t_0; CREATE TABLE bare LIKE t_0;
         INSERT INTO t_0 (id) VALUES (-5), (7); INSERT INTO t_1 (id) VALUES (41);
         CREATE TABLE apps (id BIGINT PRIMARY KEY, a INT); INSERT INTO apps VALUES (500, 1);
         CREATE TABLE loose (id BIGINT, a INT, INDEX (a, id)); INSERT INTO loose VALUES (600, 1)",
    )?;
    let store = format!("mysql://root@127.0.0.1:{}/store_had", server.port());
    let config = ProxyConfig::before(&server, &store)
        .rule("had.t_*", "segment:had")
        .rule("had.bare", "segment:none")
        .rule("had.apps", "segment:apps")
        .rule("had.loose", "segment:loose");
    let output = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &output,
        &[
            "created tag \"had\", above 41, the highest id in `had`.`t_1`\n",
            "created tag \"none\"\ncreated tag \"apps\", above 500, the highest id in `had`.`apps`\n",
            "created tag \"loose\"\nnote: whether tables have higher ids is not known of `had`.`loose`: no index begins with `id`\n",
        ],
    );
    let starts = "SELECT tag, hi FROM keywright_segment ORDER BY tag";
    assert_eq!(
        server.run("store_had", starts)?,
        [
            ["apps", "501"],
            ["had", "42"],
            ["loose", "1"],
            ["none", "1"]
        ]
    );
    let output = ProxyProcess::said(&config, &["check"])?;
    assert!(!output.contains("a second time"), "{output}");
    // Native ids are none that are given again: the switch begins above them.
    let proxy = ProxyProcess::start(config.clone())?;
    drop(proxy);
    server.run("had", "INSERT INTO t_0 (id) VALUES (900000)")?;
    let output = ProxyProcess::said(&config, &["check"])?;
    assert_has(
        &output,
        &[
            "tag \"had\" is at ",
            "and `had`.`t_0` has ids up to 900000: those between may be given a second time",
        ],
    );
    // A program that starts goes on above them; not above one that would take it most of what is left, nor above what the application brings.
    server.run(
        "had",
        "INSERT INTO bare (id) VALUES (5000000000000000000); INSERT INTO apps VALUES (700000, 1)",
    )?;
    let mut careful = config.clone();
    for place in [0, 1] {
        careful.rules[place].push_str("on_explicit = \"refuse\"\n");
    }
    let proxy = ProxyProcess::start(careful)?;
    assert_has(
        &proxy.log(),
        &[
            "`had`.`t_0` has ids up to 900000: it goes on above them",
            "`had`.`bare` has ids up to 5000000000000000000: those between may be given a second time",
            "`had`.`apps` has ids up to 700000: those between may be given a second time",
        ],
    );
    let mut wire = proxy.wire("had")?;
    let id = |wire: &mut Wire, insert: &str| match wire.query(insert)?.as_slice() {
        [Reply::Done(done)] => Ok(done.last_insert_id),
        other => anyhow::bail!("{other:?}"),
    };
    assert!(id(&mut wire, "INSERT INTO t_0 VALUES ()")? > 900_000);
    assert!(id(&mut wire, "INSERT INTO bare VALUES ()")? < 10_000);
    drop(proxy);
    server.run("had", "DELETE FROM bare")?;
    let mut blind = config;
    blind.rules[1] = blind.rules[1].replace("segment:none", "segment:blind");
    blind.more =
        "[[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:1\"\ncheck = \"warn\""
            .to_owned();
    let output = ProxyProcess::said(&blind, &["init"])?;
    assert_has(
        &output,
        &[
            "created tag \"blind\"\nnote: whether tables have higher ids is not known of 127.0.0.1:2: there is no admin url",
        ],
    );
    let output = ProxyProcess::said(&blind, &["check"])?;
    assert_has(
        &output,
        &["ids that a tag is still to give is not known of 127.0.0.1:2: there is no admin url"],
    );
    Ok(())
}

/// Odd numbers of a tag, which the switch does not follow.
fn with_odd(config: ProxyConfig, table: &str) -> ProxyConfig {
    let mut config = config.rule(table, "stride:t");
    if let Some(rule) = config.rules.last_mut() {
        rule.push_str("offset = 1\nincrement = 2\n");
    }
    config
}

/// A program that gives odd numbers of a tag to the table `here` of a database, which has these tables besides; and its configuration.
fn giving_odd(
    server: &Upstream,
    database: &str,
    tables: &str,
) -> Result<(ProxyProcess, ProxyConfig)> {
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE {database}; USE {database};
             CREATE TABLE here (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
             {tables}"
        ),
    )?;
    let store = make_store(server, &format!("store_{database}"), &[("t", 1)])?;
    let config = with_odd(
        ProxyConfig::before(server, &store),
        &format!("{database}.here"),
    );
    Ok((ProxyProcess::start(config.clone())?, config))
}

/// Has a program go by another configuration; which of both lines its log says then.
fn reloaded(proxy: &mut ProxyProcess, config: &ProxyConfig) -> Result<bool> {
    const OUTCOMES: [&str; 2] = [
        "connections follow the rules as they are now",
        "reload failed, keeping the previous configuration",
    ];
    let counts = |proxy: &ProxyProcess| {
        let log = proxy.log();
        OUTCOMES.map(|line| log.matches(line).count())
    };
    let before = counts(proxy);
    proxy.reload(config.clone())?;
    wait_until("the reload", WAIT_MAX, || Ok(counts(proxy) != before))?;
    Ok(counts(proxy)[0] > before[0])
}

/// What the program has reserved lies among the ids of such a table, whether the tag is raised before or not.
fn a_reload_goes_on_above_what_tables_have_that_come_to_a_tag(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let (mut proxy, mut config) = giving_odd(
        &server,
        "come",
        "CREATE TABLE gone LIKE here; CREATE TABLE above LIKE here; CREATE TABLE among LIKE here;
         CREATE TABLE far LIKE here;
         INSERT INTO gone (id) VALUES (40); DELETE FROM gone; INSERT INTO above (id) VALUES (70000);
         INSERT INTO far (id) VALUES (8000000000000000000)",
    )?;
    let insert = |proxy: &ProxyProcess, table: &str| -> Result<u64> {
        let sql = format!("INSERT INTO {table} (a) VALUES (1)");
        Ok(proxy.wire("come")?.run(sql)?.last_insert_id)
    };
    assert_eq!(insert(&proxy, "here")?, 1);
    let mut comes = |proxy: &mut ProxyProcess, table: &str, highest: u64| -> Result<()> {
        config = with_odd(config.clone(), &format!("come.{table}"));
        assert!(reloaded(proxy, &config)?, "{}", proxy.log());
        let id = insert(proxy, table)?;
        assert!(id > highest, "{id} may have been a row's of {table}");
        assert_eq!(id % 2, 1);
        assert!(insert(proxy, "here")? > id);
        Ok(())
    };
    // The row with the highest id is gone.
    comes(&mut proxy, "gone", 40)?;
    comes(&mut proxy, "above", 70_000)?;
    let bound = "SELECT hi FROM keywright_segment WHERE tag = 't'";
    let bound: u64 = server.run("store_come", bound)?.concat().concat().parse()?;
    server.run(
        "come",
        &format!("INSERT INTO among (id) VALUES ({})", bound - 1),
    )?;
    comes(&mut proxy, "among", bound - 1)?;
    let before = insert(&proxy, "here")?;
    assert!(!reloaded(&mut proxy, &with_odd(config, "come.far"))?);
    assert_has(
        &proxy.log(),
        &[
            "`come`.`far` has ids up to 8000000000000000000: to go on above them would use up most of its ids",
        ],
    );
    assert!((before..before + 5_000).contains(&insert(&proxy, "here")?));
    Ok(())
}

fn a_reload_that_cannot_see_what_tables_have_is_refused(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let (mut proxy, config) = giving_odd(
        &server,
        "unseen",
        "CREATE TABLE loose (id BIGINT, a INT, INDEX (a, id)); INSERT INTO loose VALUES (600, 1)",
    )?;
    assert!(!reloaded(&mut proxy, &with_odd(config, "unseen.loose"))?);
    assert_has(
        &proxy.log(),
        &["is not known of `unseen`.`loose`: no index begins with `id`"],
    );
    let mut wire = proxy.wire("unseen")?;
    wire.run("INSERT INTO loose (a) VALUES (2)")?;
    let given = wire.rows("SELECT COUNT(id) FROM loose")?;
    assert_eq!(
        given,
        [["1"]],
        "a rule that did not come into force gave a key"
    );
    let done = wire.run("INSERT INTO here (a) VALUES (1)")?;
    assert_eq!(done.last_insert_id, 1);
    Ok(())
}

/// The tag is above these ids, and what was handed back of it is below.
fn a_start_gives_no_rest_among_the_ids_of_a_table_that_comes_to_a_tag(
    flavour: Flavour,
) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE starts; USE starts;
         CREATE TABLE here (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT); CREATE TABLE late LIKE here",
    )?;
    let store = make_store(&server, "store_starts", &[("t", 1)])?;
    let config = with_odd(ProxyConfig::before(&server, &store), "starts.here");
    let mut proxy = ProxyProcess::start(config.clone())?;
    let insert = |proxy: &ProxyProcess, table: &str| -> Result<u64> {
        let sql = format!("INSERT INTO {table} (a) VALUES (1)");
        Ok(proxy.wire("starts")?.run(sql)?.last_insert_id)
    };
    assert_eq!(insert(&proxy, "here")?, 1);
    proxy.stop()?;
    // Without such a table it is used.
    proxy.restart()?;
    assert_eq!(insert(&proxy, "here")?, 3);
    proxy.stop()?;
    let end = "SELECT MAX(end_id) FROM keywright_returned WHERE tag = 't'";
    let end: u64 = server.run("store_starts", end)?.concat().concat().parse()?;
    assert!(end > 10, "{end}");
    server.run(
        "starts",
        &format!("INSERT INTO late (id) VALUES ({})", end - 2),
    )?;
    proxy.reconfigure(with_odd(config, "starts.late"));
    proxy.restart()?;
    let id = insert(&proxy, "late")?;
    assert!(id > end - 2, "{id} may have been a row's of late");
    assert!(insert(&proxy, "here")? > id);
    // It has its fence, and is new no more: what is handed back now is used.
    proxy.stop()?;
    proxy.restart()?;
    assert_eq!(insert(&proxy, "late")?, id + 4);
    Ok(())
}

/// All of them are told at once, each with its way out.
fn a_tag_that_went_back_keeps_no_other_from_being_made(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE went; CREATE DATABASE store_went; USE went;
         CREATE TABLE a (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE b LIKE a; CREATE TABLE c LIKE a; CREATE TABLE d LIKE a",
    )?;
    let store = format!("mysql://root@127.0.0.1:{}/store_went", server.port());
    let config = ProxyConfig::before(&server, &store)
        .rule("went.a", "segment:a")
        .rule("went.b", "segment:b")
        .rule("went.c", "segment:c");
    ProxyProcess::said(&config, &["init"])?;
    server.run(
        "store_went",
        "UPDATE keywright_segment SET server = 'gone back behind 4001' WHERE tag IN ('a', 'b')",
    )?;
    server.run(
        "went",
        "INSERT INTO a (id) VALUES (50000); INSERT INTO b (id) VALUES (600); INSERT INTO c (id) VALUES (900);
         INSERT INTO d (id) VALUES (7)",
    )?;
    let config = config.rule("went.d", "segment:d");
    let output = ProxyProcess::command(&config, &["init"])?;
    let done = String::from_utf8(output.stdout)?;
    let told = String::from_utf8(output.stderr)?;
    assert!(!output.status.success(), "{done}");
    assert_has(
        &done,
        &["raised tag \"c\" above 900", "created tag \"d\", above 7"],
    );
    assert_has(
        &told,
        &[
            "the bound of tag \"a\" was 4001",
            "keywright advance a --above 50000,",
            "the bound of tag \"b\" was 4001",
            "keywright advance b --above 4000,",
        ],
    );
    for (tag, above) in [("a", "50000"), ("b", "4000")] {
        ProxyProcess::said(&config, &["advance", tag, "--above", above])?;
    }
    let done = ProxyProcess::said(&config, &["init"])?;
    assert_has(&done, &["nothing to do: everything is there"]);
    Ok(())
}
