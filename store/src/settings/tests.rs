use std::io::Write;

use super::{EngineSettings, RawSnowflakeSettings, RawStoreSettings, StoreSettings};

fn raw(url: &str) -> RawStoreSettings {
    RawStoreSettings {
        url: url.to_owned(),
        ..RawStoreSettings::default()
    }
}

fn password(settings: &StoreSettings) -> Option<&str> {
    match &settings.engine {
        EngineSettings::MySql(opts) => opts.pass(),
        EngineSettings::Postgres(its) => str::from_utf8(its.config.get_password()?).ok(),
        EngineSettings::Etcd(its) => its.user.as_ref().map(|(_, password)| password.as_str()),
        EngineSettings::Redis(its) => its.password.as_deref(),
        EngineSettings::File(_) => None,
    }
}

/// The settings that there is something wrong with.
fn wrong(store: &RawStoreSettings, snowflake: &RawSnowflakeSettings) -> Vec<String> {
    let error = StoreSettings::new(store, snowflake).unwrap_err();
    let problems = error.problems.into_iter();
    problems.map(|problem| problem.setting).collect()
}

#[test]
fn defaults_are_fine() {
    let settings = StoreSettings::new(
        &raw("mysql://keywright@db:3307/keywright"),
        &RawSnowflakeSettings::default(),
    )
    .unwrap();
    assert_eq!(settings.address(), "db:3307");
    assert_eq!(settings.layout().to_string(), "twitter");
}

/// Rests of ranges, and below which id none is taken back, stand in the store by the table's name.
#[test]
fn a_table_has_one_name_however_it_is_written() {
    for (written, name) in [
        ("leaf_alloc", "leaf_alloc"),
        ("ids.leaf_alloc", "leaf_alloc"),
        ("other.leaf_alloc", "other.leaf_alloc"),
    ] {
        let raw = RawStoreSettings {
            dialect: "leaf".to_owned(),
            segment_table: Some(written.to_owned()),
            ..raw("mysql://keywright@db/ids")
        };
        let settings = StoreSettings::new(&raw, &RawSnowflakeSettings::default()).unwrap();
        assert_eq!(settings.segment_table.plain(), name);
    }
}

#[test]
fn clock_policies_are_those_that_a_program_has() {
    let told_in = |layout: &str, policy: &str| {
        let snowflake = RawSnowflakeSettings {
            layout: layout.to_owned(),
            clock_policy: policy.to_owned(),
            ..RawSnowflakeSettings::default()
        };
        let checked = StoreSettings::new(&raw("mysql://keywright@db/keywright"), &snowflake);
        checked.map(|_| ()).map_err(|error| error.to_string())
    };
    let told = |policy: &str| told_in("twitter", policy);
    let spare = "time=41,worker=9,spare=1,sequence=12,epoch=1288834974657";
    assert_eq!(told_in(spare, "spare_worker"), Ok(()));
    for policy in ["carry", "wait", "refuse"] {
        assert_eq!(told(policy), Ok(()), "{policy}");
    }
    for (policy, problem) in [
        (
            "halt",
            "snowflake.clock_policy: \"halt\" is none of carry, wait, refuse, spare_worker",
        ),
        (
            "spare_worker",
            "snowflake.clock_policy: spare_worker takes a layout with spare=1, which \"twitter\" is not",
        ),
    ] {
        assert_eq!(told(policy), Err(problem.to_owned()));
    }
}

#[test]
fn a_file_is_named_by_its_whole_path_and_has_nothing_of_a_server() {
    let snowflake = RawSnowflakeSettings::default();
    for url in ["file:/var/lib/a.db", "file:///var/lib/a.db"] {
        let settings = StoreSettings::new(&raw(url), &snowflake).unwrap();
        assert_eq!(settings.address(), "file:/var/lib/a.db");
    }
    for url in [
        "file:a.db",
        "file://a.db",
        "file:/var/lib/",
        "file:/a?b",
        "file:",
    ] {
        let told = StoreSettings::new(&raw(url), &snowflake).unwrap_err();
        assert_eq!(
            told.to_string(),
            "store.url: is not of the form file:/absolute/path"
        );
    }
    let store = RawStoreSettings {
        dialect: "leaf".to_owned(),
        segment_table: Some("leaf_alloc".to_owned()),
        tls: "required".to_owned(),
        password_env: Some("PATH".to_owned()),
        ..raw("file:/var/lib/a.db")
    };
    assert_eq!(
        wrong(&store, &snowflake),
        [
            "store.password_env",
            "store.segment_table",
            "store.tls",
            "store.dialect",
        ]
    );
    let server = RawStoreSettings {
        any_file_system: true,
        ..raw("mysql://keywright@db/keywright")
    };
    assert!(StoreSettings::new(&server, &snowflake).is_err());
}

