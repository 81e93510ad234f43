//! The kind of a statement, by its first keywords.

use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind as TokenKind, Token};
use crate::modes::{Flavour, Modes};
use crate::refusal::Unread;

/// What kind of statement a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each is its SQL keyword, unless said otherwise"
)]
pub enum Kind {
    /// Nothing but blanks and comments.
    Empty,
    /// INSERT, also behind `ANALYZE` and `SET STATEMENT … FOR`.
    Insert,
    /// REPLACE, also behind `ANALYZE` and `SET STATEMENT … FOR`.
    Replace,
    LoadData,
    Select,
    /// `SELECT NEXT VALUE FOR …`, `SELECT NEXT n VALUES FOR …`.
    NextValue,
    With,
    /// TABLE t, VALUES ROW(…), or a query in parentheses.
    OtherQuery,
    Update,
    Delete,
    Show,
    /// EXPLAIN, DESCRIBE, DESC: nothing is carried out.
    Explain,
    /// ANALYZE of something that is no INSERT.
    Analyze,
    Do,
    Handler,
    /// GET DIAGNOSTICS: of the statement before, into variables.
    GetDiagnostics,
    Lock,
    Unlock,
    Flush,
    Kill,
    Set,
    /// `SET STATEMENT … FOR` something that is no INSERT.
    SetStatement,
    Use,
    Prepare,
    Execute,
    ExecuteImmediate,
    /// DEALLOCATE PREPARE or DROP PREPARE.
    Deallocate,
    Call,
    /// BEGIN or START TRANSACTION.
    Begin,
    Commit,
    Rollback,
    /// SAVEPOINT or RELEASE SAVEPOINT.
    Savepoint,
    Xa,
    /// CREATE [OR REPLACE] TEMPORARY TABLE.
    CreateTemporary,
    /// DROP TABLE, DROP TEMPORARY TABLE.
    DropTable,
    /// CREATE of what has a body: PROCEDURE, FUNCTION, TRIGGER, EVENT, PACKAGE, LIBRARY; ALTER EVENT.
    CreateRoutine,
    /// Other CREATE, ALTER, DROP, RENAME, TRUNCATE.
    Ddl,
    /// A compound statement outside a routine, also one of MariaDB's sql_mode ORACLE: it may do anything.
    Compound,
    /// Anything else.
    Other,
}

/// The kind of one statement. Reads no more than its first keywords, and as far as its verb behind `SET STATEMENT`.
pub fn kind(text: &[u8], modes: &Modes) -> Kind {
    let mut cursor = Cursor::new(text, modes);
    cursor.kind().unwrap_or(Kind::Other)
}

/// The kind of a statement of which this is the beginning. [`Kind::Empty`] where what follows may make it any.
pub fn kind_of_beginning(beginning: &[u8], modes: &Modes) -> Kind {
    let mut cursor = Cursor::new(beginning, modes);
    let Ok(kind) = cursor.kind() else {
        return Kind::Empty;
    };
    // The words behind these say what they are.
    let goes_on = matches!(kind, Kind::Set | Kind::Analyze | Kind::Other);
    let is_whole = match goes_on {
        true => cursor.is_before_whole_word().unwrap_or(false),
        false => !cursor.ended(),
    };
    if is_whole { kind } else { Kind::Empty }
}

/// What stands behind `SET STATEMENT … FOR`; `None` if the text does not begin so.
pub fn behind_set_statement<'t>(text: &'t [u8], modes: &Modes) -> Option<&'t [u8]> {
    let mut cursor = Cursor::new(text, modes);
    cursor.set_statement().ok()??;
    Some(cursor.rest())
}

