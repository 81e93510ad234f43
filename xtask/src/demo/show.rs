//! What the demo shows: its stages with how long each took, and what came of it. All of it is kept, for the recording in the
//! documentation.

use std::cell::{Cell, RefCell};
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};
use keywright_testkit::workspace_root;

/// The recording that README is shortened from.
const RECORDING: &str = "docs/demo.txt";

/// The stage that is under way, and all that was shown.
pub(crate) struct Show {
    began: Instant,
    stage: Cell<Option<Instant>>,
    shown: RefCell<String>,
}

impl Show {
    /// Nothing has been shown yet.
    pub(crate) fn begin() -> Show {
        Show {
            began: Instant::now(),
            stage: Cell::new(None),
            shown: RefCell::default(),
        }
    }

    /// Says how long the stage before took, and what comes next.
    pub(crate) fn stage(&self, text: &str) {
        self.end_stage();
        self.say(&format!("==> {text}"));
        self.stage.set(Some(Instant::now()));
    }

    /// Says how long the last stage took, and all of them.
    pub(crate) fn end(&self) {
        self.end_stage();
        let took = self.began.elapsed().as_secs_f64();
        self.say(&format!("\n{took:.0} s in all"));
    }

    fn end_stage(&self) {
        if let Some(began) = self.stage.take() {
            self.say(&format!("    ({:.1} s)", began.elapsed().as_secs_f64()));
        }
    }

    /// Lines of what came of a stage.
    pub(crate) fn say(&self, text: &str) {
        println!("{text}");
        self.keep(text);
    }

    /// What was said already, in a line that was written over.
    pub(crate) fn keep(&self, text: &str) {
        let mut shown = self.shown.borrow_mut();
        shown.push_str(text);
        shown.push('\n');
    }

    /// Writes all of it to the recording.
    pub(crate) fn record(&self) -> Result<()> {
        let text = format!("$ cargo xtask demo --once\n{}", self.shown.borrow());
        fs::write(workspace_root().join(RECORDING), text)
            .with_context(|| format!("writing {RECORDING}"))
    }
}
