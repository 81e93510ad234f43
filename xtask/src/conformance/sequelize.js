// What applications do with Sequelize: `sequelize.js PORT make|use`.

const assert = require("node:assert");
const { DataTypes, QueryTypes, Sequelize } = require("sequelize");
const Steps = require("./steps.js");
const { failure } = Steps;

const connect = (connections) =>
  new Sequelize("orm", "root", "", {
    dialect: "mysql",
    host: "127.0.0.1",
    port: Number(process.argv[2]),
    logging: false,
    pool: { max: connections },
    define: { timestamps: false, underscored: true },
  });
// What Sequelize does at once, such as the rows of several tables, comes one by one on one connection, and so in the same order.
const sequelize = connect(1);
const crowd = connect(5);
const select = (sql) => sequelize.query(sql, { type: QueryTypes.SELECT });
const key = (type) => ({ type, primaryKey: true, autoIncrement: true });

const authors = (on) =>
  on.define("author", {
    authorId: key(DataTypes.INTEGER),
    name: { type: DataTypes.STRING(100), unique: true },
    books: { type: DataTypes.INTEGER, defaultValue: 0 },
  });
const labels = (on) => on.define("label", { labelId: key(DataTypes.INTEGER), text: { type: DataTypes.STRING(50), unique: true } });
const Author = authors(sequelize);
const Book = sequelize.define("book", {
  bookId: key(DataTypes.BIGINT.UNSIGNED),
  title: { type: DataTypes.STRING(100), allowNull: false },
  isbn: { type: DataTypes.STRING(20), unique: true },
  more: DataTypes.JSON,
});
const Label = labels(sequelize);
const Review = sequelize.define(
  "review",
  { reviewId: key(DataTypes.BIGINT), stars: { type: DataTypes.INTEGER, validate: { max: 5 } }, heard: DataTypes.BIGINT },
  { timestamps: true, paranoid: true },
);
Author.hasMany(Book, { as: "works", foreignKey: "authorId" });
Book.belongsTo(Author, { as: "writer", foreignKey: "authorId" });
Book.belongsToMany(Label, { through: "book_labels", foreignKey: "bookId", otherKey: "labelId" });
Label.belongsToMany(Book, { through: "book_labels", foreignKey: "labelId", otherKey: "bookId" });
Book.hasMany(Review, { foreignKey: "bookId" });
Review.belongsTo(Book, { foreignKey: "bookId" });
Review.belongsTo(Author, { as: "critic", foreignKey: "authorId" });

const steps = new Steps(
  "sequelize",
  {
    author_id: "authors",
    authorId: "authors",
    book_id: "books",
    bookId: "books",
    label_id: "labels",
    labelId: "labels",
    review_id: "reviews",
    reviewId: "reviews",
    heard: "reviews",
  },
  select,
);
const step = steps.step.bind(steps);

async function createOne() {
  await step("create", async () => [await Author.create({ name: "Ann" }), await Author.create({ name: "täxt ☃ 'q' \\" })]);
  await step("build and save", async () => {
    const author = Author.build({ name: "Ben" });
    const isNew = author.isNewRecord;
    await author.save();
    author.name = "Benno";
    await author.save();
    return [isNew, author.isNewRecord, author, await author.reload()];
  });
  await step("create with chosen fields", async () => Author.create({ name: "Cem", books: 9 }, { fields: ["name"] }));
  await step("hooks see the key", async () => {
    Review.addHook("afterCreate", "hear", (review) => Review.update({ heard: review.reviewId }, { where: { reviewId: review.reviewId } }));
    const review = await Review.create({ stars: 3 });
    Review.removeHook("afterCreate", "hear");
    return review;
  });
  await step("failures", async () => [
    await failure(() => Author.create({ name: "Ann" })),
    await failure(() => Book.create({ title: null })),
    await failure(() => Review.create({ stars: 6 })),
    await failure(() => Book.create({ title: "no author", authorId: 2 ** 31 - 1 })),
    await Author.create({ name: "after a failure" }),
  ]);
}

