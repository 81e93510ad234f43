# What asks for a key, in each way of writing it, and what does not.

=== key absent
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
INSERT INTO t (a, b) VALUES (1, 'one');
SELECT LAST_INSERT_ID();
INSERT INTO t (a) VALUES (2);
INSERT t (a) VALUES (3);
insert into t (a) value (4);
INSERT INTO t () VALUES ();
SELECT id, a, b FROM t ORDER BY id;
SELECT id - LAST_INSERT_ID() FROM t ORDER BY id DESC LIMIT 1;

=== key absent in several rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
INSERT INTO t (a, b) VALUES (1, 'one'), (2, 'two'), (3, 'three');
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
INSERT INTO t (a) VALUES (4),(5);
SELECT COUNT(*), MIN(id) - MAX(id) FROM t WHERE a >= 4;
INSERT INTO t () VALUES (), (), ();
SELECT ROW_COUNT();
SELECT MAX(id) - LAST_INSERT_ID() FROM t;

=== NULL for the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
INSERT INTO t (id, a) VALUES (NULL, 1);
INSERT INTO t (a, id) VALUES (2, NULL);
INSERT INTO t (a, id, b) VALUES (3, null, 'x'), (4, NULL, 'y');
INSERT INTO t VALUES (NULL, 5, 'z');
INSERT INTO t VALUES (NULL, 6, 'z'), (NULL, 7, NULL);
SELECT LAST_INSERT_ID() = MIN(id) FROM t WHERE a IN (6, 7);

=== a key in a row for all columns
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
INSERT INTO t () VALUES (NULL, 1, 'x');
INSERT INTO t () VALUES (0, 2, 'y'), (DEFAULT, 3, 'z'), (NULL, 4, NULL);
SELECT LAST_INSERT_ID() = MIN(id) FROM t WHERE a IN (2, 3, 4);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t () SELECT NULL, a + 10, b FROM t ORDER BY a DESC;
SELECT a, b FROM t ORDER BY id;
@only mysql
INSERT INTO t () VALUES () AS n ON DUPLICATE KEY UPDATE a = n.a;
REPLACE INTO t () VALUES (NULL, 20, 'r');
SELECT id = LAST_INSERT_ID() FROM t WHERE a = 20;

=== DEFAULT for the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 9, b VARCHAR(20) DEFAULT 'b');
--- run
INSERT INTO t (id, a) VALUES (DEFAULT, 1);
INSERT INTO t (id, a) VALUES (default, 2), (DEFAULT, DEFAULT);
INSERT INTO t VALUES (DEFAULT, DEFAULT, DEFAULT);
INSERT INTO t (a, id) VALUES (DEFAULT, DEFAULT);
INSERT INTO t (id, a) VALUES (DEFAULT(id), DEFAULT(a));
SELECT id - LAST_INSERT_ID(), a, b FROM t WHERE id >= LAST_INSERT_ID();

=== zero for the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (id, a) VALUES (0, 1);
INSERT INTO t (id, a) VALUES ('0', 2);
INSERT INTO t (id, a) VALUES (0.0, 3);
INSERT INTO t (id, a) VALUES ('0.0', 4);
INSERT INTO t (id, a) VALUES (0.4, 5);
INSERT INTO t (id, a) VALUES (-0, 6);
INSERT INTO t (id, a) VALUES (+0, 7);
INSERT INTO t (id, a) VALUES (00, 8);
INSERT INTO t (id, a) VALUES (0x00, 9);
INSERT INTO t (id, a) VALUES (0e0, 10);
INSERT INTO t (id, a) VALUES (FALSE, 11);
INSERT INTO t (id, a) VALUES (0, 12), (NULL, 13), (DEFAULT, 14);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;
SELECT COUNT(*) FROM t WHERE id = 0;

=== constants for the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (id, a) VALUES (5, 1);
SELECT LAST_INSERT_ID();
INSERT INTO t (id, a) VALUES ('6', 2);
INSERT INTO t (id, a) VALUES (6.6, 3);
INSERT INTO t (id, a) VALUES (-3, 4);
INSERT INTO t (id, a) VALUES (0x20, 5);
INSERT INTO t (id, a) VALUES (1e2, 6);
INSERT INTO t (id, a) VALUES (TRUE, 7);
INSERT INTO t (id, a) VALUES (50, 8), (51, 9);
INSERT INTO t (id, a) VALUES (b'1000000', 10);
SELECT LAST_INSERT_ID();

=== mixed rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (id, a) VALUES (7, 1), (NULL, 2);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
INSERT INTO t (id, a) VALUES (NULL, 3), (8, 4);
INSERT INTO t (id, a) VALUES (NULL, 5), (9, 6), (NULL, 7);
INSERT INTO t (id, a) VALUES (0, 8), (10, 9), (DEFAULT, 10), (11, 11);
SELECT id, a FROM t ORDER BY a;

