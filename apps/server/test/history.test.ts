import { beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

const HISTORY = '/api/v1/transfers';

withDatabase((harness) => {
  const rest = useRest(harness);

  interface Row {
    readonly partner_id?: string;
    readonly direction?: string;
    readonly status?: string;
    readonly virtual_file_id?: string;
    readonly listener?: string;
    readonly start_time?: string;
    readonly end_time?: string;
    readonly size?: number;
    readonly free_message?: Buffer;
    readonly label?: string;
    readonly filename?: string;
  }

  const record = async (row: Row): Promise<number> => {
    const { status = 'COMPLETED', ...rest_ } = row;
    const { knex } = rest.database;
    const [inserted] = await knex('transfers')
      .insert({
        partner_id: 'ACME',
        direction: 'RECEIVE',
        virtual_file_id: 'IN',
        listener: 'S1',
        start_time: '2026-11-21T10:00:00Z',
        node: 'n',
        instance: '00000000-0000-4000-8000-000000000000',
        session_id: 's',
        remote_address: '127.0.0.1',
        ...rest_,
        status: 'IN_PROGRESS',
        end_time: null,
      })
      .returning<{ id: number }[]>('id');
    const { id } = inserted!;
    if (status !== 'IN_PROGRESS') {
      const end = row.end_time ?? row.start_time ?? '2026-11-21T10:00:01.500Z';
      const diagnostic = status === 'FAILED' ? '2-205' : '0-000';
      await knex('transfers').where({ id }).update({ status, end_time: end, diagnostic });
    }
    return id;
  };

  const ids = async (query: string): Promise<readonly number[]> => {
    const { status, body, text } = await rest.get(`${HISTORY}${query}`);
    if (status !== 200) throw new Error(text);
    return body.content.map(({ id }: { id: number }) => id);
  };

  describe('one record', () => {
    test('has every field', async () => {
      const id = await record({ size: 5_000_000_000, label: 'l', free_message: Buffer.from('text') });
      const { body } = await rest.get(`${HISTORY}/${id}`);
      expect(body).toEqual({
        id,
        type: 'FILE',
        partnerId: 'ACME',
        direction: 'RECEIVE',
        filename: null,
        virtualFileId: 'IN',
        size: 5_000_000_000,
        status: 'COMPLETED',
        startTime: '2026-11-21T10:00:00.000Z',
        endTime: '2026-11-21T10:00:01.500Z',
        duration: 1500,
        transferId: null,
        listener: 'S1',
        node: 'n',
        sessionId: 's',
        remoteAddress: '127.0.0.1',
        bytesTransferred: 0,
        articles: 0,
        syncPoint: 0,
        attempts: 1,
        restartable: false,
        checksum: null,
        diagnostic: '0-000',
        diagnosticComplement: null,
        errorMessage: null,
        label: 'l',
        freeMessage: 'text',
        originalSender: null,
        finalReceiver: null,
        creationDate: null,
        compression: 'none',
        fileType: 0,
        occurrences: 1,
        lastOccurrence: null,
        ...{ diagnosticText: 'success', whatToDo: null, terms: null },
        points: { last: 0, dataBytes: null, articles: null, placed: null },
        attemptList: [
          expect.objectContaining({ number: 1, status: 'COMPLETED', duration: 1500, listener: 'S1', node: 'n' }),
        ],
      });
    });

    test.each([
      ['text', 'text'],
      ['', ''],
      ['\xc3\xa9\0', 'base64:w6kA'],
      ['base64:eA==', 'base64:YmFzZTY0OmVBPT0='],
    ])('with the free message %j', async (given, shown) => {
      const id = await record({ free_message: Buffer.from(given, 'latin1') });
      expect((await rest.get(`${HISTORY}/${id}`)).body.freeMessage).toBe(shown);
    });

    test.each(['0', 'x', '1.5', '-1', '9007199254740992', '18446744073709551616'])(
      '%s is no number of a record: 400',
      async (id) => {
        expect((await rest.get(`${HISTORY}/${id}`)).status).toBe(400);
      },
    );

    test('that does not exist: 404; other verbs: 405', async () => {
      expect((await rest.get(`${HISTORY}/4711`)).status).toBe(404);
      expect((await rest.delete(`${HISTORY}/4711`)).status).toBe(405);
      expect((await rest.post(HISTORY, {})).status).toBe(405);
    });
  });

  describe('filters', () => {
    let all: readonly number[];

    beforeEach(async () => {
      all = [
        await record({ partner_id: 'A', start_time: '2026-11-19T23:59:59.999Z' }),
        await record({ partner_id: 'A', start_time: '2026-11-20T00:00:00Z', status: 'FAILED' }),
        await record({ partner_id: 'B', start_time: '2026-11-20T12:00:00Z', direction: 'SEND', filename: 'orders 2' }),
        await record({ partner_id: 'B', start_time: '2026-11-20T23:59:59.999Z', virtual_file_id: 'X', listener: 'S2' }),
        await record({ partner_id: 'a', start_time: '2026-11-21T00:00:00Z', status: 'IN_PROGRESS', label: '2026%' }),
        await record({ partner_id: 'C', start_time: '2026-11-22T00:00:00Z', status: 'CANCELLED' }),
      ];
    });

    test.each<[string, readonly number[]]>([
      ['', [5, 4, 3, 2, 1, 0]],
      ['?partnerId=A', [1, 0]],
      ['?partnerId=a', [4]],
      ['?partnerId=%25', []],
      ["?partnerId=A'--", []],
      ['?direction=SEND', [2]],
      ['?direction=RECEIVE', [5, 4, 3, 1, 0]],
      ['?status=COMPLETED', [3, 2, 0]],
      ['?status=FAILED', [1]],
      ['?status=IN_PROGRESS', [4]],
      ['?status=CANCELLED', [5]],
      ['?status=PENDING', []],
      ['?type=FILE', [5, 4, 3, 2, 1, 0]],
      ['?type=MESSAGE', []],
      ['?virtualFileId=X', [3]],
      ['?listener=S2', [3]],
      ['?diagnostic=2-205', [1]],
      ['?diagnostic=0-000&direction=SEND', [2]],
      ['?node=n', [5, 4, 3, 2, 1, 0]],
      ['?node=m', []],
      ['?q=ORDERS', [2]],
      ['?q=s_2', []],
      ['?q=2026%25', [4]],
      ['?restartable=true', []],
      ['?restartable=false&partnerId=A', [1, 0]],
      ['?partnerId=B&direction=RECEIVE&status=COMPLETED&virtualFileId=X&listener=S2', [3]],
      ['?from=2026-11-20', [5, 4, 3, 2, 1]],
      ['?to=2026-11-20', [3, 2, 1, 0]],
      ['?from=2026-11-20&to=2026-11-20', [3, 2, 1]],
      ['?from=2026-11-20T12:00:00Z&to=2026-11-21T00:00:00Z', [4, 3, 2]],
      ['?from=2026-11-20T13:00:00%2B01:00&to=2026-11-20T12:00:00', [2]],
      ['?sort=startTime,asc', [0, 1, 2, 3, 4, 5]],
      ['?sort=partnerId,desc', [4, 5, 3, 2, 1, 0]],
      ['?sort=id', [0, 1, 2, 3, 4, 5]],
      ['?size=2', [5, 4]],
      ['?size=2&page=2', [1, 0]],
      ['?size=2&page=3', []],
    ])('%s', async (query, expected) => {
      expect(await ids(query)).toEqual(expected.map((index) => all[index]));
    });

    test('as a file, with the filters', async () => {
      const { text, headers } = await rest.get(`${HISTORY}/export.jsonl?partnerId=B`);
      const { body } = await rest.get(`${HISTORY}?partnerId=B`);
      expect(headers['content-type']).toBe('application/x-ndjson');
      expect(
        text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown),
      ).toEqual(body.content);
      const csv = await rest.get(`${HISTORY}/export.csv?q=orders`);
      const [names = '', values = '', ...more] = csv.text.split('\r\n');
      expect(names.split(',').slice(0, 4)).toEqual(['id', 'type', 'partnerId', 'direction']);
      expect(values.split(',').slice(0, 4)).toEqual([String(all[2]), 'FILE', 'B', 'SEND']);
      expect(more).toEqual(['']);
      expect(faultyFields(await rest.get(`${HISTORY}/export.csv?page=1`))).toEqual(['page']);
    });

    test('those that run now, with the same filters and paging', async () => {
      const { body } = await rest.get(`${HISTORY}/active?size=5&partnerId=a`);
      expect(body).toEqual({
        content: [expect.objectContaining({ id: all[4], status: 'IN_PROGRESS' })],
        totalElements: 1,
        totalIsExact: true,
        totalPages: 1,
        number: 0,
        size: 5,
        next: null,
      });
      expect((await rest.get('/api/v1/cluster/transfers?size=5&partnerId=a')).body).toEqual(body);
      expect((await rest.get(`${HISTORY}/active?partnerId=A`)).body.content).toEqual([]);
      expect(faultyFields(await rest.get(`${HISTORY}/active?status=FAILED`))).toEqual(['status']);
    });

    test('what the history adds up to, with the filters', async () => {
      await rest.database.knex('transfers').where({ id: all[3] }).update({ bytes_transferred: 5_000_000_000 });
      expect((await rest.get(`${HISTORY}/stats`)).body).toEqual({
        totalTransfers: 6,
        byStatus: { PENDING: 0, IN_PROGRESS: 1, COMPLETED: 3, FAILED: 1, CANCELLED: 1 },
        byDirection: { SEND: 1, RECEIVE: 5 },
        bytesTransferred: 5_000_000_000,
        ...{ failureRate: 0.2, bytesPerSecond: null },
        duration: { p50: expect.any(Number), p95: expect.any(Number) },
      });
      expect((await rest.get(`${HISTORY}/stats?partnerId=B&to=2026-11-20T12:00:00Z`)).body).toEqual({
        totalTransfers: 1,
        byStatus: { PENDING: 0, IN_PROGRESS: 0, COMPLETED: 1, FAILED: 0, CANCELLED: 0 },
        byDirection: { SEND: 1, RECEIVE: 0 },
        ...{ bytesTransferred: 0, failureRate: 0, bytesPerSecond: null },
        duration: { p50: expect.any(Number), p95: expect.any(Number) },
      });
      expect(faultyFields(await rest.get(`${HISTORY}/stats?page=1`))).toEqual(['page']);
      expect((await rest.post(`${HISTORY}/stats`)).status).toBe(405);
    });

    test('the envelope counts what the filters leave', async () => {
      const { body } = await rest.get(`${HISTORY}?size=2&page=1&status=COMPLETED`);
      expect(body).toEqual({
        content: [expect.objectContaining({ id: all[0] })],
        totalElements: 3,
        totalIsExact: true,
        totalPages: 2,
        number: 1,
        size: 2,
        next: null,
      });
    });

    test.each([
      ['page=-1', 'page'],
      ['page=x', 'page'],
      ['size=0', 'size'],
      ['size=501', 'size'],
      ['sort=password', 'sort'],
      ['sort=startTime,down', 'sort'],
      ['status=DONE', 'status'],
      ['diagnostic=2205', 'diagnostic'],
      ['q=', 'q'],
      ['after=17', 'after'],
      ['type=NOTE', 'type'],
      ['restartable=yes', 'restartable'],
      ['direction=UP', 'direction'],
      ['from=yesterday', 'from'],
      ['to=2026-02-30', 'to'],
      ['partnerId=', 'partnerId'],
      [`virtualFileId=${'x'.repeat(77)}`, 'virtualFileId'],
      ['colour=red', 'colour'],
      ['partnerId=A&partnerId=B', 'partnerId'],
    ])('%s: 400', async (query, field) => {
      const response = await rest.get(`${HISTORY}?${query}`);
      expect([response.status, faultyFields(response)]).toEqual([400, [field]]);
    });

    test('NUL in a filter is an error of the request', async () => {
      const response = await rest.get(`${HISTORY}?partnerId=a%00b`);
      expect([response.status, faultyFields(response)]).toEqual([400, ['partnerId']]);
    });
  });
});
