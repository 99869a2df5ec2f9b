'use strict';
// Fastify's first example, as its guide has it.

const app = require('fastify')();
app.get('/', async () => ({ hello: 'world' }));
app.listen({ port: 3000 });
