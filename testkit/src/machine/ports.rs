//! Ports for servers.

use std::env;
use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use crate::Result;

/// Below those that the system gives to outgoing connections.
const FIRST: u16 = 20_000;
/// How many there are.
const PORTS: u16 = 12_000;
/// So many at once are a process's own.
const BLOCK_PORTS: u16 = 100;

/// A port of 127.0.0.1 that nobody listens on now. A process gets none a second time before it has had all of them, and no process
/// gets one of another that runs: between the choice of a port and its use a server is made, which takes seconds, and whoever found
/// the other one's server there would take it for its own.
///
/// # Errors
/// All ports are taken, or files cannot be locked.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    let mut blocks = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(port) = blocks.last_mut().and_then(Block::next) {
            return Ok(port);
        }
        match Block::take(&locks_dir()?)? {
            Some(block) => blocks.push(block),
            None if blocks.is_empty() => bail!("other processes have all blocks of ports"),
            // All over again: most of what listened there has ended.
            None => return given_again(&mut blocks),
        }
    }
}

fn given_again(blocks: &mut [Block]) -> Result<u16> {
    for _ in 0..blocks.len() {
        blocks.rotate_left(1);
        if let Some(block) = blocks.last_mut() {
            block.given = 0;
            if let Some(port) = block.next() {
                return Ok(port);
            }
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + PORTS);
}

fn locks_dir() -> Result<PathBuf> {
    let dir = env::temp_dir().join(format!("keywright-ports-{}", nix::unistd::getuid()));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}

/// Ports that no other process gives.
struct Block {
    first: u16,
    given: u16,
    /// It is locked until the process ends.
    _lock: File,
}

impl Block {
    /// One that nobody has; `None`: there is none. The first that is tried is a random one: a port that has just been left may still have
    /// connections.
    fn take(locks: &Path) -> Result<Option<Block>> {
        let blocks = PORTS / BLOCK_PORTS;
        let start = fastrand::u16(..blocks);
        for at in 0..blocks {
            let first = FIRST + (start + at) % blocks * BLOCK_PORTS;
            let path = locks.join(first.to_string());
            let lock = File::create(&path).with_context(|| format!("making {}", path.display()))?;
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Some(Block {
                        first,
                        given: 0,
                        _lock: lock,
                    }));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> Option<u16> {
        while self.given < BLOCK_PORTS {
            let port = self.first + self.given;
            self.given += 1;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ports_that_nobody_listens_on_yet_are_not_given_twice() -> Result<()> {
        let mut given = HashSet::new();
        for _ in 0..2_000 {
            let port = free_port()?;
            assert!(given.insert(port), "port {port} was given twice");
        }
        Ok(())
    }

    #[test]
    fn what_one_has_no_other_gets() -> Result<()> {
        let locks = tempfile::tempdir()?;
        let mut blocks = Vec::new();
        while let Some(block) = Block::take(locks.path())? {
            blocks.push(block);
        }
        let firsts: HashSet<u16> = blocks.iter().map(|block| block.first).collect();
        assert_eq!(firsts.len(), usize::from(PORTS / BLOCK_PORTS));
        let left = blocks.swap_remove(7).first;
        let again = Block::take(locks.path())?.map(|block| block.first);
        assert_eq!(again, Some(left));
        Ok(())
    }
}
