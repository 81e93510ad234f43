//! What forbids keys in a kind of statement, each by how messages name it.

use std::fmt;

/// An enum of constructs.
macro_rules! constructs {
    ($(#[$about:meta])* $name:ident { $($construct:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $text] $construct,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self {
                    $(Self::$construct => $text,)*
                })
            }
        }
    };
}

constructs! {
    /// What forbids keys in INSERT … SELECT.
    SelectConstruct {
        AnalyzeOrDelayed = "with ANALYZE or DELAYED",
        ReadOtherwise = "that another reader reads in another way",
        NoSelect = "of something else than SELECT",
        Comment = "with an executable comment in it",
        SelectList = "whose select list cannot be read",
        Another = "in which another one begins",
        Assigns = "that assigns to a variable",
        IntoOrProcedure = "with INTO or PROCEDURE",
        Returning = "with RETURNING",
        RowsExamined = "with LIMIT ROWS EXAMINED",
        UnionParts = "of a union whose parts are no plain SELECTs",
        EndsWithUnion = "that ends with UNION or the like",
        BehindParentheses = "in parentheses that goes on behind them",
        ParenthesesBehindWith = "in parentheses behind WITH",
        ParenthesesReordered = "in parentheses with DISTINCT, GROUP BY, ORDER BY, LIMIT or UNION",
        ComputedReordered =
            "with DISTINCT, GROUP BY, ORDER BY, LIMIT or UNION over a computed value that may lose digits",
        MustStayReordered =
            "with DISTINCT, GROUP BY, ORDER BY, LIMIT or UNION beside ON DUPLICATE KEY UPDATE with columns of the query, or an option of SELECT",
        ComputedWithin = "with ORDER BY in a subquery over a computed value that may lose digits",
        UnixTimestamp = "with UNIX_TIMESTAMP()",
        ParameterKey = "with a parameter as key",
        UnprovedKey = "with a key in each row that cannot be proved: UNION, ROLLUP, or an aggregate without GROUP BY",
        UnionOverKeys = "with UNION over keys",
        RollupOverKeys = "with ROLLUP over keys",
        KeysOfStar = "that takes keys out of *",
        KeyMissing =
            "that takes keys out of a column with a 0 or NULL in it (or a number below 0, where the key may be UNSIGNED), which asks for a key",
        KeysNoNumbers = "of keys that are no numbers",
        Unnumbered = "of more than one row on a server that cannot number them",
        UnevenKeys = "with keys that are not evenly spaced",
        Effects = "with a call that must not be carried out twice",
        NotRepeatable =
            "of an unknown number of rows where a failed try may leave something behind: a trigger, a table not known to be InnoDB, a view that calls functions",
    }
}

constructs! {
    /// What forbids keys in LOAD DATA.
    LoadConstruct {
        NoFile = "from something else than a file",
        Head = "whose head cannot be read",
        BehindColumns = "that goes on behind its columns",
        Parallel = "with PARALLEL, MEMORY or ALGORITHM",
        Comment = "with an executable comment in it",
        KeysNoNumbers = "of keys that are no numbers",
        Trigger = "into a table with a trigger that could see LAST_INSERT_ID()",
        SeesLastInsertId = "with values that could see LAST_INSERT_ID()",
        ViewSeesLastInsertId = "with a query that may read a view which could see LAST_INSERT_ID()",
        LineEnd = "LOCAL whose lines do not end with a text in ASCII",
        LongFile = "LOCAL of a file longer than rewrite_bytes_max",
        ZeroIsValue = "with keys while sql_mode has NO_AUTO_VALUE_ON_ZERO",
        Ranges = "with keys in too many ranges",
        Prepared = "in a prepared statement",
        Effects = "with a call or an assignment that must not be carried out twice",
        NotRepeatable =
            "of an unknown number of rows where a failed try may leave something behind: a trigger, a table not known to be InnoDB, a view that calls functions",
    }
}

constructs! {
    /// What rows may come by behind `SET STATEMENT … FOR`, beside a plain INSERT.
    SetStatementTarget {
        LoadData = "LOAD DATA",
        SetStatement = "another SET STATEMENT",
        Prepared = "PREPARE or EXECUTE",
        Block = "a compound statement",
    }
}

constructs! {
    /// What forbids to send query attributes again with another text.
    AttributesConstruct {
        UnknownType = "of a type that is not known",
        Long = "longer than 64 KiB",
    }
}

constructs! {
    /// What forbids keys in a bulk execution.
    BulkConstruct {
        UnknownType = "of a type that is not known",
        NoRoom = "in a type that has no room for keys",
        Query = "of INSERT … SELECT",
        TableChanged = "for a table that has changed",
        InsertIdSet = "after SET insert_id",
        LongData = "after COM_STMT_SEND_LONG_DATA",
        Computed = "with keys that the server computes",
        UnitResults = "with a result for each row",
        NoRows = "without rows",
    }
}

constructs! {
    /// Why values that were sent as long data do not reach the statement with keys.
    LongDataConstruct {
        TableChanged = "for a table that has changed",
        AsItIs = "of a statement that goes out as it is now",
        AnotherText = "that takes another text, or several tries",
    }
}
