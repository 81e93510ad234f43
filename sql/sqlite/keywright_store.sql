-- Where Keywright keeps its bounds, in a file of its own (SQLite). `keywright init` makes the file and runs this; made by hand it is refused,
-- for it says nothing of where it was made. Moments are unix milliseconds.

-- One row per tag. A program reserves the ids from hi up to hi + n by writing hi + n, and issues them afterwards.
-- Never lower hi, nor change issue_order, hide_bits, hide_fingerprint, start_id, generation, key_space_id, heir or closed_in. step, step_min, step_max, cover_s, refill_percent, id_max and description may be changed while programs run; they read them with each reservation.
CREATE TABLE IF NOT EXISTS keywright_segment (
    tag            TEXT NOT NULL, -- name of the key space
    hi             INTEGER NOT NULL DEFAULT 1, -- first id that is not reserved
    id_max         INTEGER NOT NULL DEFAULT 9223372036854775806, -- largest id
    step           INTEGER NOT NULL DEFAULT 10000, -- ids per reservation; a tenth of it at first
    step_min       INTEGER NOT NULL DEFAULT 1000, -- the smallest step; the step follows demand
    step_max       INTEGER NOT NULL DEFAULT 10000000, -- the largest step
    cover_s        INTEGER NOT NULL DEFAULT 900, -- how long a reservation should last, seconds: nobody notices a shorter outage of the store
    refill_percent INTEGER NOT NULL DEFAULT 50, -- refill when this percentage of a reservation is left
    description    TEXT,
    server         TEXT, -- the server on which hi was written last; or that it was put back
    reserved_ids   INTEGER, -- ids of the last reservation, and of those within a second behind it
    reserved_ms    INTEGER, -- when that was made, unix milliseconds
    rate_per_s     INTEGER, -- the most ids per second that all programs together have used
    generation     INTEGER NOT NULL DEFAULT 0, -- counts how often tables went over to the tag, or left it; ranges of an older one are worthless
    first_id       INTEGER, -- the first id that tables could get when they first went over to the tag; NULL: none ever did
    key_space_id   TEXT NOT NULL DEFAULT '', -- random, drawn when the tag was made: a tag of another store, or one made again, has another
    dropped_ms     INTEGER, -- when the tag was dropped, unix milliseconds; the row stays, so that a tag of the same name goes on above; NULL: not dropped
    issue_order    TEXT NOT NULL DEFAULT 'distinct', -- distinct, or monotonic or strict: one program at a time issues its ids; chosen when the tag is made, never changed
    start_id       INTEGER NOT NULL DEFAULT 1, -- the first id of the tag
    heir           TEXT, -- the tag is closed: its ids come from another store (store, and the key space of its row there), or will come from here (opening), or a PostgreSQL database issues them natively (by system identifier, object id and life of its memory); NULL: it is open
    closed_in      TEXT, -- the other stores in which the tag is closed, by marks of their addresses; a program with a further store in its configuration gets nothing
    hide_bits      INTEGER, -- a secret permutation of so many bits turns numbers into keys; NULL: keys are the numbers; chosen when the tag is made, never changed
    hide_fingerprint TEXT, -- of the permutation; a program with another key gets nothing
    PRIMARY KEY (tag)
) STRICT;

-- One row per worker id that was ever leased. Never delete a row: its bound says how far ids were issued.
-- A lease is taken over by epoch + 1 and extended by compare-and-swap on (owner, epoch, hi_ms); expires_at only says
-- when others may try.
CREATE TABLE IF NOT EXISTS keywright_worker (
    space      TEXT NOT NULL, -- snowflake, readable (the worker id is a bucket), or fed: databases lease it whose snowflake ids are handed over
    worker_id  INTEGER NOT NULL,
    owner      TEXT, -- unique to one run of one program, or to one life of the memory of a fed database; NULL: released
    holder     TEXT, -- host and process, for people
    epoch      INTEGER NOT NULL, -- counts owners
    hi_ms      INTEGER NOT NULL, -- ids of moments before this may have been issued, unix milliseconds
    layout     TEXT NOT NULL, -- in this layout
    server     TEXT NOT NULL, -- the server on which hi_ms was written
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (space, worker_id)
) STRICT;

-- Rests of reservations that programs handed back when they stopped; taken out before they are used. The tag's hi then goes up by 1, so
-- that a store shows that was put back to before.
CREATE TABLE IF NOT EXISTS keywright_returned (
    id            INTEGER NOT NULL,
    segment_table TEXT NOT NULL, -- the table with the tag's bound
    tag           TEXT NOT NULL,
    start_id      INTEGER NOT NULL, -- first id of the range
    end_id        INTEGER NOT NULL, -- first id after it
    generation    INTEGER NOT NULL DEFAULT 0, -- the tag's when it was reserved; worthless when the tag has another
    server        TEXT NOT NULL, -- where it was handed back; worthless on any other server
    returned_at   INTEGER NOT NULL DEFAULT (CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)),
    PRIMARY KEY (id)
) STRICT;

