// Steps of a script that uses a library. Each prints how it ended and what it saw, with keys by their order in their tables, so
// that what was seen of two servers can be compared.

const assert = require("node:assert");

module.exports = class Steps {
  // `tables`: names by the names of their keys, as columns and as properties; `run`: carries out a SELECT.
  constructor(library, tables, run) {
    Object.assign(this, { library, tables, run, keys: {} });
    for (const table of Object.values(tables)) this.keys[table] = [];
  }

  async step(name, what) {
    try {
      const seen = await what();
      const rows = await this.look();
      console.log(`SEEN ${this.library}::${name} - ${JSON.stringify(this.shown({ seen, rows }))}`);
      console.log(`PASSED ${this.library}::${name}`);
    } catch (error) {
      console.log(`FAILED ${this.library}::${name} - ${JSON.stringify(`${error.message} ${error.stack}`)}`);
    }
  }

  // All rows of all tables. A key that was there once keeps its place.
  async look() {
    const all = {};
    for (const [key, table] of Object.entries(this.tables)) {
      if (!key.includes("_") || all[table]) continue;
      all[table] = await this.run(`SELECT * FROM ${table} ORDER BY ${key}`);
      const known = new Set([...this.keys[table], ...all[table].map((row) => Number(row[key]))]);
      this.keys[table] = [...known].sort((a, b) => a - b);
    }
    return all;
  }

  shown(value, table) {
    if (value instanceof Date) return "a date";
    if (value !== null && typeof value === "object") {
      const plain = Array.isArray(value) ? value : (value.toJSON?.() ?? value);
      if (Array.isArray(plain)) return plain.map((one) => this.shown(one, table));
      const shown = ([name, one]) => [name, this.shown(one, this.tables[name])];
      return Object.fromEntries(Object.entries(plain).map(shown));
    }
    if (value === undefined) return "undefined";
    return table === undefined || value === null ? value : this.place(Number(value), table);
  }

  // Of a key that no row has: the one below, and how far beyond it.
  place(key, table) {
    const below = this.keys[table].filter((known) => known <= key);
    const beyond = key - (below.at(-1) ?? 0);
    return `#${below.length}${beyond === 0 ? "" : `+${beyond}`}`;
  }
};

// What fails, shown as what an application looks at.
module.exports.failure = async (what) => {
  const error = await what().then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
  const { name, code, errno, sqlState } = error.parent ?? error.driverError ?? error;
  return { kind: error.constructor.name, name, code, errno, sqlState, fields: error.fields && Object.keys(error.fields) };
};
