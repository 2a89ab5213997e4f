/** Flags of the commands that talk PeSIT. Nothing but words here: what they mean is loaded with the command. */
import { CODE_PAGES, DEFAULT_CODE_PAGE } from '@pesit-node/protocol';

import type { Flag } from '../frame/command.js';

/** Values of flags that are absent. */
export const DEFAULTS = {
  port: 6502,
  tlsPort: 5001,
  timeoutSeconds: 30,
  syncIntervalKb: 256,
  syncWindow: 4,
  attempts: 5,
  entitySize: 32_768,
} as const;

export const SESSION_FLAGS: readonly Flag[] = [
  { name: 'host', type: 'text', required: true, help: 'Host name or address of the PeSIT server.' },
  {
    name: 'port',
    type: 'number',
    from: 1,
    to: 65_535,
    fallback: `${DEFAULTS.port}, with --tls ${DEFAULTS.tlsPort}`,
    help: 'Its port.',
  },
  { name: 'server-id', type: 'text', required: true, help: 'Its identifier (PI 4).' },
  { name: 'partner', type: 'text', required: true, help: 'Our identifier there (PI 3).' },
  {
    name: 'password-file',
    type: 'path',
    help: 'File whose first line is our password (PI 5); - reads standard input.',
  },
  {
    name: 'password',
    type: 'text',
    variable: 'PESIT_PASSWORD',
    help: 'Our password; other users of this machine can read it in the list of processes: rather use a file.',
  },
  { name: 'preconnect-id', type: 'text', help: 'Identifier of a pre-connection, which is sent then.' },
  { name: 'preconnect-password', type: 'text', variable: 'PESIT_PRECONNECT_PASSWORD', help: 'Its password.' },
  {
    name: 'dialect',
    type: 'text',
    choices: ['length-prefixed', 'raw'],
    fallback: 'length-prefixed',
    help: 'Framing on the connection.',
  },
  { name: 'crc', type: 'switch', help: 'Ask for a CRC on each message (PI 1).' },
  {
    name: 'sync-interval',
    type: 'number',
    to: 65_534,
    value: 'KB',
    fallback: String(DEFAULTS.syncIntervalKb),
    help: 'Data between two sync points; 0: none, and what is cut off begins at the start.',
  },
  {
    name: 'sync-window',
    type: 'number',
    to: 255,
    fallback: String(DEFAULTS.syncWindow),
    help: 'Sync points that may wait for their acknowledgement.',
  },
  {
    name: 'timeout',
    type: 'number',
    from: 1,
    to: 86_400,
    value: 'SECONDS',
    fallback: String(DEFAULTS.timeoutSeconds),
    help: 'How long to wait for the connection, and for each answer.',
  },
  { name: 'tls', type: 'switch', help: 'Speak TLS.' },
  { name: 'ca', type: 'path', fallback: 'the public CAs', help: 'PEM file of the CAs that stand behind the server.' },
  { name: 'cert', type: 'path', help: 'PEM file of our certificate and those between it and its CA.' },
  { name: 'key', type: 'path', fallback: 'the file of --cert', help: 'PEM file of its private key.' },
  { name: 'tls-name', type: 'text', fallback: 'the host', help: 'Name that the certificate of the server must have.' },
  {
    name: 'pin',
    type: 'list',
    value: 'FINGERPRINT',
    help: 'SHA-256 of the certificate of the server, in place of chain and name.',
  },
  { name: 'trace', type: 'switch', help: 'Show each message of the session on standard error, secrets masked.' },
];

export const FILE_FLAGS: readonly Flag[] = [
  { name: 'text', type: 'switch', help: 'Records are lines of text.' },
  { name: 'ebcdic', type: 'switch', help: 'The partner has EBCDIC: lines are translated.' },
  {
    name: 'code-page',
    type: 'text',
    choices: CODE_PAGES,
    fallback: DEFAULT_CODE_PAGE,
    help: 'Code page of EBCDIC lines.',
  },
  {
    name: 'compression',
    type: 'text',
    choices: ['none', 'horizontal', 'vertical', 'both'],
    fallback: 'none',
    help: 'Compression to ask for (PI 21).',
  },
  { name: 'original-sender', type: 'text', help: 'Who the file comes from (PI 61).' },
  { name: 'final-receiver', type: 'text', help: 'Who it is for in the end (PI 62).' },
  { name: 'free-message', type: 'text', help: 'Free text for the partner (PI 99).' },
  {
    name: 'attempts',
    type: 'number',
    from: 1,
    to: 1000,
    fallback: String(DEFAULTS.attempts),
    help: 'Attempts in all; each continues where the one before was cut off.',
  },
  {
    name: 'state',
    type: 'path',
    value: 'DIR',
    variable: 'PESIT_STATE',
    fallback: '~/.local/state/pesit',
    help: 'Where is kept what the same command needs to continue later.',
  },
];