-- One row per tag whose bound somebody has raised: whoever stops later may hand back ids below, which are elsewhere since.
-- Never delete a row, nor lower first_id.
CREATE TABLE IF NOT EXISTS keywright_returned_floor (
    segment_table TEXT NOT NULL, -- the table with the tag's bound
    tag           TEXT NOT NULL,
    first_id      INTEGER NOT NULL, -- no range that was handed back and begins below it is accepted, or issued
    PRIMARY KEY (segment_table, tag)
) STRICT;

-- Servers that another has taken the place of: all that one wrote before is here. Commits come to replicas in their order, so that rows say this, until
-- others write them: it is recorded with the first reservation behind a failover.
CREATE TABLE IF NOT EXISTS keywright_former_server (
    server    TEXT NOT NULL, -- which server it is
    newest_ms INTEGER NOT NULL, -- its newest reservation that came along, unix milliseconds
    left_ms   INTEGER NOT NULL, -- when the next server was first written to
    PRIMARY KEY (server, newest_ms)
) STRICT;

-- One row: the attempt to let tables go over to keys, to another tag or back that is under way, or was the last one.
-- Every program waits while there is one, and any can finish it. Change nothing here by hand.
CREATE TABLE IF NOT EXISTS keywright_switch (
    id                   INTEGER NOT NULL, -- always 1
    attempt              INTEGER NOT NULL DEFAULT 0, -- counts attempts
    phase                TEXT NOT NULL DEFAULT 'none', -- none, holding, ending, closed
    leader               TEXT, -- who began it
    begun_at             INTEGER,
    snowflake_generation INTEGER NOT NULL DEFAULT 0, -- counts how often tables went over to snowflake ids, or left them; leases of an older one are worthless
    snowflake_floor_ms   INTEGER NOT NULL DEFAULT 0, -- snowflake ids begin at this moment or later, unix milliseconds
    snowflake_first      INTEGER NOT NULL DEFAULT 0, -- snowflake ids begin at this id or above: keys that tables had before are below
    readable_floor_ms    INTEGER NOT NULL DEFAULT 0, -- readable ids begin at this moment or later, unix milliseconds
    PRIMARY KEY (id)
) STRICT;

-- One row per rule whose tables were ever switched: where their keys come from.
CREATE TABLE IF NOT EXISTS keywright_rule (
    table_pattern  TEXT NOT NULL, -- the rule's pattern
    column_name    TEXT NOT NULL,
    key_space      TEXT, -- segment:TAG or snowflake; NULL: native auto-increment
    attempt        INTEGER, -- the attempt that is to change it
    next_key_space TEXT, -- to this; NULL: native auto-increment
    above          INTEGER, -- native again: the bound of the keys that were closed; counters went on from there
    PRIMARY KEY (table_pattern, column_name)
) STRICT;

-- The servers on which that was brought into force: on another one, after a failover, no keys are given until it was done there.
CREATE TABLE IF NOT EXISTS keywright_rule_server (
    table_pattern TEXT NOT NULL, -- the rule's pattern
    column_name   TEXT NOT NULL,
    server        TEXT NOT NULL, -- which server it is
    PRIMARY KEY (table_pattern, column_name, server)
) STRICT;

-- Counters that an attempt has read under the lock of their tables, before it fenced them.
CREATE TABLE IF NOT EXISTS keywright_switch_table (
    server      TEXT NOT NULL, -- which server it is
    schema_name TEXT NOT NULL,
    table_name  TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    counter     INTEGER NOT NULL, -- the next native id
    was_fenced  INTEGER NOT NULL, -- 1: the table had its fence before; the fence stays when the attempt is given up
    PRIMARY KEY (server, schema_name, table_name)
) STRICT;

-- By which rule a table has its fence, and keys: keys are above all other ids that it had then. A table with a fence of which nothing stands here has
-- brought it, as by RENAME TABLE or out of a dump.
CREATE TABLE IF NOT EXISTS keywright_fenced (
    server        TEXT NOT NULL, -- which server it is
    schema_name   TEXT NOT NULL,
    table_name    TEXT NOT NULL,
    table_pattern TEXT NOT NULL, -- the rule's pattern
    column_name   TEXT NOT NULL,
    key_space     TEXT NOT NULL, -- segment:TAG or snowflake
    PRIMARY KEY (server, schema_name, table_name)
) STRICT;

