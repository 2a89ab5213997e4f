import { oneOf, text } from './kinds.js';
import { key } from './row.js';

/** TLS with PostgreSQL: rows of `CONFIG_KEYS`. */
export const DATABASE_SSL_KEYS = {
  'database.ssl.mode': key('both', {
    type: oneOf(
      ['', 'disable', 'require', 'verify-ca', 'verify-full'],
      'disable, require, verify-ca, verify-full, or nothing',
    ),
    default: '',
    description:
      'TLS with PostgreSQL, as `sslmode` of libpq: `require` encrypts and checks nobody (with a CA as `verify-ca`), `verify-ca` checks the CA, `verify-full` the name too. Empty = `sslmode` of `database.url`, and without one `disable`.',
  }),
  'database.ssl.ca-file': key('both', {
    type: text('a file'),
    default: '',
    description:
      'PEM file with the CAs that may vouch for PostgreSQL, in place of `sslrootcert` in the URL. Empty = those of Node.js. Read again for each connection.',
  }),
  'database.ssl.certificate-file': key('both', {
    type: text('a file'),
    default: '',
    description:
      'PEM file with the certificate that is shown to PostgreSQL, in place of `sslcert` in the URL. Empty = none.',
  }),
  'database.ssl.key-file': key('both', {
    type: text('a file'),
    default: '',
    description: 'PEM file with its private key, in place of `sslkey` in the URL.',
  }),
} as const;
