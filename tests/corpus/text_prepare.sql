# PREPARE, EXECUTE and EXECUTE IMMEDIATE as text.

=== text PREPARE and EXECUTE
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
PREPARE s FROM 'INSERT INTO t (a, b) VALUES (?, ?)';
SET @a = 1, @b = 'x';
EXECUTE s USING @a, @b;
SET @a = 2, @b = NULL;
EXECUTE s USING @a, @b;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
DEALLOCATE PREPARE s;
PREPARE s FROM "INSERT INTO t (a) VALUES (3), (4)";
EXECUTE s;
EXECUTE s;
DROP PREPARE s;
EXECUTE s;
PREPARE s FROM 'INSERT INTO t VALUES (NULL, ?, ''it''''s'')';
EXECUTE s USING @a;
PREPARE s FROM 'SELECT COUNT(*) FROM t WHERE a = ?';
EXECUTE s USING @a;
SELECT a, b FROM t ORDER BY id;

=== EXECUTE IMMEDIATE
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@refused EXECUTE IMMEDIATE of an INSERT
EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (5)';
@refused EXECUTE IMMEDIATE of an INSERT
EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (?)' USING 6;
EXECUTE IMMEDIATE 'SELECT COUNT(*) FROM t WHERE a = ?' USING 6;
SELECT a FROM t;

=== names of prepared statements that the server may compare without accents
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@text
EXECUTE `ś`;
PREPARE s FROM 'INSERT INTO t (a) VALUES (1)';
EXECUTE s;
DELETE FROM t;
@refused PREPARE from a text
@text
EXECUTE `ś`;
@refused PREPARE from a text
@text
EXECUTE `s `;
EXECUTE s;
PREPARE s FROM 'INSERT INTO t (a) VALUES (2)';
EXECUTE s;
PREPARE `ś` FROM 'INSERT INTO other (a) VALUES (1)';
@refused PREPARE from a text
@text
EXECUTE s;
PREPARE s FROM 'INSERT INTO t (a) VALUES (3)';
EXECUTE S;
SELECT a FROM t;

=== a prepared statement that a procedure executes
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE PROCEDURE p() EXECUTE s;
--- run
PREPARE s FROM 'INSERT INTO t (a) VALUES (1)';
EXECUTE s;
DELETE FROM t;
@text
@deviates the program does not rewrite procedures, so the fence refuses the INSERT
CALL p();
@elsewhere
DROP TABLE t;

=== EXECUTE in every spelling
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
--- run
PREPARE `s t` FROM 'INSERT INTO t (a, b) VALUES (?, 2)';
SET @a = 1;
execute  `S T`  USING @a;
/*! EXECUTE `s t` USING @a */;
EXECUTE
`s t`
USING @a -- and no more
;
EXECUTE `s t`;
EXECUTE `s t` USING @a, @a;
@refused PREPARE from a text
@text
EXECUTE /* a comment */ `s t` USING @a;
@refused PREPARE from a text
@text
PREPARE `keywright execute` FROM 'INSERT INTO t (a) VALUES (3)';
@refused PREPARE from a text
@text
EXECUTE `keywright execute`;
@text
EXECUTE `s t` USING @a; EXECUTE `s t` USING @a;
SELECT a, b FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MAX(id), ROW_COUNT() FROM t;

=== texts in a character set whose characters may contain a backslash
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20) CHARACTER SET utf8mb4);
--- run
SET NAMES gbk;
PREPARE s FROM 'INSERT INTO t (a, b) VALUES (?, ''x\\\\y'')';
SET @a = 1;
EXECUTE s USING @a;
EXECUTE s USING @a;
SET NAMES utf8mb4;
EXECUTE s USING @a;
SET NAMES sjis;
EXECUTE s USING @a;
@refused a character set whose characters may contain a backslash
@text
PREPARE s FROM 'INSERT INTO t (a, b) VALUES (1, ''{x82A0}'')';
SET NAMES utf8mb4;
SET character_set_client = sjis;
@refused a character set whose characters may contain a backslash
@text
PREPARE s FROM 'INSERT INTO t (a, b) VALUES (1, ''x\\\\y'')';
SET NAMES utf8mb4;
SELECT a, HEX(b) FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
