// Makes the page's table.

const { sequelize } = require("./models");

sequelize.sync().then(() => sequelize.close());
