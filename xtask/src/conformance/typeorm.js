// What applications do with TypeORM: `typeorm.js PORT make|use`.

require("reflect-metadata");
const assert = require("node:assert");
const { DataSource, EntitySchema } = require("typeorm");
const Steps = require("./steps.js");
const { failure } = Steps;

const key = (name, type) => ({ name, type, primary: true, generated: "increment" });

const Author = new EntitySchema({
  name: "Author",
  tableName: "authors",
  columns: {
    authorId: key("author_id", "int"),
    name: { type: "varchar", length: 100, unique: true },
    rank: { type: "int", default: 7 },
    made: { type: "datetime", createDate: true },
    version: { type: "int", version: true },
  },
  relations: {
    works: { type: "one-to-many", target: "Book", inverseSide: "writer", cascade: true },
    profile: { type: "one-to-one", target: "Profile", inverseSide: "author", cascade: true },
  },
});
const Profile = new EntitySchema({
  name: "Profile",
  tableName: "profiles",
  columns: { profileId: key("profile_id", "int"), about: { type: "varchar", length: 100 } },
  relations: { author: { type: "one-to-one", target: "Author", inverseSide: "profile", joinColumn: { name: "author_id" } } },
});
const Book = new EntitySchema({
  name: "Book",
  tableName: "books",
  columns: {
    bookId: { ...key("book_id", "bigint"), unsigned: true },
    title: { type: "varchar", length: 100 },
    isbn: { type: "varchar", length: 20, unique: true, nullable: true },
    more: { type: "simple-json", nullable: true },
    gone: { type: "datetime", deleteDate: true },
  },
  relations: {
    writer: { type: "many-to-one", target: "Author", inverseSide: "works", joinColumn: { name: "author_id" } },
    labels: {
      type: "many-to-many",
      target: "Label",
      cascade: true,
      joinTable: { name: "book_labels", joinColumn: { name: "book_id" }, inverseJoinColumn: { name: "label_id" } },
    },
  },
});
const Label = new EntitySchema({
  name: "Label",
  tableName: "labels",
  columns: { labelId: key("label_id", "int"), text: { type: "varchar", length: 50, unique: true } },
});
// Its closure table gets the keys of all ancestors.
const Place = new EntitySchema({
  name: "Place",
  tableName: "places",
  columns: { place_id: key("place_id", "int"), name: { type: "varchar", length: 50 } },
  trees: [{ type: "closure-table", options: { closureTableName: "place", ancestorColumnName: () => "ancestor_id", descendantColumnName: () => "descendant_id" } }],
  relations: {
    parent: { type: "many-to-one", target: "Place", treeParent: true, joinColumn: { name: "parent_id" } },
    children: { type: "one-to-many", target: "Place", treeChildren: true, inverseSide: "parent", cascade: true },
  },
});

const source = new DataSource({
  type: "mysql",
  host: "127.0.0.1",
  port: Number(process.argv[2]),
  username: "root",
  database: "orm",
  entities: [Author, Profile, Book, Label, Place],
  poolSize: 5,
});
const authors = source.getRepository(Author);
const books = source.getRepository(Book);
const labels = source.getRepository(Label);
const places = source.getTreeRepository(Place);

const keys = { author: "authors", profile: "profiles", book: "books", label: "labels", place: "places", parent: "places" };
const named = Object.entries(keys).flatMap(([name, table]) => [
  [`${name}_id`, table],
  [`${name}Id`, table],
]);
const steps = new Steps("typeorm", Object.fromEntries(named), (sql) => source.query(sql));
const step = steps.step.bind(steps);

const titles = (from, count) => Array.from({ length: count }, (_, n) => ({ title: `title ${from + n}`, isbn: `isbn ${from + n}` }));
const shown = ({ identifiers, generatedMaps }) => ({ identifiers, generatedMaps });

async function saveOnes() {
  await step("save", async () => [await authors.save({ name: "Ann" }), await authors.save(authors.create({ name: "täxt ☃ 'q' \\", rank: 1 }))]);
  await step("save again", async () => {
    const author = await authors.save({ name: "Ben" });
    author.name = "Benno";
    return [await authors.save(author), await authors.findOneBy({ name: "Benno" })];
  });
  await step("save many", async () => books.save(titles(0, 40), { chunk: 15 }));
  await step("save new ones and old ones", async () => {
    const [first] = await books.find({ order: { bookId: "ASC" }, take: 1 });
    return books.save([{ ...first, title: "changed" }, { title: "new" }]);
  });
  await step("preload", async () => {
    const { authorId } = await authors.findOneBy({ name: "Ann" });
    return [await authors.save(await authors.preload({ authorId, rank: 3 })), await authors.preload({ authorId: 2 ** 31 - 1 })];
  });
  await step("failures", async () => [
    await failure(() => authors.save({ name: "Ann" })),
    await failure(() => books.insert({ title: null })),
    await failure(() => books.save({ title: "of nobody", writer: { authorId: 2 ** 31 - 1 } })),
    await authors.save({ name: "after a failure" }),
  ]);
}

