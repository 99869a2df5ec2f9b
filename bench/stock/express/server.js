'use strict';
// Express's Hello World, as its guide has it.

const app = require('express')();
app.get('/', (request, response) => response.send('Hello World!'));
app.listen(3000);
