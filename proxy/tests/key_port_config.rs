//! What users write into configuration files for key ports.

use anyhow::{Context as _, Result};
use keywright_proxy::config::Config;

const STORE: &str = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";

fn with(lines: &str) -> String {
    format!("{STORE}\n[[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:6399\"\n{lines}")
}

fn problems(text: &str) -> String {
    match Config::parse(text) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn a_key_port_needs_no_server() -> Result<()> {
    let text = with("keys = { orders = \"segment:orders\", \"shop:id\" = \"snowflake\" }\n");
    let config = Config::parse(&text)?;
    assert!(config.listeners.is_empty());
    let [port] = config.ports.as_slice() else {
        panic!("{:?}", config.ports);
    };
    assert_eq!(port.keys.len(), 2);
    assert_eq!(config.binds().collect::<Vec<_>>(), ["127.0.0.1:6399"]);
    let tags = config.tags();
    assert_eq!(
        tags.iter().map(|tag| tag.as_str()).collect::<Vec<_>>(),
        ["orders"]
    );
    assert!(config.follows_the_switch());
    // Nobody's tables go over to these.
    let text = with("keys = { id = \"uuid_v7\", text = \"readable:ORD\" }\n");
    assert!(!Config::parse(&text)?.follows_the_switch());
    Ok(())
}

#[test]
fn all_problems_of_a_key_port_are_told_at_once() {
    let output = problems(&with(
        "upstream = \"127.0.0.1:3306\"\ntls = \"preferred\"\ncertificate = \"/none.pem\"\nkey = \"/none.key\"\nrsa_key = \"/none\"\n\
         password_file = \"/none/password\"\nconnections_max = 0\nbulk_bytes_max = 1\noutput_bytes_max = 1\npipeline_requests_max = 0\n\
         unread_ms_max = 0\nkeys = { \"\" = \"segment:a\", b = \"segments:b\", c = \"stride:c\" }\n",
    ));
    for expected in [
        "listener 1: upstream has no meaning with protocol = \"redis\"",
        "tls = \"preferred\" has no meaning",
        "rsa_key has no meaning",
        "/none.pem",
        "password_file: \"/none/password\" cannot be read",
        "connections_max is at least 1",
        "pipeline_requests_max is at least 1",
        "unread_ms_max is at least 1",
        "bulk_bytes_max is 64 to",
        "output_bytes_max is 64 to",
        "a name has 1 to 512 bytes",
        // What no key port has is not offered.
        "\"segments:b\" is none of segment:TAG, snowflake, uuid_v1, uuid_v4, uuid_v7 (with :text36, :text32 or :bytes16), readable:BIZ\n",
        "\"c\" cannot be \"stride:c\": a client of a key port takes its keys to be consecutive",
    ] {
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
    let output = problems(&with("").replace("127.0.0.1:6399", "6399"));
    assert!(
        output.contains("as \"127.0.0.1:6399\", not \"6399\""),
        "{output}"
    );
    assert!(
        output.contains("needs keys, such as keys = { orders"),
        "{output}"
    );
}

#[test]
fn one_listener_stands_for_the_lease_of_ordered_tags() -> Result<()> {
    const KEYS: &str = "keys = { orders = \"segment:orders\" }\n";
    let ordered = with(&format!("{KEYS}cluster_address = \"[::1]:6399\"\n"));
    let config = Config::parse(&ordered)?;
    let order = config.order().map(|its| (its.address.as_str(), its.ttl_ms));
    assert_eq!(order, Some(("[::1]:6399", 2_000)));
    assert_eq!(Config::parse(&with(KEYS))?.order(), None);
    for (lines, expected) in [
        ("order_ttl_ms = 500\n", "order_ttl_ms needs cluster_address"),
        (
            "cluster_address = \"6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \":6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"a b:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"a:0\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"::1:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"0.0.0.0:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"[::]:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"*:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"redis://a:6399\"\n",
            "cluster_address is host:port",
        ),
        (
            "cluster_address = \"a:1\"\norder_ttl_ms = 199\n",
            "order_ttl_ms is 200 to 60000, not 199",
        ),
    ] {
        let found = problems(&with(&format!("{KEYS}{lines}")));
        assert!(found.contains(expected), "{lines}: {found}");
    }
    let second = ordered.replacen(STORE, "", 1).replace("1:6399", "1:6398");
    let found = problems(&format!("{ordered}{second}"));
    assert!(
        found.contains("cluster_address is for one [[listener]]"),
        "{found}"
    );
    let leaf = ordered.replacen("[store]\n", "[store]\ndialect = \"leaf\"\n", 1);
    let found = problems(&leaf);
    assert!(found.contains("cluster_address needs a store"), "{found}");
    Ok(())
}

#[test]
fn options_of_one_protocol_are_none_of_the_other() {
    let mysql = format!(
        "{STORE}\n[[listener]]\nbind = \"127.0.0.1:6033\"\nkeys = {{ a = \"segment:a\" }}\nidle_s_max = 5\n"
    );
    let output = problems(&mysql);
    for expected in [
        "keys has no meaning with protocol = \"mysql\"",
        "idle_s_max has no meaning",
        "protocol = \"mysql\" needs upstream",
    ] {
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
    let output = problems(&with("").replace("redis", "memcached"));
    assert!(
        output.contains("protocol is mysql, redis or http, not \"memcached\""),
        "{output}"
    );
}

#[test]
fn all_problems_of_one_that_speaks_http_are_told_at_once() {
    let http = |lines: &str| with(lines).replace("redis", "http");
    let output = problems(&http(
        "upstream = \"127.0.0.1:3306\"\nbulk_bytes_max = 100\npipeline_requests_max = 5\noutput_bytes_max = 100\nhead_bytes_max = 8191\n\
         body_bytes_max = 2000000\nrequest_ms_max = 0\nrequest_keys_max = 0\ntinyid_segment_keys = 0\nidle_s_max = 0\nunread_ms_max = 0\n",
    ));
    for expected in [
        "upstream has no meaning with protocol = \"http\"",
        "bulk_bytes_max has no meaning",
        "pipeline_requests_max has no meaning",
        "output_bytes_max has no meaning",
        "head_bytes_max is 8192 to 1048576, not 8191",
        "body_bytes_max is 0 to 1048576, not 2000000",
        "request_ms_max is at least 1",
        "request_keys_max is 1 to 1000000, not 0",
        "tinyid_segment_keys is at least 1",
        "idle_s_max is at least 1",
        "unread_ms_max is at least 1",
        "protocol = \"http\" needs keys",
    ] {
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
    let keys = "keys = { orders = \"segment:orders\" }\n";
    assert_eq!(problems(&http(keys)), "");
    let output = problems(&with(&format!("{keys}head_bytes_max = 10000\n")));
    assert!(
        output.contains("head_bytes_max has no meaning with protocol = \"redis\""),
        "{output}"
    );
    for (names, expected) in [
        ("\"a.example:80\"", "host_names has names without ports"),
        ("\"a.example\", \"*\"", "not \"*\""),
        ("\"a.example\"", ""),
        ("\"*\"", ""),
        ("", ""),
    ] {
        let output = problems(&http(&format!("{keys}host_names = [{names}]\n")));
        assert!(output.contains(expected), "{output}");
        assert_eq!(output.is_empty(), expected.is_empty(), "{output}");
    }
    let output = problems(&with(&format!("{keys}host_names = []\n")));
    assert!(
        output.contains("host_names has no meaning with protocol = \"redis\""),
        "{output}"
    );
    // There are no users of this one either.
    let open = http(keys).replace("127.0.0.1:6399", "0.0.0.0:6400");
    assert!(problems(&open).contains("open_to_the_network_without_users = true"));
}

/// There are no users yet.
#[test]
fn only_this_machine_can_connect_unless_it_is_said_otherwise() {
    let keys = "keys = { orders = \"segment:orders\" }\n";
    for (bind, is_local) in [
        ("127.0.0.1:6399", true),
        ("127.9.9.9:6399", true),
        ("[::1]:6399", true),
        ("[::ffff:127.0.0.1]:6399", true),
        ("localhost:6399", true),
        ("unix:/run/keywright/keys.socket", true),
        ("0.0.0.0:6399", false),
        ("[::]:6399", false),
        ("10.0.0.7:6399", false),
        ("keys.example:6399", false),
    ] {
        let text = with(keys).replace("127.0.0.1:6399", bind);
        let output = problems(&text);
        assert_eq!(output.is_empty(), is_local, "{bind}: {output}");
        let is_told = output.contains("open_to_the_network_without_users = true");
        assert_eq!(is_told, !is_local, "{output}");
        let text = format!("{text}open_to_the_network_without_users = true\n");
        assert_eq!(problems(&text), "", "{bind}");
    }
}

/// Passwords of users are not to be read by whoever is on the way.
#[test]
fn users_log_in_where_nobody_listens_unless_it_is_said_otherwise() -> Result<()> {
    let keys = "keys = { orders = \"segment:orders\" }\nusers = true\n";
    for (bind, is_local) in [
        ("127.0.0.1:6399", true),
        ("[::1]:6399", true),
        ("unix:/run/keywright/keys.socket", true),
        ("0.0.0.0:6399", false),
        ("keys.example:6399", false),
    ] {
        let text = with(keys).replace("127.0.0.1:6399", bind);
        let output = problems(&text);
        assert_eq!(output.is_empty(), is_local, "{bind}: {output}");
        let is_told = output.contains("users_without_tls = true");
        assert_eq!(is_told, !is_local, "{output}");
        let text = format!("{text}users_without_tls = true\n");
        assert_eq!(problems(&text), "", "{bind}");
        let [port] = &Config::parse(&text)?.ports[..] else {
            panic!("{text}");
        };
        assert!(port.has_users);
    }
    // With TLS it is open to the network without another word; it is only the certificate that is missing here.
    let text = with(&format!("{keys}tls = \"required\"\n"));
    let output = problems(&text.replace("127.0.0.1:6399", "0.0.0.0:6399"));
    assert!(output.contains("needs certificate"), "{output}");
    assert!(!output.contains("users_without_tls"), "{output}");
    Ok(())
}

#[test]
fn what_has_no_meaning_with_users_or_without_is_told_at_once() {
    let output = problems(&with(
        "keys = { a = \"segment:a\" }\nusers = true\npassword_env = \"PATH\"\nopen_to_the_network_without_users = true\n\
         connections_max = 0\n",
    ));
    for expected in [
        "password_env has no meaning with users = true",
        "open_to_the_network_without_users has no meaning with users = true",
        "connections_max is at least 1",
    ] {
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
    let output = problems(&with(
        "keys = { a = \"segment:a\" }\nusers_without_tls = true\n",
    ));
    assert!(
        output.contains("users_without_tls has no meaning without users = true"),
        "{output}"
    );
    let mysql = format!("{STORE}\n[[listener]]\nbind = \"127.0.0.1:6033\"\nusers = true\n");
    assert!(problems(&mysql).contains("users has no meaning with protocol = \"mysql\""));
}

/// Who is connected to a listener without users is nobody's: that takes a restart.
#[test]
fn users_do_not_come_to_a_listener_while_it_runs() -> Result<()> {
    let keys = "keys = { a = \"segment:a\" }\n";
    let without = Config::parse(&with(keys))?;
    let users = Config::parse(&with(&format!("{keys}users = true\n")))?;
    for (one, other) in [(&without, &users), (&users, &without)] {
        let told = one.listens_otherwise(other);
        assert_eq!(told.as_deref(), Some("127.0.0.1:6399 differs in users"));
    }
    assert!(users.has_users() && !without.has_users());
    Ok(())
}

#[test]
fn passwords_are_not_shown() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "opensesame\nsecond line\n")?;
    let text = with(&format!(
        "keys = {{ a = \"segment:a\" }}\npassword_file = \"{}\"\n",
        file.path().display()
    ));
    let config = Config::parse(&text)?;
    assert_eq!(config.ports[0].password.as_deref(), Some("opensesame"));
    assert!(!format!("{config:?}").contains("opensesame"));
    Ok(())
}

/// Who comes from Leaf takes the file of the page as it is.
#[test]
fn the_file_for_clients_of_leaf_is_valid() -> Result<()> {
    let page = include_str!("../../docs/http-port.md");
    let block = page
        .split_once("\n## Clients of Leaf\n")
        .and_then(|(_, section)| section.split_once("\n```toml\n"))
        .and_then(|(_, block)| block.split_once("```"));
    let (block, _) = block.context("the page has no file for clients of Leaf")?;
    // The password is on the operator's machine.
    let is_of_a_file = |line: &&str| line.starts_with("password_file");
    let lines = block.lines().filter(|line| !is_of_a_file(line));
    let config = Config::parse(&lines.collect::<Vec<_>>().join("\n"))?;
    assert!(config.listeners.is_empty());
    assert_eq!((config.ports.len(), config.tags().len()), (1, 2));
    assert_eq!(config.store.layout().to_string(), "leaf");
    Ok(())
}

/// What stands in the sample behind a # alone.
#[test]
fn the_key_ports_and_the_feed_of_the_sample_are_valid() -> Result<()> {
    let sample = include_str!("../keywright.toml");
    let is_of_a_file =
        |line: &&str| line.contains("secrets_port") || line.contains("secrets_feeder");
    let lines = sample.lines().filter(|line| !is_of_a_file(line));
    let shown: String = lines
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let key = tempfile::NamedTempFile::new()?;
    std::fs::write(key.path(), "07".repeat(16))?;
    let there = key.path().display().to_string();
    let shown = shown.replace(
        "/run/credentials/keywright.service/secrets_invoices.hide",
        &there,
    );
    let config = Config::parse(&shown)?;
    assert_eq!(config.store.hidden_tags().tags().count(), 1);
    assert_eq!((config.listeners.len(), config.ports.len()), (1, 2));
    assert_eq!(config.feeds.len(), 1);
    Ok(())
}
