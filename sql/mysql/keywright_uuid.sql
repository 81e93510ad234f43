-- UUIDs of the versions that MySQL and MariaDB lack, as plain stored functions, no plugin. Version 1 is the servers' own UUID().
-- Load it into a schema of your choice:  mysql shop < keywright_uuid.sql
-- From MySQL 9.6 on MD5() and SHA1(), which versions 3 and 5 need, come with  INSTALL COMPONENT 'file://component_classic_hashing'
-- They return 36 characters: UNHEX(REPLACE(uuid, '-', '')) is what BINARY(16) holds, CAST(uuid AS UUID) what MariaDB's type UUID does.
-- Where the server has a function of the same name (MariaDB has UUID_v7() from 11.7 on), write that of your schema as shop.uuid_v7().

DELIMITER //

-- 32 hexadecimal digits, with version and variant in their places.
DROP FUNCTION IF EXISTS uuid_of_digits //
CREATE FUNCTION uuid_of_digits(digits CHAR(32) CHARACTER SET ascii, version CHAR(1) CHARACTER SET ascii) RETURNS CHAR(36) CHARACTER SET ascii
    DETERMINISTIC NO SQL
    COMMENT 'the UUID of that version with these bits'
    RETURN LOWER(CONCAT(SUBSTRING(digits, 1, 8), '-', SUBSTRING(digits, 9, 4), '-', version, SUBSTRING(digits, 14, 3), '-',
        SUBSTRING('89ab', (CONV(SUBSTRING(digits, 17, 1), 16, 10) & 3) + 1, 1), SUBSTRING(digits, 18, 3), '-', SUBSTRING(digits, 21, 12))) //

-- Fails for what is no UUID.
DROP FUNCTION IF EXISTS uuid_namespace //
CREATE FUNCTION uuid_namespace(namespace VARCHAR(64) CHARACTER SET ascii) RETURNS BINARY(16)
    DETERMINISTIC NO SQL
    COMMENT 'the bytes of a namespace, or an error if it is not a UUID'
BEGIN
    IF namespace NOT REGEXP '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$' THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'a namespace is a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12';
    END IF;
    RETURN UNHEX(REPLACE(namespace, '-', ''));
END //

DROP FUNCTION IF EXISTS uuid_v3_of_bytes //
CREATE FUNCTION uuid_v3_of_bytes(name LONGBLOB) RETURNS CHAR(36) CHARACTER SET ascii
    DETERMINISTIC NO SQL
    COMMENT 'the UUID of version 3 of bytes without a namespace, as UUID.nameUUIDFromBytes of Java'
    RETURN uuid_of_digits(MD5(name), '3') //

DROP FUNCTION IF EXISTS uuid_v3 //
CREATE FUNCTION uuid_v3(namespace VARCHAR(64) CHARACTER SET ascii, name LONGTEXT CHARACTER SET utf8mb4) RETURNS CHAR(36) CHARACTER SET ascii
    DETERMINISTIC NO SQL
    COMMENT 'the UUID of version 3 (MD5) of a name, in UTF-8'
    RETURN uuid_of_digits(MD5(CONCAT(uuid_namespace(namespace), CAST(name AS BINARY))), '3') //

DROP FUNCTION IF EXISTS uuid_v5 //
CREATE FUNCTION uuid_v5(namespace VARCHAR(64) CHARACTER SET ascii, name LONGTEXT CHARACTER SET utf8mb4) RETURNS CHAR(36) CHARACTER SET ascii
    DETERMINISTIC NO SQL
    COMMENT 'the UUID of version 5 (SHA-1) of a name, in UTF-8'
    RETURN uuid_of_digits(LEFT(SHA1(CONCAT(uuid_namespace(namespace), CAST(name AS BINARY))), 32), '5') //

-- SYSDATE() moves within a statement, NOW() does not. RANDOM_BYTES() came to MariaDB with 10.10.
DROP FUNCTION IF EXISTS uuid_v7 //
CREATE FUNCTION uuid_v7() RETURNS CHAR(36) CHARACTER SET ascii
    NOT DETERMINISTIC NO SQL
    COMMENT 'a new UUID of version 7: sorts by time to the microsecond; 62 random bits'
BEGIN
    DECLARE us BIGINT DEFAULT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED);
    RETURN uuid_of_digits(CONCAT(LPAD(HEX(us DIV 1000), 12, '0'), '7', LPAD(HEX(((us % 1000) << 12) DIV 1000), 3, '0'), HEX(RANDOM_BYTES(8))), '7');
END //

DELIMITER ;