#[test]
fn what_a_password_in_a_url_must_not_have_is_told() {
    let new = |url: &str| StoreSettings::new(&raw(url), &RawSnowflakeSettings::default());
    for url in [
        "mysql://kw:s/w@db/keywright",
        // Read as host and port.
        "mysql://kw:1/2@db/keywright",
        "mysql://kw:s?w@db/keywright",
        "mysql://kw:s#w@db/keywright",
        // Read as a host and a schema.
        "mysql://kw:s@1/w@db/keywright",
        "mysql://kw:s@1#w@db/keywright",
        "postgres://kw:s@w@db/keywright",
        "postgres://kw:s@1/w@db/keywright",
        "postgres://kw:s@1#w@db/keywright",
        "etcd://kw:s/w@db/keywright",
        "redis://kw:s%w@db",
    ] {
        let told = new(url).unwrap_err().to_string();
        assert!(told.contains("is not of the form "), "{url}: {told}");
        let escapes = "write / : @ ? # % as %2F %3A %40 %3F %23 %25";
        assert!(told.contains(escapes), "{url}: {told}");
        assert!(!told.contains("w@db"), "{url}: {told}");
    }
    // An @ in an option, or in a name as %40, is part of no password.
    for fine in [
        "mysql://kw:s@db/key%40wright",
        "mysql://kw:s@db/keywright?socket=/run/a@b.sock",
        "postgres://kw:s@db/key%40wright",
        "postgres://kw:s@db/keywright?application_name=kw@node",
    ] {
        assert_eq!(password(&new(fine).unwrap()), Some("s"), "{fine}");
    }
    for end in [
        "mysql://kw:P@db/keywright",
        "postgres://kw:P@db/keywright",
        "etcd://kw:P@db/keywright",
        "redis://kw:P@db",
    ] {
        let settings = new(&end.replace('P', "%2F%3A%40%3F%23%25")).unwrap();
        assert_eq!(password(&settings), Some("/:@?#%"), "{end}");
    }
}

