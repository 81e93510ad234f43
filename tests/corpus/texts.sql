# Bytes of every charset, and literals in every spelling, arrive as they were sent.

=== utf8mb4
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) CHARACTER SET utf8mb4);
--- run
SET NAMES utf8mb4;
INSERT INTO t (a) VALUES ('Grüße'), ('日本語'), ('👍 (1)');
INSERT INTO t (a) VALUES (_utf8mb4'ß' COLLATE utf8mb4_bin), (N'n'), (_latin1'{xE4}');
INSERT INTO t (a) VALUES ('{xC3}{xBC}');
SELECT a, HEX(a) FROM t ORDER BY id;

=== latin1
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) CHARACTER SET utf8mb4);
--- run
SET NAMES latin1;
INSERT INTO t (a) VALUES ('{xE4}{xF6}{xFC}'), ('plain');
INSERT INTO t (a) VALUES ('{xFF}\'{xFE}');
INSERT INTO t (a) VALUES (_utf8mb4'{xC3A4}');
SELECT HEX(a) FROM t ORDER BY id;

=== gbk, whose second bytes may be a backslash
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) CHARACTER SET utf8mb4);
--- run
SET NAMES utf8mb4;
INSERT INTO t (a) VALUES (_gbk'{xD6D0}');
INSERT INTO t (a) VALUES (CONVERT(x'D65C' USING gbk));
SELECT HEX(a) FROM t ORDER BY id;

=== bytes
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARBINARY(300));
--- run
INSERT INTO t (a) VALUES (_binary'{x00017F80FEFF}');
INSERT INTO t (a) VALUES (_binary '\0\'\"\b\n\r\t\Z\\'), (x''), (X'00FF'), (0xFF), (b'0');
INSERT INTO t (a) VALUES (REPEAT(_binary'{xFF}', 300));
SELECT HEX(a) FROM t ORDER BY id;

=== strings that look like syntax
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(80), b VARCHAR(80));
--- run
INSERT INTO t (a, b) VALUES ('(', ')'), ('),(', ', ('), ("'", '"');
INSERT INTO t (a, b) VALUES ('''', ''''''), ("""", "''"), ('`', "`");
INSERT INTO t (a, b) VALUES ('/*', '*/'), ('-- ', '#'), (';', '; INSERT INTO t VALUES (NULL)');
INSERT INTO t (a, b) VALUES ('VALUES (1)', 'ON DUPLICATE KEY UPDATE'), ('\\', '\\\\');
INSERT INTO t (a, b) VALUES ('a' 'b', 'c'
'd');
INSERT INTO t (a, b) VALUES ('\%', '\_'), ('', '');
INSERT INTO t (a, b) VALUES ('LAST_INSERT_ID()', 'NULL'), ('?', ':x');
SELECT a, b FROM t ORDER BY id;

=== numbers and blanks
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a DOUBLE);
--- run
INSERT INTO t (a) VALUES (1.), (.5), (1e3), (1E-3), (+1), (- 1), (1.5e+2);
<<
  INSERT
	INTO
t
(
a
)
VALUES
(
1
)
,
(2)
>>
INSERT INTO t(a)VALUES(3)  ;
INSERT INTO t (a) VALUES (1,);
INSERT INTO t (a) VALUES (4),;
INSERT INTO t (a) VALUES;
SELECT a FROM t ORDER BY id;

=== dates, JSON, decimals, enums
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, d DATETIME(6), j JSON, n DECIMAL(20, 4), e ENUM('x', 'y'), s SET('p', 'q'), f FLOAT, bi BIT(9));
--- run
INSERT INTO t (d, j, n, e, s, f, bi) VALUES ('2026-11-21 07:30:00.123456', '{"a": [1, "x"]}', 234567.1234, 'y', 'p,q', 1.5, b'101010101');
INSERT INTO t (d, n, e) VALUES (TIMESTAMP'2026-01-01 00:00:00', -1, 2), (DATE'2026-01-02', 0, 'x');
INSERT INTO t (j) VALUES ('{');
INSERT INTO t (e) VALUES ('z');
SELECT d, j, n, e, s, f, bi FROM t ORDER BY id;
SELECT id, d, n FROM t ORDER BY id;

=== long rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT);
--- run
INSERT INTO t (a) VALUES (REPEAT('x', 100000)), (REPEAT('y', 70000));
SELECT LENGTH(a), MD5(a) FROM t ORDER BY id;

=== a NUL at the text's end, as clients written in C count one in
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE other (a INT);
--- run
INSERT INTO t (a) VALUES (1){x00};
INSERT INTO t VALUES (NULL, 2), (0, 3) {x00};
INSERT INTO t SET a = 4{x00};
REPLACE INTO t (a) VALUES (5) -- a comment{x00};
INSERT INTO t (a) VALUES (6) --{x00};
/*! INSERT INTO t (a) VALUES (7) */{x00};
INSERT INTO t (a) SELECT 8{x00};
<<
INSERT INTO t (a) VALUES (9){x00} ; 
>>
INSERT INTO other (a) VALUES (1){x00};
@text
<<
INSERT INTO t (a) VALUES (10); INSERT INTO t (a) VALUES (11){x00}
>>
PREPARE s FROM 'INSERT INTO t (a) VALUES (12)\0';
EXECUTE s{x00};
SELECT LAST_INSERT_ID() = MAX(id) FROM t{x00};
INSERT INTO t (a) VALUES (13{x00};
INSERT INTO t (a) VALUES ('14{x00};
{x00}INSERT INTO t (a) VALUES (15);
{x00};
@text
<<
INSERT INTO t (a) VALUES (16);{x00}
>>
SELECT a FROM t ORDER BY id;
