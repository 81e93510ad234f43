# The same under the modes that change what a value or a text means.

=== NO_AUTO_VALUE_ON_ZERO
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO');
INSERT INTO t (id, a) VALUES (0, 1);
INSERT INTO t (id, a) VALUES (NULL, 2);
INSERT INTO t (a) VALUES (3);
DELETE FROM t WHERE id = 0;
INSERT INTO t (id, a) VALUES ('0', 4);
DELETE FROM t WHERE id = 0;
INSERT INTO t (id, a) VALUES (DEFAULT, 5);
DELETE FROM t WHERE id = 0;
INSERT INTO t VALUES (NULL, 6), (0, 7), (NULL, 8);
DELETE FROM t WHERE id = 0;
SET sql_mode = REPLACE(@@sql_mode, 'NO_AUTO_VALUE_ON_ZERO', '');
INSERT INTO t (id, a) VALUES (0, 9);
SELECT id, a FROM t ORDER BY id;

=== NO_AUTO_VALUE_ON_ZERO in a dump's comment
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
INSERT INTO t VALUES (0, 1), (1, 2), (2, 3);
INSERT INTO t (a) VALUES (4);
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
INSERT INTO t VALUES (0, 5);
SELECT id, a FROM t ORDER BY id;

=== modes set in other ways
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t VALUES (0, 1);
SET @@sql_mode = '';
DELETE FROM t;
INSERT INTO t VALUES (0, 2);
SET @@session.sql_mode := 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t VALUES (0, 3);
SET sql_mode = DEFAULT;
INSERT INTO t VALUES (0, 4);
SET @m = 'NO_AUTO_VALUE_ON_ZERO', SESSION sql_mode = @m;
DELETE FROM t WHERE id = 0;
INSERT INTO t VALUES (0, 5);
SET LOCAL sql_mode = 0;
DELETE FROM t WHERE id = 0;
INSERT INTO t VALUES (0, 6);
SELECT id, a FROM t ORDER BY id;

=== mode set by a prepared text
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET @m = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'";
PREPARE s FROM @m;
EXECUTE s;
INSERT INTO t VALUES (0, 1);
INSERT INTO t VALUES (NULL, 2);
DEALLOCATE PREPARE s;
SELECT id, a FROM t ORDER BY id;

=== mode reset with the connection
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t VALUES (0, 1);
@command reset_connection
USE {db};
INSERT INTO t VALUES (0, 2);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
DELETE FROM t WHERE id = 0;
@command change_user
INSERT INTO t VALUES (0, 3);
SELECT LAST_INSERT_ID() > 0, ROW_COUNT();

=== ANSI_QUOTES
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20), `b c` INT);
--- run
INSERT INTO t (a) VALUES ("double");
SET sql_mode = 'ANSI_QUOTES';
INSERT INTO "t" ("a", "b c") VALUES ('x', 1);
INSERT INTO "t" ("id", "a") VALUES (NULL, 'y"z');
INSERT INTO t (a) VALUES ("nothing");
INSERT INTO {db}."t" VALUES (NULL, 'say ""hi""', 2);
SET sql_mode = '';
INSERT INTO t (a) VALUES ("it's");
INSERT INTO `t` (`a`, `b c`) VALUES ("a ""b""", 3);
SELECT a, `b c` FROM t ORDER BY id;

=== NO_BACKSLASH_ESCAPES
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40), b INT);
--- run
INSERT INTO t (a, b) VALUES ('it\'s (1, 2)', 1), ('back\\', 2);
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
INSERT INTO t (a, b) VALUES ('back\', 3);
INSERT INTO t (a, b) VALUES ('it''s\', 4), ('\n', 5);
SET sql_mode = '';
INSERT INTO t (a, b) VALUES ('\\', 6), ('\'', 7), ("\"", 8);
SELECT a, b, id - LAST_INSERT_ID() FROM t ORDER BY id;

=== without strict mode
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a TINYINT NOT NULL, b VARCHAR(3));
--- run
SET sql_mode = '';
INSERT INTO t (a, b) VALUES (1000, 'toolong');
SHOW WARNINGS;
INSERT INTO t (b) VALUES ('x');
INSERT INTO t (a, b) VALUES ('abc', 'y'), (2, 'four');
SET sql_mode = 'STRICT_ALL_TABLES';
INSERT INTO t (a, b) VALUES (1000, 'x');
INSERT INTO t (id, a) VALUES ('abc', 5);
SELECT a, b, id > 1000 FROM t ORDER BY id;

=== auto_increment_increment 3
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET auto_increment_increment = 3, auto_increment_offset = 1;
INSERT INTO t (a) VALUES (1), (2), (3);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;
INSERT INTO t (a) VALUES (4);
SET auto_increment_increment = 1;
INSERT INTO t (a) VALUES (5), (6);
SELECT id - LAST_INSERT_ID(), a FROM t WHERE a > 4 ORDER BY id;
