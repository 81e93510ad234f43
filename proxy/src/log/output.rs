//! Where the log goes. A reader that hangs, or a disk that is full, costs lines and nothing else.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// How long an event waits for a reader that is behind, milliseconds. Those that come after one that waited in vain are lost at once, until there is room.
const WAIT_MS_MAX: u64 = 100;
/// How long no event waits after one that did, seconds: a reader that is slow, but reads, would else hold up everybody with each event.
const NO_WAIT_S: u64 = 1;
/// What a pipe that has room takes without a wait: a page, on any machine.
const WRITE_BYTES_MAX: usize = 4_096;

/// An output that is written to only where that does not wait: whoever logs would wait with it, and every client behind. It is asked before each write,
/// and not made non-blocking: that would hold for all programs that write there. If another one fills a pipe between the question and the write, the
/// write waits all the same.
#[derive(Debug)]
pub struct LogOutput<W> {
    output: W,
    events_lost: u64,
    /// The last line has no end.
    is_cut: bool,
    /// Events before this moment do not wait.
    waits_from: Instant,
}

impl<W: AsFd + Write> LogOutput<W> {
    /// Nothing is lost yet.
    pub fn new(output: W) -> Self {
        Self {
            output,
            events_lost: 0,
            is_cut: false,
            waits_from: Instant::now(),
        }
    }

    fn put(&mut self, event: &[u8]) -> io::Result<()> {
        if self.events_lost > 0 {
            let report = lost(self.events_lost, self.is_cut);
            self.put_within(report.as_bytes(), Duration::ZERO)?;
            self.events_lost = 0;
        }
        let limit = match Instant::now() < self.waits_from {
            true => Duration::ZERO,
            false => Duration::from_millis(WAIT_MS_MAX),
        };
        self.put_within(event, limit)
    }