-- Tables that number their rows natively, behind a fence that was lifted: what looks like a fence there is the end of their counter, and nobody lifts it. It
-- is forgotten before such a table is fenced again.
CREATE TABLE IF NOT EXISTS keywright_lifted (
    server      TEXT NOT NULL, -- which server it is
    schema_name TEXT NOT NULL,
    table_name  TEXT NOT NULL,
    PRIMARY KEY (server, schema_name, table_name)
) STRICT;

-- One row per running program.
CREATE TABLE IF NOT EXISTS keywright_program (
    program TEXT NOT NULL, -- unique to one run of one program
    holder  TEXT NOT NULL, -- host and process, for people
    seen_at INTEGER NOT NULL, -- who was not seen for long holds nobody up
    held    INTEGER, -- the attempt for which its statements wait
    PRIMARY KEY (program)
) STRICT;

-- What the configuration of a program wanted for a rule when that was in force. A program switches tables only for what is new in its
-- configuration: one that starts with an old file follows the others.
CREATE TABLE IF NOT EXISTS keywright_wanted (
    place         TEXT NOT NULL, -- host and configuration file
    table_pattern TEXT NOT NULL, -- the rule's pattern
    column_name   TEXT NOT NULL,
    key_space     TEXT, -- segment:TAG or snowflake; NULL: native auto-increment
    PRIMARY KEY (place, table_pattern, column_name)
) STRICT;

-- What went by each program on tables of rules that observe: ids that no program asked for are somebody else's.
CREATE TABLE IF NOT EXISTS keywright_native (
    program       TEXT NOT NULL, -- unique to one run of one program
    table_pattern TEXT NOT NULL, -- the rule's pattern
    column_name   TEXT NOT NULL,
    ids           INTEGER NOT NULL, -- native ids that its statements asked for since it began, at most
    unknown       INTEGER NOT NULL, -- grows with statements of which nobody knows how many ids they ask for
    noted_at      INTEGER NOT NULL, -- all that went by before is in it
    PRIMARY KEY (program, table_pattern, column_name)
) STRICT;

CREATE TABLE IF NOT EXISTS keywright_unseen (
    program       TEXT NOT NULL, -- the run of a program that found them
    table_pattern TEXT NOT NULL, -- the rule's pattern
    column_name   TEXT NOT NULL,
    ids           INTEGER NOT NULL, -- about so many native ids came by no program
    report        TEXT NOT NULL, -- tables, first and last moment, accounts: for people
    noted_at      INTEGER NOT NULL,
    PRIMARY KEY (program, table_pattern, column_name)
) STRICT;

-- Tables that came to a rule after its tables had gone over to keys, with ids that may be among these: keys and such ids cannot be told
-- from each other, so somebody is to look.
CREATE TABLE IF NOT EXISTS keywright_late (
    server      TEXT NOT NULL, -- which server it is
    schema_name TEXT NOT NULL,
    table_name  TEXT NOT NULL,
    report      TEXT NOT NULL, -- what was found, for people
    noted_at    INTEGER NOT NULL,
    PRIMARY KEY (server, schema_name, table_name)
) STRICT;

-- One row: which worker ids programs lease, fed databases lease, and are assigned. Whatever is in none is set by hand. Programs whose configuration says
-- otherwise are refused; `keywright init --change-worker-ids` takes another.
CREATE TABLE IF NOT EXISTS keywright_worker_ids (
    id             INTEGER NOT NULL, -- always 1
    leased         TEXT NOT NULL, -- numbers that programs lease, as 0-255; empty: none, or any where the others are empty, too
    fed            TEXT NOT NULL DEFAULT '', -- numbers that databases lease whose snowflake ids are fed; empty: none
    assigned       TEXT NOT NULL, -- numbers that databases are assigned for good; empty: none
    layout         TEXT NOT NULL, -- of all ids that carry them
    next_id        INTEGER NOT NULL, -- the first number that was never assigned
    is_restored    INTEGER NOT NULL DEFAULT 0, -- 1: the store was restored, and it is unknown whether next_id was assigned since the backup
    key_space_id   TEXT NOT NULL DEFAULT '', -- drawn when the row was made: the snowflake ids of a store that was made anew are of another key space
    unknown_ms     INTEGER NOT NULL DEFAULT 0, -- when this server began to know what fed databases were handed: what was handed over before may be forgotten
    unknown_server TEXT NOT NULL DEFAULT '', -- which server
    ahead_ms       INTEGER NOT NULL DEFAULT 0, -- fed databases were handed no moment further ahead, milliseconds
    PRIMARY KEY (id)
) STRICT;

