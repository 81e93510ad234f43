//! Long statements: gathered whole, with whatever comes behind them, and one after the other on one connection.

use std::sync::Arc;

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, command, make_store,
};

keywright_testkit::on_both_flavours!(long_statements_get_their_keys, what_follows_is_not_touched);

struct Shop {
    server: Arc<Upstream>,
    _proxy: ProxyProcess,
    wire: keywright_testkit::Wire,
}

impl Shop {
    fn open(flavour: Flavour, name: &str) -> Result<Shop> {
        let server = Upstream::shared(flavour)?;
        server.run(
            "mysql",
            &format!(
                "CREATE DATABASE {name}; CREATE TABLE {name}.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT, a LONGTEXT)"
            ),
        )?;
        let store = make_store(&server, &format!("store_{name}"), &[("t", 1)])?;
        let config = ProxyConfig::before(&server, &store).rule(&format!("{name}.t"), "segment:t");
        let proxy = ProxyProcess::start(config)?;
        let wire = proxy.wire(name)?;
        Ok(Shop {
            server,
            _proxy: proxy,
            wire,
        })
    }

    /// Rows, distinct keys, the sum of the numbers and of the lengths of texts, and how far ids are from the order of numbers.
    fn sums(&self, name: &str) -> Result<Vec<String>> {
        let mut rows = self.server.run(
            name,
            "SELECT COUNT(*), COUNT(DISTINCT id), SUM(n), SUM(LENGTH(a)), SUM(a = REPEAT('x', n % 200)), \
             MAX(id) - MIN(id) + 1 - COUNT(*) FROM t",
        )?;
        Ok(rows.swap_remove(0))
    }
}

/// Rows from `first` on, each as the form has it: with its number for `#`, and its text for `@`.
fn insert(head: &str, form: &str, first: usize, count: usize) -> String {
    let rows: Vec<String> = (first..first + count)
        .map(|n| {
            let text = "x".repeat(n % 200);
            form.replace('#', &n.to_string()).replace('@', &text)
        })
        .collect();
    format!("{head} {}", rows.join(", "))
}

fn long_statements_get_their_keys(flavour: Flavour) -> Result<()> {
    let mut shop = Shop::open(flavour, "longs")?;
    let forms = [
        ("INSERT INTO t (n, a) VALUES", "(#, '@')"),
        ("INSERT INTO t (n, id, a) VALUES", "(#, NULL, '@')"),
        ("INSERT t VALUES", "(DEFAULT, #, '@')"),
        ("REPLACE INTO longs.t (a, n) VALUES", "('@', #)"),
    ];
    let (mut first, mut next_id) = (1, 1);
    // From texts that come whole to those that make the buffer grow again and again.
    for count in [10, 100, 150, 1_000, 5_000, 30_000, 1_000] {
        for (head, form) in forms {
            let done = shop.wire.run(insert(head, form, first, count))?;
            assert_eq!(done.affected_rows, count as u64, "{head} {count}");
            assert_eq!(done.last_insert_id, next_id, "{head} {count}");
            first += count;
            next_id += count as u64;
        }
    }
    let rows = first - 1;
    let numbers = rows * (rows + 1) / 2;
    let lengths: usize = (1..first).map(|n| n % 200).sum();
    let expected = [rows, rows, numbers, lengths, rows, 0].map(|sum| sum.to_string());
    assert_eq!(shop.sums("longs")?, expected);
    Ok(())
}

fn what_follows_is_not_touched(flavour: Flavour) -> Result<()> {
    let mut shop = Shop::open(flavour, "followed")?;
    let packet = |text: &str| -> Result<Vec<u8>> {
        let len = u32::try_from(text.len() + 1)?.to_le_bytes();
        Ok([
            &[len[0], len[1], len[2], 0, command::QUERY],
            text.as_bytes(),
        ]
        .concat())
    };
    // The client does not wait for answers.
    let mut sent = Vec::new();
    let insert = |first| insert("INSERT INTO t (n, a) VALUES", "(#, '@')", first, 1_000);
    for round in 0..5 {
        sent.extend(packet(&insert(1 + round * 1_000))?);
        sent.extend(packet(&format!("SELECT {round}, LAST_INSERT_ID()"))?);
    }
    shop.wire.send_raw(&sent)?;
    for round in 0..5 {
        let mut replies = shop.wire.read_query()?;
        assert_eq!(replies.swap_remove(0).done()?.affected_rows, 1_000);
        let replies = shop.wire.read_query()?;
        let [Reply::Rows(rows)] = replies.as_slice() else {
            anyhow::bail!("{replies:?}");
        };
        let first_id = 1 + round * 1_000;
        assert_eq!(rows.as_text(), [[round.to_string(), first_id.to_string()]]);
    }
    let sums = shop.sums("followed")?;
    assert_eq!(sums[..2], ["5000", "5000"]);
    assert_eq!(sums[4..], ["5000", "0"]);
    Ok(())
}
