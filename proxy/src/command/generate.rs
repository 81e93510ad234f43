//! `generate`: what packages install beside the program.

use std::io::stdout;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;

#[derive(Args)]
pub(crate) struct Generate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print what a shell needs to complete commands and options.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write manual pages, one for each command.
    Man {
        /// The directory, which must be there.
        directory: PathBuf,
    },
}

impl Generate {
    /// For the whole command line.
    pub(crate) fn run(&self, mut program: Command) -> Result<()> {
        match &self.what {
            What::Completions { shell } => {
                let name = program.get_name().to_owned();
                clap_complete::generate(*shell, &mut program, name, &mut stdout());
                Ok(())
            }
            What::Man { directory } => clap_mangen::generate_to(program, directory)
                .with_context(|| format!("writing manual pages to {}", directory.display())),
        }
    }
}
