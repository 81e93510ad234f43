-- One kind of statement after the other, for sysbench: what `cargo xtask bench proxy` puts on servers and proxies.

sysbench.cmdline.options = {
    statement = {"insert, insert_prepared, insert_thousand, insert_wrapped, insert_wrapped_prepared, insert_once, select or result", "insert"},
    into = {"table to insert into", "t"},
}

local note = string.rep("a note. ", 15)
local column_list = " (customer, note) VALUES "

local function row()
    return "(4711, '" .. note .. "')"
end

local function rows(count)
    local all = {}
    for index = 1, count do
        all[index] = row()
    end
    return table.concat(all, ", ")
end

local kinds = {}

-- What an application without prepared statements sends.
function kinds.insert(connection, into)
    local text = "INSERT INTO " .. into .. column_list .. row()
    return function() connection:query(text) end
end

-- What an application without a pool does: a connection that lives for one statement.
function kinds.insert_once(_, into)
    local text = "INSERT INTO " .. into .. column_list .. row()
    local driver = sysbench.sql.driver()
    return function()
        local connection = driver:connect()
        connection:query(text)
        connection:disconnect()
    end
end

function kinds.insert_thousand(connection, into)
    local text = "INSERT INTO " .. into .. column_list .. rows(1000)
    return function() connection:query(text) end
end

function kinds.insert_prepared(connection, into)
    local statement = connection:prepare("INSERT INTO " .. into .. column_list .. "(?, ?)")
    local customer = statement:bind_create(sysbench.sql.type.INT)
    local text = statement:bind_create(sysbench.sql.type.CHAR, 120)
    statement:bind_param(customer, text)
    return function()
        customer:set(4711)
        text:set(note)
        statement:execute()
    end
end

-- Keys that no other connection has, near to each other as the proxy's are; the table is empty before each run.
local function keys()
    local last = 2 ^ 40 + sysbench.tid
    return function()
        last = last + sysbench.opt.threads
        return last
    end
end

-- The key as the proxy writes it, sent by the application itself: what the server takes for LAST_INSERT_ID(k).
function kinds.insert_wrapped(connection, into)
    local next_key = keys()
    return function()
        connection:query("INSERT INTO " .. into .. " (id, customer, note) VALUES (LAST_INSERT_ID(" ..
            string.format("%.0f", next_key()) .. "), 4711, '" .. note .. "')")
    end
end

function kinds.insert_wrapped_prepared(connection, into)
    local statement = connection:prepare("INSERT INTO " .. into .. " (id, customer, note) VALUES (LAST_INSERT_ID(?), ?, ?)")
    local key = statement:bind_create(sysbench.sql.type.BIGINT)
    local customer = statement:bind_create(sysbench.sql.type.INT)
    local text = statement:bind_create(sysbench.sql.type.CHAR, 120)
    statement:bind_param(key, customer, text)
    local next_key = keys()
    return function()
        key:set(next_key())
        customer:set(4711)
        text:set(note)
        statement:execute()
    end
end

function kinds.select(connection)
    return function()
        connection:query("SELECT customer, note FROM read_only WHERE id = " .. sysbench.rand.uniform(1, 10000))
    end
end

-- 10,000 rows of a kilobyte.
function kinds.result(connection)
    return function() connection:query("SELECT kilobyte FROM big") end
end

local run_one

function thread_init()
    local connection = sysbench.sql.driver():connect()
    run_one = kinds[sysbench.opt.statement](connection, sysbench.opt.into)
end

function event()
    run_one()
end
