//! The frameworks that recipes are tested with, and how their programs are run.
#![allow(dead_code, reason = "a file of tests uses what it needs")]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Context, ensure};
use keywright_testkit::Result;
use keywright_testkit::recipes::{self, Page, Recipe};

/// Whose libraries run a framework's programs.
#[derive(Debug, Clone, Copy)]
enum Language {
    Python,
    Node,
    Ruby,
}

/// A framework with a page, and programs in `tests/recipes/`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Framework {
    /// The page's name.
    pub(crate) page: &'static str,
    /// The table of the page's model.
    pub(crate) table: &'static str,
    language: Language,
    /// What is to be run once the files are there.
    build: &'static [&'static str],
    /// Makes the table.
    make: &'static [&'static [&'static str]],
    /// Uses the model, told which server it is on.
    check: &'static str,
}

pub(crate) const DJANGO: Framework = Framework {
    page: "django",
    table: "events_event",
    language: Language::Python,
    build: &[],
    make: &[
        &["migrating.py"],
        &["manage.py", "migrate", "--verbosity=0"],
    ],
    check: "check.py",
};

pub(crate) const SQLALCHEMY: Framework = Framework {
    page: "sqlalchemy",
    table: "event",
    language: Language::Python,
    build: &[],
    make: &[&["make.py"]],
    check: "check.py",
};

pub(crate) const SEQUELIZE: Framework = Framework {
    page: "sequelize",
    table: "events",
    language: Language::Node,
    build: &[],
    make: &[&["make.js"]],
    check: "check.js",
};

pub(crate) const TYPEORM: Framework = Framework {
    page: "typeorm",
    table: "event",
    language: Language::Node,
    build: &["node_modules/typescript/bin/tsc"],
    make: &[&["built/check.js"]],
    check: "built/check.js",
};

pub(crate) const RAILS: Framework = Framework {
    page: "rails",
    table: "events",
    language: Language::Ruby,
    build: &[],
    make: &[&["make.rb"]],
    check: "check.rb",
};

impl Framework {
    /// Its page.
    pub(crate) fn page(&self) -> Result<Page> {
        Page::read(self.page)
    }

    /// The page's code of that part, with words replaced, for this database behind this port, ready to run.
    pub(crate) fn lay_out(
        &self,
        part: &str,
        database: &str,
        port: u16,
        replaced: &[(&str, &str)],
    ) -> Result<Recipe> {
        let port = port.to_string();
        let place = [
            ("shop_1", database),
            ("5432", port.as_str()),
            ("6033", port.as_str()),
        ];
        let recipe = Recipe::lay_out(&self.page()?, part, &[&place, replaced].concat())?;
        match self.language {
            Language::Python | Language::Ruby => {}
            Language::Node => symlink(recipes::node()?, recipe.dir().join("node_modules"))
                .context("showing the libraries to a recipe")?,
        }
        if !self.build.is_empty() {
            self.run(&recipe, self.build)?;
        }
        Ok(recipe)
    }

    /// Makes the table of the page's model.
    pub(crate) fn make(&self, recipe: &Recipe) -> Result<()> {
        for program in self.make {
            self.run(recipe, program)?;
        }
        Ok(())
    }

    /// Uses the model in all ways, and returns the ids of its rows.
    pub(crate) fn check(&self, recipe: &Recipe, server: &str) -> Result<BTreeSet<u64>> {
        let ids = self.run(recipe, &[self.check, server])?;
        ensure!(ids.len() > 500, "{}: only {} ids", self.page, ids.len());
        Ok(ids)
    }

    /// Runs a program of the recipe.
    pub(crate) fn run(&self, recipe: &Recipe, words: &[&str]) -> Result<BTreeSet<u64>> {
        let program = match self.language {
            Language::Python => recipes::python()?,
            Language::Node => "node".into(),
            // Debian's, whose libraries are where its packages put them.
            Language::Ruby => "/usr/bin/ruby".into(),
        };
        recipe.run(Command::new(program).args(words))
    }
}

/// Asserts that no id is on both sides.
#[track_caller]
pub(crate) fn assert_distinct(sides: &[BTreeSet<u64>]) {
    let mut all = BTreeSet::new();
    for side in sides {
        let twice: Vec<_> = all.intersection(side).collect();
        assert!(twice.is_empty(), "ids of two databases: {twice:?}");
        all.extend(side);
    }
}
