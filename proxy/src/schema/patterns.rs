//! Patterns of rules beside each other.

use keywright_session::in_lower_case;

/// Whether a table may match both patterns of schema and table.
pub fn may_share_tables(one: &str, other: &str) -> bool {
    match (one.split_once('.'), other.split_once('.')) {
        (Some((schema, table)), Some((other_schema, other_table))) => {
            may_share(schema, other_schema) && may_share(table, other_table)
        }
        // Not as patterns are written.
        _ => may_share(one, other),
    }
}

/// Whether a name may match both patterns, however the server compares names.
fn may_share(one: &str, other: &str) -> bool {
    let other: Vec<char> = in_lower_case(other).chars().collect();
    // Whether what was read of the one may be each beginning of the other, the empty one first.
    let mut may_be = vec![true];
    for its in &other {
        let only_any = *its == '*' && may_be.last() == Some(&true);
        may_be.push(only_any);
    }
    for own in in_lower_case(one).chars() {
        let mut longer = vec![own == '*' && may_be.first() == Some(&true)];
        for (its, pair) in other.iter().zip(may_be.windows(2)) {
            let [both_shorter, own_shorter] = pair else {
                continue;
            };
            let its_shorter = longer.last() == Some(&true);
            longer.push(match own == '*' || *its == '*' {
                true => *own_shorter || its_shorter,
                false => *both_shorter && (own == *its || own == '?' || *its == '?'),
            });
        }
        may_be = longer;
    }
    may_be.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::may_share_tables;

    #[test]
    fn patterns_share_a_table_if_a_name_matches_both() {
        for (one, other, may) in [
            ("shop.orders", "shop.orders", true),
            ("shop.orders", "Shop.ORDERS", true),
            ("shop.ΑΣ", "shop.ασ", true),
            ("shop.orders", "shop.order", false),
            ("shop.*", "shop.orders", true),
            ("shop.*", "crm.*", false),
            ("shop_*.orders", "*_1.o?ders", true),
            ("shop.a*", "shop.*b", true),
            ("shop.a*", "shop.b*", false),
            ("shop.?", "shop.", false),
            ("shop_*.orders_*", "shop_*.carts_*", false),
            ("*", "", true),
        ] {
            assert_eq!(may_share_tables(one, other), may, "{one} {other}");
            assert_eq!(may_share_tables(other, one), may, "{other} {one}");
        }
    }
}
