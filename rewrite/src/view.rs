//! The text of a view, as servers write it down: which columns of its table it shows, and under which names.

use crate::cursor::Cursor;
use crate::modes::Modes;
use crate::name::TableName;
use crate::refusal::Unread;
use crate::token::Kind;

/// A view of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewText {
    /// The table, or another view.
    pub table: TableName,
    /// What it shows.
    pub columns: Vec<ViewColumn>,
    /// The names in what rows must meet to be seen, and in their order.
    pub tested: Vec<Vec<u8>>,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewColumn {
    /// Its name in the view.
    pub name: Vec<u8>,
    /// The table's column; `None`: it is computed.
    pub of: Option<Vec<u8>>,
}

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
        let ends =
            self.peek()?.kind == Kind::End || self.accept("WHERE")? || self.accept("ORDER")?;
        let tested = self.names()?;
        Ok(ends.then_some(ViewText {
            table,
            columns,
            tested,
        }))
    }

    /// All names in the rest.
    fn names(&mut self) -> Result<Vec<Vec<u8>>, Unread> {
        let mut names = Vec::new();
        loop {
            match self.peek()?.kind {
                Kind::End => return Ok(names),
                Kind::Name => names.push(self.name_part()?),
                _ => drop(self.token()?),
            }
        }
    }

    /// Past an element of the select list.
    fn shown_column(&mut self) -> Result<Option<ViewColumn>, Unread> {
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
        let name = self.name_part()?;
        Ok(Some(ViewColumn { name, of }))
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
    use super::{ViewColumn, ViewText};
    use crate::modes::{CharsetClass, Flavour, Modes, Server};

    const MODES: Modes = Modes {
        ansi_quotes: false,
        no_backslash_escapes: false,
        no_auto_value_on_zero: None,
        strict: None,
        charset: CharsetClass::Safe,
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        },
    };

    /// The table and the columns, `name in the view=column`.
    fn read(text: &str) -> Option<String> {
        let view = ViewText::read(text.as_bytes(), &MODES)?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let mut shown = text(&view.table.schema.unwrap_or_default());
        shown = format!("{shown}.{}", text(&view.table.table));
        for ViewColumn { name, of } in view.columns {
            shown += &format!(" {}={}", text(&name), text(&of.unwrap_or_default()));
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
                "d.t id=id a=a",
            ),
            (
                "select `x`.`a` AS `from`,`x`.`id` AS `i ``d` from `d`.`t` `x` where `x`.`a` > 0 order by `x`.`a`",
                "d.t from=a i `d=id ?x ?a ?x ?a",
            ),
            (
                "select `d`.`t`.`a` + 1 AS `b`,cast(`d`.`t`.`a` as char(2)) AS `c`,concat(`d`.`t`.`a`,' AS `x`') AS `e`,\
                 (select 1 AS `1`) AS `f`,`d`.`t`.`id` AS `id` from `d`.`t` order by 1",
                "d.t b= c= e= f= id=id",
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
            "select `d`.`t`.`id` AS `id` from (select 1 AS `id`) `t`",
            "with `c` as (select 1) select `c`.`1` AS `1` from `c`",
            "select `d`.`t`.`id` AS `id",
            "select ,",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
