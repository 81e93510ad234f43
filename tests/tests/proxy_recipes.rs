//! The recipes of the documentation before MariaDB and MySQL: what the pages print runs through the proxy, with the libraries
//! that they are for.

#[path = "common/frameworks.rs"]
mod frameworks;

use anyhow::Context;
use frameworks::{DJANGO, Framework, RAILS, SEQUELIZE, SQLALCHEMY, TYPEORM, assert_distinct};
use keywright_testkit::recipes::{Recipe, replace_all};
use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Result, Upstream, make_store};

keywright_testkit::on_both_flavours!(django, sqlalchemy, sequelize, typeorm, rails);

/// A page's code, and words of it that are called otherwise here.
struct Use<'a> {
    framework: &'a Framework,
    /// What the names of databases and store begin with.
    name: &'a str,
    /// Words of the page for which others are tried.
    replaced: &'a [(&'a str, &'a str)],
}

impl Use<'_> {
    /// The page's code for a database behind a port.
    fn lay_out(&self, database: &str, port: u16) -> Result<Recipe> {
        self.framework
            .lay_out("mysql", database, port, self.replaced)
    }

    /// The configuration with the page's rule.
    fn config(&self, server: &Upstream, store_url: &str) -> Result<ProxyConfig> {
        let rule = self.framework.page()?.file("mysql", "rule.toml")?;
        let rule = rule
            .strip_prefix("[[rule]]\n")
            .context("a page's rule begins with its head")?;
        let rule = replace_all(rule, &[("shop_", &format!("{}_", self.name))]);
        let mut config = ProxyConfig::before(server, store_url);
        config.rules.push(replace_all(&rule, self.replaced));
        Ok(config)
    }

    /// Makes the page's table on two databases, puts the proxy before them, and runs the page's code on both.
    fn on_two_databases(&self, flavour: Flavour) -> Result<()> {
        let server = Upstream::shared(flavour)?;
        let databases = [1, 2].map(|number| format!("{}_{number}", self.name));
        for name in &databases {
            server.run(
                "mysql",
                &format!(
                    "CREATE DATABASE {name};
                     CREATE USER IF NOT EXISTS app@'127.0.0.1' IDENTIFIED BY 'app';
                     GRANT ALL ON {name}.* TO app@'127.0.0.1'"
                ),
            )?;
            self.framework.make(&self.lay_out(name, server.port())?)?;
        }
        let store_url = make_store(&server, &format!("store_{}", self.name), &[])?;
        let config = self.config(&server, &store_url)?;
        ProxyProcess::said(&config, &["init"])?;
        let proxy = ProxyProcess::start(config)?;
        let mut sides = Vec::new();
        for name in &databases {
            let recipe = self.lay_out(name, proxy.port())?;
            let ids = self.framework.check(&recipe, flavour.name());
            sides.push(ids.with_context(|| format!("the proxy's log:\n{}", proxy.log()))?);
        }
        assert_distinct(&sides);
        Ok(())
    }
}

/// As the page has it.
fn as_printed(flavour: Flavour, framework: &Framework) -> Result<()> {
    let of_page = Use {
        framework,
        name: framework.page,
        replaced: &[],
    };
    of_page.on_two_databases(flavour)
}

fn django(flavour: Flavour) -> Result<()> {
    as_printed(flavour, &DJANGO)
}

fn sqlalchemy(flavour: Flavour) -> Result<()> {
    as_printed(flavour, &SQLALCHEMY)
}

fn sequelize(flavour: Flavour) -> Result<()> {
    as_printed(flavour, &SEQUELIZE)
}

fn typeorm(flavour: Flavour) -> Result<()> {
    as_printed(flavour, &TYPEORM)
}

fn rails(flavour: Flavour) -> Result<()> {
    as_printed(flavour, &RAILS)
}

/// With that type TypeORM reads keys back as text, as its page says, so that they may have all bits.
#[test]
fn large_keys_with_typeorms_type_for_mariadb() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let large = Use {
        framework: &TYPEORM,
        name: "large",
        replaced: &[
            ("type: \"mysql\"", "type: \"mariadb\""),
            ("mysql://", "mariadb://"),
            ("segment:events", "snowflake"),
            ("bits_max = 53\n", ""),
        ],
    };
    large.on_two_databases(Flavour::MariaDb)
}
