//! What is wrong with settings: all of it is told at once.

use std::fmt;

use thiserror::Error;

/// Everything that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", lines(.problems))]
pub struct SettingsError {
    /// At least one.
    pub problems: Vec<SettingsProblem>,
}

/// One thing that is wrong with one setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{setting}: {problem}")]
pub struct SettingsProblem {
    /// As in the configuration file: `store.url`.
    pub setting: String,
    /// What is wrong with it.
    pub problem: String,
}

fn lines(problems: &[SettingsProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Gathers problems, so that all are reported at once.
#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<SettingsProblem>);

impl Problems {
    pub(super) fn add(&mut self, setting: &str, problem: impl Into<String>) {
        self.0.push(SettingsProblem {
            setting: setting.to_owned(),
            problem: problem.into(),
        });
    }

    pub(super) fn within<T: PartialOrd + fmt::Display + Copy>(
        &mut self,
        setting: &str,
        value: T,
        least: T,
        most: T,
    ) {
        if value < least || value > most {
            self.add(
                setting,
                format!("must be between {least} and {most}, not {value}"),
            );
        }
    }
}
