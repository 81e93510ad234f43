//! Listeners: addresses and TLS.

use super::{SAMPLE, problems};

/// What the first listener says besides.
fn listener(lines: &str) -> String {
    SAMPLE.replace("# tls = \"disabled\"\n", lines)
}

#[test]
fn problems_of_tls_are_told_at_once() {
    let output = problems(&listener(
        "tls = \"required\"\ncertificate = \"/no/such.pem\"\nkey = \"/no/such.key\"\n\
         upstream_tls = \"required\"\nrsa_key = \"/no/such.rsa\"\ncheck = \"perhaps\"\n",
    ));
    for part in [
        "5 problem(s)",
        "listener 1: certificate /no/such.pem: ",
        "key /no/such.key: ",
        "rsa_key /no/such.rsa: ",
        "upstream_tls is \"required\" and needs upstream_ca, or upstream_verify = \"none\"",
        "check is error or warn",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn addresses_are_looked_at_before_they_are_used() {
    let bind = "bind = \"127.0.0.1:6033\"";
    let upstream = "upstream = \"127.0.0.1:3306\"";
    for (from, to, example) in [
        (bind, "bind = \"127.0.0.1:66033\"", "127.0.0.1:6033"),
        (bind, "bind = \"6033\"", "127.0.0.1:6033"),
        (bind, "bind = \"::1:6033\"", "127.0.0.1:6033"),
        (
            upstream,
            "upstream = \"mysql://127.0.0.1:3306\"",
            "127.0.0.1:3306",
        ),
        (upstream, "upstream = \"127.0.0.1\"", "127.0.0.1:3306"),
        (upstream, "upstream = \"unix:socket\"", "127.0.0.1:3306"),
    ] {
        let output = problems(&SAMPLE.replace(from, to));
        let (option, value) = to.split_once(" = ").unwrap_or_default();
        let part = format!(
            "listener 1: {option} is address:port or unix:/path, as \"{example}\", not {value}"
        );
        assert!(output.contains(&part), "{part} is not in: {output}");
    }
    let long = format!("unix:/{}", "d/".repeat(60));
    let metrics = "bind = \"127.0.0.1:9306\"";
    for (text, parts) in [
        (
            SAMPLE.replace(bind, "bind = \"*:6033\""),
            [
                "listener 1: bind is \"*:6033\"",
                "are 0.0.0.0, or [::] with IPv6",
            ],
        ),
        (
            SAMPLE.replace(bind, &format!("bind = \"{long}\"")),
            ["listener 1: bind is \"unix:/d/", "of 121 bytes "],
        ),
        (
            SAMPLE.replace(upstream, &format!("upstream = \"{long}\"")),
            ["listener 1: upstream is \"unix:/d/", "of 121 bytes "],
        ),
        (
            SAMPLE.replace(metrics, "bind = \"*:9306\""),
            [
                "metrics.bind is \"*:9306\"",
                "are 0.0.0.0, or [::] with IPv6",
            ],
        ),
    ] {
        let output = problems(&text);
        for part in parts {
            assert!(output.contains(part), "{part} is not in: {output}");
        }
    }
    for (from, to) in [
        (bind, "bind = \"[::1]:6033\""),
        (bind, "bind = \"unix:/run/keywright/socket\""),
        (upstream, "upstream = \"db.example:3306\""),
    ] {
        assert_eq!(problems(&SAMPLE.replace(from, to)), "");
    }
}

#[test]
fn two_sockets_of_one_address_are_a_problem() {
    let second = "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3307\"\n";
    let text = SAMPLE
        .replace("bind = \"127.0.0.1:9306\"", "bind = \"127.0.0.1:6033\"")
        .replace(
            "# The first rule that",
            &format!("{second}# The first rule that"),
        );
    let output = problems(&text);
    for part in [
        "listener 2: bind is \"127.0.0.1:6033\", and so is listener 1: bind",
        "metrics.bind is \"127.0.0.1:6033\", and so is listener 1: bind",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn options_of_tls_that_would_do_nothing_are_problems() {
    for (lines, part) in [
        ("tls = \"yes\"\n", "tls is disabled, preferred or required"),
        ("tls = \"preferred\"\nkey = \"k\"\n", "needs certificate"),
        ("certificate = \"c\"\n", "certificate has no effect"),
        ("upstream_ca = \"c\"\n", "upstream_ca has no effect"),
        (
            "upstream_tls = \"required\"\nupstream_verify = \"none\"\nupstream_ca = \"c\"\n",
            "upstream_ca has no effect",
        ),
        (
            "upstream_tls = \"required\"\nupstream_verify = \"none\"\nupstream_name = \"db\"\n",
            "upstream_name has no effect",
        ),
        (
            "upstream_tls = \"required\"\nupstream_ca = \"c\"\nupstream_name = \"no host\"\n",
            "is no name of a host",
        ),
    ] {
        let output = problems(&listener(lines));
        assert!(output.contains(part), "{part} is not in: {output}");
    }
    let unverified = "upstream_tls = \"required\"\nupstream_verify = \"none\"\n";
    assert_eq!(problems(&listener(unverified)), "");
}
