import { z } from 'zod';

import { text } from './kinds.js';
import { key } from './row.js';

const isCollector = (given: string): boolean => {
  if (!URL.canParse(given)) return false;
  const { protocol, username, password, search } = new URL(given);
  return /^https?:$/.test(protocol) && username === '' && password === '' && search === '';
};

/** Where spans go: rows of `CONFIG_KEYS`. */
export const OTEL_KEYS = {
  'otel.endpoint': key('both', {
    type: z
      .string()
      .refine(
        (given) => given === '' || isCollector(given),
        'expected http://host:port or https://host:port of a collector, without user, password and query',
      )
      .describe('http://host:4318 or https://host:4318, or nothing'),
    default: '',
    description:
      'OpenTelemetry collector that gets a span for each PeSIT session and each attempt of a transfer, over OTLP/HTTP at `/v1/traces` below it. Empty = none, and nothing is loaded for it. See docs/operations.md.',
  }),
  'otel.authorization': key('both', {
    type: text('the whole value of the header, such as Bearer and a token'),
    default: '',
    secret: true,
    description: 'Header `Authorization` of what is sent to `otel.endpoint`. Empty = none.',
  }),
};
