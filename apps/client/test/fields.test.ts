import { expect, test } from '@jest/globals';
import { columnProblems, withDatabase } from '@pesit-node/service/testing';

import { REMOTE_SERVER } from '../src/remote-servers/fields.js';
import { openDatabase } from './support/service.js';

withDatabase((harness) => {
  test('the field tables are what the migrations make', async () => {
    const database = await openDatabase(harness);
    expect(await columnProblems(database, REMOTE_SERVER, ['seen', 'single_article'])).toEqual([]);
  });
});