#[test]
fn a_database_of_postgresql_is_named_with_its_hosts() {
    let snowflake = RawSnowflakeSettings::default();
    let new = |url: &str| StoreSettings::new(&raw(url), &snowflake);
    let one = new("postgres://keywright:secret@db1/keywright").unwrap();
    assert_eq!(one.address(), "db1:5432");
    assert_eq!(password(&one), Some("secret"));
    let two = new("postgresql://keywright@db1:5433,db2:5434/keywright").unwrap();
    assert_eq!(two.address(), "db1:5433,db2:5434");
    for (url, told) in [
        ("postgres://keywright@db1/", "names no database"),
        ("postgres://db1/keywright", "names no user"),
        ("postgres://keywright@/keywright", "names no host"),
        (
            "postgres://keywright@db1/keywright?sslmode=require",
            "sslmode is said by store.tls",
        ),
        (
            "postgres://keywright:secret@db1:port/keywright",
            "is not of the form",
        ),
    ] {
        let error = new(url).unwrap_err().to_string();
        assert!(error.contains(told), "{url}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let store = RawStoreSettings {
        dialect: "leaf".to_owned(),
        segment_table: Some("leaf_alloc".to_owned()),
        any_file_system: true,
        tls: "required".to_owned(),
        tls_ca_file: Some("/none/ca.pem".into()),
        password_env: Some("PATH".to_owned()),
        ..raw("postgres://keywright:secret@db1/keywright")
    };
    assert_eq!(
        wrong(&store, &snowflake),
        [
            "store.any_file_system",
            "store.segment_table",
            "store.dialect",
            "store.password_env",
            "store.tls_ca_file",
        ]
    );
}

#[test]
fn where_names_are_looked_for_makes_another_store() {
    let new = |url: &str| StoreSettings::new(&raw(url), &RawSnowflakeSettings::default()).unwrap();
    let one = new("postgres://keywright@db1/keywright");
    assert!(one.is_same_store(&new("postgres://other:p@db1:5432/keywright")));
    for url in [
        "postgres://keywright@db1/other",
        "postgres://keywright@db2/keywright",
        "postgres://keywright@db1/keywright?options=-csearch_path%3Dother",
    ] {
        assert!(!one.is_same_store(&new(url)), "{url}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let store = RawStoreSettings {
        dialect: "oracle".to_owned(),
        segment_table: Some("a; DROP".to_owned()),
        tls: "maybe".to_owned(),
        wait_ms_max: 0,
        refill_percent: 100,
        ..raw("mysql://db:3306/")
    };
    let snowflake = RawSnowflakeSettings {
        worker_id: Some(1024),
        ..RawSnowflakeSettings::default()
    };
    assert_eq!(
        wrong(&store, &snowflake),
        [
            "store.url",
            "store.url",
            "store.tls",
            "store.dialect",
            "store.segment_table",
            "store.wait_ms_max",
            "store.refill_percent",
            "snowflake.worker_id",
        ]
    );
}

#[test]
fn the_password_is_read_from_its_file_and_never_shown() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"secret\nmore").unwrap();
    let store = RawStoreSettings {
        password_file: Some(file.path().to_owned()),
        ..raw("mysql://keywright@db/keywright")
    };
    let settings = StoreSettings::new(&store, &RawSnowflakeSettings::default()).unwrap();
    assert_eq!(password(&settings), Some("secret"));
    assert!(!format!("{settings:?}").contains("secret"));
    let twice = RawStoreSettings {
        url: "mysql://keywright:other@db/keywright".to_owned(),
        ..store
    };
    assert!(StoreSettings::new(&twice, &RawSnowflakeSettings::default()).is_err());
    let by_variable = |name: &str, url: &str| {
        let store = RawStoreSettings {
            password_env: Some(name.to_owned()),
            ..raw(url)
        };
        StoreSettings::new(&store, &RawSnowflakeSettings::default())
    };
    // One that every process has.
    let (name, url) = ("PATH", "mysql://keywright@db/keywright");
    let settings = by_variable(name, url).unwrap();
    assert_eq!(password(&settings), std::env::var(name).ok().as_deref());
    let refused = |name: &str, url: &str| by_variable(name, url).unwrap_err().to_string();
    assert!(refused("NO_SUCH_VARIABLE", url).contains("\"NO_SUCH_VARIABLE\""));
    assert!(refused("A=B", url).contains("names no"));
    assert!(refused(name, "mysql://keywright:other@db/keywright").contains("password_env"));
    let broken = StoreSettings::new(
        &raw("mysql://keywright:secret@db:port/keywright"),
        &RawSnowflakeSettings::default(),
    );
    assert!(!broken.unwrap_err().to_string().contains("secret"));
}