async function createMany() {
  const rows = (from, count) => Array.from({ length: count }, (_, n) => ({ title: `title ${from + n}`, isbn: `isbn ${from + n}` }));
  await step("bulkCreate", async () => Book.bulkCreate(rows(0, 50)));
  await step("bulkCreate with validation and hooks", async () => Review.bulkCreate([{ stars: 1 }, { stars: 2 }], { validate: true, individualHooks: true }));
  await step("bulkCreate of nothing", async () => Book.bulkCreate([]));
  await step("bulkCreate, ignoreDuplicates, all new", async () => Book.bulkCreate(rows(50, 5), { ignoreDuplicates: true }));
  // Where some are skipped, Sequelize counts from the first key although the server does not say which went in.
  await step("bulkCreate, ignoreDuplicates, none new", async () => Book.bulkCreate(rows(50, 5), { ignoreDuplicates: true }).then((all) => all.length));
  await step("bulkCreate, ignoreDuplicates, the last ones new", async () => Book.bulkCreate(rows(53, 5), { ignoreDuplicates: true }).then((all) => all.length));
  await step("bulkCreate, updateOnDuplicate, all new", async () => Book.bulkCreate(rows(60, 5), { updateOnDuplicate: ["title"] }));
  await step("bulkCreate, updateOnDuplicate, some new", async () => {
    const changed = rows(63, 5).map((row) => ({ ...row, title: `changed ${row.title}` }));
    return (await Book.bulkCreate(changed, { updateOnDuplicate: ["title"] })).length;
  });
  await step("bulkCreate of copies with their keys", async () => {
    const books = await Book.findAll({ limit: 4, order: ["bookId"], raw: true });
    return Book.bulkCreate(books.map((book) => ({ ...book, title: `${book.title}, again` })), { updateOnDuplicate: ["title"] });
  });
  await step("bulkCreate that fails", async () => [
    await failure(() => Book.bulkCreate([{ title: "fine", isbn: "fine" }, ...rows(0, 1)])),
    await Book.bulkCreate([{ title: "fine", isbn: "fine" }]),
  ]);
  await step("queryInterface.bulkInsert", async () => {
    const labelId = await sequelize.getQueryInterface().bulkInsert("labels", [{ text: "a" }, { text: "b" }, { text: "c" }]);
    return { labelId };
  });
}

async function createUnlessThere() {
  await step("findOrCreate", async () => [
    await Label.findOrCreate({ where: { text: "found" } }),
    await Label.findOrCreate({ where: { text: "found" } }),
    await Author.findOrCreate({ where: { name: "Dan" }, defaults: { books: 4 } }),
  ]);
  await step("findCreateFind", async () => [
    await Label.findCreateFind({ where: { text: "found too" } }),
    await Label.findCreateFind({ where: { text: "found too" } }),
  ]);
  await step("findOrBuild", async () => {
    const [label, isBuilt] = await Label.findOrBuild({ where: { text: "built" } });
    return [isBuilt, await label.save()];
  });
  await step("upsert", async () => [
    await Author.upsert({ name: "Eve", books: 1 }),
    (await Author.upsert({ name: "Eve", books: 2 }))[1],
    await Author.findOne({ where: { name: "Eve" } }),
    await Author.create({ name: "after Eve" }),
  ]);
  await step("upsert by key", async () => {
    const author = await Author.findOne({ where: { name: "Eve" } });
    return [await Author.upsert({ authorId: author.authorId, name: "Eva" }), await author.reload()];
  });
  await step("findCreateFind at once", async () => {
    const crowded = labels(crowd);
    const found = await Promise.all(Array.from({ length: 8 }, () => crowded.findCreateFind({ where: { text: "at once" } })));
    return [new Set(found.map(([label]) => label.labelId)).size, found.filter(([, isCreated]) => isCreated).length];
  });
}

async function createTogether() {
  await step("create with include", async () =>
    Author.create(
      {
        name: "Fay",
        works: [
          { title: "one", isbn: "f1", labels: [{ text: "of one" }, { text: "of one too" }], reviews: [{ stars: 5 }, { stars: 4 }] },
          { title: "two", isbn: "f2" },
        ],
      },
      { include: [{ association: "works", include: [Label, Review] }] },
    ),
  );
  await step("create with the parent included", async () => Book.create({ title: "three", writer: { name: "Gus" } }, { include: "writer" }));
  await step("bulkCreate with include", async () =>
    Author.bulkCreate(
      [
        { name: "Hal", works: [{ title: "h1" }, { title: "h2" }] },
        { name: "Ida", works: [{ title: "i1" }] },
      ],
      { include: "works" },
    ),
  );
  await step("setters of associations", async () => {
    const fay = await Author.findOne({ where: { name: "Fay" } });
    const book = await fay.createWork({ title: "made by her" });
    await book.addLabels(await Label.findAll({ where: { text: ["a", "b"] } }));
    const label = await book.createLabel({ text: "made by a book" });
    await book.setLabels([label]);
    await book.setWriter(await Author.findOne({ where: { name: "Gus" } }));
    return [book, label, await book.getLabels(), await fay.countWorks()];
  });
  await step("findAll with include", async () =>
    Author.findAll({ include: [{ association: "works", include: [Label, { model: Review, include: "critic" }] }], order: ["authorId", ["works", "bookId"], ["works", Label, "labelId"], ["works", Review, "reviewId"]] }),
  );
}

