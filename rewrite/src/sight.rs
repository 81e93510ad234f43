//! Whether a statement can see LAST_INSERT_ID().

use crate::cursor::Cursor;
use crate::head::InsertHead;
use crate::insert::Insert;
use crate::look::Kind;
use crate::modes::Modes;
use crate::refusal::Unread;
use crate::scan::Seen;

/// What a statement may see of LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sight {
    /// Nothing.
    Blind,
    /// It uses tables: a view or a trigger that the text does not show could see it.
    Unsure,
    /// It names it, or calls what may.
    Sees,
}

/// What one statement may see of LAST_INSERT_ID(). Reads the whole text, at memory speed.
pub fn sight(text: &[u8], modes: &Modes) -> Sight {
    let mut cursor = Cursor::new(text, modes);
    cursor.sight().unwrap_or(Sight::Sees)
}

impl Cursor<'_> {
    /// Past an INSERT's head, where `t (a)` is no call; stays where no such head is.
    fn skip_insert_head(&mut self) {
        let modes = self.modes;
        let insert = InsertHead::read(self.text, &modes)
            .and_then(|head| Insert::read(head, self.text, &modes));
        if let Ok(insert) = insert
            && !insert.head.prefixed
        {
            (self.at, self.inside) = (insert.rows, insert.inside);
        }
    }

    fn sight(&mut self) -> Result<Sight, Unread> {
        let mut look = *self;
        let kind = look.kind()?;
        let uses_tables = match kind {
            Kind::Call
            | Kind::Execute
            | Kind::ExecuteImmediate
            | Kind::Compound
            | Kind::SetStatement
            | Kind::Other => {
                return Ok(Sight::Sees);
            }
            Kind::CreateRoutine => return Ok(Sight::Blind),

            Kind::Empty
            | Kind::Lock
            | Kind::Unlock
            | Kind::Flush
            | Kind::Kill
            | Kind::Use
            | Kind::Prepare
            | Kind::Deallocate
            | Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Xa
            | Kind::DropTable
            | Kind::Select
            | Kind::Show
            | Kind::Do
            | Kind::Set => false,
            Kind::Insert
            | Kind::Replace
            | Kind::LoadData
            | Kind::With
            | Kind::OtherQuery
            | Kind::Update
            | Kind::Delete
            | Kind::Explain
            | Kind::Analyze
            | Kind::Handler => true,
            // Nothing is saved by looking closer: most end the transaction.
            Kind::Ddl | Kind::CreateTemporary => return Ok(Sight::Sees),
        };
        let mut seen = Seen::default();
        self.skip_insert_head();
        self.skip_statement(&mut seen)?;
        Ok(if seen.last_id || seen.calls {
            Sight::Sees
        } else if uses_tables || seen.from {
            Sight::Unsure
        } else {
            Sight::Blind
        })
    }
}
