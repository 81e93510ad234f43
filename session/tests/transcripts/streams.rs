//! Answers that go on: streams without an end, and reports before it.

use keywright_rewrite::KeyForm;
use keywright_wire::protocol::{COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_CLONE, COM_TABLE_DUMP};

use crate::rig::*;

/// Commands whose answers have no end.
const STREAMS: [u8; 4] = [
    COM_BINLOG_DUMP,
    COM_TABLE_DUMP,
    COM_BINLOG_DUMP_GTID,
    COM_CLONE,
];

/// Whoever may not replicate, or asks a server that does not know the command, goes on with statements.
#[test]
fn a_stream_that_is_refused_leaves_no_passthrough() {
    for command in STREAMS {
        for is_split in [false, true] {
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            let dump = [command, 4, 0, 0, 0, 0, 0, 9, 0, 0, 0];
            assert_eq!(r.say(&dump), packet(0, &dump));
            match is_split {
                false => drop(r.answer(&err())),
                true => err().iter().for_each(|byte| drop(r.answer(&[*byte]))),
            }
            assert_eq!(r.output(), err());
            assert!(r.s.is_between_commands());
            let sent = r.probed("INSERT INTO t (a) VALUES (1)", "1");
            assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
        }
    }
}

#[test]
fn a_stream_passes_both_ways_and_is_never_between_commands() {
    for command in STREAMS {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.say(&[command, 4, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        // The beginning of an event that is much longer, and what is no packet at all.
        let event = [0xFF, 0xFF, 0x7F, 1, 0, 1, 2, 3];
        r.answer(&event);
        assert_eq!(r.output(), event);
        assert!(!r.s.is_between_commands());
        let said = packet(0, b"\xEF any bytes");
        r.client.extend(&said);
        r.run();
        assert_eq!(std::mem::take(&mut r.to_server), said);
        r.answer(b"\xFF\xFF");
        assert_eq!(r.output(), b"\xFF\xFF");
    }
}

/// MariaDB sends them for CHECK TABLE and the like, behind the columns and before the rows.
#[test]
fn a_report_of_progress_among_rows_is_no_end() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("CHECK TABLE other");
    let mut answer = packet(1, &[1]);
    answer.extend(def(2));
    answer.extend(packet(
        3,
        b"\xFF\xFF\xFF\x01\x02\x03\0\0\0\x0DChecking keys",
    ));
    for byte in &answer {
        r.answer(&[*byte]);
    }
    assert_eq!(r.output(), answer);
    assert!(!r.s.is_between_commands(), "the table is being checked");
    let next = r.query("SELECT 1");
    assert!(next.is_empty(), "the next command waits");
    let mut rest = packet(4, b"\x02OK");
    rest.extend(packet(5, &[0xFE, 0, 0, 2, 0, 0, 0]));
    let next = r.answer(&rest);
    assert_eq!(r.output(), rest);
    assert!(has(&next, "SELECT 1"));
}

/// MySQL lets a SIGNAL have the number that reports of progress have with MariaDB, but not without its SQLSTATE.
#[test]
fn an_error_with_the_number_of_reports_is_an_end() {
    let error = |number| packet(number, b"\xFF\xFF\xFF#45000no");
    let rows = [packet(1, &[1]), def(2)].concat();
    for (before, error) in [(Vec::new(), error(1)), (rows, error(3))] {
        let mut r = rig_of_mysql(KeyForm::Integer, DEPRECATE_EOF);
        r.query("CALL p()");
        r.answer(&before);
        r.answer(&error);
        assert_eq!(r.output(), [before, error].concat());
        assert!(has(&r.say(&[0x0E]), "\x0E"), "the next command goes out");
    }
}