/// First keywords that decide; those of most statements first.
const KEYWORDS: &[(&str, Kind)] = &[
    ("SELECT", Kind::Select),
    ("INSERT", Kind::Insert),
    ("UPDATE", Kind::Update),
    ("DELETE", Kind::Delete),
    ("COMMIT", Kind::Commit),
    ("ALTER", Kind::Ddl),
    ("ANALYZE", Kind::Analyze),
    ("BEGIN", Kind::Begin),
    ("CALL", Kind::Call),
    ("CASE", Kind::Compound),
    ("CREATE", Kind::Ddl),
    ("DEALLOCATE", Kind::Deallocate),
    ("DECLARE", Kind::Compound),
    ("DESC", Kind::Explain),
    ("DESCRIBE", Kind::Explain),
    ("DO", Kind::Do),
    ("DROP", Kind::Ddl),
    ("EXECUTE", Kind::Execute),
    ("EXPLAIN", Kind::Explain),
    ("FLUSH", Kind::Flush),
    ("FOR", Kind::Compound),
    ("GET", Kind::GetDiagnostics),
    ("HANDLER", Kind::Handler),
    ("IF", Kind::Compound),
    ("KILL", Kind::Kill),
    ("LOAD", Kind::LoadData),
    ("LOCK", Kind::Lock),
    ("LOOP", Kind::Compound),
    ("PREPARE", Kind::Prepare),
    ("RELEASE", Kind::Savepoint),
    ("RENAME", Kind::Ddl),
    ("REPEAT", Kind::Compound),
    ("REPLACE", Kind::Replace),
    ("ROLLBACK", Kind::Rollback),
    ("SAVEPOINT", Kind::Savepoint),
    ("SET", Kind::Set),
    ("SHOW", Kind::Show),
    ("START", Kind::Begin),
    ("TABLE", Kind::OtherQuery),
    ("TRUNCATE", Kind::Ddl),
    ("UNLOCK", Kind::Unlock),
    ("USE", Kind::Use),
    ("VALUES", Kind::OtherQuery),
    ("WHILE", Kind::Compound),
    ("WITH", Kind::With),
    ("XA", Kind::Xa),
];

