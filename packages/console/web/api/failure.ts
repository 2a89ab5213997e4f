/** Why a request has no answer that a page can show. */
export class Failure extends Error {
  override readonly name = 'Failure';
  /** Of HTTP; 0: no answer came. */
  readonly status: number;
  /** Of the error body, or `UNREACHABLE`, `TIMEOUT`, `UNREADABLE`. */
  readonly code: string;
  /** As the log of the service has it. */
  readonly requestId: string | null;
  readonly details: readonly FieldFailure[];

  constructor(
    status: number,
    code: string,
    message: string,
    { requestId = null, details = [] }: Partial<Pick<Failure, 'requestId' | 'details'>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.details = details;
  }
}

export interface FieldFailure {
  readonly field: string;
  readonly message: string;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const fieldsOf = (details: unknown): FieldFailure[] =>
  !Array.isArray(details)
    ? []
    : details.flatMap((one: unknown) => {
        const { field, message } = (one ?? {}) as Record<string, unknown>;
        return typeof field === 'string' && typeof message === 'string' ? [{ field, message }] : [];
      });

/** The failure that an answer tells; its body is the house's error body, or anything at all when a proxy answered. */
export const failureOf = (response: Response, body: unknown): Failure => {
  const { error, message, details } = (body !== null && typeof body === 'object' ? body : {}) as Record<
    string,
    unknown
  >;
  return new Failure(
    response.status,
    text(error) ?? 'UNREADABLE',
    text(message) ?? `${response.status} ${response.statusText}`,
    { requestId: response.headers.get('X-Request-Id'), details: fieldsOf(details) },
  );
};

/** The failure behind whatever was thrown. */
export const asFailure = (thrown: unknown): Failure => {
  if (thrown instanceof Failure) return thrown;
  const { name, message } = thrown instanceof Error ? thrown : { name: '', message: String(thrown) };
  if (name === 'TimeoutError') return new Failure(0, 'TIMEOUT', message);
  return new Failure(0, 'UNREACHABLE', message);
};
