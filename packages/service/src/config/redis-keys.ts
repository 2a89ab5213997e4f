import { addresses, label, text } from './kinds.js';
import { key } from './row.js';

/** Where Redis is, and how to log in: rows of `CONFIG_KEYS`. */
export const REDIS_KEYS = {
  'redis.url': key('both', {
    type: text('redis://user:password@host:port/number (rediss:// with TLS), or nothing'),
    default: '',
    secret: true,
    description:
      'Redis 6 or newer, used when `cluster.enabled`. Without it they tell each other through PostgreSQL (LISTEN and NOTIFY, one connection a pod beside the pool). With `redis.sentinels` its host and port are not used: the sentinels say where Redis is.',
  }),
  'redis.username': key('both', {
    type: text(),
    default: '',
    description: 'User of Redis, in place of the one in `redis.url`. Empty = that one.',
  }),
  'redis.password': key('both', {
    type: text(),
    default: '',
    secret: true,
    description: 'Password of Redis, in place of the one in `redis.url`. Empty = that one.',
  }),
  'redis.sentinels': key('both', {
    type: addresses(26_379),
    default: [],
    description:
      'Sentinels that watch over Redis; one that answers is enough. Empty = Redis is where `redis.url` says.',
  }),
  'redis.sentinel-name': key('both', {
    type: label(),
    default: 'mymaster',
    description: 'Name of the master that the sentinels watch.',
  }),
  'redis.sentinel-username': key('both', {
    type: text(),
    default: '',
    description: 'User of the sentinels. Empty = none.',
  }),
  'redis.sentinel-password': key('both', {
    type: text(),
    default: '',
    secret: true,
    description: 'Password of the sentinels, which is not that of Redis. Empty = they ask for none.',
  }),
  'redis.tls-ca': key('both', {
    type: text('a file'),
    default: '',
    description:
      'PEM file with the authorities that may vouch for Redis and its sentinels, where `redis.url` begins with `rediss://`. Empty = those of Node.js. Names and addresses are checked: the certificates must have what `redis.url` and `redis.sentinels` say, and what the sentinels answer.',
  }),
  'redis.tls-certificate': key('both', {
    type: text('a file'),
    default: '',
    description: 'PEM file with the certificate that this pod shows to Redis and its sentinels. Empty = it shows none.',
  }),
  'redis.tls-key': key('both', {
    type: text('a file'),
    default: '',
    description: 'PEM file with the private key of `redis.tls-certificate`.',
  }),
} as const;