impl Cursor<'_> {
    /// The kind of the statement that starts here; the cursor ends up behind the keywords that decide it.
    pub(crate) fn kind(&mut self) -> Result<Kind, Unread> {
        let start = *self;
        let first = self.token()?;
        match first.kind {
            TokenKind::End | TokenKind::Mark(b';') => return Ok(Kind::Empty),
            TokenKind::Mark(b'(') => return Ok(Kind::OtherQuery),
            _ => {}
        }
        match self.verb_kind(first) {
            Kind::Select if self.begins_next_value()? => Ok(Kind::NextValue),
            Kind::Ddl => self.ddl(first),
            Kind::Analyze => self.analyze(start),
            Kind::Set => self.set(start),
            Kind::Begin if first.is(self.text, "START") => {
                Ok(match self.accept("TRANSACTION")? {
                    true => Kind::Begin,
                    false => Kind::Other,
                })
            }
            Kind::Begin if self.begins_block()? => Ok(Kind::Compound),
            Kind::LoadData if !self.accept("DATA")? && !self.accept("XML")? => Ok(Kind::Other),
            Kind::GetDiagnostics => self.get(),
            Kind::Execute if self.accept("IMMEDIATE")? => Ok(Kind::ExecuteImmediate),
            // A label of sql_mode ORACLE.
            Kind::Other if first.kind == TokenKind::Mark(b'<') => Ok(Kind::Compound),
            // By its first byte: what follows another word may be a text that is cut off.
            Kind::Other if self.is_before_mark(b':')? => Ok(Kind::Compound),
            other => Ok(other),
        }
    }

    /// What a statement is that begins with this token, as far as that says.
    pub(crate) fn verb_kind(&self, first: Token) -> Kind {
        let word = first.of(self.text);
        let known = KEYWORDS.iter().find(|(known, _)| {
            first.kind == TokenKind::Word && known.as_bytes().eq_ignore_ascii_case(word)
        });
        known.map_or(Kind::Other, |(_, kind)| *kind)
    }

    /// Whether what follows BEGIN is a block's: NOT ATOMIC, or in sql_mode ORACLE any statement. Of other modes that is an error.
    fn begins_block(mut self) -> Result<bool, Unread> {
        self.accept("WORK")?;
        let next = self.peek()?.kind;
        Ok(!matches!(next, TokenKind::End | TokenKind::Mark(b';')))
    }

    /// Whether something follows that does not end with the text.
    fn is_before_whole_word(mut self) -> Result<bool, Unread> {
        self.skip_blanks()?;
        if self.ended() {
            return Ok(false);
        }
        self.skip_word();
        Ok(!self.ended())
    }

    fn get(&mut self) -> Result<Kind, Unread> {
        // A label.
        if self.peek()?.kind == TokenKind::Mark(b':') {
            return Ok(Kind::Compound);
        }
        let _area = self.accept("CURRENT")? || self.accept("STACKED")?;
        Ok(match self.accept("DIAGNOSTICS")? {
            true => Kind::GetDiagnostics,
            false => Kind::Other,
        })
    }

    fn analyze(&mut self, start: Self) -> Result<Kind, Unread> {
        if self.accept("FORMAT")? {
            self.accept_mark(b'=')?;
            self.token()?;
        }
        let maria = start.modes.server.flavour == Flavour::MariaDb;
        match maria {
            true if self.accept("INSERT")? => Ok(Kind::Insert),
            true if self.accept("REPLACE")? => Ok(Kind::Replace),
            _ => Ok(Kind::Analyze),
        }
    }

    fn set(&mut self, start: Self) -> Result<Kind, Unread> {
        let mut ahead = start;
        match ahead.set_statement() {
            Ok(Some(_)) => *self = ahead,
            Ok(None) => return Ok(Kind::Set),
            // In other modes its strings may end elsewhere, so that there is something behind it.
            Err(_) => return Ok(Kind::SetStatement),
        }
        // Another one in it is no INSERT's prefix, and is not looked into: a text may hold any number of them.
        if ahead.accept("SET")? {
            return Ok(Kind::SetStatement);
        }
        Ok(match self.kind()? {
            insert @ (Kind::Insert | Kind::Replace) => insert,
            _ => Kind::SetStatement,
        })
    }

    /// CREATE, ALTER, DROP and the like: what they create, past it.
    fn ddl(&mut self, verb: Token) -> Result<Kind, Unread> {
        let text = self.text;
        if verb.is(text, "DROP") && self.accept("PREPARE")? {
            return Ok(Kind::Deallocate);
        }
        let mut temporary = false;
        loop {
            let token = self.token()?;
            let is = |word| token.is(text, word);
            if is("TABLE") || is("TABLES") {
                return Ok(
                    match (verb.is(text, "DROP"), verb.is(text, "CREATE") && temporary) {
                        (true, _) => Kind::DropTable,
                        (_, true) => Kind::CreateTemporary,
                        _ => Kind::Ddl,
                    },
                );
            }
            if ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"]
                .into_iter()
                .any(is)
            {
                // ALTER gives an event another body, and to others none.
                let made = verb.is(text, "CREATE") || (verb.is(text, "ALTER") && is("EVENT"));
                let has_body = made && !(is("FUNCTION") && self.is_loaded()?);
                return Ok(if has_body {
                    Kind::CreateRoutine
                } else {
                    Kind::Ddl
                });
            }
            // Its text may stand between dollar signs; ALTER gives it none.
            if is("LIBRARY") && verb.is(text, "CREATE") {
                return Ok(Kind::CreateRoutine);
            }
            temporary |= is("TEMPORARY");
            // What may stand between CREATE and the thing: OR REPLACE, DEFINER = user@host, AGGREGATE and other marks.
            let passed = [
                "TEMPORARY",
                "OR",
                "REPLACE",
                "DEFINER",
                "AGGREGATE",
                "ONLINE",
                "IGNORE",
                "SQL",
                "SECURITY",
                "INVOKER",
            ]
            .into_iter()
            .any(is);
            match token.kind {
                TokenKind::Mark(b'=') => {
                    self.skip_account()?;
                }
                _ if passed => {}
                _ => return Ok(Kind::Ddl),
            }
        }
    }

    /// Whether a function stands here that is loaded: it has no parameters, and a library in place of a body.
    fn is_loaded(mut self) -> Result<bool, Unread> {
        if self.accept("IF")? {
            self.accept("NOT")?;
            self.accept("EXISTS")?;
        }
        self.path()?;
        self.accept("RETURNS")
    }

    /// Past the account behind `DEFINER =`.
    fn skip_account(&mut self) -> Result<(), Unread> {
        self.token()?;
        if self.accept_mark(b'(')? {
            self.accept_mark(b')')?;
        }
        if self.peek()?.kind == TokenKind::Variable {
            let host = self.token()?;
            // `user @ host`, with blanks.
            if host.of(self.text) == b"@" {
                self.token()?;
            }
        }
        Ok(())
    }
}