=== keys of other types
CREATE TABLE t_int (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_uint (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_ubig (a INT, id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, UNIQUE (id));
--- run
INSERT INTO t_int (a) VALUES (1), (2);
INSERT INTO t_uint (a) VALUES (1), (2);
INSERT INTO t_ubig (a) VALUES (1), (2);
INSERT INTO t_ubig VALUES (3, NULL), (4, 0), (5, DEFAULT);
INSERT INTO t_int VALUES (NULL, 3);
INSERT INTO t_uint SET a = 3;
SELECT id - LAST_INSERT_ID() FROM t_uint ORDER BY id;

=== key is not the first column and not the primary key
CREATE TABLE t (a INT NOT NULL, b VARCHAR(9), id BIGINT NOT NULL AUTO_INCREMENT, PRIMARY KEY (a), KEY (id));
--- run
INSERT INTO t (a, b) VALUES (1, 'x');
INSERT INTO t VALUES (2, 'y', NULL);
INSERT INTO t VALUES (3, 'y', 0), (4, 'z', DEFAULT);
INSERT INTO t (b, a) VALUES ('q', 5), ('r', 6);
SELECT a, b, id - LAST_INSERT_ID() FROM t ORDER BY a;

=== refused values of the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@refused a function call as key
INSERT INTO t (id, a) VALUES (RAND() * 0, 1);
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT MAX(id) * RAND() FROM t), 1);
@refused a variable as key
INSERT INTO t (id, a) VALUES (@x := 1, 1);
@refused an expression as key
INSERT INTO t (a, id) VALUES (1, a + 1);
SELECT COUNT(*) FROM t;

=== strings that are no numbers, as keys
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@params 'abc', 2
INSERT INTO t (id, a) VALUES (?, ?);
INSERT INTO t (id, a) VALUES ('abc', 1);
INSERT INTO t (id, a) VALUES ('', 3);
@params '', 4
INSERT INTO t (id, a) VALUES (?, ?);
@deviates the server does not get the string, so it does not warn of it
INSERT IGNORE INTO t (id, a) VALUES ('', 5);
SELECT COUNT(*) FROM t;
SET sql_mode = '';
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t (id, a) VALUES ('', 6);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t (id, a) VALUES ('', 7), ('' 'abc', 8), (NULL, 9);
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t SET id = '', a = 10;
@deviates the server does not get the string, so it does not warn of it
REPLACE INTO t VALUES ('', 11);
@params '', 12
@params 'abc', 13
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t (id, a) VALUES (?, ?);
@refused a string that is no number as key
INSERT INTO t (id, a) VALUES ('0 ', 14);
@refused a string that is no number as key
INSERT INTO t (id, a) SELECT '', 15;
SELECT COUNT(*) FROM t;
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t (id, a) VALUES ('', 16);
SELECT a, id = 0 FROM t ORDER BY a;

=== texts as keys of a column of text, in a table that a rule for numbers matches by chance
columns known
CREATE TABLE t (id VARCHAR(20) NOT NULL PRIMARY KEY, a INT);
CREATE TABLE u (id VARCHAR(20), a INT);
INSERT INTO u VALUES ('u1', 1), ('u2', 2);
--- run
INSERT INTO t (id, a) VALUES ('first', 1);
SELECT LAST_INSERT_ID(), ROW_COUNT();
INSERT INTO t (id, a) VALUES ('', 2), ('0', 3), ('0 1', 4), (0.5, 5);
INSERT INTO t (id, a) VALUES (0, 6);
INSERT INTO t VALUES ('1e5f', 7);
@refused without room
INSERT INTO t VALUES ('1', 8), (NULL, 8);
INSERT INTO t SET id = 'set', a = 9;
REPLACE INTO t SET id = '0', a = 10;
INSERT IGNORE INTO t (id, a) VALUES ('0', 11), ('ignored', 12);
INSERT INTO t (id, a) VALUES ('first', 13) ON DUPLICATE KEY UPDATE a = 14;
INSERT INTO t (id, a) VALUES (CONCAT('a', 'b'), 15), (UPPER('c'), 16);
@params 'bound', 17
@params '', 18
@params '0 ', 19
@params 20, 20
@params x'3078', 21
@params ahead 'long', 22
INSERT INTO t (id, a) VALUES (?, ?);
@params 'd', 23
INSERT INTO t (id, a) VALUES (UPPER(?), ?), ('0 0', 24);
@params '0', 25
INSERT INTO t (id, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a);
@refused without room
INSERT INTO t (a) VALUES (26);
@refused without room
INSERT INTO t (id, a) VALUES (DEFAULT, 27);
@refused without room
INSERT INTO t (id, a) SELECT id, a FROM u;
SET sql_mode = '';
INSERT INTO t (id, a) VALUES ('lax', 28), ('0x', 29);
INSERT INTO t (id, a) VALUES ('longer than the column is', 30);
@params 'lax too', 31
@params '00', 32
INSERT INTO t (id, a) VALUES (?, ?);
@refused without room
INSERT INTO t (a) VALUES (33);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t (id, a) VALUES ('no', 34), ('000', 35);
UPDATE t SET id = 'other' WHERE id = 'no';
SELECT id, a FROM t ORDER BY a, id;
SELECT LAST_INSERT_ID();
