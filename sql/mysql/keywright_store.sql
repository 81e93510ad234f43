-- Where Keywright's programs keep their bounds, in MySQL or MariaDB.
-- `keywright init` runs this file; running it by hand does the same:  mysql keywright < keywright_store.sql
-- The program's account needs SELECT, INSERT, UPDATE and DELETE on these tables.
--
-- A bound is only as durable as the server makes it: innodb_flush_log_at_trx_commit = 1 and, where a replica may be
-- promoted, sync_binlog = 1 and (semi-)synchronous replication.

-- One row per tag. A program reserves the ids from hi up to hi + n by writing hi + n, and issues them afterwards.
-- Never lower hi, nor change issue_order, hide_bits, hide_fingerprint, start_id, generation, key_space_id, heir or closed_in. step, step_min, step_max, cover_s, refill_percent, id_max and description may be changed while programs run; they read them with each reservation.
CREATE TABLE IF NOT EXISTS keywright_segment (
    tag            VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'name of the key space',
    hi             BIGINT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'first id that is not reserved',
    id_max         BIGINT UNSIGNED NOT NULL DEFAULT 9223372036854775807 COMMENT 'largest id',
    step           BIGINT NOT NULL DEFAULT 10000 COMMENT 'ids per reservation; a tenth of it at first',
    step_min       BIGINT NOT NULL DEFAULT 1000 COMMENT 'the smallest step; the step follows demand',
    step_max       BIGINT NOT NULL DEFAULT 10000000 COMMENT 'the largest step',
    cover_s        BIGINT NOT NULL DEFAULT 900 COMMENT 'how long a reservation should last, seconds: nobody notices a shorter outage of the store',
    refill_percent BIGINT NOT NULL DEFAULT 50 COMMENT 'refill when this percentage of a reservation is left',
    description    VARCHAR(256) NULL,
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'the server on which hi was written last; or that it was put back',
    reserved_ids   BIGINT UNSIGNED NULL COMMENT 'ids of the last reservation, and of those within a second behind it',
    reserved_ms    BIGINT NULL COMMENT 'when that was made, unix milliseconds',
    rate_per_s     BIGINT UNSIGNED NULL COMMENT 'the most ids per second that all programs together have used',
    generation     BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'counts how often tables went over to the tag, or left it; ranges of an older one are worthless',
    first_id       BIGINT UNSIGNED NULL COMMENT 'the first id that tables could get when they first went over to the tag; NULL: none ever did',
    key_space_id   VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'random, drawn when the tag was made: a tag of another store, or one made again, has another',
    dropped_ms     BIGINT NULL COMMENT 'when the tag was dropped, unix milliseconds; the row stays, so that a tag of the same name goes on above; NULL: not dropped',
    issue_order    VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'distinct' COMMENT 'distinct, or monotonic or strict: one program at a time issues its ids; chosen when the tag is made, never changed',
    start_id       BIGINT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'the first id of the tag',
    heir           VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the tag is closed: its ids come from another store (store, and the key space of its row there), or will come from here (opening), or a PostgreSQL database issues them natively (by system identifier, object id and life of its memory); NULL: it is open',
    closed_in      VARCHAR(600) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the other stores in which the tag is closed, by marks of their addresses; a program with a further store in its configuration gets nothing',
    hide_bits      BIGINT NULL COMMENT 'a secret permutation of so many bits turns numbers into keys; NULL: keys are the numbers; chosen when the tag is made, never changed',
    hide_fingerprint VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of the permutation; a program with another key gets nothing',
    updated_at     TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (tag)
) ENGINE = InnoDB COMMENT = 'Keywright: tags and their bounds';

