//! What is refused where buckets are divided.

mod checked;
mod world;

use super::*;

fn range(first: u32, last: u32) -> Option<IdRange> {
    Some(IdRange { first, last })
}

#[test]
fn a_store_of_another_giver_is_refused() {
    let own = OwnBuckets {
        giver: "another".to_owned(),
        ..OwnBuckets::closed("id 1".to_owned())
    };
    for giver in [None, Some("id 0")] {
        let planned = plan_close(
            Some(&own),
            (&[], None),
            range(0, 1),
            giver,
            Rest::AsRecorded,
        );
        assert_eq!(planned, Err(Refused::AnothersBuckets));
    }
    let rows = BucketRows {
        own: Some(own),
        given: Vec::new(),
    };
    let planned = plan_give(&rows, 0, &[], range(0, 1), &[], Rest::AsRecorded);
    assert_eq!(planned, Err((String::new(), Refused::AnothersBuckets)));
}

/// It may have been a giver since its backup, whoever is to be the giver now.
#[test]
fn what_came_back_without_a_giver_is_given_nothing_without_the_owners_word() {
    let before = OwnBuckets::closed("id 1".to_owned());
    let giver = OwnBuckets {
        giver: before.store_id.clone(),
        is_open: true,
        ..before.clone()
    };
    for (own, refused) in [
        (before, Refused::Forgotten),
        (giver, Refused::AnothersBuckets),
    ] {
        let own = own.restored(7);
        assert!(own.needs_word());
        let close = |rest| plan_close(Some(&own), (&[], None), range(0, 9), Some("id 0"), rest);
        assert_eq!(close(Rest::AsRecorded), Err(refused));
        assert_eq!(close(Rest::HasNone), Ok(()));
        let rows = BucketRows {
            own: Some(own),
            given: Vec::new(),
        };
        let give = |rest| plan_give(&rows, 7, &[], range(0, 9), &[], rest);
        assert_eq!(
            give(Rest::AsRecorded),
            Err((String::new(), Refused::Forgotten))
        );
        assert_eq!(give(Rest::HasNone), Ok(Vec::new()));
    }
}

#[test]
fn buckets_of_databases_stay_with_the_store_that_assigns_them() {
    let close = |assigned| {
        plan_close(
            None,
            (&[], assigned),
            range(100, 199),
            None,
            Rest::AsRecorded,
        )
    };
    for (first, last) in [(5, 9), (99, 100), (199, 300)] {
        let assigned = IdRange { first, last };
        let refused = Err(Refused::AssignedThere(assigned));
        assert_eq!(close(Some(assigned)), refused);
    }
    // Above the largest bucket there is none.
    for (first, last) in [(100, 199), (256, 900)] {
        assert_eq!(close(range(first, last)), Ok(()));
    }
}
