-- Reading Keywright's ids in MySQL and MariaDB: plain stored functions, no plugin.
-- Load it into a schema of your choice:  mysql shop < keywright_decode.sql
-- Moments are UTC. Layouts are the presets that snowflake_layout lists; for any other split use snowflake_field(id, shift, bits).

DELIMITER //

DROP FUNCTION IF EXISTS snowflake_field //
CREATE FUNCTION snowflake_field(id BIGINT, shift_bits INT, bits INT) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'the field of that many bits, that many bits from the right'
BEGIN
    IF id < 0 THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'id is negative, so it is not a snowflake id';
    END IF;
    IF shift_bits < 0 OR bits < 1 OR shift_bits + bits > 63 THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'a field lies within the 63 bits of an id';
    END IF;
    RETURN (id >> shift_bits) & ((1 << bits) - 1);
END //

-- What a preset says: bits and shift of each field, epoch in unix milliseconds, milliseconds per tick; 0 bits: no such field.
DROP FUNCTION IF EXISTS snowflake_layout //
CREATE FUNCTION snowflake_layout(layout VARCHAR(64) CHARACTER SET utf8mb4, property VARCHAR(32) CHARACTER SET utf8mb4) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'one number of a preset layout'
BEGIN
    DECLARE place INT DEFAULT FIELD(property,
        'time_bits', 'time_shift', 'datacenter_bits', 'datacenter_shift', 'worker_bits', 'worker_shift', 'sequence_bits', 'sequence_shift', 'epoch_ms', 'tick_ms');
    DECLARE number BIGINT DEFAULT NULL;
    CASE layout
-- begin presets: made from core/src/layout/preset.rs by cargo xtask docs
        WHEN 'twitter' THEN SET number = ELT(place, 41, 22, 5, 17, 5, 12, 12, 0, 1288834974657, 1);
        WHEN 'leaf' THEN SET number = ELT(place, 41, 22, 0, 0, 10, 12, 12, 0, 1288834974657, 1);
        WHEN 'baidu' THEN SET number = ELT(place, 28, 35, 0, 0, 22, 13, 13, 0, 1463673600000, 1000);
        WHEN 'shardingsphere' THEN SET number = ELT(place, 41, 22, 0, 0, 10, 12, 12, 0, 1477958400000, 1);
        WHEN 'sonyflake' THEN SET number = ELT(place, 39, 24, 0, 0, 16, 0, 8, 16, 1409529600000, 10);
        WHEN 'instagram' THEN SET number = ELT(place, 40, 23, 0, 0, 13, 10, 10, 0, 1314220021721, 1);
        WHEN 'js53' THEN SET number = ELT(place, 41, 12, 0, 0, 5, 7, 7, 0, 1735689600000, 1);
        ELSE
            SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'unknown layout: use twitter, leaf, baidu, shardingsphere, sonyflake, instagram or js53';
-- end presets
    END CASE;
    IF number IS NULL THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'unknown property of a layout';
    END IF;
    RETURN number;
END //

