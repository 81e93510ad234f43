//! Builds suites and asks the programs for their tests.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;
use keywright_testkit::ProxyProcess;

use super::{Form, Suite};
use crate::shell::{cargo, output, step};

/// A suite and those of its tests that are wanted.
pub(crate) struct Built {
    pub(crate) suite: Suite,
    program: Program,
    /// By the names that the program gives them.
    pub(crate) tests: Vec<String>,
    /// Whether these are not all.
    narrowed: bool,
}

/// What runs a suite.
enum Program {
    Executable(PathBuf),
    /// Examples in documentation are built and run in one go, by cargo: those of all these packages, of which others are left out.
    Cargo(Vec<String>),
}

/// What cargo built.
pub(crate) struct Build {
    pub(crate) suites: Vec<Built>,
    /// Where suites of its package are among them: tests start it.
    pub(crate) program: Option<PathBuf>,
}

/// What one of the compiler's messages says was built.
enum Artifact {
    /// A test program, with the file at its root.
    Tests(PathBuf, PathBuf),
    Program(PathBuf),
}

/// Builds suites and lists their tests.
///
/// # Errors
/// A suite cannot be built; the compiler has said why.
pub(crate) fn build(suites: &[Suite]) -> Result<Build> {
    // Of all in one go: what they depend on has the features then that any of them asks for, and is compiled once.
    let packages: BTreeSet<&str> = suites.iter().map(|suite| suite.package.as_str()).collect();
    let artifacts = artifacts(&packages, suites)?;
    let executable_of = |suite: &Suite| {
        artifacts.iter().find_map(|artifact| match artifact {
            Artifact::Tests(root, executable) if *root == suite.root => Some(executable.clone()),
            Artifact::Tests(..) | Artifact::Program(_) => None,
        })
    };
    let built = suites
        .iter()
        .map(|suite| {
            let program = match suite.form {
                Form::Doc => Program::Cargo(packages.iter().copied().map(str::to_owned).collect()),
                Form::Library | Form::Program | Form::Integration => {
                    let executable = executable_of(suite);
                    let nothing = || format!("cargo built nothing of {}", suite.title());
                    Program::Executable(executable.with_context(nothing)?)
                }
            };
            Built::listed(suite.clone(), program)
        })
        .collect::<Result<Vec<Built>>>()?;
    let program = artifacts.iter().find_map(|artifact| match artifact {
        Artifact::Program(program) => Some(program.clone()),
        Artifact::Tests(..) => None,
    });
    Ok(Build {
        suites: built,
        program,
    })
}

fn artifacts(packages: &BTreeSet<&str>, suites: &[Suite]) -> Result<Vec<Artifact>> {
    let targets: BTreeSet<String> = suites.iter().filter_map(target).collect();
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = cargo(["test", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    for package in packages {
        command.args(["--package", package]);
    }
    command.args(targets);
    let packages = Vec::from_iter(packages.iter().copied()).join(", ");
    step(&format!("building tests of {packages}"));
    let mut cargo = command.stdout(Stdio::piped()).spawn()?;
    let said = cargo.stdout.take().context("cargo says nothing")?;
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(BufReader::new(said)) {
        let Message::CompilerArtifact(artifact) = message.context("reading what cargo built")?
        else {
            continue;
        };
        let target = artifact.target;
        match artifact.executable {
            Some(executable) if artifact.profile.test => {
                artifacts.push(Artifact::Tests(target.src_path.into(), executable.into()));
            }
            Some(executable) if target.name == ProxyProcess::NAME => {
                artifacts.push(Artifact::Program(executable.into()));
            }
            Some(_) | None => {}
        }
    }
    let status = cargo.wait()?;
    if !status.success() {
        bail!("the tests of {packages} could not be built: {status}");
    }
    Ok(artifacts)
}

/// How cargo is told of it; examples are not built before they run.
fn target(suite: &Suite) -> Option<String> {
    match suite.form {
        Form::Library => Some("--lib".to_owned()),
        Form::Program => Some(format!("--bin={}", suite.name)),
        Form::Integration => Some(format!("--test={}", suite.name)),
        Form::Doc => None,
    }
}

impl Built {
    fn listed(suite: Suite, program: Program) -> Result<Built> {
        let mut built = Built {
            suite,
            program,
            tests: Vec::new(),
            narrowed: false,
        };
        let mut command = built.command();
        let said = output(command.args(["--list", "--format", "terse"]))?;
        let tests = said.lines().filter_map(|line| line.strip_suffix(": test"));
        let place = format!("{}::", built.suite.place());
        let is_ours = |test: &&str| built.path_of(test).starts_with(&place);
        built.tests = tests.filter(is_ours).map(str::to_owned).collect();
        Ok(built)
    }

    /// Wants only those tests whose path is chosen.
    pub(super) fn narrow(&mut self, chosen: impl Fn(&str) -> bool) {
        let before = self.tests.len();
        let mut tests = std::mem::take(&mut self.tests);
        tests.retain(|test| chosen(&self.path_of(test)));
        self.tests = tests;
        self.narrowed |= self.tests.len() < before;
    }

    /// A test as people call it: where it lies, then its name.
    pub(crate) fn path_of(&self, test: &str) -> String {
        match self.suite.form {
            Form::Library | Form::Program | Form::Integration => {
                format!("{}::{test}", self.suite.place())
            }
            // `tests/src/lib.rs - the::item (line 7) - compile`
            Form::Doc => {
                let (file, item) = test.split_once(" - ").unwrap_or((test, ""));
                format!("{}::{item}", super::place(Path::new(file)))
            }
        }
    }

    /// The program, to be given the arguments of libtest.
    fn command(&self) -> Command {
        match &self.program {
            Program::Executable(executable) => {
                let mut command = Command::new(executable);
                command
                    .current_dir(&self.suite.package_dir)
                    .env("CARGO_MANIFEST_DIR", &self.suite.package_dir);
                command
            }
            Program::Cargo(packages) => {
                let mut command = cargo(["test", "--quiet", "--doc"]);
                for package in packages {
                    command.args(["--package", package]);
                }
                command.arg("--");
                command
            }
        }
    }

    /// The program with the arguments that run the wanted tests.
    pub(super) fn run_command(&self) -> Command {
        let mut command = self.command();
        if self.narrowed {
            command.arg("--exact").args(&self.tests);
        }
        match self.suite.form {
            // A test that is left out is no test.
            Form::Library | Form::Program | Form::Integration => command.arg("--include-ignored"),
            Form::Doc => command.arg(self.suite.place().replace("::", "/")),
        };
        command
    }
}
