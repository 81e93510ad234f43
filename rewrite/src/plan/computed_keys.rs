//! An INSERT whose keys the server is to compute before it: what it is asked, and the text with what it has answered.

use crate::modes::Modes;
use crate::plan::computed_rows::InRow;
use crate::plan::key_column::KeyColumn;
use crate::read::computed::Computed;
use crate::read::insert::{Insert, Source};
use crate::read::key_wanted::KeyForm;

/// Keys of one statement that the server is asked for at most. MySQL has at most 4096 columns in a result.
const COMPUTED_KEYS_MAX: usize = 1024;

/// The computed keys of an INSERT.
#[derive(Debug, Clone)]
pub struct ComputedKeys {
    keys: Vec<Computed>,
    /// For each, how many parameters of the client's stand before it.
    parameters: Vec<u32>,
    fails_at_once: bool,
    /// They are no numbers: the server is asked which of them are NULL.
    are_texts: bool,
}

impl Insert {
    /// The keys of a statement that is refused for computed ones, if all of those can be had by a question that leaves no trace. `None`:
    /// they cannot. `is_prepared`: it is asked at each execution, whatever the modes are then.
    pub fn computed_keys(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
        is_prepared: bool,
    ) -> Option<ComputedKeys> {
        let are_texts = key.form != KeyForm::Integer;
        // What it comes to is not put in its place: another value would be in a parameter's.
        if are_texts && is_prepared {
            return None;
        }
        let mut cursor = self.values_to_ask_for(text, modes, is_prepared)?;
        let wanted = self.wanted(modes, key);
        let keys = match self.source {
            Source::Values | Source::Rows => {
                let place = self.place(text, key).ok()?;
                cursor.computed_of_rows(wanted, self.source == Source::Rows, place)
            }
            Source::Set | Source::Query => cursor.computed_of_set(wanted),
        };
        let (found, rows) = keys.ok().flatten()?;
        // A trigger may set variables between two rows.
        let stays = |of: &InRow| {
            let is_same = key.is_strict || of.row == 0 || !of.key.reads_variable;
            is_same && !(is_prepared && of.key.depends_on_mode)
        };
        let is_some = !found.is_empty() && found.len() <= COMPUTED_KEYS_MAX;
        (is_some && found.iter().all(stays)).then(|| ComputedKeys {
            keys: found.iter().map(|of| of.key).collect(),
            parameters: found.iter().map(|of| of.parameters).collect(),
            // Before a later row fails the server could number others.
            fails_at_once: rows == 1 && !self.head.ignore,
            are_texts,
        })
    }
}

impl ComputedKeys {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Whether they are no numbers. Then the server is asked which of them are NULL, and those that are not stay as they are written: the
    /// statement is to be planned by [`Insert::plan_without_nulls`].
    pub fn are_texts(&self) -> bool {
        self.are_texts
    }

    /// Whether one is computed from LAST_INSERT_ID().
    pub fn sees_last_insert_id(&self) -> bool {
        self.keys.iter().any(|key| key.sees_last_insert_id)
    }

    /// Whether what fails in the question fails in the statement, too.
    pub fn fails_again(&self) -> bool {
        self.fails_at_once && self.keys.iter().all(|key| key.is_constant)
    }

    /// What the server is asked: one row of them all; of texts, whether each is NULL.
    pub fn question(&self, text: &[u8]) -> Vec<u8> {
        let mut question = b"SELECT ".to_vec();
        for (index, key) in self.keys.iter().enumerate() {
            if index > 0 {
                question.push(b',');
            }
            question.push(b'(');
            question.extend_from_slice(text.get(key.start..key.end).unwrap_or_default());
            question.push(b')');
            if self.are_texts {
                question.extend_from_slice(b" IS NULL");
            }
        }
        question.extend_from_slice(b" LIMIT 1");
        question
    }