    fn put_within(&mut self, mut bytes: &[u8], limit: Duration) -> io::Result<()> {
        let end = Instant::now() + limit;
        while !bytes.is_empty() {
            self.wait_for_room(end)?;
            let part = bytes.get(..WRITE_BYTES_MAX).unwrap_or(bytes);
            let written = match self.output.write(part) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            if let Some(last) = part.get(..written).and_then(<[u8]>::last) {
                self.is_cut = *last != b'\n';
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns when there is room. If that takes a wait, the next events do not wait.
    fn wait_for_room(&mut self, end: Instant) -> io::Result<()> {
        let now = Instant::now();
        if self.has_room_by(now)? {
            return Ok(());
        }
        if now < end {
            let has_room = self.has_room_by(end);
            self.waits_from = Instant::now() + Duration::from_secs(NO_WAIT_S);
            if has_room? {
                return Ok(());
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Whether a write would not wait, also because it would fail at once: now, or when that moment comes.
    fn has_room_by(&self, end: Instant) -> io::Result<bool> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut asked = [PollFd::new(&self.output, PollFlags::OUT)];
            match poll(&mut asked, Some(&left)) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Each write is an event of the log with all its lines. It never fails: what is lost is counted, and the log says so when it can.
impl<W: AsFd + Write> Write for LogOutput<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        if self.put(event).is_err() {
            self.events_lost = self.events_lost.saturating_add(1);
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line that says how many events were lost, behind what was begun before.
fn lost(events: u64, is_cut: bool) -> String {
    let mut line = String::new();
    if is_cut {
        line.push('\n');
    }
    // A String takes everything.
    let _ = SystemTime.format_time(&mut Writer::new(&mut line));
    let target = module_path!();
    let _ = writeln!(
        line,
        "  WARN {target}: lines of the log were lost: nobody read them, or they could not be written events={events}"
    );
    line
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::time::{Duration, Instant};

    use super::{LogOutput, NO_WAIT_S, WAIT_MS_MAX};

    /// More than a pipe holds.
    const EVENTS: usize = 20_000;
    /// How the line begins that says how many were lost, behind its moment.
    const LOST: &str = "  WARN keywright_proxy::log::output: lines of the log were lost";

    fn event(number: usize) -> String {
        format!("event {number:>90}\n")
    }

    /// Reads once what is there, has the next event written, and returns all that has come.
    fn read_again(
        mut reader: io::PipeReader,
        mut output: LogOutput<io::PipeWriter>,
    ) -> io::Result<String> {
        let mut first = vec![0; 65_536];
        let count = reader.read(&mut first)?;
        first.truncate(count);
        output.write_all(b"read again\n")?;
        drop(output);
        reader.read_to_end(&mut first)?;
        String::from_utf8(first).map_err(io::Error::other)
    }

    #[test]
    fn a_reader_that_hangs_costs_events_which_are_counted() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        let mut output = LogOutput::new(writer);
        for number in 0..EVENTS {
            output.write_all(event(number).as_bytes())?;
        }
        let text = read_again(reader, output)?;
        let whole = text.lines().filter(|line| line.starts_with("event "));
        let whole = whole.count();
        let lost: Vec<&str> = text.lines().filter(|line| line.contains(LOST)).collect();
        let [lost] = lost.as_slice() else {
            panic!("{lost:?}");
        };
        let count = format!(" events={}", EVENTS - whole);
        assert!(lost.ends_with(&count), "{lost}: {whole} have come");
        assert!(whole > 0 && whole < EVENTS, "{whole}");
        assert!(text.ends_with("\nread again\n"));
        assert_eq!(text.lines().count(), whole + 2);
        Ok(())
    }

    /// Writes events until one is lost.
    fn fill(output: &mut LogOutput<io::PipeWriter>) -> io::Result<()> {
        while output.events_lost == 0 {
            output.write_all(event(0).as_bytes())?;
        }
        Ok(())
    }

    #[test]
    fn a_reader_that_is_behind_is_waited_for_once_a_second() -> io::Result<()> {
        let (mut reader, writer) = io::pipe()?;
        let mut output = LogOutput::new(writer);
        let mut page = vec![0; 65_536];
        let mut catch_up = |output: &mut LogOutput<io::PipeWriter>| -> io::Result<()> {
            assert!(reader.read(&mut page)? > 0);
            output.write_all(b"read again\n")?;
            assert_eq!(output.events_lost, 0);
            Ok(())
        };
        for _ in 0..2 {
            let began = Instant::now();
            fill(&mut output)?;
            let waited = Duration::from_millis(WAIT_MS_MAX);
            let waits_from = output.waits_from;
            assert!(
                waits_from >= began + waited + Duration::from_secs(NO_WAIT_S),
                "the last event waited"
            );
            // Not over before all is written, however slow this machine is.
            let later = waits_from + Duration::from_secs(3_600);
            output.waits_from = later;
            catch_up(&mut output)?;
            fill(&mut output)?;
            assert_eq!(output.waits_from, later, "no event waited");
            catch_up(&mut output)?;
            output.waits_from = Instant::now();
        }
        Ok(())
    }

    #[test]
    fn an_event_that_is_cut_off_takes_no_other_with_it() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        let mut output = LogOutput::new(writer);
        let list: String = (0..EVENTS).map(event).collect();
        output.write_all(list.as_bytes())?;
        let text = read_again(reader, output)?;
        let lost = text.lines().find(|line| line.contains(LOST));
        let lost = lost.unwrap_or_else(|| panic!("{text}"));
        assert!(
            lost.starts_with('2') && lost.ends_with(" events=1"),
            "{lost}"
        );
        assert!(text.ends_with("\nread again\n"));
        Ok(())
    }

    #[test]
    fn an_output_that_takes_nothing_is_no_error() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        drop(reader);
        LogOutput::new(writer).write_all(b"nobody reads\n")?;
        let full = File::options().write(true).open("/dev/full")?;
        LogOutput::new(full).write_all(b"there is no room\n")
    }
}