-- One row per worker id that was ever leased. Never delete a row: its bound says how far ids were issued.
-- A lease is taken over by epoch + 1 and extended by compare-and-swap on (owner, epoch, hi_ms); expires_at only says
-- when others may try.
CREATE TABLE IF NOT EXISTS keywright_worker (
    space          VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'snowflake, readable (the worker id is a bucket), or fed: databases lease it whose snowflake ids are handed over',
    worker_id      BIGINT UNSIGNED NOT NULL,
    owner          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'unique to one run of one program; NULL: released',
    holder         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'host and process, for people',
    epoch          BIGINT UNSIGNED NOT NULL COMMENT 'counts owners',
    hi_ms          BIGINT NOT NULL COMMENT 'ids of moments before this may have been issued, unix milliseconds',
    layout         VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in this layout',
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the server on which hi_ms was written',
    expires_at     DATETIME(3) NOT NULL COMMENT 'UTC',
    PRIMARY KEY (space, worker_id)
) ENGINE = InnoDB COMMENT = 'Keywright: leases of worker ids';

-- Rests of reservations that programs handed back when they stopped; taken out before they are used. The tag's hi then goes up by 1, so
-- that a store shows that was put back to before.
CREATE TABLE IF NOT EXISTS keywright_returned (
    id             BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    segment_table  VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the table with the tag''s bound',
    tag            VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    start_id       BIGINT UNSIGNED NOT NULL COMMENT 'first id of the range',
    end_id         BIGINT UNSIGNED NOT NULL COMMENT 'first id after it',
    generation     BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'the tag''s generation when the range was reserved; worthless when the tag has another',
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'where it was handed back; worthless on any other server',
    returned_at    TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (id),
    KEY keywright_returned_tag (segment_table, tag, start_id)
) ENGINE = InnoDB COMMENT = 'Keywright: rests of reservations';

-- One row per tag whose bound somebody has raised: whoever stops later may hand back ids below, which are elsewhere since.
-- Never delete a row, nor lower first_id.
CREATE TABLE IF NOT EXISTS keywright_returned_floor (
    segment_table  VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the table with the tag''s bound',
    tag            VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    first_id       BIGINT UNSIGNED NOT NULL COMMENT 'no range that was handed back and begins below it is accepted, or issued',
    PRIMARY KEY (segment_table, tag)
) ENGINE = InnoDB COMMENT = 'Keywright: below what rests of reservations are worthless';

-- Servers that another has taken the place of: all that one wrote before is here. Commits come to replicas in their order, so that rows say this, until
-- others write them: it is recorded with the first reservation behind a failover.
CREATE TABLE IF NOT EXISTS keywright_former_server (
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    newest_ms      BIGINT NOT NULL COMMENT 'its newest reservation that came along, unix milliseconds',
    left_ms        BIGINT NOT NULL COMMENT 'when the next server was first written to',
    PRIMARY KEY (server, newest_ms)
) ENGINE = InnoDB COMMENT = 'Keywright: servers before failovers';