async function inTransactions() {
  await step("transaction", async () =>
    sequelize.transaction(async (transaction) => {
      const author = await Author.create({ name: "Jan" }, { transaction });
      const books = await Book.bulkCreate([{ title: "j1", authorId: author.authorId }, { title: "j2", authorId: author.authorId }], { transaction });
      return [author, books, await author.getWorks({ transaction, order: ["bookId"] })];
    }),
  );
  await step("transaction that is rolled back", async () => {
    const fails = failure(() =>
      sequelize.transaction(async (transaction) => {
        await Author.create({ name: "nobody", works: [{ title: "nothing" }] }, { transaction, include: "works" });
        throw new RangeError("on purpose");
      }),
    );
    return [await fails, await Author.count({ where: { name: "nobody" } }), await Author.create({ name: "Kim" })];
  });
  await step("savepoint", async () =>
    sequelize.transaction(async (transaction) => {
      await Author.create({ name: "Leo" }, { transaction });
      const inner = await sequelize.transaction({ transaction });
      await Author.create({ name: "undone" }, { transaction: inner });
      await inner.rollback();
      return Author.create({ name: "Mia" }, { transaction });
    }),
  );
  await step("many at once", async () => {
    const names = Array.from({ length: 40 }, (_, n) => `at once ${n}`);
    const crowded = authors(crowd);
    const created = await Promise.all(names.map((name) => crowded.create({ name })));
    const found = await Author.findAll({ where: { name: names } });
    const ids = Object.fromEntries(found.map((author) => [author.name, author.authorId]));
    for (const author of created) assert.strictEqual(author.authorId, ids[author.name]);
    // Which came first is open.
    await Author.destroy({ where: { name: names } });
    return created.length;
  });
}

async function asText() {
  await step("raw INSERT", async () => {
    const [authorId, count] = await sequelize.query("INSERT INTO authors (name) VALUES (:name)", { replacements: { name: "Ned" }, type: QueryTypes.INSERT });
    return [{ authorId }, count];
  });
  await step("prepared INSERT", async () => {
    const insert = (title) => sequelize.query("INSERT INTO books (title) VALUES ($1), ($2)", { bind: [title, `${title}, too`], type: QueryTypes.INSERT });
    const seen = [await insert("p1"), await insert("p2")];
    return seen.map(([bookId, count]) => [{ bookId }, count]);
  });
  await step("LAST_INSERT_ID()", async () =>
    sequelize.transaction(async (transaction) => {
      const author = await Author.create({ name: "Oda" }, { transaction });
      const [last] = await sequelize.query("SELECT LAST_INSERT_ID() AS authorId", { transaction, type: QueryTypes.SELECT });
      await sequelize.query("INSERT INTO books (title, author_id) VALUES ('of the last', LAST_INSERT_ID())", { transaction });
      return [author, last];
    }),
  );
  await step("INSERT … SELECT", async () => {
    const [bookId, count] = await sequelize.query("INSERT INTO books (title, author_id) SELECT CONCAT('a book of ', name), author_id FROM authors ORDER BY author_id", { type: QueryTypes.INSERT });
    return [{ bookId }, count];
  });
  await step("REPLACE", async () => {
    const [labelId, count] = await sequelize.query("REPLACE INTO labels (text) VALUES ('a')", { type: QueryTypes.INSERT });
    return [{ labelId }, count];
  });
}

async function changeAndRemove() {
  await step("update and increment", async () => {
    const author = await Author.findOne({ where: { name: "Fay" } });
    await author.increment("books", { by: 3 });
    return [await Author.update({ books: 1 }, { where: { name: "Gus" } }), await author.reload()];
  });
  await step("destroy and restore", async () => {
    const review = await Review.create({ stars: 2 });
    await review.destroy();
    const gone = await Review.count({ where: { reviewId: review.reviewId } });
    await review.restore();
    await Review.destroy({ where: { stars: 3 }, force: true });
    return [gone, review, await Review.create({ stars: 1 })];
  });
  await step("a key of its own", async () => [await Label.create({ labelId: 2000000000, text: "its own" }), await Label.findByPk(2000000000)]);
}

async function use() {
  await createOne();
  await createMany();
  await createUnlessThere();
  await createTogether();
  await inTransactions();
  await asText();
  await changeAndRemove();
}

async function main() {
  if (process.argv[3] === "make") await step("sync", async () => (await sequelize.sync()) && "done");
  else await use();
  await Promise.all([sequelize.close(), crowd.close()]);
}

main();
