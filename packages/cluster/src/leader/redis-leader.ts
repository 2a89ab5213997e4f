import type { RedisLink } from '../redis-link.js';
import type { Fence, Seat } from './fence.js';
import type { LeaseBackend } from './leader-lease.js';
import { LEADER_TTL_MS } from './timed-leader.js';

/** One key of Redis that runs out, and holds the name of a process. All throw when Redis cannot be asked now. */
export interface LeaseKey {
  read(): Promise<string | undefined>;
  /** @returns whether it is `instance`'s now: it was free, or was that already. */
  take(instance: string): Promise<boolean>;
  /** @returns whether it was `instance`'s and is for one more lease. */
  renew(instance: string): Promise<boolean>;
  /** Frees it if it is `instance`'s. */
  free(instance: string): Promise<void>;
}

const TAKE = `
  local holder = redis.call('get', KEYS[1])
  if holder and holder ~= ARGV[1] then return 0 end
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  return 1`;
const RENEW = `
  if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
  return redis.call('pexpire', KEYS[1], ARGV[2])`;
const FREE = `
  if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
  return redis.call('del', KEYS[1])`;

export const leaseKey = (
  { commands }: RedisLink,
  { app, cluster }: Pick<Seat, 'app' | 'cluster'>,
  ttlMs = LEADER_TTL_MS,
): LeaseKey => {
  const key = `pesit:leader:${cluster}:${app}`;
  const isDone = async (script: string, instance: string): Promise<boolean> =>
    (await commands.eval(script, 1, key, instance, ttlMs)) === 1;
  return {
    read: async () => (await commands.get(key)) ?? undefined,
    take: (instance) => isDone(TAKE, instance),
    renew: (instance) => isDone(RENEW, instance),
    free: async (instance) => {
      await isDone(FREE, instance);
    },
  };
};

/**
 * The lease of the leader in Redis. Who takes it raises the epoch in PostgreSQL before he acts, from what it was before he
 * asked Redis: a raise that comes late, when the lease has gone to the next, changes nothing.
 */
export const redisLease = (key: LeaseKey, fence: Fence, instance: string): LeaseBackend => {
  let newest = 0;
  let looking = false;
  /** Two who lead, after a failover of Redis: the one with the older epoch learns of it, without waiting for the database. */
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      newest = await fence.newest();
    } catch {
      // It can write nothing either.
    } finally {
      looking = false;
    }
  };
  return {
    acquire: async () => {
      const holder = await key.read();
      if (holder !== undefined && holder !== instance) return undefined;
      const from = await fence.newest();
      if (!(await key.take(instance))) return undefined;
      try {
        return await fence.raise(from);
      } catch (error) {
        // Another pod may reach the database.
        await key.free(instance).catch(() => undefined);
        throw error;
      }
    },
    renew: async (epoch) => {
      void look();
      return (await key.renew(instance)) && newest <= epoch;
    },
    release: () => key.free(instance),
    holder: () => key.read(),
  };
};
