import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { PesitError } from '@pesit-node/protocol';
import { SentPoints, verdictOn } from '@pesit-node/transfers';

import { writeNote } from '../src/exchange/delivery-note.js';
import { Leases } from '../src/queue/leases.js';
import type { LeasesOptions } from '../src/queue/leases.js';
import type { Interruption } from '../src/queue/interruption.js';

describe('a full disk', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'pesit-full-'));
    await mkdir(join(root, '.pesit'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  test.each<[string, (place: string) => Promise<unknown>]>([
    [
      'x.delivery',
      () => {
        const first = { transferId: 1, recordLength: 80, file: '' };
        return writeNote(root, 'x', { first, paths: [], size: 1, bytesTransferred: 1, articles: 1 }, false);
      },
    ],
    ['x.sent', (place) => new SentPoints(place).add({ number: 1, fileOffset: 1, dataBytes: 1, articles: 1 })],
  ])('under %s is said in words, and the transfer is tried again', async (name, write) => {
    const place = join(root, '.pesit', name);
    await symlink('/dev/full', place);
    const failure = await write(place).then(
      () => undefined,
      (thrown: unknown) => thrown as PesitError,
    );
    expect(failure).toMatchObject({ fault: 'local', diagnostic: '2-219' });
    expect(failure?.message).toBe(`cannot write ${place}: the disk is full; free space or enlarge the volume`);
    expect(verdictOn(failure as PesitError)).toBe('again');
  });
});

describe('leases', () => {
  /** A busy machine stands still for less than the parts of it that are told apart here. */
  const LEASE_MS = 60_000;

  const lease = (renew: LeasesOptions['renew']) => {
    const failures: string[] = [];
    const leases = new Leases({
      ...{ renew, progressOf: (id: string) => ({ id }), leaseMs: LEASE_MS },
      failed: () => failures.push('not renewed'),
    });
    const abort = new AbortController();
    return { leases, abort, failures };
  };
  const kindOf = ({ signal }: AbortController): unknown => (signal.reason as Interruption | undefined)?.kind;

  test('is good for a while without a statement, and renewed by one when it grows old', async () => {
    let renewed = 0;
    const { leases, abort } = lease(() => Promise.resolve([{ id: 'a', cancel_requested: ++renewed > 9 }]));
    leases.begin('a', 1, abort, performance.now());
    await leases.require('a');
    expect(renewed).toBe(0);
    leases.begin('a', 1, abort, performance.now() - 0.6 * LEASE_MS);
    await leases.require('a');
    expect(renewed).toBe(1);
    expect(abort.signal.aborted).toBe(false);
  });

  test('is lost when the database knows it no more', async () => {
    const { leases, abort } = lease(() => Promise.resolve([]));
    leases.begin('a', 1, abort, performance.now() - 0.6 * LEASE_MS);
    await expect(leases.require('a')).rejects.toMatchObject({ kind: 'lost' });
    expect(kindOf(abort)).toBe('lost');
    await expect(leases.require('unknown')).rejects.toMatchObject({ kind: 'lost' });
  });

  test('is given up before it runs out when it cannot be renewed', async () => {
    const { leases, abort, failures } = lease(() => Promise.reject(new Error('away')));
    leases.begin('a', 1, abort, performance.now() - 0.7 * LEASE_MS);
    await expect(leases.renew()).rejects.toThrow('away');
    expect(kindOf(abort)).toBeUndefined();
    leases.begin('a', 1, abort, performance.now() - 0.9 * LEASE_MS);
    await expect(leases.require('a')).rejects.toMatchObject({ kind: 'lost' });
    expect(kindOf(abort)).toBe('lost');
    expect(failures).toHaveLength(2);
  });

  test('is given up before it runs out when the database does not answer at all, and is asked once at a time', async () => {
    let asked = 0;
    const { leases, abort } = lease(() => {
      asked += 1;
      return new Promise(() => undefined);
    });
    leases.begin('a', 1, abort, performance.now() - 0.8 * LEASE_MS);
    void leases.renew();
    expect(kindOf(abort)).toBeUndefined();
    void leases.renew();
    await once(abort.signal, 'abort');
    expect(kindOf(abort)).toBe('lost');
    expect(asked).toBe(1);
  });

  test('brings the wish to cancel', async () => {
    const { leases, abort } = lease(() => Promise.resolve([{ id: 'a', cancel_requested: true }]));
    leases.begin('a', 1, abort, performance.now());
    await leases.renew();
    expect(kindOf(abort)).toBe('cancelled');
    leases.end('a');
    await leases.renew();
  });
});