async function insert() {
  await step("insert", async () => [shown(await books.insert({ title: "inserted" })), shown(await books.insert(titles(40, 30)))]);
  await step("values of a query", async () => {
    const values = [{ name: "Cem" }, { name: () => "CONCAT('D', 'an')" }];
    return shown(await authors.createQueryBuilder().insert().values(values).execute());
  });
  await step("INSERT … SELECT", async () => {
    const { affectedRows, insertId } = await source.query("INSERT INTO books (title, author_id) SELECT CONCAT('by ', name), author_id FROM authors ORDER BY author_id");
    return { affectedRows, bookId: insertId };
  });
  await step("raw INSERT", async () => {
    const { affectedRows, insertId } = await source.query("INSERT INTO labels (text) VALUES (?), (?)", ["a", "b"]);
    return { affectedRows, labelId: insertId };
  });
  await step("orIgnore, all new", async () => shown(await labels.createQueryBuilder().insert().values([{ text: "c" }, { text: "d" }]).orIgnore().execute()));
  // Where some are skipped, TypeORM counts from the first key although the server does not say which went in.
  await step("orIgnore, some new", async () => (await labels.createQueryBuilder().insert().values([{ text: "d" }, { text: "e" }]).orIgnore().execute()).raw.affectedRows);
  await step("upsert of new ones", async () => shown(await labels.upsert([{ text: "f" }, { text: "g" }], ["text"])));
  await step("upsert of one that is there", async () => (await authors.upsert({ name: "Ann", rank: 9 }, ["name"])).raw.affectedRows);
  await step("upsert of some", async () => (await authors.upsert([{ name: "Ann", rank: 8 }, { name: "Eve", rank: 2 }], ["name"])).raw.affectedRows);
  await step("orUpdate by key", async () => {
    const label = await labels.findOneBy({ text: "g" });
    await labels.createQueryBuilder().insert().values({ ...label, text: "G" }).orUpdate(["text"], ["labelId"]).execute();
    return labels.findOneBy({ labelId: label.labelId });
  });
}

async function saveTogether() {
  await step("cascades", async () =>
    authors.save({
      name: "Fay",
      profile: { about: "her" },
      works: [
        { title: "one", labels: [{ text: "of one" }, { text: "of one too" }] },
        { title: "two", more: { pages: [1, 2] } },
      ],
    }),
  );
  await step("a parent that is there", async () => {
    const writer = await authors.findOneBy({ name: "Fay" });
    const label = await labels.findOneBy({ text: "a" });
    return books.save({ title: "three", writer, labels: [label, { text: "of three" }] });
  });
  await step("relations by a query", async () => {
    const book = await books.findOneBy({ title: "three" });
    await source.createQueryBuilder().relation(Book, "labels").of(book).add(await labels.findOneBy({ text: "b" }));
    await source.createQueryBuilder().relation(Author, "works").of(await authors.findOneBy({ name: "Cem" })).add(book);
    return books.findOne({ where: { title: "three" }, relations: { writer: true, labels: true }, order: { labels: { labelId: "ASC" } } });
  });
  await step("trees", async () => {
    const root = await places.save({ name: "root" });
    const child = await places.save({ name: "child", parent: root });
    await places.save([
      { name: "leaf", parent: child },
      { name: "leaf too", parent: child },
    ]);
    return [await places.findTrees(), await places.countDescendants(child), await places.findAncestors(child)];
  });
  await step("find with relations", async () =>
    authors.find({
      relations: { works: { labels: true }, profile: true },
      order: { authorId: "ASC", works: { bookId: "ASC", labels: { labelId: "ASC" } } },
    }),
  );
}

async function inTransactions() {
  await step("transaction", async () =>
    source.transaction(async (manager) => {
      const author = await manager.save(Author, { name: "Gus" });
      const work = await manager.save(Book, { title: "his", writer: author });
      const [last] = await manager.query("SELECT LAST_INSERT_ID() AS bookId");
      return [author, work, last];
    }),
  );
  await step("transaction that is rolled back", async () => {
    const fails = failure(() =>
      source.transaction(async (manager) => {
        await manager.save(Author, { name: "nobody", works: [{ title: "nothing" }] });
        throw new RangeError("on purpose");
      }),
    );
    return [await fails, await authors.countBy({ name: "nobody" }), await authors.save({ name: "Hal" })];
  });
  await step("savepoint", async () =>
    source.transaction(async (manager) => {
      await manager.save(Author, { name: "Ida" });
      const undone = manager.transaction(async (inner) => {
        await inner.save(Author, { name: "undone" });
        throw new RangeError("on purpose");
      });
      await assert.rejects(undone, RangeError);
      return manager.save(Author, { name: "Jan" });
    }),
  );
  await step("many at once", async () => {
    const names = Array.from({ length: 40 }, (_, n) => `at once ${n}`);
    const saved = await Promise.all(names.map((name) => authors.save({ name })));
    const found = await authors.find();
    const ids = Object.fromEntries(found.map((author) => [author.name, author.authorId]));
    for (const author of saved) assert.strictEqual(author.authorId, ids[author.name]);
    // Which came first is open.
    await authors.remove(saved);
    return names.length;
  });
}

async function changeAndRemove() {
  await step("increment and update", async () => [
    (await authors.increment({ name: "Fay" }, "rank", 2)).affected,
    (await authors.update({ name: "Gus" }, { rank: 4 })).affected,
  ]);
  await step("remove and save again", async () => {
    const author = await authors.findOneBy({ name: "Jan" });
    const { authorId } = author;
    await authors.remove(author);
    return [{ authorId }, author, await authors.save(author)];
  });
  await step("softRemove and recover", async () => {
    const book = await books.save({ title: "soon gone" });
    await books.softRemove(book);
    const gone = await books.countBy({ title: "soon gone" });
    return [gone, await books.recover(book), await books.save({ title: "the next" })];
  });
  await step("a key of its own", async () => [await labels.insert({ labelId: 2000000000, text: "its own" }).then(shown), await labels.findOneBy({ text: "its own" })]);
}

async function use() {
  await saveOnes();
  await insert();
  await saveTogether();
  await inTransactions();
  await changeAndRemove();
}

async function main() {
  await source.initialize();
  if (process.argv[3] === "make") await step("synchronize", async () => source.synchronize());
  else await use();
  await source.destroy();
}

main();
