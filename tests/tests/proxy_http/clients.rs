//! Clients as applications have them.

use std::process::{Command, Stdio};

use anyhow::ensure;
use keywright_testkit::{Pki, ProxyProcess, Result, WAIT_MAX, assert_has, wait_until};

use super::Port;

/// What a program says that succeeds.
fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {text}{errors}");
    Ok(text)
}

#[test]
fn curl_takes_keys() -> Result<()> {
    let port = Port::with_password("")?;
    let base = format!("http://127.0.0.1:{}", port.proxy.http_port()?);
    let curl = |arguments: &[&str], path: &str| {
        let mut command = Command::new("curl");
        said(
            command
                .args(["-sS"])
                .args(arguments)
                .arg(format!("{base}{path}")),
        )
    };
    let bearer = ["-H", "Authorization: Bearer sesame"];
    let post = [&["-X", "POST"], bearer.as_slice()].concat();
    let first = "{\"name\":\"orders\",\"keys\":[\"1\"],\"numbers\":[1]}\n";
    assert_eq!(curl(&post, "/v1/keys/orders")?, first);
    let basic = [
        "-u",
        "default:sesame",
        "-H",
        "Accept: text/plain",
        "-d",
        "count=3",
    ];
    assert_eq!(curl(&basic, "/v1/keys/orders")?, "2\n3\n4\n");
    assert_eq!(curl(&bearer, "/api/segment/get/orders")?, "5");
    let tinyid = "/tinyid/id/nextIdSimple?bizType=orders&batchSize=2&token=sesame";
    assert_eq!(curl(&[], tinyid)?, "6,7");
    let refused = curl(&["-w", "%{http_code}", "-X", "POST"], "/v1/keys/orders")?;
    assert_has(&refused, &["\"password_missing\"", "}\n401"]);
    // With a head that is announced before its body.
    let form = "count=2&".to_owned() + &"x".repeat(9_000);
    let expected = [
        "-H",
        "Expect: 100-continue",
        "-w",
        "%{http_code}",
        "-d",
        &form,
    ];
    let told = curl(&[&bearer, expected.as_slice()].concat(), "/v1/keys/orders")?;
    assert_has(&told, &["\"packet_too_large\"", "}\n413"]);
    Ok(())
}

#[test]
fn curl_speaks_tls() -> Result<()> {
    let pki = Pki::new()?;
    let port = Port::start(&pki.towards_clients("required"))?;
    let url = format!(
        "https://127.0.0.1:{}/v1/keys/orders",
        port.proxy.http_port()?
    );
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-X", "POST", "-H", "Accept: text/plain", "--cacert"]);
    assert_eq!(said(curl.arg(pki.file("ca.pem")).arg(url))?, "1\n");
    Ok(())
}

/// The first to find out were clients.
#[test]
fn a_certificate_that_has_expired_is_told_of() -> Result<()> {
    let pki = Pki::new()?;
    pki.valid_until("proxy", (2001, 1, 1))?;
    let port = Port::start(&pki.towards_clients("required"))?;
    let told = "proxy.pem\" expired at 2001-01-01T00:00:00Z";
    let logged = || port.proxy.log().matches(told).count();
    assert_eq!(logged(), 1);
    let checked = ProxyProcess::said(&port.config, &["check"])?;
    assert_has(&checked, &["warning: listener 2: certificate", told]);
    port.proxy.reload_again()?;
    wait_until("the warning", WAIT_MAX, || Ok(logged() == 2))?;
    let end = |at: &str| -> Result<bool> {
        let expiry = "keywright_certificate_expiry_timestamp_seconds";
        let listener = format!("127.0.0.1:{}\"", port.proxy.http_port()?);
        Ok(port.proxy.figure(expiry, &[&listener])?.as_deref() == Some(at))
    };
    wait_until("the end in the metrics", WAIT_MAX, || end("978307200"))?;
    // The next one is good.
    pki.valid_until("proxy", (2999, 1, 1))?;
    port.proxy.reload_again()?;
    wait_until("the next certificate", WAIT_MAX, || {
        let url = format!(
            "https://127.0.0.1:{}/v1/keys/orders",
            port.proxy.http_port()?
        );
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-X", "POST", "-H", "Accept: text/plain", "--cacert"]);
        Ok(said(curl.arg(pki.file("proxy.pem")).arg(url)).is_ok())
    })?;
    assert_eq!(logged(), 2);
    wait_until("its end in the metrics", WAIT_MAX, || end("32472144000"))
}

const PYTHON: &str = r#"
import http.client, json, sys, threading, urllib.error, urllib.request
port = int(sys.argv[1])
def ask(path, method="POST", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
answer = ask("/v1/keys/flakes?count=100")
assert [int(key) for key in answer["keys"]] == answer["numbers"], answer
parts = ask("/v1/decode/" + answer["keys"][0], "GET")
assert parts["kind"] == "snowflake" and parts["id"] == answer["keys"][0], parts
try:
    ask("/v1/keys/none")
except urllib.error.HTTPError as error:
    told = json.load(error)
    assert (error.code, told["cause"], told["retryable"]) == (404, "tag_unknown", False), told
else:
    raise AssertionError("not refused")
all, lock = [], threading.Lock()
def take():
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for count in range(1, 200):
        connection.request("POST", f"/v1/keys/orders?count={count % 7 + 1}")
        ids = json.load(connection.getresponse())["numbers"]
        with lock:
            all.extend(ids)
    connection.close()
threads = [threading.Thread(target=take) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(set(all)) == len(all) > 5_000
print("ok")
"#;

#[test]
fn python_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    let mut python = Command::new("python3");
    python.args(["-c", PYTHON, &port.proxy.http_port()?.to_string()]);
    assert_eq!(said(&mut python)?, "ok\n");
    Ok(())
}
