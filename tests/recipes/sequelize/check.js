// Uses the page's model in the ways that are common, and prints the id of each row: `check.js postgres|mariadb|mysql`.

const assert = require("node:assert");
const { DataTypes } = require("sequelize");
const { sequelize, Event } = require("./models");
const use = require("./use");

const SERVER = process.argv[2];

// Its table comes while the program runs.
const Note = sequelize.define("event_note", { id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true } });
Note.belongsTo(Event);
Event.hasMany(Note);

// Text, as the driver may round numbers.
async function idsByName() {
  const text = SERVER === "postgres" ? "id::text" : "CAST(id AS CHAR)";
  const [rows] = await sequelize.query(`SELECT name, ${text} AS id FROM events`);
  return Object.fromEntries(rows.map((row) => [row.name, row.id]));
}

async function assertKnown(events) {
  const ids = await idsByName();
  for (const event of events) {
    assert.strictEqual(String(event.id), ids[event.name], event.name);
  }
}

async function createInOtherWays() {
  const [found, created] = await Event.findOrCreate({ where: { name: "found or created" } });
  assert.ok(created);
  const built = Event.build({ name: "built" });
  await built.save();
  const withNotes = await Event.create({ name: "with notes", event_notes: [{}, {}] }, { include: Note });
  await assertKnown([found, built, withNotes]);
  for (const note of withNotes.event_notes) {
    assert.strictEqual(String(note.eventId), String(withNotes.id));
    if (SERVER !== "postgres") console.log(`id ${note.id}`);
  }
  await Event.create({ id: 9000000000, name: "of its own" });
  assert.strictEqual((await idsByName())["of its own"], "9000000000");
}

async function createMany() {
  const rows = Array.from({ length: 500 }, (_, n) => ({ name: `many ${n}` }));
  const events = await Event.bulkCreate(rows);
  assert.strictEqual(events.length, 500);
  await assertKnown(events);
}

async function createWhatIsThere() {
  const before = (await idsByName())["one"];
  await Event.bulkCreate([{ name: "one" }, { name: "ignored" }], { ignoreDuplicates: true });
  const updating = { updateOnDuplicate: ["name", "updatedAt"] };
  if (SERVER === "postgres") updating.conflictAttributes = ["name"];
  await Event.bulkCreate([{ name: "one" }, { name: "updated" }], updating);
  const upserting = SERVER === "postgres" ? { conflictFields: ["name"] } : {};
  await Event.upsert({ name: "one" }, upserting);
  await Event.upsert({ name: "upserted" }, upserting);
  const ids = await idsByName();
  assert.strictEqual(ids["one"], before);
  assert.ok(ids["ignored"] && ids["updated"] && ids["upserted"]);
}

async function rollBack() {
  const failing = sequelize.transaction(async (transaction) => {
    await Event.create({ name: "rolled back" }, { transaction });
    throw new Error("on purpose");
  });
  await assert.rejects(failing, /on purpose/);
  const kept = await sequelize.transaction((transaction) => Event.create({ name: "kept" }, { transaction }));
  await assertKnown([kept]);
  assert.ok(!("rolled back" in (await idsByName())));
}

async function main() {
  await assertKnown(await use());
  await createInOtherWays();
  await createMany();
  await createWhatIsThere();
  await rollBack();
  for (const id of Object.values(await idsByName())) {
    if (id !== "9000000000") console.log(`id ${id}`);
  }
  await sequelize.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