-- One row per worker id that was ever assigned to a PostgreSQL database. Never delete a row.
CREATE TABLE IF NOT EXISTS keywright_assigned (
    worker_id      INTEGER NOT NULL,
    state          TEXT NOT NULL, -- assigned, released, or retired: never given again
    mark           TEXT NOT NULL, -- the database has this mark
    next_mark      TEXT, -- or this one, which it was sent
    asks           INTEGER NOT NULL, -- counts asks
    is_used        INTEGER NOT NULL, -- 1: ids may have been issued with it
    bound_ms       INTEGER, -- its last owners ids are of moments before this, unix milliseconds
    system_id      TEXT NOT NULL, -- the servers system identifier
    database_oid   INTEGER NOT NULL,
    place          TEXT NOT NULL, -- where the database was when it asked last, for people
    assigned_at_ms INTEGER NOT NULL, -- unix milliseconds
    asked_at_ms    INTEGER NOT NULL,
    released_at_ms INTEGER, -- released or retired
    is_restored    INTEGER NOT NULL DEFAULT 0, -- 1: the store was restored, and it is unknown which mark the database has
    report         TEXT, -- a copy that asked, for people
    PRIMARY KEY (worker_id)
) STRICT;

-- One row per user of key ports. Change users with `keywright user`, which tells running programs.
CREATE TABLE IF NOT EXISTS keywright_user (
    name          TEXT NOT NULL,
    password      TEXT NOT NULL, -- hashed with argon2, as a PHC string
    changed_at_ms INTEGER NOT NULL, -- when it got this password, unix milliseconds
    PRIMARY KEY (name)
) STRICT;

-- What users may do, by names.
CREATE TABLE IF NOT EXISTS keywright_user_grant (
    user_name    TEXT NOT NULL,
    name_pattern TEXT NOT NULL, -- names; * stands for any characters, ? for one
    rights       TEXT NOT NULL, -- use, create, manage, administer, with commas
    PRIMARY KEY (user_name, name_pattern)
) STRICT;

-- One row: another text whenever users or their rights have changed. Programs ask for it several times a second.
CREATE TABLE IF NOT EXISTS keywright_user_version (
    id      INTEGER NOT NULL, -- always 1
    version TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT;

-- One row per slot group: which program issues ids of its tags whose order is monotonic or strict, until it fails to renew that in time. And row 0, once
-- the number of groups was said, with that as its epoch. Change nothing here by hand.
CREATE TABLE IF NOT EXISTS keywright_order_lease (
    id      INTEGER NOT NULL, -- the slot group, from 1, or 0 for how many there are
    owner   TEXT, -- unique to one run of one program; NULL: released
    holder  TEXT, -- host and process, for people
    address TEXT, -- where clients reach it
    epoch   INTEGER NOT NULL, -- counts takeovers; ids are reserved for the last one only
    renewal INTEGER NOT NULL, -- counts takeovers, renewals and releases
    ttl_ms  INTEGER NOT NULL, -- others take over when this renewal has stood for so long by their own clocks
    PRIMARY KEY (id)
) STRICT;

-- One row per program that may take over, or has a lease.
CREATE TABLE IF NOT EXISTS keywright_order_node (
    program TEXT NOT NULL, -- unique to one run of one program
    holder  TEXT NOT NULL, -- host and process, for people
    address TEXT NOT NULL, -- where clients reach it
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (program)
) STRICT;

-- One row per PostgreSQL database whose tag of this name moved to the store, or back: which move it was. Never delete a row.
CREATE TABLE IF NOT EXISTS keywright_moved (
    tag          TEXT NOT NULL,
    system_id    TEXT NOT NULL, -- the servers system identifier
    database_oid INTEGER NOT NULL,
    move_number  INTEGER NOT NULL, -- as keywright.source counts there
    place        TEXT NOT NULL, -- where the database was then, for people
    moved_at_ms  INTEGER NOT NULL, -- unix milliseconds
    PRIMARY KEY (tag, system_id, database_oid)
) STRICT;

-- Buckets of readable ids where there are several stores; no row: all of them are leased here. Change them with `keywright init`.
CREATE TABLE IF NOT EXISTS keywright_bucket (
    store       TEXT NOT NULL, -- own: this store; else the id of a store that this one gave buckets to
    name        TEXT NOT NULL, -- the name of the store, for people
    store_id    TEXT NOT NULL, -- drawn when the row was made
    giver       TEXT NOT NULL, -- the id of the store that gave this one its buckets; its own: it gives them
    buckets     TEXT NOT NULL, -- as 0-127; empty: none
    is_open     INTEGER NOT NULL, -- 0: none is leased until keywright init has run
    is_restored INTEGER NOT NULL, -- 1: the store was restored, and keeps the buckets that it had
    version     INTEGER NOT NULL, -- counts changes
    PRIMARY KEY (store)
) STRICT;
