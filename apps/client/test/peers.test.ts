/** What servers of the field do to a requester, as far as it shows in records; the wire is in packages/protocol. */
import { readFile } from 'node:fs/promises';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const SUCCESS = '0203000000';

withDatabase((harness) => {
  const world = useWorld(harness);

  describe('PeSIT Wizard', () => {
    test('several fixed records in a DTF, ABORT 2-220: FAILED, and said what to set', async () => {
      const server = await world.rawServer({ ...GOOD, DTF: 'ABORT 02030200dc' });
      const service = await world.service();
      await world.remote(service, server.port, { recordFormat: 0, recordLength: 2 });
      const record = await world.send(service, { fileContent: Buffer.from('abcd').toString('base64') });
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-220', attempts: 1 });
      expect(record.errorMessage).toContain('set multiArticle to false');
    });

    test('CRC accepted and then not sent: said so, and what to do; without CRC it goes', async () => {
      const server = await world.rawServer(GOOD);
      const service = await world.service();
      const id = await world.remote(service, server.port, { crc: true });
      const refused = await world.send(service);
      expect(refused).toMatchObject({ status: 'FAILED', diagnostic: '3-315' });
      expect(refused.errorMessage).toContain('switch CRC off');
      expect((await service.api.post(`/servers/${id}/test`)).body).toMatchObject({
        success: false,
        diagnostic: '3-315',
      });
      await service.api.put(`/servers/${id}`, { crc: false });
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
    });

    test('PI 42 of ACK(SELECT) in bytes, without PI 41 and PI 16: the file comes whole', async () => {
      const attributes = '1e071f0180200203e8' + '28042a0207d0';
      const SELECT = `ACK(SELECT) ${SUCCESS}` + '09060b01000c0158' + '0d0105' + '19021000' + attributes;
      const server = await world.rawServer({ ...GOOD, SELECT });
      const service = await world.service();
      await world.remote(service, server.port);
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'COMPLETED', size: 3, articles: 2 });
      expect(await readFile(record.localPath as string, 'latin1')).toBe('abc');
    });

    test('ACK(ORF) without PI 21: no compression', async () => {
      const server = await world.rawServer({ ...GOOD, ORF: `ACK(ORF) ${SUCCESS}` });
      const service = await world.service();
      await world.remote(service, server.port, { compression: 'both' });
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', size: 11, bytesTransferred: 11 });
    });

    test('for an empty file ACK(TRANS.END) has no PI 27 and 28', async () => {
      const server = await world.rawServer(GOOD);
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.send(service, { fileContent: '' })).toMatchObject({ status: 'COMPLETED', size: 0 });
    });

    test('RCONNECT with a text in PI 99 and none in PI 29: the operator sees it', async () => {
      const server = await world.rawServer({
        ...GOOD,
        CONNECT: `RCONNECT 02030301306307${Buffer.from('go away').toString('hex')}`,
      });
      const service = await world.service();
      await world.remote(service, server.port);
      const { errorMessage, diagnostic } = await world.send(service);
      expect([diagnostic, errorMessage]).toEqual(['3-304', expect.stringContaining('go away')]);
    });

    // As a node of this product does: PI 29 has the words of the diagnostic, and what to do.
    test.each([
      'requester not authorised: check identifier, password, and that the partner is enabled',
      'requester not authorised',
      'Check identifier, password and that the partner is enabled',
    ])('RCONNECT with %j in PI 29: the texts say nothing twice', async (text) => {
      const length = text.length.toString(16).padStart(2, '0');
      const server = await world.rawServer({
        ...GOOD,
        CONNECT: `RCONNECT 02030301301d${length}${Buffer.from(text).toString('hex')}`,
      });
      const service = await world.service();
      await world.remote(service, server.port);
      const { errorMessage } = await world.send(service);
      const statusReason = async () => (await service.api.get('/servers/1')).body.statusReason as string | null;
      // The status of a server is written beside the end of the transfer, perhaps after it.
      await until(async () => (await statusReason()) !== null);
      for (const words of [errorMessage, await statusReason()]) {
        expect(words?.match(/requester not authorised/gi)).toHaveLength(1);
        expect(words?.match(/check identifier/gi)).toHaveLength(1);
      }
    });
  });
});