#[test]
fn ranges_come_from_hosts_of_a_url() {
    let new =
        |store: &RawStoreSettings| StoreSettings::new(store, &RawSnowflakeSettings::default());
    let settings = new(&raw("rediss://near:a%2Fb@ids-1,[::1]:6399")).unwrap();
    assert_eq!(settings.address(), "redis://ids-1:6379,[::1]:6399");
    assert_eq!(password(&settings), Some("a/b"));
    assert!(settings.gives_ranges_only() && !settings.has_own_tags());
    assert!(matches!(&settings.engine, EngineSettings::Redis(its) if its.tls.is_some()));
    let refused = |store: RawStoreSettings| new(&store).unwrap_err().to_string();
    assert!(refused(raw("redis://near@ids-1")).contains("password is nowhere"));
    assert!(refused(raw("redis://ids-1/x")).contains("is not of the form"));
    // Hosts before the last @ are no part of a password.
    for url in [
        "redis://near:a@ids-1,near:a@ids-2",
        "redis://ids-1:6399,near:a@ids-2",
        "etcd://near:a@etcd-1,near:a@etcd-2/keywright",
    ] {
        let told = refused(raw(url));
        assert!(
            told.contains("stand once, in front of the first host"),
            "{told}"
        );
        assert!(
            !told.contains("ids-2") && !told.contains("etcd-2"),
            "{told}"
        );
    }
    // A Redis is one: a list of hosts is one of key ports.
    let several = RawStoreSettings {
        accept_loss_on_failover: true,
        ..raw("redis://ids-1,ids-2")
    };
    let told = refused(several);
    assert!(
        told.contains(
            "store.accept_loss_on_failover: is for one Redis, and url names several hosts"
        ),
        "{told}"
    );
    let others = RawStoreSettings {
        accept_loss_on_failover: true,
        step: Some(5),
        ..raw("mysql://keywright@db/keywright")
    };
    let told = refused(others);
    assert!(
        told.contains("store.accept_loss_on_failover: is for redis://"),
        "{told}"
    );
    assert!(told.contains("store.step: is for redis://"), "{told}");
    let none = RawStoreSettings {
        step: Some(0),
        any_file_system: true,
        dialect: "leaf".to_owned(),
        ..raw("redis://ids-1")
    };
    let told = refused(none);
    for setting in ["store.step", "store.any_file_system", "store.dialect"] {
        assert!(told.contains(setting), "{told}");
    }
}

#[test]
fn ranges_are_kept_in_a_file_of_their_own_where_the_store_has_tags() {
    let with = |url: &str, path: &str, dialect: &str| RawStoreSettings {
        kept_ranges_file: Some(path.into()),
        dialect: dialect.to_owned(),
        ..raw(url)
    };
    let mysql = "mysql://keywright@db/keywright";
    let fine = with(mysql, "/var/lib/keywright/ranges", "keywright");
    assert!(StoreSettings::new(&fine, &RawSnowflakeSettings::default()).is_ok());
    // Wherever it is, its file system may be anything only by somebody's word, which needs no store in a file.
    let any = RawStoreSettings {
        any_file_system: true,
        ..fine
    };
    assert!(StoreSettings::new(&any, &RawSnowflakeSettings::default()).is_ok());
    for (url, path, dialect, problem) in [
        (mysql, "ranges", "keywright", "is not an absolute path"),
        (mysql, "/", "keywright", "is not an absolute path"),
        (mysql, "/a/ranges", "leaf", "is for tags of dialect"),
        (
            "redis://ids-1",
            "/a/ranges",
            "keywright",
            "gives ranges only",
        ),
        ("file:/a/b", "/a/b", "keywright", "is the file of the store"),
        (
            "file:///a/b",
            "/a/b",
            "keywright",
            "is the file of the store",
        ),
    ] {
        let settings = with(url, path, dialect);
        let told = StoreSettings::new(&settings, &RawSnowflakeSettings::default());
        let told = told.unwrap_err().to_string();
        assert!(
            told.contains("store.kept_ranges_file") && told.contains(problem),
            "{told}"
        );
    }
}

#[test]
fn slots_are_divided_where_tags_are_ordered() {
    let told = |change: fn(&mut RawStoreSettings)| {
        let mut store = raw("mysql://keywright@db/keywright");
        change(&mut store);
        let checked = StoreSettings::new(&store, &RawSnowflakeSettings::default());
        checked.map(|its| its.slot_groups().count())
    };
    assert_eq!(told(|_| {}), Ok(1));
    assert_eq!(told(|store| store.slot_groups = 16), Ok(16));
    let refused: [fn(&mut RawStoreSettings); 5] = [
        |store| store.slot_groups = 0,
        |store| store.slot_groups = 17,
        |store| (store.slot_groups, store.dialect) = (2, "leaf".to_owned()),
        |store| (store.slot_groups, store.tags) = (2, vec!["shop.*".to_owned()]),
        |store| (store.slot_groups, store.url) = (2, "redis://127.0.0.1:6399".to_owned()),
    ];
    for change in refused {
        let problems = told(change).unwrap_err().to_string();
        assert!(problems.starts_with("store.slot_groups: "), "{problems}");
    }
}
