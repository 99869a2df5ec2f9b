// npm's `graphql-ws`: queries and a subscription over WebSocket. First line: the port.
'use strict';
const http = require('http');
const { GraphQLObjectType, GraphQLSchema, GraphQLString, GraphQLFloat, GraphQLInt } = require('graphql');
const { useServer } = require('graphql-ws/lib/use/ws');
const { WebSocketServer } = require('ws');

const tick = new GraphQLObjectType({ name: 'Tick', fields: { seq: { type: GraphQLInt }, ts: { type: GraphQLFloat } } });
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello: { type: GraphQLString, args: { name: { type: GraphQLString } }, resolve: (_, { name }) => `hello ${name}` },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      ticks: {
        type: tick,
        subscribe: async function* () {
          for (let seq = 1; ; seq += 1) {
            await new Promise((resolve) => setTimeout(resolve, 50));
            yield { ticks: { seq, ts: Date.now() } };
          }
        },
      },
    },
  }),
});
const server = http.createServer((_, response) => response.end());
useServer({ schema }, new WebSocketServer({ server, path: '/graphql' }), 500);
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