-- One row: the attempt to let tables go over to keys, to another tag or back that is under way, or was the last one.
-- Every program waits while there is one, and any can finish it. Change nothing here by hand.
CREATE TABLE IF NOT EXISTS keywright_switch (
    id             BIGINT UNSIGNED NOT NULL COMMENT 'always 1',
    attempt        BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'counts attempts',
    phase          VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'none' COMMENT 'none, holding, ending, closed',
    leader         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'who began it',
    begun_at       DATETIME(3) NULL COMMENT 'UTC',
    snowflake_generation BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'counts how often tables went over to snowflake ids, or left them; leases of an older one are worthless',
    snowflake_floor_ms BIGINT NOT NULL DEFAULT 0 COMMENT 'snowflake ids begin at this moment or later, unix milliseconds',
    snowflake_first BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'snowflake ids begin at this id or above: keys that tables had before are below',
    readable_floor_ms BIGINT NOT NULL DEFAULT 0 COMMENT 'readable ids begin at this moment or later, unix milliseconds',
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Keywright: the switch that is under way';

-- One row per rule whose tables were ever switched: where their keys come from.
CREATE TABLE IF NOT EXISTS keywright_rule (
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_space      VARCHAR(140) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'segment:TAG or snowflake; NULL: native auto-increment',
    attempt        BIGINT UNSIGNED NULL COMMENT 'the attempt that is to change it',
    next_key_space VARCHAR(140) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'to this; NULL: native auto-increment',
    above          BIGINT UNSIGNED NULL COMMENT 'native again: the bound of the keys that were closed; counters went on from there',
    PRIMARY KEY (table_pattern, column_name)
) ENGINE = InnoDB COMMENT = 'Keywright: what is in force for tables';

-- The servers on which that was brought into force: on another one, after a failover, no keys are given until it was done there.
CREATE TABLE IF NOT EXISTS keywright_rule_server (
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    PRIMARY KEY (table_pattern, column_name, server)
) ENGINE = InnoDB COMMENT = 'Keywright: servers on which tables give keys';

-- Counters that an attempt has read under the lock of their tables, before it fenced them.
CREATE TABLE IF NOT EXISTS keywright_switch_table (
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    schema_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    attempt        BIGINT UNSIGNED NOT NULL,
    counter        BIGINT UNSIGNED NOT NULL COMMENT 'the next native id',
    was_fenced     BIGINT NOT NULL COMMENT '1: the table had its fence before; the fence stays when the attempt is given up',
    PRIMARY KEY (server, schema_name, table_name)
) ENGINE = InnoDB COMMENT = 'Keywright: counters of tables that are being switched';

-- By which rule a table has its fence, and keys: keys are above all other ids that it had then. A table with a fence of which nothing stands here has
-- brought it, as by RENAME TABLE or out of a dump.
CREATE TABLE IF NOT EXISTS keywright_fenced (
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    schema_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_space      VARCHAR(140) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'segment:TAG or snowflake',
    PRIMARY KEY (server, schema_name, table_name)
) ENGINE = InnoDB COMMENT = 'Keywright: tables that have their fence';

-- Tables that number their rows natively, behind a fence that was lifted: what looks like a fence there is the end of their counter, and nobody lifts it. It
-- is forgotten before such a table is fenced again.
CREATE TABLE IF NOT EXISTS keywright_lifted (
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    schema_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (server, schema_name, table_name)
) ENGINE = InnoDB COMMENT = 'Keywright: tables whose fence was lifted';

-- One row per running program.
CREATE TABLE IF NOT EXISTS keywright_program (
    program        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'unique to one run of one program',
    holder         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'host and process, for people',
    seen_at        DATETIME(3) NOT NULL COMMENT 'UTC; a switch does not wait for a program that was not seen for long',
    held           BIGINT UNSIGNED NULL COMMENT 'the attempt for which its statements wait',
    PRIMARY KEY (program)
) ENGINE = InnoDB COMMENT = 'Keywright: programs that follow what is in force';

-- What the configuration of a program wanted for a rule when that was in force. A program switches tables only for what is new in its
-- configuration: one that starts with an old file follows the others.
CREATE TABLE IF NOT EXISTS keywright_wanted (
    place          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'host and configuration file',
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_space      VARCHAR(140) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'segment:TAG or snowflake; NULL: native auto-increment',
    PRIMARY KEY (place, table_pattern, column_name)
) ENGINE = InnoDB COMMENT = 'Keywright: what configurations wanted';

-- What went by each program on tables of rules that observe: ids that no program asked for are somebody else's.
CREATE TABLE IF NOT EXISTS keywright_native (
    program        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'unique to one run of one program',
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    ids            BIGINT UNSIGNED NOT NULL COMMENT 'native ids that its statements asked for since it began, at most',
    unknown        BIGINT UNSIGNED NOT NULL COMMENT 'grows with statements of which nobody knows how many ids they ask for',
    noted_at       DATETIME(3) NOT NULL COMMENT 'UTC; all that went by before is in it',
    PRIMARY KEY (program, table_pattern, column_name)
) ENGINE = InnoDB COMMENT = 'Keywright: native ids that programs asked for';

CREATE TABLE IF NOT EXISTS keywright_unseen (
    program        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the run of a program that found them',
    table_pattern  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the rule''s pattern',
    column_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    ids            BIGINT UNSIGNED NOT NULL COMMENT 'about so many native ids came by no program',
    report         TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'tables, first and last moment, accounts: for people',
    noted_at       DATETIME(3) NOT NULL COMMENT 'UTC',
    PRIMARY KEY (program, table_pattern, column_name)
) ENGINE = InnoDB COMMENT = 'Keywright: native ids that came by no program while rules observe';

-- Tables that came to a rule after its tables had gone over to keys, with ids that may be among these: keys and such ids cannot be told
-- from each other, so somebody is to look.
CREATE TABLE IF NOT EXISTS keywright_late (
    server         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'which server it is',
    schema_name    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    report         TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'what was found, for people',
    noted_at       DATETIME(3) NOT NULL COMMENT 'UTC',
    PRIMARY KEY (server, schema_name, table_name)
) ENGINE = InnoDB COMMENT = 'Keywright: tables that came late with ids that may be keys';

-- One row: which worker ids programs lease, fed databases lease, and are assigned. Whatever is in none is set by hand. Programs whose configuration says
-- otherwise are refused; `keywright init --change-worker-ids` takes another.
CREATE TABLE IF NOT EXISTS keywright_worker_ids (
    id             BIGINT NOT NULL COMMENT 'always 1',
    leased         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'numbers that programs lease, as 0-255; empty: none, or any where the others are empty, too',
    fed            VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '' COMMENT 'numbers that databases lease whose snowflake ids are fed; empty: none',
    assigned       VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'numbers that databases are assigned for good; empty: none',
    layout         VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of all ids that carry them',
    next_id        BIGINT NOT NULL COMMENT 'the first number that was never assigned',
    is_restored    BIGINT NOT NULL DEFAULT 0 COMMENT '1: the store was restored, and it is unknown whether next_id was assigned since the backup',
    key_space_id   VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'drawn when the row was made: the snowflake ids of a store that was made anew are of another key space',
    unknown_ms     BIGINT NOT NULL DEFAULT 0 COMMENT 'when this server began to know what fed databases were handed, unix milliseconds: what was handed over before may be forgotten',
    unknown_server VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '' COMMENT 'which server',
    ahead_ms       BIGINT NOT NULL DEFAULT 0 COMMENT 'fed databases were handed no moment further ahead, milliseconds',
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Keywright: which worker ids are leased, and which assigned';

-- One row per worker id that was ever assigned to a PostgreSQL database. Never delete a row.
CREATE TABLE IF NOT EXISTS keywright_assigned (
    worker_id      BIGINT NOT NULL,
    state          VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'assigned, released, or retired: never given again',
    mark           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the database has this mark',
    next_mark      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'or this one, which it was sent',
    asks           BIGINT NOT NULL COMMENT 'counts asks',
    is_used        BIGINT NOT NULL COMMENT '1: ids may have been issued with it',
    bound_ms       BIGINT NULL COMMENT 'its last owners'' ids are of moments before this, unix milliseconds',
    system_id      VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the server''s system identifier',
    database_oid   BIGINT NOT NULL,
    place          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'where the database was when it asked last, for people',
    assigned_at_ms BIGINT NOT NULL COMMENT 'unix milliseconds',
    asked_at_ms    BIGINT NOT NULL,
    released_at_ms BIGINT NULL COMMENT 'released or retired',
    is_restored    BIGINT NOT NULL DEFAULT 0 COMMENT '1: the store was restored, and it is unknown which mark the database has',
    report         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'a copy that asked, for people',
    PRIMARY KEY (worker_id)
) ENGINE = InnoDB COMMENT = 'Keywright: worker ids that databases were assigned';

-- One row per user of key ports. Change users with `keywright user`, which tells running programs.
CREATE TABLE IF NOT EXISTS keywright_user (
    name           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    password       VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'hashed with argon2, as a PHC string',
    changed_at_ms  BIGINT NOT NULL COMMENT 'when it got this password, unix milliseconds',
    PRIMARY KEY (name)
) ENGINE = InnoDB COMMENT = 'Keywright: users of key ports';

-- What users may do, by names.
CREATE TABLE IF NOT EXISTS keywright_user_grant (
    user_name      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name_pattern   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'names; * stands for any characters, ? for one',
    rights         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'use, create, manage, administer, with commas',
    PRIMARY KEY (user_name, name_pattern)
) ENGINE = InnoDB COMMENT = 'Keywright: what users of key ports may do';

-- One row: another text whenever users or their rights have changed. Programs ask for it several times a second.
CREATE TABLE IF NOT EXISTS keywright_user_version (
    id             BIGINT NOT NULL COMMENT 'always 1',
    version        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Keywright: which version of the users it is';

-- One row per slot group: which program issues ids of its tags whose order is monotonic or strict, until it fails to renew that in time. And row 0, once
-- the number of groups was said, with that as its epoch. Change nothing here by hand.
CREATE TABLE IF NOT EXISTS keywright_order_lease (
    id             BIGINT NOT NULL COMMENT 'the slot group, from 1, or 0 for how many there are',
    owner          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'unique to one run of one program; NULL: released',
    holder         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'host and process, for people',
    address        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'where clients reach it',
    epoch          BIGINT NOT NULL COMMENT 'counts takeovers; ids are reserved for the last one only',
    renewal        BIGINT NOT NULL COMMENT 'counts takeovers, renewals and releases',
    ttl_ms         BIGINT NOT NULL COMMENT 'others take over when this renewal has stood for so long by their own clocks',
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Keywright: who issues ids of ordered tags';

-- One row per program that may take over, or has a lease.
CREATE TABLE IF NOT EXISTS keywright_order_node (
    program        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'unique to one run of one program',
    holder         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'host and process, for people',
    address        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'where clients reach it',
    seen_at        DATETIME(3) NOT NULL COMMENT 'UTC',
    PRIMARY KEY (program)
) ENGINE = InnoDB COMMENT = 'Keywright: programs that may issue ids of ordered tags';

-- One row per PostgreSQL database whose tag of this name moved to the store, or back: which move it was. Never delete a row.
CREATE TABLE IF NOT EXISTS keywright_moved (
    tag            VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    system_id      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the server''s system identifier',
    database_oid   BIGINT UNSIGNED NOT NULL,
    move_number    BIGINT UNSIGNED NOT NULL COMMENT 'as keywright.source counts there',
    place          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'where the database was then, for people',
    moved_at_ms    BIGINT NOT NULL COMMENT 'unix milliseconds',
    PRIMARY KEY (tag, system_id, database_oid)
) ENGINE = InnoDB COMMENT = 'Keywright: databases whose tags moved to the store, or back';

-- Buckets of readable ids where there are several stores; no row: all of them are leased here. Change them with `keywright init`.
CREATE TABLE IF NOT EXISTS keywright_bucket (
    store       VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'own: this store; else the id of a store that this one gave buckets to',
    name        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the name of the store, for people',
    store_id    VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'drawn when the row was made',
    giver       VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the id of the store that gave this one its buckets; its own: it gives them',
    buckets     VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'as 0-127; empty: none',
    is_open     BIGINT NOT NULL COMMENT '0: none is leased until keywright init has run',
    is_restored BIGINT NOT NULL COMMENT '1: the store was restored, and keeps the buckets that it had',
    version     BIGINT NOT NULL COMMENT 'counts changes',
    PRIMARY KEY (store)
) ENGINE = InnoDB COMMENT = 'Keywright: buckets of readable ids, by store';
