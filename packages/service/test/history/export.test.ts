import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

import { describe, expect, test } from '@jest/globals';
import express from 'express';
import { z } from 'zod';

import { exportRoutes, Routes } from '@pesit-node/service';
import type { FlatRecord } from '@pesit-node/service';
import { loggedIn } from '@pesit-node/service/testing';

/** Serves an export of these batches while `use` runs. @param use with the address of the collection */
const serving = async (
  batches: () => AsyncGenerator<readonly FlatRecord[]>,
  use: (address: string) => Promise<void>,
): Promise<void> => {
  const routes = new Routes();
  exportRoutes(routes, { path: '/records', query: z.strictObject({}), fields: ['id', 'name', 'at'], batches });
  const server = express().use(loggedIn).use(routes.router).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/records`);
  } finally {
    server.close();
    await once(server, 'close');
  }
};

const answer = async (records: readonly FlatRecord[], extension: string) => {
  let got: { readonly type: string | null; readonly disposition: string | null; readonly text: string } | undefined;
  const batches = async function* () {
    await Promise.resolve();
    yield records;
  };
  await serving(batches, async (address) => {
    const response = await fetch(`${address}/export.${extension}`);
    got = {
      type: response.headers.get('content-type'),
      disposition: response.headers.get('content-disposition'),
      text: await response.text(),
    };
  });
  return got;
};

describe('CSV', () => {
  test('a line of names, CRLF, quotes where they are needed, nothing for null', async () => {
    const at = new Date('2026-11-21T10:00:00Z');
    expect(
      await answer(
        [
          { id: 1, name: 'a,"b"', at },
          { id: -2, name: null, at: null },
        ],
        'csv',
      ),
    ).toEqual({
      type: 'text/csv; charset=utf-8',
      disposition: 'attachment; filename=records.csv',
      text: 'id,name,at\r\n1,"a,""b""",2026-11-21T10:00:00.000Z\r\n-2,,\r\n',
    });
  });

  test.each([
    ['=1+1', `"'=1+1"`],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ['+1', `"'+1"`],
    ['-1', `"'-1"`],
    ['@SUM(A1)', `"'@SUM(A1)"`],
    ['\t=1', `"'\t=1"`],
    ['\r=1', `"'\r=1"`],
    ['\uff1d1', `"'\uff1d1"`],
    ['a=1', 'a=1'],
    ['two\r\nlines', '"two\r\nlines"'],
  ])('%j is no formula', async (name, shown) => {
    expect((await answer([{ id: 1, name }], 'csv'))?.text).toBe(`id,name,at\r\n1,${shown},\r\n`);
  });

  test('of no record: the line of names', async () => {
    expect((await answer([], 'csv'))?.text).toBe('id,name,at\r\n');
  });
});

test('JSON lines: a record a line', async () => {
  expect(await answer([{ id: 1, name: 'a\nb' }, { id: 2 }], 'jsonl')).toEqual({
    type: 'application/x-ndjson',
    disposition: 'attachment; filename=records.jsonl',
    text: '{"id":1,"name":"a\\nb"}\n{"id":2}\n',
  });
});

test('a caller that goes away ends it', async () => {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const batches = async function* () {
    try {
      for (;;) {
        await Promise.resolve();
        yield [{ id: 1, name: 'x'.repeat(65_536) }];
      }
    } finally {
      end();
    }
  };
  await serving(batches, async (address) => {
    const outgoing = request(`${address}/export.csv`).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    await once(response, 'data');
    response.destroy();
    await ended;
  });
});
