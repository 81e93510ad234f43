//! The text of a view, as servers write it down: which columns of its table it shows.

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::token::Kind;
use crate::modes::Modes;
use crate::refusal::Unread;

/// A view of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewText {
    /// The table, or another view.
    pub table: TableName,
    /// What it shows, in order: the table's columns, and `None` for what is computed. The names that follow AS are the view's
    /// own only where it was made without a list of them, as MySQL writes it down.
    pub columns: Vec<Option<Vec<u8>>>,
    /// The names in what rows must meet to be seen, and in their order.
    pub tested: Vec<Vec<u8>>,
}

/// What may stand before what a view shows, and says only how the server goes about it.
const MANNERS: [&str; 8] = [
    "HIGH_PRIORITY",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
    "SQL_NO_CACHE",
    "SQL_SMALL_RESULT",
    "STRAIGHT_JOIN",
];

impl ViewText {
    /// Reads the SELECT that `information_schema.views` has as a view's definition. `None`: it reads more than one table, or is
    /// written in another way.
    pub fn read(text: &[u8], modes: &Modes) -> Option<Self> {
        Cursor::new(text, modes).view().ok().flatten()
    }
}

impl Cursor<'_> {
    fn view(&mut self) -> Result<Option<ViewText>, Unread> {
        if !self.accept("SELECT")? {
            return Ok(None);
        }
        while self.accept_any(&MANNERS)? {}
        let mut columns = Vec::new();
        loop {
            let Some(column) = self.shown_column()? else {
                return Ok(None);
            };
            columns.push(column);
            if !self.accept_mark(b',')? {
                break;
            }
        }
        if !self.accept("FROM")? {
            return Ok(None);
        }
        let table = self.table_name()?;
        if self.peek()?.kind == Kind::Name {
            // Another name for the table.
            self.token()?;
        }
        while self.accept_any(&["USE", "FORCE", "IGNORE"])? {
            if !self.index_hint()? {
                return Ok(None);
            }
        }
        let ends =
            self.peek()?.kind == Kind::End || self.accept("WHERE")? || self.accept("ORDER")?;
        let tested = self.names()?;
        Ok(ends.then_some(ViewText {
            table,
            columns,
            tested,
        }))
    }

    fn accept_any(&mut self, words: &[&str]) -> Result<bool, Unread> {
        for word in words {
            if self.accept(word)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Past the rest of an index hint; false when it is none.
    fn index_hint(&mut self) -> Result<bool, Unread> {
        if !self.accept_any(&["INDEX", "KEY"])? {
            return Ok(false);
        }
        if self.accept("FOR")? {
            while self.peek()?.kind == Kind::Word {
                self.token()?;
            }
        }
        if !self.accept_mark(b'(')? {
            return Ok(false);
        }
        loop {
            match self.token()?.kind {
                Kind::End => return Ok(false),
                Kind::Mark(b')') => return Ok(true),
                _ => {}
            }
        }
    }

    /// All names in the rest, and what could be one: a server may be set to write names without quotes.
    fn names(&mut self) -> Result<Vec<Vec<u8>>, Unread> {
        let mut names = Vec::new();
        loop {
            match self.peek()?.kind {
                Kind::End => return Ok(names),
                Kind::Word | Kind::Name => names.push(self.name_part()?),
                _ => drop(self.token()?),
            }
        }
    }

    /// Past an element of the select list; the outer `None`: it is written in another way.
    fn shown_column(&mut self) -> Result<Option<Option<Vec<u8>>>, Unread> {
        let mut of = None;
        let mut ahead = *self;
        if let Ok(path) = ahead.path()
            && ahead.accept("AS")?
        {
            of = Some(path.last);
            *self = ahead;
        } else if !self.skip_to_as()? {
            return Ok(None);
        }
        self.name_part()?;
        Ok(Some(of))
    }

    /// Past the AS that names an expression; false when it has none.
    fn skip_to_as(&mut self) -> Result<bool, Unread> {
        let mut depth = 0_usize;
        loop {
            let token = self.token()?;
            match token.kind {
                Kind::End => return Ok(false),
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth = depth.saturating_sub(1),
                Kind::Mark(b',') if depth == 0 => return Ok(false),
                Kind::Word if depth == 0 && token.is(self.text, "AS") => return Ok(true),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ViewText;
    use crate::modes::{Flavour, Modes, Server};

    const MODES: Modes = Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    });

    /// The table and the columns, `+` for what is computed, `?` for what rows must meet.
    fn read(text: &str) -> Option<String> {
        let view = ViewText::read(text.as_bytes(), &MODES)?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let mut shown = text(&view.table.schema.unwrap_or_default());
        shown = format!("{shown}.{}", text(&view.table.table));
        for column in view.columns {
            shown += &format!(" {}", text(&column.unwrap_or_else(|| b"+".to_vec())));
        }
        for name in view.tested {
            shown += &format!(" ?{}", text(&name));
        }
        Some(shown)
    }

    #[test]
    fn views_of_one_table_are_read() {
        for (text, shown) in [
            (
                "select `d`.`t`.`id` AS `id`,`d`.`t`.`a` AS `a` from `d`.`t`",
                "d.t id a",
            ),
            (
                "select `x`.`a` AS `from`,`x`.`i ``d` AS `id` from `d`.`t` `x` where `x`.`a` > 0 order by `x`.`a`",
                "d.t a i `d ?x ?a ?order ?by ?x ?a",
            ),
            (
                "select `d`.`t`.`a` + 1 AS `b`,cast(`d`.`t`.`a` as char(2)) AS `c`,concat(`d`.`t`.`a`,' AS `x`') AS `e`,\
                 (select 1 AS `1`) AS `f`,`d`.`t`.`id` AS `id` from `d`.`t` order by 1",
                "d.t + + + + id ?by",
            ),
            (
                "select d.t.`id` AS `id`,d.t.a AS a from d.t where d.t.a = 0 or b",
                "d.t id a ?d ?t ?a ?or ?b",
            ),
            (
                "select straight_join sql_no_cache `d`.`t`.`id` AS `id` from `d`.`t` `x` USE INDEX FOR ORDER BY (`a`,`b`) \
                 IGNORE INDEX (PRIMARY) where `x`.`a` = 1",
                "d.t id ?x ?a",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Some(shown), "{text}");
        }
    }

    #[test]
    fn others_are_not() {
        for text in [
            "select `d`.`t`.`id` AS `id` from (`d`.`t` join `d`.`u` on(1))",
            "select `d`.`t`.`id` AS `id` from `d`.`t` `x` join `d`.`u`",
            "select `d`.`t`.`id` AS `id` from `d`.`t`,`d`.`u`",
            "select `d`.`t`.`id` AS `id` from `d`.`t` limit 1",
            "select `d`.`t`.`id` AS `id` from `d`.`t` union select 1 AS `1`",
            "select distinct `d`.`t`.`id` from `d`.`t`",
            "select 1 AS `1`",
            "select `d`.`t`.`a` + 1,`d`.`t`.`id` AS `id` from `d`.`t`",
            "select `d`.`t`.`id` AS `id` from (select 1 AS `id`) `t`",
            "with `c` as (select 1) select `c`.`1` AS `1` from `c`",
            "select `d`.`t`.`id` AS `id` from `d`.`t` force index (`a`",
            "select `d`.`t`.`id` AS `id` from `d`.`t` force `a`",
            "select `d`.`t`.`id` AS `id",
            "select ,",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