    /// The statement with these answers in place of what computes them; `None` is NULL. Of texts, one that is not NULL stays.
    pub fn with_values(&self, text: &[u8], values: &[Option<i128>]) -> Vec<u8> {
        let shown = |value: &Option<i128>| match (self.are_texts, value) {
            (true, Some(0)) => None,
            (true, Some(_)) | (_, None) => Some("NULL".to_owned()),
            (false, Some(key)) => Some(key.to_string()),
        };
        self.with(text, values.iter().map(shown))
    }

    /// The statement with parameters in place of what computes them.
    pub fn with_parameters(&self, text: &[u8]) -> Vec<u8> {
        self.with(
            text,
            std::iter::repeat_n(Some("?".to_owned()), self.count()),
        )
    }

    /// Which of the parameters of that these are, from 0, ascending; `None`: there are too many.
    pub fn positions(&self) -> Option<Vec<u16>> {
        let before = self.parameters.iter().zip(0..);
        let at = |(before, own): (&u32, u32)| u16::try_from(before.checked_add(own)?).ok();
        before.map(at).collect()
    }

    /// `None`: it stays as it is written.
    fn with(&self, text: &[u8], values: impl Iterator<Item = Option<String>>) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut copied = 0;
        for (key, value) in self.keys.iter().zip(values) {
            let Some(value) = value else {
                continue;
            };
            out.extend_from_slice(text.get(copied..key.start).unwrap_or_default());
            // Apart from what stands around it.
            out.push(b' ');
            out.extend_from_slice(value.as_bytes());
            out.push(b' ');
            copied = key.end;
        }
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::modes::{Flavour, Modes, Server};
    use crate::plan::key_column::KeyColumn;
    use crate::read::insert::Insert;
    use crate::read::insert_head::InsertHead;
    use crate::read::key_wanted::KeyForm;

    /// What the server is asked for a statement on a table with the key `id`, and what is made of an answer: -7 for the first, the third, …
    fn asked(text: &str, is_strict: bool) -> Option<(String, String)> {
        asked_of(KeyForm::Integer, text, is_strict, |index| {
            (index % 2 == 0).then_some(-7)
        })
    }

    /// The same of a key that is text. The first, the third, … are NULL.
    fn asked_of_text(text: &str) -> Option<(String, String)> {
        asked_of(KeyForm::Text, text, true, |index| {
            Some(i128::from(index % 2 == 0))
        })
    }

    fn asked_of(
        form: KeyForm,
        text: &str,
        is_strict: bool,
        value: impl Fn(usize) -> Option<i128>,
    ) -> Option<(String, String)> {
        let modes = Modes {
            no_auto_value_on_zero: Some(false),
            strict: Some(true),
            ..Modes::plain(Server {
                flavour: Flavour::MariaDb,
                version: 101_119,
            })
        };
        let live = [b"id".to_vec(), b"a".to_vec()];
        let key = KeyColumn {
            name: b"id",
            form,
            live: &live,
            watched: false,
            is_signed: true,
            is_strict,
        };
        let text = text.as_bytes();
        let head = InsertHead::read(text, &modes).ok()?;
        let insert = Insert::read(head, text, &modes).ok()?;
        let computed = insert.computed_keys(text, &modes, &key, false)?;
        let values: Vec<_> = (0..computed.count()).map(value).collect();
        let shown = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let asked = shown(computed.question(text));
        Some((asked, shown(computed.with_values(text, &values))))
    }

