//! The tables that statements are for.

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    Number,
    Text,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Key => "id",
            Role::Number => "a",
            Role::Text => "b",
        }
    }
}

/// A table with a key, of [`crate::corpus::KEY_SPACES`].
#[derive(Debug, PartialEq)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// In its order.
    pub(super) columns: [Role; 3],
    pub(super) definition: &'static str,
    /// Its key alone.
    pub(super) key: &'static str,
    /// Moves a column, and back.
    pub(super) moves: [&'static str; 2],
}

impl Table {
    /// Whether it is of the engine without transactions.
    pub(super) fn is_myisam(&self) -> bool {
        self.definition.ends_with("MyISAM")
    }
}

/// Key first, in the middle, last; of every type that matters; in the engine without transactions.
pub(super) const TABLES: [Table; 4] = [
    Table {
        name: "t",
        columns: [Role::Key, Role::Number, Role::Text],
        definition: "id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(60))",
        key: "BIGINT AUTO_INCREMENT",
        moves: ["a INT FIRST", "a INT AFTER id"],
    },
    Table {
        name: "t_int",
        columns: [Role::Number, Role::Key, Role::Text],
        definition: "a INT, id INT NOT NULL AUTO_INCREMENT, b VARCHAR(60) DEFAULT 'd', UNIQUE (id))",
        key: "INT NOT NULL AUTO_INCREMENT",
        moves: ["a INT AFTER b", "a INT FIRST"],
    },
    Table {
        name: "t_uint",
        columns: [Role::Text, Role::Number, Role::Key],
        definition: "b VARCHAR(60), a INT UNIQUE, id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY)",
        key: "INT UNSIGNED AUTO_INCREMENT",
        moves: ["b VARCHAR(60) AFTER id", "b VARCHAR(60) FIRST"],
    },
    Table {
        name: "t_ubig",
        columns: [Role::Key, Role::Text, Role::Number],
        definition: "id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, b VARCHAR(60), a INT) ENGINE = MyISAM",
        key: "BIGINT UNSIGNED AUTO_INCREMENT",
        moves: ["b VARCHAR(60) FIRST", "b VARCHAR(60) AFTER id"],
    },
];
