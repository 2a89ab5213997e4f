import { z } from 'zod';

import type { Method, Operation } from '../http/routes.js';
import { errorBody } from '../http/error-body.js';
import { roleOf } from '../http/routes.js';
import { ANY_QUERY } from '../http/validate.js';

/** The 402 of the specification (Errors), with the fields that every error body has. */
const licenseRequired = z
  .object({
    error: z.literal('LICENSE_REQUIRED'),
    message: z.string(),
    licenseUrl: z.string().meta({ description: 'Where a license is installed: POST `{ "license": "…" }`.' }),
    path: z.string(),
    timestamp: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'LicenseRequired' });

/** The answers that follow from what an operation takes and who may call it: name of the component, status, text, body. */
export const COMMON_ANSWERS = {
  BadRequest: [400, 'The request is not valid: `details` names every field at fault.', errorBody],
  Unauthorized: [401, 'No credentials, or wrong ones.', errorBody],
  Forbidden: [
    403,
    'The role of the caller is not enough, or a page of another origin may have sent it (Origin, Sec-Fetch-Site).',
    errorBody,
  ],
  LicenseRequired: [402, 'The evaluation is over, or the license has expired.', licenseRequired],
  TooLarge: [413, 'The body is longer than `http.max-body`.', errorBody],
  UnsupportedMediaType: [
    415,
    'The body is not of the content type that is asked for, or there is one where none is.',
    errorBody,
  ],
  TooManyRequests: [429, 'Too many failed logins of this user from this address: see Retry-After.', errorBody],
  InternalError: [500, 'A fault of the service: its log has the reason.', errorBody],
  Unavailable: [503, 'Not possible for now, for example because the database is away: see Retry-After.', errorBody],
} as const satisfies Record<string, readonly [number, string, z.ZodType]>;

export type CommonAnswer = keyof typeof COMMON_ANSWERS;

/** Which of them an operation has. */
export const commonAnswersOf = (method: Method, operation: Operation): CommonAnswer[] => {
  const { access = 'licensed', params, query, body } = operation;
  const mayBeForbidden = method !== 'get' || roleOf(method, operation) !== 'viewer';
  const takes = params !== undefined || query !== ANY_QUERY || body !== undefined;
  return [
    ...(takes ? (['BadRequest'] as const) : []),
    ...(access === 'open' ? [] : (['Unauthorized', 'TooManyRequests'] as const)),
    ...(mayBeForbidden ? (['Forbidden'] as const) : []),
    ...(access === 'licensed' ? (['LicenseRequired'] as const) : []),
    ...(method === 'get' ? [] : (['TooLarge', 'UnsupportedMediaType'] as const)),
    ...(access === 'open' ? [] : (['InternalError', 'Unavailable'] as const)),
  ];
};
