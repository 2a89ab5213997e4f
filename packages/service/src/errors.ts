/**
 * The table of REST errors: code → HTTP status, and whether the same request may succeed later.
 * Design §4 names the codes; those of the client app are the specification's (Errors).
 */
export const API_ERRORS = {
  VALIDATION_ERROR: { status: 400, retryable: false },
  UNAUTHORIZED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  CONFLICT: { status: 409, retryable: false },
  GONE: { status: 410, retryable: false },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false },
  RANGE_NOT_SATISFIABLE: { status: 416, retryable: false },
  UNPROCESSABLE: { status: 422, retryable: false },
  TOO_MANY_REQUESTS: { status: 429, retryable: true },
  INTERNAL_ERROR: { status: 500, retryable: false },
  SERVICE_UNAVAILABLE: { status: 503, retryable: true },
  /** RFC 4918 §11.5. */
  INSUFFICIENT_STORAGE: { status: 507, retryable: true },
  SERVER_NOT_FOUND: { status: 404, retryable: false },
  FILE_NOT_FOUND: { status: 404, retryable: false },
  CONNECTION_FAILED: { status: 502, retryable: true },
  AUTH_FAILED: { status: 502, retryable: false },
  PARTNER_UNKNOWN: { status: 502, retryable: false },
  TRANSFER_FAILED: { status: 502, retryable: true },
  TIMEOUT: { status: 504, retryable: true },
} as const satisfies Record<string, { readonly status: number; readonly retryable: boolean }>;

export type ApiErrorCode = keyof typeof API_ERRORS;

/** One field at fault: `field` is its path (`records[0].length`), `message` what was expected. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

export interface ApiErrorOptions {
  readonly details?: readonly FieldError[];
  /** PeSIT diagnostic, `'3-304'`. */
  readonly diagnostic?: string;
  /** Extra response headers (`Allow`, `Retry-After`, `WWW-Authenticate`). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An answer that is not a success. `message` is for the caller: what was expected, what came, what to do; no secret. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ApiErrorCode;
  readonly status: number;
  readonly details: readonly FieldError[] | undefined;
  readonly diagnostic: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ApiErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = API_ERRORS[code].status;
    this.details = options.details;
    this.diagnostic = options.diagnostic;
    this.headers = options.headers ?? {};
  }
}

/** `virtual file` → `Virtual file`: a text at the beginning of a sentence. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** 404, for example `notFound('Partner', 'ACME', '/api/v1/config/partners')`. @param seen path that shows what exists */
export const notFound = (
  what: string,
  id: string | number,
  seen: string,
  code: 'NOT_FOUND' | 'SERVER_NOT_FOUND' = 'NOT_FOUND',
): ApiError => new ApiError(code, `${what} ${JSON.stringify(id)} does not exist: see GET ${seen}`);

/** 409: the state of things forbids it (exists already, is running …). */
export const conflict = (message: string, options?: ApiErrorOptions): ApiError =>
  new ApiError('CONFLICT', message, options);

/** 400 that names fields. */
export const validation = (details: readonly FieldError[], message = 'The request is not valid'): ApiError =>
  new ApiError('VALIDATION_ERROR', `${message}: ${details.map((d) => `${d.field}: ${d.message}`).join('; ')}`, {
    details,
  });

/** 422: well-formed, but cannot be done, for example a field whose behaviour is not built yet. */
export const unprocessable = (message: string, details?: readonly FieldError[]): ApiError =>
  new ApiError('UNPROCESSABLE', message, details === undefined ? {} : { details });

/** 422 for fields that this version does not act on: refused rather than silently ignored. */
export const notBuiltYet = (...fields: readonly string[]): ApiError =>
  unprocessable(
    `Not built yet in this version: ${fields.join(', ')}. Leave ${fields.length > 1 ? 'them' : 'it'} out`,
    fields.map((field) => ({ field, message: 'not built yet' })),
  );

/** 503 with Retry-After (seconds). */
export const unavailable = (message: string, retryAfter = 5, cause?: unknown): ApiError =>
  new ApiError('SERVICE_UNAVAILABLE', message, { headers: { 'Retry-After': String(retryAfter) }, cause });
