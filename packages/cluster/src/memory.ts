import type { RedisLink } from './redis-link.js';

/** Texts that outlive the processes and the database, as long as they last; never the only copy of anything. */
export interface SharedMemory {
  /** @returns null when there is none. @throws when it cannot be asked now. */
  read(key: string): Promise<string | null>;
  /** @throws when it cannot be written now. */
  write(key: string, text: string): Promise<void>;
}

export const redisMemory = ({ commands }: RedisLink): SharedMemory => ({
  read: (key) => commands.get(`pesit:${key}`),
  write: async (key, text) => {
    await commands.set(`pesit:${key}`, text);
  },
});
