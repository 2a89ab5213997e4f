import { once } from 'node:events';
import { connect } from 'node:net';

import { describe, expect, test } from '@jest/globals';
import { findDatabase, loseDatabase, readOpenMetrics, withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DATA, DTF, endOf, ORF, syn, WRITE } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness, { checkEveryMs: 20 });

  const samples = async () => readOpenMetrics(await node().node.metrics.scrape());
  /** The values of these samples, in this order. */
  const values = async (...keys: readonly string[]) => {
    const all = await samples();
    return keys.map((key) => all.get(key));
  };
  const transfers = (direction: string, status: string) =>
    `service_transfers_total{direction="${direction}",kind="inbound",status="${status}"}`;
  const moved = (direction: string) => `service_bytes_transferred_total{direction="${direction}",kind="inbound"}`;
  const points = (direction: string) => `pesit_sync_points_total{direction="${direction}"}`;

  test('a file written and a file read', async () => {
    const session = await node().connect();
    expect(await values('pesit_sessions_open', 'pesit_sessions_total')).toEqual([1, 1]);
    await node().send(session, 'IN', bytes(300_000));
    await node().send(session, 'BOTH', bytes(10));
    expect(await values(transfers('RECEIVE', 'COMPLETED'), moved('RECEIVE'))).toEqual([2, 300_010]);
    expect((await samples()).get(points('RECEIVE'))).toBeGreaterThan(2);
    expect(
      await values(
        'pesit_peer_transfers_total{direction="RECEIVE",peer="ACME",status="COMPLETED"}',
        'pesit_transfers_started_total{direction="RECEIVE"}',
        'pesit_transfer_duration_seconds_count{direction="RECEIVE"}',
        'pesit_transfers_running{direction="RECEIVE"}',
        transfers('SEND', 'COMPLETED'),
      ),
    ).toEqual([1 + 1, 2, 2, 0, 0]);
    const [flushes, synced, ended] = await values(
      'pesit_flush_duration_seconds_count',
      'pesit_acknowledgement_seconds_count{of="SYN"}',
      'pesit_acknowledgement_seconds_count{of="TRANS.END"}',
    );
    expect(ended).toBe(2);
    // Points that come while one is flushed share the next flush, and its acknowledgement.
    expect(synced).toBeGreaterThanOrEqual(1);
    expect(synced).toBeLessThanOrEqual((await samples()).get(points('RECEIVE')) ?? 0);
    expect(flushes).toBeGreaterThanOrEqual(2);
  });

  test('a running transfer, its interruption, and its restart', async () => {
    const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, syn(1), DTF, DTF, syn(2), DTF);
    await until(async () => (await samples()).get(moved('RECEIVE')) === 4 * DATA.length || undefined);
    expect(await values('pesit_transfers_running{direction="RECEIVE"}', points('RECEIVE'))).toEqual([1, 2]);
    peer.socket.resetAndDestroy();
    await node().ended();
    const errors = 'pesit_transfer_errors_total{diagnostic="3-310",direction="RECEIVE"}';
    expect(await values(transfers('RECEIVE', 'FAILED'), errors, moved('RECEIVE'))).toEqual([1, 1, 4 * DATA.length]);

    const again = await RawPeer.open(node().port, CONNECT, create({ restarted: true }), ORF, WRITE, DTF, syn(3));
    await again.sendAll(...endOf(4));
    again.socket.destroy();
    // The article behind point 2 came twice; what is behind a point that is kept came once.
    expect(
      await values(
        'pesit_transfer_restarts_total{direction="RECEIVE"}',
        moved('RECEIVE'),
        points('RECEIVE'),
        transfers('RECEIVE', 'COMPLETED'),
      ),
    ).toEqual([1, 5 * DATA.length, 3, 1]);
  });

  test('refusals: of a connection, of a session, of a file', async () => {
    await expect(node().connect({ password: 'wrong' })).rejects.toEqual(refusedWith('3-304'));
    await expect(node().connect({ requester: 'NOBODY' })).rejects.toEqual(refusedWith('3-301'));
    const stranger = connect(node().port, '127.0.0.1');
    stranger.end('GET / HTTP/1.1\r\n\r\n');
    await once(stranger.resume(), 'close');
    const session = await node().connect();
    await expect(node().send(session, 'NOWHERE', bytes(1))).rejects.toMatchObject({ fault: 'refused' });
    const refused = (diagnostic: string) => `pesit_sessions_refused_total{diagnostic="${diagnostic}"}`;
    expect(await values(refused('3-304'), refused('3-301'), refused('none'))).toEqual([1, 1, 1]);
    const [record] = await node().history();
    expect(
      await values(
        transfers('RECEIVE', 'FAILED'),
        `pesit_transfer_errors_total{diagnostic="${record?.diagnostic ?? ''}",direction="RECEIVE"}`,
        'pesit_transfers_started_total{direction="RECEIVE"}',
      ),
    ).toEqual([1, 1, 0]);
  });

  describe('what the database has', () => {
    test('partners, virtual files, listeners by status', async () => {
      await node().call('post', '/api/v1/servers', { serverId: 'SECOND', port: 1, autoStart: false });
      expect(
        await values(
          'service_partners',
          'service_virtual_files',
          'service_listeners',
          'service_listeners_up',
          'pesit_listeners{status="RUNNING"}',
          'pesit_listeners{status="STOPPED"}',
          'pesit_listeners{status="FAILED"}',
          'pesit_database_up',
        ),
      ).toEqual([1, 3, 2, 1, 1, 1, 0, 1]);
    });

    test('is left out while the database is away; the rest is answered', async () => {
      const { supervisor } = node().node;
      const lost = once(supervisor, 'lost');
      loseDatabase(node().database);
      await lost;
      expect(await values('pesit_database_up', 'service_partners', 'pesit_sessions_open')).toEqual([0, undefined, 0]);
      const back = once(supervisor, 'ready');
      findDatabase(node().database);
      await back;
      expect(await values('pesit_database_up', 'service_partners')).toEqual([1, 1]);
    });
  });
});