    #[test]
    fn the_server_is_asked_for_keys_that_it_computes_and_for_no_others() {
        for (text, question, becomes) in [
            (
                "INSERT INTO t (id,a) VALUES (@id+1,2)",
                "SELECT (@id+1) LIMIT 1",
                "INSERT INTO t (id,a) VALUES ( -7 ,2)",
            ),
            (
                "INSERT INTO t VALUES (NULL,1),(LAST_INSERT_ID(),2),( COALESCE(@x, NULL) ,3), (5,4)",
                "SELECT (LAST_INSERT_ID()),(COALESCE(@x, NULL)) LIMIT 1",
                "INSERT INTO t VALUES (NULL,1),( -7 ,2),(  NULL  ,3), (5,4)",
            ),
            (
                "INSERT INTO t SET a=1, id=UUID_SHORT() ON DUPLICATE KEY UPDATE a=VALUES(a)",
                "SELECT (UUID_SHORT()) LIMIT 1",
                "INSERT INTO t SET a=1, id= -7  ON DUPLICATE KEY UPDATE a=VALUES(a)",
            ),
            (
                "REPLACE t (a, id) VALUES (SLEEP(0), IF(@a IS NULL, 7, CAST('8' AS UNSIGNED)))",
                "SELECT (IF(@a IS NULL, 7, CAST('8' AS UNSIGNED))) LIMIT 1",
                "REPLACE t (a, id) VALUES (SLEEP(0),  -7 )",
            ),
            (
                "INSERT INTO t (id) VALUES ((SELECT @@identity))",
                "SELECT ((SELECT @@identity)) LIMIT 1",
                "INSERT INTO t (id) VALUES ( -7 )",
            ),
        ] {
            let wanted = (question.to_owned(), becomes.to_owned());
            assert_eq!(asked(text, true), Some(wanted), "{text}");
        }
    }

    /// What is not NULL stays as it is written, so that it is stored as it would be natively.
    #[test]
    fn of_texts_the_server_is_asked_which_are_null() {
        for (text, question, becomes) in [
            (
                "INSERT INTO t (id,a) VALUES (@id,2)",
                "SELECT (@id) IS NULL LIMIT 1",
                "INSERT INTO t (id,a) VALUES ( NULL ,2)",
            ),
            (
                "INSERT INTO t VALUES (NULLIF('a','a'),1),(UUID(),2),(LOWER(@x),3),('k',4),((SELECT NULL),5)",
                "SELECT (NULLIF('a','a')) IS NULL,(LOWER(@x)) IS NULL,((SELECT NULL)) IS NULL LIMIT 1",
                "INSERT INTO t VALUES ( NULL ,1),(UUID(),2),(LOWER(@x),3),('k',4),( NULL ,5)",
            ),
            (
                "INSERT INTO t SET a = 1, id = CONCAT('a', @x)",
                "SELECT (CONCAT('a', @x)) IS NULL LIMIT 1",
                "INSERT INTO t SET a = 1, id =  NULL ",
            ),
        ] {
            let wanted = (question.to_owned(), becomes.to_owned());
            assert_eq!(asked_of_text(text), Some(wanted), "{text}");
        }
        for value in [
            "f(1)",
            "RAND()",
            // Whether it is NULL may depend on what UUID it is.
            "NULLIF(LEFT(UUID(),1),'a')",
            "IF(UUID_SHORT() % 2,'a',NULL)",
            // A stored function, there.
            "UUID_TO_BIN(@a)",
            "MD5(@a)",
            "a",
            "DEFAULT(a)",
            "(SELECT MAX(id) FROM u)",
            "LOWER(?)",
            // Nothing has to be asked.
            "UUID()",
            "'k'",
        ] {
            let text = format!("INSERT INTO t (id,a) VALUES ({value},2)");
            assert_eq!(asked_of_text(&text), None, "{value}");
        }
        // One of them cannot be asked for.
        let text = "INSERT INTO t (id) VALUES (@a),(DEFAULT(a))";
        assert_eq!(asked_of_text(text), None);
    }

