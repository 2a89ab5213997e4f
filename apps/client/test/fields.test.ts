import { expect, test } from '@jest/globals';
import { columnProblems, withDatabase } from '@pesit-node/service/testing';

import { REMOTE_SERVER } from '../src/remote-servers/fields.js';
import { openDatabase } from './support/service.js';

/** Shown together, as `circuit`. */
const CIRCUIT = ['failures', 'tries', 'reason', 'opened_time', 'until', 'probe_until'].map((name) => `circuit_${name}`);

withDatabase((harness) => {
  test('the field tables are what the migrations make', async () => {
    const database = await openDatabase(harness);
    expect(await columnProblems(database, REMOTE_SERVER, ['seen', 'single_article', ...CIRCUIT])).toEqual([]);
  });
});
