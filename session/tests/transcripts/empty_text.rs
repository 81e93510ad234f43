//! A bound `''` where MariaDB takes it for NULL: it asks for a key, whatever else sql_mode says.

use super::rig::*;

#[test]
fn a_bound_text_without_content_is_refused_where_it_is_null() {
    for sql_mode in [
        "STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL",
        "EMPTY_STRING_IS_NULL,NO_AUTO_VALUE_ON_ZERO",
    ] {
        for (value, is_refused) in [(&[0][..], true), (b"\x03abc", false)] {
            let mut r = with_bound_key(sql_mode);
            let execution = execute(7, &[&[0, 1, 0xFD, 0], value].concat());
            // Later it is as it was when the statement was prepared.
            for is_later in [false, true] {
                if is_later {
                    r.query("SET sql_mode = 'STRICT_TRANS_TABLES'");
                    r.answer(&ok(0, 0));
                    r.output();
                }
                let sent = r.say(&execution);
                if has(&sent, "@@session.sql_mode") {
                    r.answer(&probe_in("STRICT_TRANS_TABLES", "1"));
                }
                let refused = has(&r.output(), "a string that is no number");
                assert_eq!(refused, is_refused, "{sql_mode} {is_later}");
                if !is_refused {
                    r.answer(&ok(1, 0));
                    r.output();
                }
            }
        }
    }
}
