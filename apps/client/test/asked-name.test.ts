import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const OFFERED = Buffer.from('content of a.txt');

/** A file is asked for by its name, which SELECT has no parameter for. */
withDatabase((harness) => {
  const world = useWorld(harness);

  describe('remoteFilename beside virtualFile is compared with the label of ACK(SELECT)', () => {
    test('another file is offered: FILE_NOT_FOUND with both names, nothing is read, and the file is still there', async () => {
      const partner = await world.partner({ files: { SD2: OFFERED }, label: 'a.txt' });
      const service = await world.service({ settings: { retry: RETRY } });
      await world.remote(service, partner.port);
      const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'b.txt' });
      expect(record).toMatchObject({
        status: 'FAILED',
        errorCode: 'FILE_NOT_FOUND',
        diagnostic: '2-205',
        errorMessage: expect.stringMatching(/"b\.txt".*"a\.txt"/),
        ...{ attempts: 1, restartable: false, localPath: null, size: null, bytesTransferred: 0, nameConfirmed: null },
      });
      expect(partner.reads).toEqual([]);
      expect(await world.filesIn(service, 'received')).toEqual([]);
      // The session is as good as before.
      const next = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'a.txt' });
      expect(next).toMatchObject({ status: 'COMPLETED', size: OFFERED.length, nameConfirmed: true });
      expect(partner.connects).toHaveLength(1);
    });

    test('byte by byte: SELECT, DESELECT, and no ORF', async () => {
      const label = '1e0e1f0180200203e82505612e747874';
      const SELECT = String(GOOD['SELECT']).replace('1e071f0180200203e8', label);
      const server = await world.rawServer({ ...GOOD, SELECT });
      const service = await world.service();
      await world.remote(service, server.port);
      const names = { virtualFile: 'SD2', remoteFilename: 'b.txt' };
      expect(await world.receive(service, names)).toMatchObject({ status: 'FAILED', errorCode: 'FILE_NOT_FOUND' });
      expect(server.names()).toEqual(['CONNECT', 'SELECT', 'DESELECT']);
      const deselect = server.arrived.at(-1)?.fpdu;
      expect(deselect?.includes(Buffer.from('02030200cd', 'hex'))).toBe(true);
    });

    test.each([
      ['the name', 'b.txt', true],
      ['a path that ends with the name', '/exit/b.txt', true],
      ['a path of Windows', 'C:\\exit\\b.txt', true],
      ['blanks behind the name', 'b.txt  ', true],
    ])('%s: COMPLETED, and the name is confirmed', async (_, label, nameConfirmed) => {
      const partner = await world.partner({ files: { SD2: OFFERED }, label });
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'b.txt' });
      expect(record).toMatchObject({ status: 'COMPLETED', nameConfirmed });
    });

    test.each(['B.TXT', 'ab.txt', 'b.txt.old', '/b.txt/a.txt'])('%s is another name', async (label) => {
      const partner = await world.partner({ files: { SD2: OFFERED }, label });
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'b.txt' });
      expect(record).toMatchObject({ status: 'FAILED', errorCode: 'FILE_NOT_FOUND' });
    });

    test.each([[undefined], ['   ']])(
      'label %j: the transfer goes on, and the record says that nothing was checked',
      async (label) => {
        const partner = await world.partner({ files: { SD2: OFFERED }, ...(label === undefined ? {} : { label }) });
        const service = await world.service();
        await world.remote(service, partner.port);
        const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'b.txt' });
        expect(record).toMatchObject({ status: 'COMPLETED', nameConfirmed: false });
        expect((await service.api.get(`/transfers/${record.id}`)).body.nameConfirmed).toBe(false);
        expect(service.log.lines.join('\n')).toContain('the partner names no file (PI 37)');
      },
    );

    test('one name alone asks for no file by its name: nothing is compared', async () => {
      const partner = await world.partner({ files: { SD2: OFFERED }, label: 'a.txt' });
      const service = await world.service();
      await world.remote(service, partner.port);
      for (const names of [{ virtualFile: 'SD2' }, { virtualFile: undefined, remoteFilename: 'SD2' }]) {
        expect(await world.receive(service, names)).toMatchObject({ status: 'COMPLETED', nameConfirmed: null });
      }
    });
  });

  describe('selectByName', () => {
    const askedFor = async (server: object, request: object): Promise<string | undefined> => {
      const partner = await world.partner({ files: { SD2: OFFERED, 'SD2/b.txt': OFFERED }, label: 'b.txt' });
      const service = await world.service();
      await world.remote(service, partner.port, server);
      const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'b.txt', ...request });
      expect(record).toMatchObject({ status: 'COMPLETED', nameConfirmed: true });
      return partner.selects[0]?.fileIdentifier?.fileName;
    };

    test.each([
      ['of the request', {}, { selectByName: true }, 'SD2/b.txt'],
      ['of the remote server', { selectByName: true }, {}, 'SD2/b.txt'],
      ['of the remote server, not of the request', { selectByName: true }, { selectByName: false }, 'SD2'],
      ['of neither', {}, {}, 'SD2'],
    ])('%s: PI 12', async (_, server, request, expected) => {
      expect(await askedFor(server, request)).toBe(expected);
    });

    test('a partner that has no such file: FILE_NOT_FOUND, with what was asked for', async () => {
      const partner = await world.partner({ files: { SD2: OFFERED } });
      const service = await world.service();
      await world.remote(service, partner.port, { selectByName: true });
      const record = await world.receive(service, { virtualFile: 'SD2', remoteFilename: 'nope.txt' });
      expect(record).toMatchObject({ status: 'FAILED', errorCode: 'FILE_NOT_FOUND', diagnostic: '2-205' });
      expect(record.errorMessage).toContain('"SD2/nope.txt"');
    });

    test('of a server whose transfers name no file: as without it', async () => {
      const partner = await world.partner({ files: { SD2: OFFERED } });
      const service = await world.service();
      await world.remote(service, partner.port, { selectByName: true });
      expect(await world.receive(service, { virtualFile: 'SD2' })).toMatchObject({ status: 'COMPLETED' });
      expect(partner.selects[0]?.fileIdentifier?.fileName).toBe('SD2');
    });

    test('is shown, changed and cleared as a field of the remote server', async () => {
      const service = await world.service();
      const id = await world.remote(service, 1, { selectByName: true });
      const shown = async () => (await service.api.get(`/servers/${id}`)).body.selectByName;
      expect(await shown()).toBe(true);
      await service.api.put(`/servers/${id}`, { selectByName: null });
      expect(await shown()).toBeNull();
    });

    test('needs both names, and room for them in PI 12', async () => {
      const service = await world.service();
      await world.remote(service, 1, { selectByName: true });
      const refused = async (fields: object) => {
        const { status, body } = await service.api.post('/transfers/receive', { server: 'bank', ...fields });
        expect([status, body.error]).toEqual([400, 'VALIDATION_ERROR']);
        return body.details as { field: string; message: string }[];
      };
      for (const names of [{ virtualFile: 'SD2' }, { remoteFilename: 'b.txt' }]) {
        expect((await refused({ ...names, selectByName: true })).map(({ field }) => field)).toEqual(['selectByName']);
      }
      const long = { virtualFile: 'SD2', remoteFilename: 'b'.repeat(73) };
      for (const fields of [long, { ...long, selectByName: true }]) {
        const [detail] = await refused(fields);
        expect(detail).toMatchObject({ field: 'remoteFilename', message: expect.stringContaining('76') });
      }
      const { status } = await service.api.post('/transfers/receive', { server: 'bank', ...long, selectByName: false });
      expect(status).toBe(202);
    });
  });
});

const RETRY = { attempts: 3, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
