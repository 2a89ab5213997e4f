/** What is in use is not deleted, and the answer says by what it is in use; force deletes it, and breaks nothing off. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, CRF, create, DATA, DESELECT, DTF, endOf, ORF, RELEASE, WRITE } from './support/steps.js';

const ACME = '/api/v1/config/partners/ACME';
const IN = '/api/v1/config/files/IN';
const NODE1 = '/api/v1/servers/NODE1';

withDatabase((harness) => {
  const node = useNode(harness);
  const peers: RawPeer[] = [];
  // Before the node stops, which would wait for them.
  afterEach(() => {
    for (const { socket } of peers.splice(0)) socket.destroy();
  });
  const writing = async (): Promise<RawPeer> => {
    const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
    peers.push(peer);
    return peer;
  };
  const deleting = (path: string) => node().call('delete', path);
  const deletions = async (): Promise<readonly string[]> => {
    const { content } = await node().call('get', '/api/v1/audit?action=deleted');
    return (content as { object: string }[]).map(({ object }) => object);
  };

  test('a partner, a virtual file and a listener with a file that runs are not deleted', async () => {
    const peer = await writing();
    const [record] = await node().history();
    const runs = `in use: 1 transfer that runs: ${record?.id}. Let that end first`;
    await expect(deleting(ACME)).rejects.toThrow(`409 {"error":"CONFLICT","message":"Partner \\"ACME\\" is ${runs}`);
    await expect(deleting(IN)).rejects.toThrow(`Virtual file \\"IN\\" is ${runs}`);
    await expect(deleting(NODE1)).rejects.toThrow(/409 .*Listener ."NODE1." is in use: it is to run: stop it\. /);
    expect(await deletions()).toEqual([]);
    await peer.sendAll(...endOf(1));
    await peer.sendAll(CRF, DESELECT, RELEASE);
    await deleting(IN);
    await deleting(ACME);
    expect(await deletions()).toEqual(['ACME', 'IN']);
    expect(await node().history()).toMatchObject([{ status: 'COMPLETED', partnerId: 'ACME' }]);
  });

  test('by force they are, and the file that runs comes to its end', async () => {
    const peer = await writing();
    for (const path of [NODE1, IN, ACME]) await deleting(`${path}?force=true`);
    await expect(node().call('get', IN)).rejects.toThrow('404');
    expect(summaryOf(await peer.sendAll(...endOf(1)))).toBe('ACK(TRANS.END) 0-000');
    expect((await node().received('IN')).map(String)).toEqual([DATA]);
    expect(await deletions()).toEqual(['ACME', 'IN', 'NODE1']);
  });

  test('an interrupted file waits for its partner', async () => {
    const peer = await writing();
    peer.socket.destroy();
    const { id } = await node().record(({ status, restartable }) => status === 'FAILED' && restartable === true);
    const waits = `1 transfer that waits for the partner to restart: ${id}.`;
    await expect(deleting(ACME)).rejects.toThrow(waits);
    await expect(deleting(IN)).rejects.toThrow(waits);
    await deleting(`${ACME}?force=true`);
    await expect(node().call('get', ACME)).rejects.toThrow('404');
  });

  describe('lists', () => {
    test('keep what they name, and not what a glob of them means', async () => {
      await node().call('post', `${NODE1}/stop`);
      await until(async () => (await node().call('get', NODE1))['status'] === 'STOPPED' || undefined);
      await node().partner('BANK1', { allowedFiles: ['IN', 'B*'], allowedListeners: ['NODE1'] });
      await node().partner('BANK2', { allowedFiles: ['IN'], allowedListeners: ['NODE?'] });
      await node().call('put', '/api/v1/config/files/OUT', { allowedPartners: ['ACME'] });
      await expect(deleting(IN)).rejects.toThrow(/IN." is in use: allowedFiles of the partners: BANK1, BANK2\. /);
      await expect(deleting(ACME)).rejects.toThrow(/in use: allowedPartners of the virtual file: OUT\. /);
      await expect(deleting(NODE1)).rejects.toThrow(/in use: allowedListeners of the partner: BANK1\. /);
      await deleting('/api/v1/config/files/BOTH');
      for (const path of [IN, NODE1, ACME]) await deleting(`${path}?force=true`);
      expect(await node().call('get', '/api/v1/config/partners/BANK1')).toMatchObject({
        ...{ allowedFiles: ['IN', 'B*'], allowedListeners: ['NODE1'] },
      });
    });
  });

  test('force is true or false', async () => {
    await expect(deleting(`${ACME}?force=yes`)).rejects.toThrow(/400 .*force: expected true or false/);
    await deleting(`${ACME}?force=false`);
  });
});