-- Fails for ids that have bits set which the layout does not use.
DROP FUNCTION IF EXISTS snowflake_checked //
CREATE FUNCTION snowflake_checked(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'the id, or an error if it is not of the layout'
BEGIN
    DECLARE top INT DEFAULT snowflake_layout(layout, 'time_bits') + snowflake_layout(layout, 'time_shift');
    IF id < 0 THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'id is negative, so it is not a snowflake id';
    END IF;
    IF top < 63 AND (id >> top) > 0 THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'id has bits set that its layout does not use';
    END IF;
    RETURN id;
END //

DROP FUNCTION IF EXISTS snowflake_unix_ms //
CREATE FUNCTION snowflake_unix_ms(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'when the id was issued, in milliseconds since 1970 UTC'
    RETURN snowflake_field(snowflake_checked(id, layout), snowflake_layout(layout, 'time_shift'), snowflake_layout(layout, 'time_bits'))
        * snowflake_layout(layout, 'tick_ms') + snowflake_layout(layout, 'epoch_ms') //

DROP FUNCTION IF EXISTS snowflake_timestamp //
CREATE FUNCTION snowflake_timestamp(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS DATETIME(3)
    DETERMINISTIC NO SQL
    COMMENT 'when the id was issued, UTC'
    RETURN TIMESTAMPADD(MICROSECOND, snowflake_unix_ms(id, layout) * 1000, CAST('1970-01-01' AS DATETIME(6))) //

DROP FUNCTION IF EXISTS snowflake_datacenter //
CREATE FUNCTION snowflake_datacenter(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS INT
    DETERMINISTIC NO SQL
    COMMENT 'the datacenter id, NULL if the layout has none'
    RETURN IF(snowflake_layout(layout, 'datacenter_bits') = 0, NULL,
        snowflake_field(snowflake_checked(id, layout), snowflake_layout(layout, 'datacenter_shift'),
                        GREATEST(snowflake_layout(layout, 'datacenter_bits'), 1))) //

DROP FUNCTION IF EXISTS snowflake_worker //
CREATE FUNCTION snowflake_worker(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS INT
    DETERMINISTIC NO SQL
    COMMENT 'the worker id as it was set: datacenter and worker together where the layout has both'
    RETURN (COALESCE(snowflake_datacenter(id, layout), 0) << snowflake_layout(layout, 'worker_bits'))
        + snowflake_field(snowflake_checked(id, layout), snowflake_layout(layout, 'worker_shift'), snowflake_layout(layout, 'worker_bits')) //

DROP FUNCTION IF EXISTS snowflake_sequence //
CREATE FUNCTION snowflake_sequence(id BIGINT, layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'the sequence within the tick'
    RETURN snowflake_field(snowflake_checked(id, layout), snowflake_layout(layout, 'sequence_shift'), snowflake_layout(layout, 'sequence_bits')) //

DROP FUNCTION IF EXISTS snowflake_floor //
CREATE FUNCTION snowflake_floor(moment DATETIME(3), layout VARCHAR(64) CHARACTER SET utf8mb4) RETURNS BIGINT
    DETERMINISTIC NO SQL
    COMMENT 'the smallest id of that moment (UTC), for WHERE id >= snowflake_floor(…)'
BEGIN
    DECLARE ms BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, CAST('1970-01-01' AS DATETIME(6)), moment) DIV 1000
        - snowflake_layout(layout, 'epoch_ms');
    DECLARE ticks BIGINT DEFAULT ms DIV snowflake_layout(layout, 'tick_ms');
    IF ms < 0 OR ticks >> snowflake_layout(layout, 'time_bits') > 0 THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'the layout has no ids of that moment';
    END IF;
    RETURN ticks << snowflake_layout(layout, 'time_shift');
END //

-- Fails for anything that readable_id does not make.
DROP FUNCTION IF EXISTS readable_checked //
CREATE FUNCTION readable_checked(id VARCHAR(27) CHARACTER SET utf8mb4) RETURNS VARCHAR(27) CHARACTER SET utf8mb4
    DETERMINISTIC NO SQL
    COMMENT 'the id, or an error if it is not a readable id'
BEGIN
    IF id NOT REGEXP '^[0-9]{15}([0-9A-Za-z]{4}|[0-9A-Za-z]{3}_|[0-9A-Za-z]{2}__|[0-9A-Za-z]___)[0-9]{8}$' THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'not a readable id: it has 15 digits of time, 4 characters of business code and 8 digits';
    END IF;
    IF CAST(SUBSTRING(id, 20, 8) AS UNSIGNED) > 67108863 THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'not a readable id: its last 8 digits are more than 67108863';
    END IF;
    RETURN id;
END //

DROP FUNCTION IF EXISTS readable_timestamp //
CREATE FUNCTION readable_timestamp(id VARCHAR(27) CHARACTER SET utf8mb4) RETURNS DATETIME(3)
    DETERMINISTIC NO SQL
    COMMENT 'when a readable id was issued, UTC'
BEGIN
    DECLARE checked VARCHAR(27) CHARACTER SET utf8mb4 DEFAULT readable_checked(id);
    DECLARE moment DATETIME(3);
    -- What is no date is an error in strict mode, and NULL otherwise.
    DECLARE CONTINUE HANDLER FOR SQLSTATE '22007' SET moment = NULL;
    SET moment = CAST(CONCAT('20', SUBSTRING(checked, 1, 2), '-', SUBSTRING(checked, 3, 2), '-', SUBSTRING(checked, 5, 2),
        ' ', SUBSTRING(checked, 7, 2), ':', SUBSTRING(checked, 9, 2), ':', SUBSTRING(checked, 11, 2), '.', SUBSTRING(checked, 13, 3)) AS DATETIME(3));
    IF moment IS NULL AND id IS NOT NULL THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = 'not a readable id: its first 15 digits are not a moment';
    END IF;
    RETURN moment;
END //

DROP FUNCTION IF EXISTS readable_biz //
CREATE FUNCTION readable_biz(id VARCHAR(27) CHARACTER SET utf8mb4) RETURNS VARCHAR(4) CHARACTER SET utf8mb4
    DETERMINISTIC NO SQL
    COMMENT 'the business code of a readable id'
    RETURN TRIM(TRAILING '_' FROM SUBSTRING(readable_checked(id), 16, 4)) //

DELIMITER ;
