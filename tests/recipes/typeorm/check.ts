// Uses the page's entity in the ways that are common, and prints the id of each row: `check.js postgres|mariadb|mysql`.

import "reflect-metadata";
import assert from "node:assert";
import { Event } from "./event";
import { source } from "./source";
import { use } from "./use";

const SERVER = process.argv[2];

// Text, as the driver may round numbers.
async function idsByName(): Promise<Record<string, string>> {
  const text = SERVER === "postgres" ? "id::text" : "CAST(id AS CHAR)";
  const rows: { name: string; id: string }[] = await source.query(`SELECT name, ${text} AS id FROM event`);
  return Object.fromEntries(rows.map((row) => [row.name, row.id]));
}

async function assertKnown(events: { id?: string; name?: string }[]) {
  const ids = await idsByName();
  for (const event of events) {
    assert.strictEqual(String(event.id), ids[event.name!], event.name);
  }
}

async function insertInOtherWays() {
  const repository = source.getRepository(Event);
  const one = await repository.insert({ name: "inserted" });
  const many = await repository.insert(Array.from({ length: 500 }, (_, n) => ({ name: `many ${n}` })));
  const named = [...one.identifiers.map((id) => ({ ...id, name: "inserted" }))];
  many.identifiers.forEach((id, n) => named.push({ ...id, name: `many ${n}` }));
  assert.strictEqual(named.length, 501);
  await assertKnown(named);
  const saved = await repository.save(Array.from({ length: 100 }, (_, n) => ({ name: `saved ${n}` })), { chunk: 30 });
  await assertKnown(saved);
  await repository.insert({ id: "9000000000", name: "of its own" });
  assert.strictEqual((await idsByName())["of its own"], "9000000000");
}

async function insertWhatIsThere() {
  const repository = source.getRepository(Event);
  const before = (await idsByName())["one"];
  await repository.upsert([{ name: "one" }, { name: "upserted" }], ["name"]);
  const values = [{ name: "one" }, { name: "ignored" }];
  await repository.createQueryBuilder().insert().values(values).orIgnore().execute();
  const ids = await idsByName();
  assert.strictEqual(ids["one"], before);
  assert.ok(ids["upserted"] && ids["ignored"]);
}

async function rollBack() {
  const failing = source.transaction(async (manager) => {
    await manager.save(manager.create(Event, { name: "rolled back" }));
    throw new Error("on purpose");
  });
  await assert.rejects(failing, /on purpose/);
  const kept = await source.transaction((manager) => manager.save(manager.create(Event, { name: "kept" })));
  await assertKnown([kept]);
  assert.ok(!("rolled back" in (await idsByName())));
}

async function main() {
  await source.initialize();
  if (SERVER !== undefined) {
    await assertKnown(await use());
    await insertInOtherWays();
    await insertWhatIsThere();
    await rollBack();
    for (const id of Object.values(await idsByName())) {
      if (id !== "9000000000") console.log(`id ${id}`);
    }
  }
  await source.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
