//! Replies, as another reader reads them.

use keywright_resp::reply::{Protocol, Writer};
use redis_protocol::resp2::types::OwnedFrame;
use redis_protocol::{resp2, resp3};

fn written(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out, protocol));
    out
}

fn read(bytes: &[u8]) -> OwnedFrame {
    let (frame, length) = resp2::decode::decode(bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
    frame
}

#[test]
fn what_is_written_is_what_others_read() {
    let resp2 = |write: fn(&mut Writer<'_>)| read(&written(Protocol::Resp2, write));
    let bulk = |text: &str| OwnedFrame::BulkString(text.as_bytes().to_vec());
    assert_eq!(
        resp2(|to| to.ok()),
        OwnedFrame::SimpleString(b"OK".to_vec())
    );
    assert_eq!(
        resp2(|to| to.error("ERR", "two\r\nlines")),
        OwnedFrame::Error("ERR two  lines".to_owned())
    );
    for value in [0, 7, -1, 10, 99, 100, i64::MAX, i64::MIN] {
        let bytes = written(Protocol::Resp2, |to| to.integer(value));
        assert_eq!(read(&bytes), OwnedFrame::Integer(value));
    }
    for value in [0, 9, 10, 1_000, u64::MAX] {
        let bytes = written(Protocol::Resp2, |to| to.bulk_number(value));
        assert_eq!(read(&bytes), bulk(&value.to_string()));
    }
    assert_eq!(resp2(|to| to.bulk(b"a\r\nb")), bulk("a\r\nb"));
    assert_eq!(resp2(|to| to.null()), OwnedFrame::Null);
    let pair = |to: &mut Writer<'_>| {
        to.map(1);
        to.text("a");
        to.null();
    };
    assert_eq!(
        resp2(pair),
        OwnedFrame::Array(vec![bulk("a"), OwnedFrame::Null])
    );
}

#[test]
fn version_3_has_maps_texts_and_null() {
    let bytes = written(Protocol::Resp3, |to| {
        to.array(2);
        to.null();
        to.map(1);
        to.bulk(b"proto");
        to.text("three");
    });
    assert_eq!(
        bytes,
        b"*2\r\n_\r\n%1\r\n$5\r\nproto\r\n=9\r\ntxt:three\r\n"
    );
    let (_, length) = resp3::decode::complete::decode(&bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
}
