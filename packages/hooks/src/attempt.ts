/** The notice of an outcome, and how an attempt to deliver it went. */

export interface Notice {
  /** That of the delivery: the same over all attempts. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  /** JSON. */
  readonly body: string;
}

interface Seen {
  /** HTTP status. */
  readonly statusCode?: number | undefined;
  /** Exit code of the executable. */
  readonly exitCode?: number | undefined;
  /** The beginning of the answer, or the end of what the executable wrote: at most 4 KB. */
  readonly output?: string | undefined;
}

export type Attempted =
  | (Seen & { readonly outcome: 'delivered' })
  | (Seen & {
      readonly outcome: 'failed';
      /** In words. */
      readonly reason: string;
      /** Milliseconds that the receiver asks for before the next attempt. */
      readonly retryAfterMs?: number | undefined;
      /** It wants no more deliveries. */
      readonly gone?: boolean;
    })
  | (Seen & { readonly outcome: 'interrupted'; readonly reason: string });