    #[test]
    fn what_may_come_to_another_value_is_not_asked_for() {
        for value in [
            "@a := 1",
            "f(1)",
            "d.abs(1)",
            "abs (1)",
            "`abs`(1)",
            "LAST_INSERT_ID(5)",
            "SLEEP(1)",
            "GET_LOCK('a',1)",
            "NEXTVAL(s)",
            "RAND()",
            "NOW()",
            "a+1",
            "t.a",
            "`a`+1",
            "@@sql_mode",
            "@@session.last_insert_id",
            "(SELECT MAX(id)+1 FROM u)",
            "SELECT 1",
            "@a /* x */ + 1",
            "/*!@a*/",
            "ROW_COUNT()",
            "FOUND_ROWS()",
            "?",
            "?+1",
            "@a ; ",
            "(@a",
            "@a)",
        ] {
            let text = format!("INSERT INTO t (id,a) VALUES ({value},2)");
            assert_eq!(asked(&text, true), None, "{value}");
        }
        for text in [
            // Something else in it changes what the key is, or what the question changes is asked for.
            "INSERT INTO t (a,id) VALUES (@a:=5,@a)",
            "INSERT INTO t (a,id) VALUES (f(1),@a)",
            "INSERT INTO t (a,id) VALUES (LAST_INSERT_ID(4),LAST_INSERT_ID())",
            "INSERT INTO t (a,id) VALUES (ROW_COUNT(),@a)",
            "INSERT INTO t (a,id) VALUES (FOUND_ROWS(),@a)",
            "INSERT INTO t (a,id) VALUES (@@warning_count,@a)",
            "INSERT INTO t (a,id) VALUES (?,@a)",
            "INSERT INTO t (id,a) VALUES (@a,1) ON DUPLICATE KEY UPDATE a=d.f(1)",
            "SET STATEMENT max_statement_time=1 FOR INSERT INTO t (id) VALUES (@a)",
            "INSERT DELAYED INTO t (id) VALUES (@a)",
            "INSERT INTO t (id) SELECT @a",
            // Nothing has to be asked.
            "INSERT INTO t (id) VALUES (NULL),(5)",
            "INSERT INTO t (a) VALUES (@a)",
        ] {
            assert_eq!(asked(text, true), None, "{text}");
        }
    }

    /// A trigger could set the variable.
    #[test]
    fn variables_behind_the_first_row_need_a_table_without_triggers() {
        let text = "INSERT INTO t (id) VALUES (NULL),(@a)";
        assert!(asked(text, true).is_some());
        assert!(asked(text, false).is_none());
        assert!(asked("INSERT INTO t (id) VALUES (@a),(LAST_INSERT_ID())", false).is_some());
    }

    #[test]
    fn keys_of_prepared_statements_become_parameters_among_the_others() {
        let modes = Modes::plain(Server {
            flavour: Flavour::MySql,
            version: 90_704,
        });
        let key = KeyColumn {
            name: b"id",
            form: KeyForm::Integer,
            live: &[],
            watched: false,
            is_signed: true,
            is_strict: true,
        };
        for (text, becomes, positions) in [
            (
                "INSERT INTO t (id,a) VALUES (LAST_INSERT_ID(),?)",
                "INSERT INTO t (id,a) VALUES ( ? ,?)",
                vec![0],
            ),
            (
                "INSERT INTO t (a,id,b) VALUES (?,@a,?),(?+?,7,?),('?',@b,?)",
                "INSERT INTO t (a,id,b) VALUES (?, ? ,?),(?+?,7,?),('?', ? ,?)",
                vec![1, 6],
            ),
            (
                "INSERT INTO t SET a=?, id=@a+1",
                "INSERT INTO t SET a=?, id= ? ",
                vec![1],
            ),
        ] {
            let head = InsertHead::read(text.as_bytes(), &modes).unwrap();
            let insert = Insert::read(head, text.as_bytes(), &modes).unwrap();
            let computed = insert.computed_keys(text.as_bytes(), &modes, &key, true);
            let computed = computed.unwrap();
            let with = computed.with_parameters(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&with), becomes);
            assert_eq!(computed.positions(), Some(positions), "{text}");
        }
        // By another sql_mode than that of PREPARE they would be others.
        for value in ["@a || 1", "NOT @a", "LENGTH('x')", "@a+?"] {
            let text = format!("INSERT INTO t (id) VALUES ({value})");
            let head = InsertHead::read(text.as_bytes(), &modes).unwrap();
            let insert = Insert::read(head, text.as_bytes(), &modes).unwrap();
            let computed = insert.computed_keys(text.as_bytes(), &modes, &key, true);
            assert!(computed.is_none(), "{text}");
        }
    }
}
