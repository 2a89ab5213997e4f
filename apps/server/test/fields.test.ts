import { expect, test } from '@jest/globals';
import { KEYSTORE, TRUSTSTORE } from '@pesit-node/certificates';
import { columnProblems, withDatabase } from '@pesit-node/service/testing';

import { LISTENER } from '../src/listeners/fields.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { PARTNER } from '../src/partners/fields.js';
import { VIRTUAL_FILE } from '../src/virtual-files/fields.js';

const TIMES = ['created_at', 'updated_at'];

withDatabase((harness) => {
  test('the field tables are what the migrations make', async () => {
    const database = await harness.open({ migrations: [MIGRATIONS] });
    expect(await columnProblems(database, PARTNER, [...TIMES, 'seen', 'credentials'])).toEqual([]);
    expect(await columnProblems(database, VIRTUAL_FILE, TIMES)).toEqual([]);
    // Its port has a default, and null is a value that a request gives: TLS alone.
    expect(await columnProblems(database, LISTENER, [...TIMES, 'generation', 'revision'])).toEqual([
      'port: integer, null in a column of type integer',
      'port: the column may be null, and nothing says what that means',
    ]);
    expect(await columnProblems(database, KEYSTORE, ['version'])).toEqual([]);
    expect(await columnProblems(database, TRUSTSTORE, ['version', 'crl_urls'])).toEqual([]);
  });
});
